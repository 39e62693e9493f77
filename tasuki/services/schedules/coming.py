"""`ListScheduleTicks`, an operation of our own (service `tasuki`): what fires next. AWS tells nobody.

Input: `ScheduleArn` for one schedule, or none for all; `MaxResults` (1 to 1,000, default 100), `NextToken`.
Output: `Ticks`, the nearest first, each with `ScheduleArn`, `State` (ENABLED or DISABLED), `ScheduledTime` (what
`<aws.scheduler.scheduled-time>` will say), `FiresAt` (later only in a flexible window; drawn for the next tick, and empty for
those after it), `TargetArn`; and `NextToken` if there is more.

Of one schedule its next `MaxResults` ticks are computed, of a disabled one those that it would have; of all schedules each has
its next tick. What fired already is in `ListHandovers` (`SourceArn`).
"""

from collections.abc import Iterator
from typing import Any

from tasuki.services.schedules import queries
from tasuki.services.schedules.errors import ValidationException
from tasuki.services.schedules.model import names_in_arn, schedule_arn, seconds_iso
from tasuki.services.schedules.plans import Plan
from tasuki.store.pages import page_tokens
from tasuki.store.store import Row, Tx
from tasuki.values.documents import loads
from tasuki.values.instant import Instant, to_iso
from tasuki.values.operations import Request
from tasuki.values.pages import BadPageToken

PAGE_SIZE, MAX_PAGE_SIZE = 100, 1_000
_QUERY = "ListScheduleTicks"


def list_schedule_ticks(tx: Tx, request: Request) -> dict[str, Any]:
    """List what fires next. Raises `ValidationException`."""
    given = request.input
    limit = given.get("MaxResults", PAGE_SIZE)
    if not 1 <= limit <= MAX_PAGE_SIZE:
        raise ValidationException(f"MaxResults must be between 1 and {MAX_PAGE_SIZE}.")
    if (arn := given.get("ScheduleArn")) is not None:
        names = names_in_arn(arn)
        row = tx.one(queries.PLANNED_BY_NAME, names) if names is not None else None
        if row is None:
            raise ValidationException(f"ScheduleArn: the schedule {arn} does not exist.")
        ticks = [_shown(row, tick, moment) for tick, moment in _ticks(row, tx.now, limit)]
        return {"Ticks": ticks}
    tokens = page_tokens(tx)
    after = ("0", "0")
    if token := given.get("NextToken"):
        try:
            moment, _, schedule = str(tokens.open(_QUERY, token)).partition(":")
        except BadPageToken:
            raise ValidationException("NextToken is not one that this listing answered.") from None
        after = (moment, schedule)
    rows = tx.all(queries.PLANNED, (int(after[0]), int(after[1]), limit + 1))
    answer: dict[str, Any] = {"Ticks": [_shown(row, row[2], row[0]) for row in rows[:limit]]}
    if len(rows) > limit:
        answer["NextToken"] = tokens.seal(_QUERY, f"{rows[limit - 1][0]}:{rows[limit - 1][1]}")
    return answer


def _ticks(row: Row, now: Instant, limit: int) -> Iterator[tuple[Instant, Instant | None]]:
    moment, _, tick, anchor = row[:4]
    plan = Plan.of(loads(row[9]), anchor)
    if tick is None:  # disabled, or over
        tick = plan.next(now)
    for _ in range(limit):
        if tick is None:
            return
        yield tick, moment if plan.window_ms else tick
        tick, moment = plan.next(tick), None


def _shown(row: Row, tick: Instant, moment: Instant | None) -> dict[str, Any]:
    region, account, group, name, state = row[4:9]
    return {
        "ScheduleArn": schedule_arn(region, account, group, name),
        "State": state,
        "ScheduledTime": seconds_iso(tick),
        "FiresAt": to_iso(moment) if moment is not None else "",
        "TargetArn": loads(row[9])["Target"]["Arn"],
    }
