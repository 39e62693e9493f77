"""Timestamps as the States Language writes them: RFC 3339 with a capital T and `Z` or an offset.

What is accepted and refused follows recorded answers: `2016-12-05 21:29:29Z` (no T), `2016-12-05T21:29:29` (no zone),
`05-12-2016T21:29:29Z` and impossible dates and times are no timestamps; fractions down to nanoseconds are fine.
"""

import re
from datetime import date
from functools import lru_cache

_PATTERN = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(?:Z|([+-])(\d{2}):(\d{2}))", re.ASCII
)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_BILLION = 1_000_000_000


@lru_cache(maxsize=1024)
def parse_timestamp(text: str) -> int | None:
    """Answer nanoseconds since 1970-01-01T00:00:00Z, or None when `text` is no timestamp."""
    found = _PATTERN.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, sign, offset_hour, offset_minute = found.groups()
    try:
        days = date(int(year), int(month), int(day)).toordinal() - _EPOCH_DAY
    except ValueError:
        return None
    hours, minutes, seconds = int(hour), int(minute), int(second)
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    seconds += days * 86_400 + hours * 3_600 + minutes * 60
    if sign is not None:
        away = int(offset_hour) * 3_600 + int(offset_minute) * 60
        if int(offset_minute) > 59 or away > 18 * 3_600:
            return None
        seconds += away if sign == "-" else -away
    return seconds * _BILLION + (int(fraction.ljust(9, "0")) if fraction else 0)


def ceil_ms(nanoseconds: int) -> int:
    """Answer the first millisecond that is not before `nanoseconds`."""
    return -(-nanoseconds // 1_000_000)
