"""Wall-clock times of the IANA time zones and the instants that they are. Pure but for reading zone files.

A wall time is a naive `datetime`. Twice a year, in most zones with daylight saving, some wall times don't exist (a gap) and some
come twice. Offsets are asked of `zoneinfo` with both values of `fold` (PEP 495): where the two differ, the wall time is in a
gap (the offset grows) or comes twice (it shrinks).
"""

from datetime import datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 wall time
_SECOND = timedelta(seconds=1)
_MACHINE_ONLY = frozenset({"localtime", "Factory"})
"""Files among the zones that mean whatever the machine is set to, or nothing."""


@cache
def _names() -> frozenset[str]:
    return frozenset(available_timezones()) - _MACHINE_ONLY


def known_zone(name: str) -> bool:
    """Tell whether `name` is an IANA time zone, spelled exactly."""
    return name == "UTC" or name in _names()


@cache
def zone_of(name: str) -> ZoneInfo:
    """Answer the rules of a zone. Raises `ValueError` for a name that isn't known."""
    if not known_zone(name):
        raise ValueError(f"time zone: {name!r} is not an IANA name such as Asia/Tokyo")
    return ZoneInfo(name)


def wall_at(zone: ZoneInfo, second: int) -> datetime:
    """Answer what a clock in `zone` shows at a second since 1970 UTC."""
    return zone.fromutc((_EPOCH + second * _SECOND).replace(tzinfo=zone)).replace(tzinfo=None, fold=0)


def offsets_of(zone: ZoneInfo, wall: datetime) -> tuple[int, int]:
    """Answer the seconds that `wall` is ahead of UTC, by the rules before and after a change of the clock.

    Equal: an ordinary time. The second is greater: the time doesn't exist. It is smaller: the time comes twice.
    """
    before, after = zone.utcoffset(wall), zone.utcoffset(wall.replace(fold=1))
    return _seconds(before), _seconds(after)


def second_of(wall: datetime, offset: int) -> int:
    """Answer the second since 1970 UTC of a wall time that is `offset` seconds ahead."""
    return (wall - _EPOCH) // _SECOND - offset


def end_of_change(zone: ZoneInfo, wall: datetime, offsets: tuple[int, int]) -> datetime:
    """Answer the first whole minute behind the gap, or behind the repeated times, that `wall` is in."""
    farthest = max(offsets)
    low, high = second_of(wall, farthest), second_of(wall, min(offsets))
    ahead = _offset_at(zone, low)
    while high - low > 1:  # the clock changes in (low, high]
        middle = (low + high) // 2
        low, high = (middle, high) if _offset_at(zone, middle) == ahead else (low, middle)
    return _EPOCH + -(-(high + farthest) // 60) * 60 * _SECOND


def _offset_at(zone: ZoneInfo, second: int) -> int:
    return (wall_at(zone, second) - _EPOCH) // _SECOND - second


def _seconds(offset: timedelta | None) -> int:
    return 0 if offset is None else offset // _SECOND
