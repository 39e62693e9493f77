"""The operations on schedules (botocore `scheduler`, 2021-06-30).

What changes a schedule says `tx.alone()` before it looks: no tick of it is under way meanwhile, on any node.

A client token makes CreateSchedule and UpdateSchedule safe to repeat: the same request under the same token is answered as
before and does nothing, whatever happened to the schedule since; another request under it is a ConflictException. It is kept
with the schedule, so it ends with it.
"""

from typing import Any

from tasuki.services.schedules import queries
from tasuki.services.schedules.checking import group_of, read_definition, warn_of_escapes
from tasuki.services.schedules.deleting import forget
from tasuki.services.schedules.errors import (
    ConflictException,
    ServiceQuotaExceededException,
    ValidationException,
    no_such_schedule,
)
from tasuki.services.schedules.groups import active_group, find_group
from tasuki.services.schedules.model import NAME, Schedule, Summary, schedule_arn
from tasuki.services.schedules.plans import Ticks, begin, change
from tasuki.services.schedules.requests import is_repeat, made_by
from tasuki.services.switchboard import Switchboard
from tasuki.store.pages import page_tokens
from tasuki.store.store import Row, Tx
from tasuki.store.timers import clear_timer, set_timer
from tasuki.values import documents
from tasuki.values.config import Config
from tasuki.values.operations import Operation, Operations, Request
from tasuki.values.pages import BadPageToken

DEFAULT_QUOTA = 1_000_000
"""Schedules per account and region (quota "Number of schedules"); `[quotas] schedules` in the configuration."""
PAGE_SIZE = 100
SCANNED = 1_000
"""Schedules that one page of a filtered listing looks at, at most: a page may come out short, or empty, with a token."""


class Api:
    """The operations, with what they need of the house."""

    def __init__(self, config: Config, switchboard: Switchboard) -> None:
        self._switchboard = switchboard
        self._quota = config.quotas.get("schedules", DEFAULT_QUOTA)

    def operations(self) -> Operations:
        """Answer the table for the door."""
        return {
            "CreateSchedule": Operation("write", self.create_schedule),
            "UpdateSchedule": Operation("write", self.update_schedule),
            "DeleteSchedule": Operation("write", delete_schedule),
            "GetSchedule": Operation("read", get_schedule),
            "ListSchedules": Operation("read", list_schedules),
        }

    def create_schedule(self, tx: Tx, request: Request) -> dict[str, Any]:
        """Create a schedule. RoleArn and KmsKeyArn are kept and shown, and change nothing."""
        given = request.input
        group, name = group_of(given), given["Name"]
        tx.alone()
        arn = schedule_arn(request.region, request.account, group, name)
        wanted = made_by(given)
        there = tx.one(queries.IS_THERE, (request.account, request.region, group, name))
        if there is not None and is_repeat(wanted, there[0]):
            return {"ScheduleArn": arn}
        definition = read_definition(self._switchboard, request, tx.now)
        if there is not None:
            raise ConflictException(f"Schedule {name} already exists.")
        active_group(tx, request, group)
        stored = tx.one(queries.COUNT, (request.account, request.region))
        if stored is not None and int(stored[0]) >= self._quota:
            raise ServiceQuotaExceededException(
                f"The account has {int(stored[0])} schedules, which is its limit; raise [quotas] schedules in tasuki.toml."
            )
        state = given.get("State", "ENABLED")
        text = documents.dumps(definition)
        target = definition["Target"]["Arn"]
        place = (request.account, request.region, group, name)
        row = tx.one(queries.INSERT, (*place, state, target, tx.now, tx.now, wanted, "", text))
        assert row is not None, "INSERT answers the id"
        _plan(tx, row[0], begin(definition, tx.now, tx.chance, enabled=state == "ENABLED"))
        tx.run(queries.ADD, (request.account, request.region, tx.stripe, 1))
        warn_of_escapes(arn, definition)
        return {"ScheduleArn": arn}

    def update_schedule(self, tx: Tx, request: Request) -> dict[str, Any]:
        """Give a schedule a new definition: what isn't given is back at its default (API reference, "UpdateSchedule")."""
        given = request.input
        tx.alone()
        old = _find(tx, request)
        changed_by = made_by(given)
        if is_repeat(changed_by, old.changed_by):
            return {"ScheduleArn": old.summary.arn}
        definition = read_definition(self._switchboard, request, tx.now, old.definition)
        state = given.get("State", "ENABLED")
        text, target = documents.dumps(definition), definition["Target"]["Arn"]
        tx.run(queries.UPDATE, (state, target, tx.now, changed_by, text, old.summary.id))
        row = tx.one(queries.TICK, (old.summary.id,))
        assert row is not None, "a schedule has a plan"
        was = Ticks(*row[1:])
        ticks = change(old.definition, definition, was, tx.now, tx.chance, enabled=state == "ENABLED")
        still_over = was.tick is None and ticks.tick is None  # whoever waits for the end of its last tick still does
        _plan(tx, old.summary.id, ticks, row[0] if still_over else None)
        warn_of_escapes(old.summary.arn, definition)
        return {"ScheduleArn": old.summary.arn}


