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

EARLIEST, LATEST = -62_135_510_400 * SECOND, 253_402_214_400 * SECOND
"""The second day of the year 1 and the last of 9999: what lies between can be written as a date, in any zone."""

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


def has_date(instant: Instant) -> bool:
    """Tell whether an instant that somebody gave can be written as a date, whatever the zone."""
    return EARLIEST <= instant < LATEST


def to_datetime(instant: Instant) -> datetime:
    """Turn an instant into an aware UTC datetime."""
    return _EPOCH + timedelta(milliseconds=instant)
