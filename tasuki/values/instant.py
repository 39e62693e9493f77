"""Instants and durations: integer milliseconds, UTC. ISO-8601 only at the edges.

Nothing here reads a clock: `Clock.now()` is called at the rim (`runtime/`, `store/`), and everybody else
is handed the answer.
"""

from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeAlias

Instant: TypeAlias = int
"""Milliseconds since 1970-01-01T00:00:00Z."""

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


class Clock(Protocol):
    """Where an instant comes from. Read at the rim only."""

    def now(self) -> Instant:
        """Answer the present instant, in milliseconds."""


def to_iso(instant: Instant) -> str:
    """Write `instant` as AWS does in documents: `2026-10-09T16:00:00.000Z` (UTC, three decimals)."""
    moment = _EPOCH + timedelta(milliseconds=instant)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{instant % 1000:03d}Z"


def from_datetime(moment: datetime) -> Instant:
    """Turn an aware datetime into an instant, dropping what is finer than a millisecond."""
    return (moment - _EPOCH) // _MS


def to_datetime(instant: Instant) -> datetime:
    """Turn an instant into an aware UTC datetime."""
    return _EPOCH + timedelta(milliseconds=instant)
