"""Act 1: thirty nights under a clock that is moved by hand, in a house in memory that is killed every night.

Each night the node dies right after one of its commits, before anybody has heard of it: the first one, then the second, and so on
until a night has no more; then it dies while it rests, and it begins again with the first. Another node goes on from what
was committed.
"""

from collections import Counter
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

from clock.stage import IMAGE, build
from tasuki.cli.complaints import Complaint
from tasuki.testing import Kit, Run, Script
from tasuki.values import documents

NIGHTS = 30
TOKYO = timezone(timedelta(hours=9))  # no daylight saving
BEGIN = datetime(2026, 10, 1, 12, tzinfo=TOKYO)
EXPRESSION = "cron(0 1 * * ? *)"
FAIL_FIRST = {10, 20}
"""Nights whose first run fails: the machine's Retry runs it again five minutes later."""
LONG = 15
"""The night whose run takes a day: it ends on another date than it is for."""
COLUMNS = ("night", "planned", "scheduled_date", "crash_after", "tries", "ended", "result")


@dataclass(slots=True)
class Night:
    """One night: what was planned, what was done to it, and what came of it."""

    night: int
    planned: str
    """The planned instant, in UTC."""
    scheduled_date: str
    """The date that the task was told, of its own environment."""
    crash_after: str
    tries: int = 0
    ended: str = ""
    """In Tokyo."""
    result: str = ""


@dataclass(slots=True)
class Told:
    """What the house shows when it is all over."""

    executions: list[Any]
    runs: list[Run]
    results: list[dict[str, Any]]
    crashes: list[str]
    lives: int


def date_of(night: int) -> date:
    """The date in Tokyo of a night, counted from 1."""
    return BEGIN.date() + timedelta(days=night)


def planned_of(night: int) -> str:
    """The instant that a night is planned for, as schedules write it: reckoned here without any of the house's own code."""
    at = datetime(*date_of(night).timetuple()[:3], 1, tzinfo=TOKYO)
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def act(run: Run) -> Script:
    """Say how a run goes: an hour, but for the nights that fail first and the one that takes a day."""
    night = (date.fromisoformat(run.environment["SCHEDULED_DATE"]) - BEGIN.date()).days
    if night in FAIL_FIRST and run.attempt == 1:
        return Script.lasting(exit_code=1, minutes=2)
    return Script.lasting(hours=24 if night == LONG else 1)


def perform(nights: int = NIGHTS) -> Told:
    """Play the nights. Raises `Complaint` without boto3."""
    try:
        house = Kit(start=BEGIN, seed="clock")
    except ImportError as missing:
        raise Complaint(str(missing)) from None
    with house:
        stage = build(house.client)
        stage.schedule("nightly", EXPRESSION)
        house.image(IMAGE, act)
        results: list[dict[str, Any]] = []
        crashes: list[str] = []
        commit = 1
        for _ in range(nights):
            lives = house.lives
            house.crash(after=commit)
            house.advance(days=1)
            if house.lives > lives:
                crashes.append(f"commit {commit}")
                commit += 1
            else:  # this night had fewer commits
                house.crash()
                crashes.append("all, at rest")
                commit = 1
            results += [documents.loads(body) for body in stage.take()]
        return Told(house.executions("nightly"), house.runs(IMAGE), results, crashes, house.lives)


def reckon(told: Told, nights: int = NIGHTS) -> tuple[list[Night], str]:
    """Answer a row for each night, and what is not as it should be: nothing if all is well."""
    by_time = {str(one.input["scheduledTime"]): one for one in told.executions}
    dates = Counter(str(one["scheduledDate"]) for one in told.results)
    rows, faults = [], []
    for number in range(1, nights + 1):
        planned, wanted = planned_of(number), date_of(number).isoformat()
        execution = by_time.get(planned)
        runs = [run for run in told.runs if execution is not None and run.execution == execution.arn]
        row = Night(
            number,
            planned,
            ", ".join(sorted({run.environment["SCHEDULED_DATE"] for run in runs})),
            told.crashes[number - 1],
            len(runs),
        )
        if execution is not None and execution.stopped is not None:
            row.ended = f"{execution.stopped.astimezone(TOKYO):%m-%d %H:%M}"
        fault = _fault(row, wanted, execution, [run.exit_code for run in runs], dates[wanted])
        row.result = fault or "once"
        rows.append(row)
        if fault:
            faults.append(f"night {number} ({wanted}): {fault}")
    strange = sorted(set(dates) - {date_of(number).isoformat() for number in range(1, nights + 1)})
    if strange:
        faults.append(f"results for {', '.join(strange)}, which nobody planned")
    if len(told.executions) != nights:
        faults.append(f"{len(told.executions)} executions for {nights} nights")
    if told.lives != nights + 1:
        faults.append(f"{told.lives - 1} crashes in {nights} nights")
    return rows, "; ".join(faults)


def _fault(row: Night, wanted: str, execution: Any, exit_codes: list[int | None], results: int) -> str:
    """Say what is wrong with a night."""
    expected = [1, 0] if row.night in FAIL_FIRST else [0]
    if execution is None:
        return f"no execution was given {row.planned}"
    if execution.status != "SUCCEEDED":
        return f"its execution is {execution.status}"
    if row.scheduled_date != wanted:
        return f"its task was told {row.scheduled_date or 'no date'}"
    if exit_codes != expected:
        return f"its runs ended with {exit_codes}, not {expected}"
    return "" if results == 1 else f"{results} results"


def document(row: Night) -> dict[str, Any]:
    """Answer a row for programs."""
    return asdict(row)
