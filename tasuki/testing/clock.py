"""A clock that moves only when told, and how a test tells durations and moments."""

from collections.abc import Mapping
from datetime import datetime

from tasuki.values.instant import DAY, HOUR, MINUTE, SECOND, Instant, from_datetime


class ManualClock:
    """Starts at 2026-01-01T00:00:00Z unless told otherwise."""

    def __init__(self, start: Instant = 1_767_225_600_000) -> None:
        self._now = start

    def now(self) -> Instant:
        """Answer the instant it stands at."""
        return self._now

    def set(self, instant: Instant) -> None:
        """Move to `instant`; never back."""
        assert instant >= self._now, "a clock that people see never goes back"
        self._now = instant


WORDS = ("ms", "seconds", "minutes", "hours", "days")
"""What `duration_ms` takes."""


def told_ms(caller: str, by: Mapping[str, float]) -> int:
    """Add up what a test told. Raises `TypeError` that names the caller, the word and the words that there are."""
    if strange := by.keys() - set(WORDS):
        raise TypeError(f"{caller} takes {', '.join(reversed(WORDS))}; there is no {min(strange)}=")
    return duration_ms(**by)  # type: ignore[arg-type]


def duration_ms(*, ms: int = 0, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0) -> int:
    """Add up a duration, in milliseconds."""
    return ms + round(seconds * SECOND + minutes * MINUTE + hours * HOUR + days * DAY)


def instant_of(given: str | datetime) -> Instant:
    """Read a moment. Raises `ValueError` for one without an offset: of which zone would it be?"""
    return from_datetime(moment_of(given))


def moment_of(given: str | datetime) -> datetime:
    """Read a moment and its zone. Raises `ValueError` for one without."""
    read = datetime.fromisoformat(given) if isinstance(given, str) else given
    if read.tzinfo is None:
        raise ValueError(f"{given}: say of which zone it is, like 2026-10-10T01:00:00+09:00")
    return read
