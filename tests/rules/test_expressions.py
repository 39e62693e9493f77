"""Schedule expressions: what AWS takes and refuses, and when a rate and an at are due."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tasuki.rules.expressions import BadExpression, Dialect, known_zone, parse_expression
from tasuki.values import documents
from tasuki.values.instant import DAY, HOUR, MINUTE, Instant, from_datetime, to_iso
from tests.conftest import CONFORMANCE

FOLDER: Path | None = CONFORMANCE and CONFORMANCE / "schedules"
DIALECTS: dict[str, Dialect] = {"events.PutRule": "rule", "scheduler.CreateSchedule": "scheduler"}
NEW_YORK, TOKYO, BERLIN, LORD_HOWE, APIA, SANTIAGO = (
    "America/New_York",
    "Asia/Tokyo",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "America/Santiago",
)

# cron_fields.jsonl is one tool's opinion of single fields. Where we don't share it, and why.
ANY_CASE = "names are read in any case (so does AWS: grumBit/aws_cron_expression_validator, issue 18)"
MIXED = "a name is a number, so the two mix"
DIGITS = "05 alone is valid in the same table, so it is in a range"
BLANKS = "inside a whole expression these blanks only part the fields"
DISAGREED = {
    ("month", "jan"): ANY_CASE,
    ("month", "Jan"): ANY_CASE,
    ("month", "jAn"): ANY_CASE,
    ("month", "JAN-12"): MIXED,
    ("month", "1,JUN"): MIXED,
    ("hour", "05-10"): DIGITS,
    ("dayOfMonth", "05-10"): DIGITS,
    ("month", "05-10"): DIGITS,
    ("year", "2000/01"): "01 is a whole number from 1",
    ("dayOfWeek", "*/4"): "the same table takes 2/3",
    ("hour", " 5-10 "): BLANKS,
    ("dayOfMonth", " 1-10 "): BLANKS,
    ("month", " 1-10 "): BLANKS,
    ("month", "1 "): BLANKS,
    ("month", " JAN"): BLANKS,
    ("dayOfWeek", " 1-5 "): BLANKS,
}
PLACES = ("minute", "hour", "dayOfMonth", "month", "dayOfWeek", "year")

# Text with places for values, and one that parts its fields with commas: documentation, no expressions.
NOT_EXPRESSIONS = {
    "at({0})",
    "at({}T{})",
    "at(YYYY-MM-DDTHH:MM:SS)",
    "at(%Y-%m-%dT%H:%M:%S)",
    "cron(5, 0, 1, *, ?, *)",
}


def lines(name: str) -> list[Any]:
    if FOLDER is None:
        reason = "the recorded AWS answers are not beside this checkout"
        return [pytest.param({}, marks=pytest.mark.skip(reason=reason), id="absent")]
    cases = [documents.loads(line) for line in (FOLDER / name).read_text("utf-8").split("\n") if line]
    return [pytest.param(case, id=case["id"]) for case in cases]


def instant(text: str) -> Instant:
    return from_datetime(datetime.fromisoformat(text).replace(tzinfo=UTC))


def valid(text: str, dialect: Dialect) -> bool:
    try:
        parse_expression(text, dialect)
    except BadExpression:
        return False
    return True


@pytest.mark.parametrize("case", lines("aws_validated.jsonl"))
def test_recorded_answer(case: dict[str, Any]) -> None:
    # One row was refused for its bus, not for its expression.
    expected = case["valid"] or case["error_message"].endswith("only on the default event bus.")
    assert valid(case["expression"], DIALECTS[case["api"]]) == expected


@pytest.mark.parametrize("case", lines("cron_next_runs.jsonl"))
def test_next_runs_that_other_tools_agree_on(case: dict[str, Any]) -> None:
    expression = parse_expression(case["expression"], "rule")
    now, found = instant(case["after"]), []
    for _ in case["next"]:
        due = expression.next(now)
        assert due is not None
        found.append(due)
        now = due
    assert found == [instant(text) for text in case["next"]]


def test_a_row_is_disagreed_with_only_where_it_is_listed() -> None:
    cases = [case.values[0] for case in lines("cron_fields.jsonl")]
    if cases == [{}]:
        pytest.skip("the recorded AWS answers are not beside this checkout")
    differing = set()
    for case in cases:
        fields = ["0", "0", "*", "*", "?", "*"]
        if case["field"] == "dayOfWeek" or case["expression"] == "?":
            fields[2], fields[4] = "?", "1"
        fields[PLACES.index(case["field"])] = case["expression"]
        if case["field"] == "dayOfWeek" and case["expression"] == "?":
            fields[2] = "1"
        if valid(f"cron({' '.join(fields)})", "scheduler") != case["valid"]:
            differing.add((case["field"], case["expression"]))
    assert differing == set(DISAGREED)


@pytest.mark.parametrize("case", lines("corpus_in_use.jsonl"))
def test_expressions_in_use_are_read(case: dict[str, Any]) -> None:
    assert valid(case["expression"], "scheduler") == (case["expression"] not in NOT_EXPRESSIONS)


def reason(text: str, dialect: Dialect = "scheduler") -> str:
    with pytest.raises(BadExpression) as refused:
        parse_expression(text, dialect)
    return str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rate(1 minutes)", "rate: 'minutes' does not agree with 1: write 1 minute"),
        ("rate(10 day)", "rate: 'day' does not agree with 10: write 10 days"),
        ("rate(0 minutes)", "rate: the number 0 must be from 1 to 2147483647"),
        ("rate(99999999999 days)", "rate: the number 99999999999 must be from 1 to 2147483647"),
        ("rate(5  minutes)", "rate: '5  minutes' must be a whole number, one blank and minutes, hours or days"),
        ("rate(5 weeks)", "rate: the unit 'weeks' must be minutes, hours or days"),
        ("rate(5 s)", "rate: the unit 's' must be minutes, hours or days"),
        (
            "at(2026-10-09T16:00:00)",
            "expression: a rule takes rate(...) or cron(...); at(...) is for schedules of Scheduler",
        ),
        (
            "Rate(1 day)",
            "expression: 'Rate(1 day)' must be rate(...) or cron(...), in lower case, with nothing around it",
        ),
        ("", "expression: '' must be rate(...) or cron(...), in lower case, with nothing around it"),
    ],
)
def test_a_rule_is_told_what_to_change(text: str, said: str) -> None:
    assert reason(text, "rule") == said


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("at(2026-10-09T16:00:00Z)", "at: '2026-10-09T16:00:00Z' must be written yyyy-mm-ddThh:mm:ss, without a zone"),
        ("at(2026-10-09 16:00:00)", "at: '2026-10-09 16:00:00' must be written"),
        ("at(2026-02-29T00:00:00)", "at: 2026-02-29T00:00:00 is not on the calendar or the clock: day is out of range"),
        ("at(2026-02-28T24:00:00)", "at: 2026-02-28T24:00:00 is not on the calendar or the clock: hour must be"),
        ("cron(0 1 * * ? *) ", "expression: 'cron(0 1 * * ? *) ' must be at(...), rate(...) or cron(...)"),
    ],
)
def test_a_schedule_is_told_what_to_change(text: str, start: str) -> None:
    assert reason(text).startswith(start)


def test_scheduler_does_not_ask_a_unit_to_agree() -> None:
    assert parse_expression("rate(1 minutes)", "scheduler").period_ms == MINUTE
    assert parse_expression("rate(5 minute)", "scheduler").period_ms == 5 * MINUTE


def due(text: str, zone: str, after: str, times: int = 1) -> list[str]:
    """Answer the next times after a UTC time, as UTC minutes (or seconds, where there are some)."""
    expression, now = parse_expression(text, "scheduler"), instant(after)
    found: list[str] = []
    for _ in range(times):
        following = expression.next(now, zone)
        if following is None:
            return [*found, "never"]
        found.append(to_iso(following).removesuffix(":00.000Z").removesuffix(".000Z"))
        now = following
    return found


# -- rates -----------------------------------------------------------------------------------------------------------


def test_a_rate_counts_from_its_start_and_fires_there_first() -> None:
    rate = parse_expression("rate(5 minutes)", "scheduler")
    start = instant("2026-10-09T16:00:07")
    assert rate.next(start - 3 * DAY, start=start) == start
    assert rate.next(start - 1, start=start) == start
    assert rate.next(start, start=start) == start + 5 * MINUTE
    assert rate.next(start + 5 * MINUTE + 1, start=start) == start + 10 * MINUTE


def test_a_day_of_a_rate_is_24_hours_whatever_the_clock_does() -> None:
    rate = parse_expression("rate(1 day)", "scheduler")
    start = instant("2026-03-07T17:00:00")  # noon in New York, the day before its clocks go forward
    assert rate.next(start, NEW_YORK, start) == start + 24 * HOUR


def test_a_rate_without_a_start_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="give one"):
        parse_expression("rate(1 day)", "rule").next(0)


def test_a_rate_ends_where_times_cannot_be_written_any_more() -> None:
    rate = parse_expression("rate(2147483647 days)", "scheduler")
    assert rate.next(0, start=0) is None
    assert rate.next(-1, start=0) == 0


@given(st.integers(1, 10_000), st.integers(-(10**12), 10**13), st.integers(-(10**12), 10**13))
def test_a_rate_keeps_its_phase(minutes: int, start: Instant, after: Instant) -> None:
    rate = parse_expression(f"rate({minutes} minutes)", "scheduler")
    found = rate.next(after, start=start)
    assert found is not None
    assert found > after
    assert found >= start
    assert (found - start) % (minutes * MINUTE) == 0
    assert found == start or found - minutes * MINUTE <= after  # the first


# -- at --------------------------------------------------------------------------------------------------------------


def test_at_is_in_the_zone_and_once() -> None:
    assert due("at(2026-10-10T01:00:00)", TOKYO, "2026-01-01T00:00:00", 2) == ["2026-10-09T16:00", "never"]
    assert due("at(2026-10-10T01:00:07)", "UTC", "2026-01-01T00:00:00") == ["2026-10-10T01:00:07"]
    assert due("at(2026-10-10T01:00:00)", TOKYO, "2026-10-09T16:00:00") == ["never"]


def test_at_pays_no_heed_to_a_start() -> None:
    at = parse_expression("at(2026-10-10T01:00:00)", "scheduler")
    assert at.next(0, start=instant("2027-01-01T00:00:00")) == instant("2026-10-10T01:00:00")


def test_at_a_time_that_does_not_exist_fires_as_late_as_if_the_clock_had_not_moved() -> None:
    # 02:30 on 8 March 2026 does not exist in New York: it is 03:30 there, 07:30 UTC.
    assert due("at(2026-03-08T02:30:00)", NEW_YORK, "2026-01-01T00:00:00") == ["2026-03-08T07:30"]
    assert due("at(2026-10-04T02:15:00)", LORD_HOWE, "2026-01-01T00:00:00") == ["2026-10-03T15:45"]
    assert due("at(2011-12-30T10:00:00)", APIA, "2011-01-01T00:00:00") == ["2011-12-30T20:00"]


def test_at_a_time_that_comes_twice_is_the_first_of_the_two() -> None:
    assert due("at(2026-11-01T01:30:00)", NEW_YORK, "2026-01-01T00:00:00", 2) == ["2026-11-01T05:30", "never"]


# -- cron in zones ---------------------------------------------------------------------------------------------------


def test_one_in_the_morning_in_tokyo_is_the_day_before_in_utc() -> None:
    assert due("cron(0 1 * * ? *)", TOKYO, "2026-10-09T15:59:59", 2) == ["2026-10-09T16:00", "2026-10-10T16:00"]


def test_a_cron_time_that_does_not_exist_is_skipped_that_day() -> None:
    assert due("cron(30 2 * * ? *)", NEW_YORK, "2026-03-07T00:00:00", 2) == ["2026-03-07T07:30", "2026-03-09T06:30"]
    assert due("cron(30 2 * * ? *)", BERLIN, "2026-03-28T00:00:00", 2) == ["2026-03-28T01:30", "2026-03-30T00:30"]
    assert due("cron(15 2 * * ? *)", LORD_HOWE, "2026-10-02T12:00:00", 2) == ["2026-10-02T15:45", "2026-10-04T15:15"]
    # In Santiago the clock goes forward at midnight: that day has no 00:00.
    assert due("cron(0 0 * * ? *)", SANTIAGO, "2026-09-05T00:00:00", 2) == ["2026-09-05T04:00", "2026-09-07T03:00"]


def test_a_day_that_a_zone_leaves_out_has_no_cron_times() -> None:
    every_hour = due("cron(0 * * * ? *)", APIA, "2011-12-30T08:00:00", 3)  # 22:00 on the 29th
    assert every_hour == ["2011-12-30T09:00", "2011-12-30T10:00", "2011-12-30T11:00"]
    assert due("cron(0 12 30 * ? *)", APIA, "2011-12-01T00:00:00") == ["2012-01-29T22:00"]


def test_a_cron_time_that_comes_twice_fires_once_the_first() -> None:
    assert due("cron(30 1 * * ? *)", NEW_YORK, "2026-11-01T00:00:00", 2) == ["2026-11-01T05:30", "2026-11-02T06:30"]
    assert due("cron(45 1 * * ? *)", LORD_HOWE, "2026-04-04T00:00:00", 2) == ["2026-04-04T14:45", "2026-04-05T15:15"]


def test_a_schedule_made_while_the_hour_repeats_waits_for_a_time_that_is_new() -> None:
    # 06:10 UTC: the clock in New York shows 01:10 for the second time.
    assert due("cron(*/15 * * * ? *)", NEW_YORK, "2026-11-01T06:10:00") == ["2026-11-01T07:00"]
    assert due("cron(30 1 * * ? *)", NEW_YORK, "2026-11-01T06:10:00") == ["2026-11-02T06:30"]


def test_every_quarter_of_an_hour_is_silent_while_the_clock_shows_an_hour_again() -> None:
    found = due("cron(*/15 * * * ? *)", NEW_YORK, "2026-11-01T05:15:00", 4)
    assert found == ["2026-11-01T05:30", "2026-11-01T05:45", "2026-11-01T07:00", "2026-11-01T07:15"]
    found = due("cron(*/15 * * * ? *)", LORD_HOWE, "2026-04-04T14:15:00", 4)  # half an hour only
    assert found == ["2026-04-04T14:30", "2026-04-04T14:45", "2026-04-04T15:30", "2026-04-04T15:45"]


def test_every_quarter_of_an_hour_goes_on_over_an_hour_that_is_left_out() -> None:
    found = due("cron(*/15 * * * ? *)", NEW_YORK, "2026-03-08T06:30:00", 3)
    assert found == ["2026-03-08T06:45", "2026-03-08T07:00", "2026-03-08T07:15"]


def test_a_cron_time_before_the_start_does_not_count_and_one_at_the_start_does() -> None:
    cron = parse_expression("cron(0 1 * * ? *)", "scheduler")
    start = instant("2026-10-09T16:00:00")
    assert cron.next(0, TOKYO, start) == start
    assert cron.next(0, TOKYO, start + 1) == start + DAY
    assert cron.next(start, TOKYO, start) == start + DAY


def test_zones_are_names_of_the_iana_list_spelled_exactly() -> None:
    assert [known_zone(name) for name in ("UTC", TOKYO, "Etc/GMT-9", "US/Eastern")] == [True] * 4
    odd = ("", "asia/tokyo", "America", "JST", "+09:00", "localtime", "../UTC", "/etc/passwd", "posix/UTC", "a\0b", "é")
    assert [name for name in odd if known_zone(name)] == []


def test_an_unknown_zone_is_named() -> None:
    with pytest.raises(ValueError, match="'Asia/Tokio' is not an IANA name"):
        parse_expression("cron(0 1 * * ? *)", "scheduler").next(0, "Asia/Tokio")


# -- any text --------------------------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    [
        "*",
        "?",
        "L",
        "W",
        "LW",
        "L-3",
        "#",
        ",",
        "-",
        "/",
        "0",
        "1",
        "5",
        "29",
        "31",
        "59",
        "99",
        "1970",
        "2199",
        "MON",
        "fri",
        "JAN",
        "dec",
        "at",
        "rate",
        "cron",
        "(",
        ")",
        "minutes",
        "day",
        "²",
        "٣",
        "2026-10-09T16:00:00",
    ]
)
BODIES = st.lists(WORDS | st.sampled_from([" ", "\n"]), max_size=14).map("".join)
ANY = st.text(max_size=300) | BODIES | st.builds("{}({})".format, st.sampled_from(["at", "rate", "cron"]), BODIES)
ZONES = st.sampled_from(
    ["UTC", NEW_YORK, TOKYO, LORD_HOWE, APIA, "Etc/GMT+12", "Pacific/Kiritimati", "Africa/Monrovia"]
)


@example("at(0001-01-01T00:00:00)", "scheduler", 0, "Pacific/Kiritimati")
@example("at(9999-12-31T23:59:59)", "scheduler", 0, "Etc/GMT+12")
@example("cron(* * * * ? 1970)", "scheduler", -(2**63), "Pacific/Kiritimati")
@example("cron(59 23 31 12 ? 2199)", "rule", 2**62, "UTC")
@given(ANY, st.sampled_from(["rule", "scheduler"]), st.integers(-(2**63), 2**63 - 1), ZONES)
def test_any_text_is_read_or_refused_and_any_instant_has_an_answer(
    text: str, dialect: Dialect, after: Instant, zone: str
) -> None:
    try:
        expression = parse_expression(text, dialect)
    except BadExpression:
        return
    found = expression.next(after, zone, start=0)
    assert found is None or found > after
    assert found is None or to_iso(found)
