"""The ledger: every delivery of a tick or an event to one target, as the record of handovers tells it.

Read anew before invariants are checked; rows that were read are not read again.
"""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from tasuki.store.store import Row, Tx
from tasuki.testing.simulation import queries
from tasuki.values.instant import Instant

_ATTEMPT = re.compile(r"FAILED: .*\(attempt (\d+)\)", re.DOTALL)
_OVERLAP = 2_000
"""Rows that are looked at again: where units run beside each other a smaller number may be committed later."""


class Name(NamedTuple):
    """What tells a delivery from all others. The trace is a tick's or an event's own."""

    source: str
    source_id: str
    target: str
    trace: str


@dataclass(slots=True)
class Entry:
    """One delivery: when each failed try was written down and which it was, and its ending."""

    name: Name
    tries: list[tuple[Instant, int]] = field(default_factory=list)
    ends: list[tuple[Instant, str, str]] = field(default_factory=list)
    """(when, outcome, what it became): one, when all is well."""

    @property
    def fired(self) -> Instant:
        """When it was first tried, or given up untried."""
        return self.tries[0][0] if self.tries else self.ends[0][0]

    @property
    def outcome(self) -> str:
        """`DELIVERED`, `DEAD_LETTERED: why`, `DROPPED: why`; empty while it is on its way."""
        return self.ends[0][1] if self.ends else ""


class Passed(NamedTuple):
    """A message that a pipe was done with, or that failed."""

    at: Instant
    source: str
    source_id: str
    via: str
    target: str
    target_id: str
    outcome: str


class Ledger:
    """All that was handed over."""

    def __init__(self) -> None:
        self.entries: dict[Name, Entry] = {}
        self.by_source: dict[str, list[Entry]] = defaultdict(list)
        self.passed: list[Passed] = []
        self.fresh: dict[str, list[Entry]] = {"scheduler": [], "events": []}
        """Deliveries of schedules and of rules that are new since somebody took them from here (`take_fresh`)."""
        self.changed: dict[Name, Entry] = {}
        """Those of which something was written since the last check."""
        self._seen: set[int] = set()
        self._last = 0

    def read(self, tx: Tx) -> None:
        """Take in what is new."""
        for row in tx.all(queries.HANDOVERS, (self._last - _OVERLAP,)):
            if row[0] not in self._seen:
                self._seen.add(row[0])
                self._take(row)
                self._last = max(self._last, row[0])

    def _take(self, row: Row) -> None:
        _, at, source, source_id, via, target, target_id, trace, outcome = row
        if via:
            self.passed.append(Passed(at, source, source_id, via, target, target_id, outcome))
            return
        name = Name(source, source_id, target, trace)
        entry = self.entries.get(name)
        if entry is None:
            entry = self.entries[name] = Entry(name)
            self.by_source[source].append(entry)
            self.fresh[source.split(":")[2]].append(entry)
        self.changed[name] = entry
        tried = _ATTEMPT.fullmatch(outcome)
        if tried is not None:
            entry.tries.append((at, int(tried[1])))
        else:
            entry.ends.append((at, outcome, target_id))

    def take_fresh(self, service: str) -> list[Entry]:
        """Answer the new deliveries of `scheduler` or `events`, once."""
        fresh, self.fresh[service] = self.fresh[service], []
        return fresh

    def take_changed(self) -> list[Entry]:
        """Answer those that changed, once."""
        changed, self.changed = self.changed, {}
        return list(changed.values())
