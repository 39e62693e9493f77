"""When a Wait ends. Words of errors are recorded: test_base_wait_seconds_path, test_wait_timestamp_path."""

from collections.abc import Callable
from typing import Any, TypeAlias

from tasuki.language import jsonata_fields
from tasuki.language.definition import Scope
from tasuki.language.errors import StatesError
from tasuki.language.fields import Fields, plain
from tasuki.language.jsonata import QueryFailed
from tasuki.language.paths import Path
from tasuki.language.schema import LARGEST
from tasuki.language.timestamps import ceil_ms, parse_timestamp
from tasuki.values.instant import SECOND, Instant

Until: TypeAlias = Callable[[Scope, Instant], Instant]

LONGEST_SECONDS = 31_622_400
"""The longest wait by path or timestamp: a leap year, as an execution lasts at most one."""


def read_until(fields: Fields) -> Until | None:
    """Read Seconds, SecondsPath, Timestamp or TimestampPath; None after a complaint."""
    names = ("Seconds", "Timestamp") if fields.language == "JSONata" else tuple(_READERS)
    field = fields.exactly_one(*names)
    return None if field is None else _READERS[field](fields)


def _seconds(fields: Fields) -> Until | None:
    if fields.holds_query("Seconds"):
        query = fields.query("Seconds")
        if query is None:
            return None
        count = jsonata_fields.whole(query, 0, LARGEST)
        return lambda scope, now: now + count(scope) * SECOND
    seconds = fields.integer("Seconds", 0, LARGEST)
    if seconds is None:
        return None
    wait_ms = seconds * SECOND
    return lambda scope, now: now + wait_ms  # noqa: ARG005 - a Wait's shape


def _seconds_path(fields: Fields) -> Until | None:
    path = fields.path("SecondsPath")
    if path is None:
        return None
    read, text = path.bind(_absent("SecondsPath")), path.text

    def until(scope: Scope, now: Instant) -> Instant:
        value = read(scope)
        if isinstance(value, bool) or not isinstance(value, int):
            raise _runtime(f"The SecondsPath parameter cannot be parsed as a long value: {text} == {plain(value)}")
        if value < 0:
            raise _runtime(f"The SecondsPath parameter references a negative value: {text} == {value}")
        return _bounded(now + value * SECOND, now)

    return until


def _timestamp(fields: Fields) -> Until | None:
    value = fields.value["Timestamp"]
    if fields.holds_query("Timestamp"):
        return _timestamp_query(fields)
    if fields.text("Timestamp") is None:
        return None
    moment = parse_timestamp(value)
    if moment is None:
        fields.complain("Timestamp", "String does not match RFC3339 timestamp")
        return None
    instant = ceil_ms(moment)
    return lambda scope, now: _bounded(instant, now)  # noqa: ARG005 - a Wait's shape


def _timestamp_query(fields: Fields) -> Until | None:
    query = fields.query("Timestamp")
    if query is None:
        return None
    read = jsonata_fields.text(query)

    def until(scope: Scope, now: Instant) -> Instant:
        value = read(scope)
        moment = parse_timestamp(value)
        if moment is None:
            raise QueryFailed(
                f"The Timestamp field cannot be parsed as an ISO-8601 extended offset date-time format string: {value}",
                "Timestamp",
                entered=True,
            )
        return _bounded(ceil_ms(moment), now)

    return until


def _timestamp_path(fields: Fields) -> Until | None:
    path = fields.path("TimestampPath")
    if path is None:
        return None
    read, text = path.bind(_absent("TimestampPath")), path.text

    def until(scope: Scope, now: Instant) -> Instant:
        value: Any = read(scope)
        moment = parse_timestamp(value) if isinstance(value, str) else None
        if moment is None:
            raise _runtime(
                "The TimestampPath parameter does not reference a valid ISO-8601 extended offset date-time format string: "
                f"{text} == {plain(value)}"
            )
        return _bounded(ceil_ms(moment), now)

    return until


_READERS: dict[str, Callable[[Fields], Until | None]] = {
    "Seconds": _seconds,
    "SecondsPath": _seconds_path,
    "Timestamp": _timestamp,
    "TimestampPath": _timestamp_path,
}


def _bounded(instant: Instant, now: Instant) -> Instant:
    if instant - now > LONGEST_SECONDS * SECOND:
        raise _runtime("Wait state delay is too long.")
    return max(instant, now)


def _absent(field: str) -> Callable[[Path, Scope, str], StatesError]:
    return lambda path, _scope, _reason: _runtime(
        f"The {field} parameter does not reference an input value: {path.text}"
    )


def _runtime(cause: str) -> StatesError:
    return StatesError("States.Runtime", cause)
