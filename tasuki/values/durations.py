"""Durations as people write them: `90`, `1.5s`, `36h`, `1d12h30m`, and ISO 8601 (`PT36H`, `P1DT12H`, `P2W`)."""

import re
from datetime import datetime

from tasuki.values.instant import DAY, HOUR, MINUTE, SECOND, Instant, from_datetime, has_date

FORMS = "90 (seconds), 36h, 1d12h, 500ms, PT36H or P1DT12H"
INSTANT_FORMS = "2026-10-10T01:00:00+09:00 or 2026-10-09T16:00:00Z"
LONGEST_MS = 1000 * 366 * DAY
_UNITS = {"ms": 1, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}
_NUMBER = r"\d+(?:\.\d+)?"
_PARTS = re.compile(rf"({_NUMBER})\s*(ms|[smhdw])", re.IGNORECASE)
_WORDS = re.compile(rf"(?:{_NUMBER}\s*(?:ms|[smhdw])\s*)+", re.IGNORECASE)
_ISO = re.compile(
    rf"P(?:({_NUMBER})W)?(?:({_NUMBER})D)?(?:T(?:({_NUMBER})H)?(?:({_NUMBER})M)?(?:({_NUMBER})S)?)?", re.IGNORECASE
)
_ISO_UNITS = (7 * DAY, DAY, HOUR, MINUTE, SECOND)


def parse_duration(text: str) -> int:
    """Read a duration, in milliseconds. Raises ValueError with a sentence that names the forms."""
    words = text.strip()
    total: float | None = None
    if re.fullmatch(_NUMBER, words):
        total = float(words) * SECOND
    elif _WORDS.fullmatch(words):
        total = sum(float(number) * _UNITS[unit.lower()] for number, unit in _PARTS.findall(words))
    elif (found := _ISO.fullmatch(words)) and any(found.groups()):
        total = sum(float(number) * unit for number, unit in zip(found.groups(), _ISO_UNITS, strict=True) if number)
    if total is None:
        raise ValueError(f'"{text}" is no duration; write {FORMS}')
    if total > LONGEST_MS:
        raise ValueError(f'"{text}" is longer than a thousand years')
    return round(total)


def parse_instant(text: str) -> Instant:
    """Read an instant that says its zone. Raises ValueError with a sentence that names the forms."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f'"{text}" is no instant; write {INSTANT_FORMS}') from None
    if moment.tzinfo is None:
        raise ValueError(f'"{text}" does not say its zone; write {INSTANT_FORMS}')
    instant = from_datetime(moment)
    if not has_date(instant):
        raise ValueError(f'"{text}" is not between the year 1 and the year 9999')
    return instant