def delete_schedule(tx: Tx, request: Request) -> dict[str, Any]:
    """Delete a schedule. Ticks that fired and were not taken yet are still tried."""
    tx.alone()
    forget(tx, _find(tx, request).summary.id)
    return {}


def get_schedule(tx: Tx, request: Request) -> dict[str, Any]:
    """Describe a schedule."""
    return _find(tx, request).described()


def list_schedules(tx: Tx, request: Request) -> dict[str, Any]:
    """List schedules by group and name, a page at a time."""
    given = request.input
    group, prefix, state = (given.get(name) or "" for name in ("GroupName", "NamePrefix", "State"))
    if group:
        find_group(tx, request, group)
    query = "ListSchedules:" + documents.dumps([request.account, request.region, group, prefix, state])
    tokens = page_tokens(tx)
    after: tuple[str, str] | None = None
    if token := given.get("NextToken"):
        try:
            at_group, _, at_name = str(tokens.open(query, token)).partition("/")
        except BadPageToken:
            raise ValidationException("NextToken is not one that this listing answered.") from None
        after = (at_group, at_name)
    limit = given.get("MaxResults", PAGE_SIZE)
    scanned = SCANNED if prefix or state else limit
    rows = _rows(tx, request, (group, prefix), after, scanned + 1)
    shown: list[dict[str, Any]] = []
    last: Summary | None = None
    for row in rows[:scanned]:
        one = Summary(*row)
        if group and prefix and not one.name.startswith(prefix):  # by name: nothing behind it fits
            return {"Schedules": shown}
        if len(shown) == limit:
            break
        last = one
        if one.name.startswith(prefix) and (not state or one.state == state):
            shown.append(one.listed())
    answer: dict[str, Any] = {"Schedules": shown}
    if last is not None and last.id != rows[-1][0]:
        answer["NextToken"] = tokens.seal(query, f"{last.group}/{last.name}")
    return answer


def _rows(tx: Tx, request: Request, wanted: tuple[str, str], after: tuple[str, str] | None, limit: int) -> list[Row]:
    """Answer rows of listings in their order; in a group, from the wanted prefix on."""
    group, prefix = wanted
    place = (request.account, request.region)
    if not group:
        return tx.all(queries.PAGE, (*place, *(after or ("", "")), limit))
    if after is not None:
        return tx.all(queries.PAGE_OF_GROUP, (*place, group, after[1], limit))
    return tx.all(queries.PAGE_OF_GROUP_FROM, (*place, group, prefix, limit))


def _find(tx: Tx, request: Request) -> Schedule:
    name = request.input["Name"]
    row = tx.one(queries.BY_NAME, (request.account, request.region, group_of(request.input), name))
    if row is None:
        raise no_such_schedule(name)
    return Schedule.of_row(row)


def _plan(tx: Tx, schedule: int, ticks: Ticks, revision: str | None = None) -> None:
    """Write down what a schedule has planned, and have it woken."""
    row = (schedule, revision or tx.chance.hex(16), ticks.anchor, ticks.tick, ticks.moment, ticks.last)
    tx.run(queries.INSERT_TICK, row)
    if ticks.moment is None:
        clear_timer(tx, NAME, str(schedule))
    else:
        set_timer(tx, NAME, str(schedule), ticks.moment)
