"""A census: every message that stands in a queue, told apart by its id and by the key in its body."""

from collections import Counter
from typing import NamedTuple

from tasuki.services.queues.model import Content
from tasuki.store.store import Row, Tx
from tasuki.testing.simulation import queries
from tasuki.values.documents import loads, unpack
from tasuki.values.instant import Instant


class BodyLost(AssertionError):
    """A message stands in a queue without what was sent."""


class Standing(NamedTuple):
    """A message in a queue."""

    queue: str
    id: str
    key: str
    sent_at: Instant


class Census:
    """Counts messages. What a row holds never changes while it stands, so each is read once, unless `afresh`."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int], tuple[str, str]] = {}

    def take(self, tx: Tx, *, queue: str | None = None, afresh: bool = False) -> list[Standing]:
        """Answer all messages, or those of one queue."""
        rows = tx.all(queries.STANDING) if queue is None else tx.all(queries.STANDING_IN, (queue,))
        known = {} if afresh else self._known
        seen = {(row[1], row[2], row[3]): known.get((row[1], row[2], row[3])) or _read(tx, row) for row in rows}
        if queue is None:
            self._known = seen
        return [Standing(row[0], *seen[row[1], row[2], row[3]], row[2]) for row in rows]


def by_key(standing: list[Standing]) -> Counter[str]:
    """Count messages by the key in their bodies."""
    return Counter(one.key for one in standing)


def _read(tx: Tx, row: Row) -> tuple[str, str]:
    found = tx.one(queries.CONTENT, (row[1], row[2], row[3]))
    if found is None or found[0] is None:
        raise BodyLost(f"message {row[2]}/{row[3]} of {row[0]} has no content")
    content = Content(*unpack(found[0]))
    return content.message_id, str(loads(content.body)["key"])
