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
    attempt: str
    """Of a tick: which try its body says it is."""
    sent_at: Instant


class Census:
    """Counts messages. What a row holds never changes while it stands, so each is read once, unless `afresh`."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int], tuple[str, str, str]] = {}

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


def key_of(content: Content) -> str:
    """Answer the key of a message: in its body, or of a dead letter whose body is somebody else's, in its attributes."""
    body = loads(content.body)
    if "key" in body:
        return str(body["key"])
    said = {name: str(value) for name, (_, value) in (content.attributes or {}).items()}
    if "SCHEDULE_ARN" in said:
        return f"t:{said['SCHEDULE_ARN']}@{said['SCHEDULED_TIME']}"
    return f"letter:{said['RULE_ARN']}>{said['TARGET_ARN']}#{body['id']}"


def _read(tx: Tx, row: Row) -> tuple[str, str, str]:
    found = tx.one(queries.CONTENT, (row[1], row[2], row[3]))
    if found is None or found[0] is None:
        raise BodyLost(f"message {row[2]}/{row[3]} of {row[0]} has no content")
    content = Content(*unpack(found[0]))
    return content.message_id, key_of(content), str(loads(content.body).get("attempt", ""))
