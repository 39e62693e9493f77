"""A schedule and a group: their rows, and how they are shown. Pure.

::

    CreateSchedule ──► ENABLED or DISABLED (as asked)      DeleteSchedule, the last tick is over ──► gone
    CreateScheduleGroup ──► ACTIVE ── DeleteScheduleGroup ──► DELETING ── its schedules went, in slices ──► gone

The *definition* is what CreateSchedule and UpdateSchedule say, in the API's own names, defaults filled in, dates as instants;
it is kept as one document. A schedule of a group that is being deleted still fires until its turn comes (facts/scheduler.md,
section 1).
"""

from dataclasses import dataclass
from typing import Any

from tasuki.store.store import Row
from tasuki.values import documents
from tasuki.values.arns import build_arn, parse_arn
from tasuki.values.instant import Instant, to_iso

NAME = "schedules"
"""The room; it keys the timers."""
DEFAULT_GROUP = "default"
MAX_TAGS = 50
RETRY_DEFAULTS = {"MaximumEventAgeInSeconds": 86_400, "MaximumRetryAttempts": 185}
"""What RetryPolicy is where nothing is said (API reference, "RetryPolicy")."""
_SHOWN = (
    "ScheduleExpression",
    "StartDate",
    "EndDate",
    "Description",
    "ScheduleExpressionTimezone",
    "KmsKeyArn",
    "Target",
    "FlexibleTimeWindow",
    "ActionAfterCompletion",
)


def seconds_iso(instant: Instant) -> str:
    """Write an instant as Scheduler writes planned times: `2022-03-22T18:59:43Z`."""
    return to_iso(instant)[:19] + "Z"


def schedule_arn(region: str, account: str, group: str, name: str) -> str:
    """Answer a schedule's ARN."""
    return build_arn("scheduler", region, account, f"schedule/{group}/{name}")


def group_arn(region: str, account: str, name: str) -> str:
    """Answer a group's ARN."""
    return build_arn("scheduler", region, account, f"schedule-group/{name}")


def names_in_arn(arn: str) -> tuple[str, str, str, str] | None:
    """Answer (account, region, group, name) of a schedule's ARN; None when it is not one."""
    parts = parse_arn(arn) if "\0" not in arn else None
    if parts is None or parts.service != "scheduler":
        return None
    kind, _, rest = parts.resource.partition("/")
    group, _, name = rest.partition("/")
    return (parts.account, parts.region, group, name) if kind == "schedule" and group and name else None


@dataclass(frozen=True, slots=True)
class Summary:
    """What listings tell of a schedule: the small columns of its row."""

    id: int
    account: str
    region: str
    group: str
    name: str
    state: str
    target: str
    created: Instant
    modified: Instant

    @property
    def arn(self) -> str:
        """The schedule's ARN."""
        return schedule_arn(self.region, self.account, self.group, self.name)

    def listed(self) -> dict[str, Any]:
        """Answer the schedule as ListSchedules shows it."""
        return {
            "Arn": self.arn,
            "Name": self.name,
            "GroupName": self.group,
            "State": self.state,
            "CreationDate": self.created,
            "LastModificationDate": self.modified,
            "Target": {"Arn": self.target},
        }


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule's row. `made_by` and `changed_by` are `TOKEN DIGEST` of the requests that did it."""

    summary: Summary
    made_by: str
    changed_by: str
    definition: dict[str, Any]

    @classmethod
    def of_row(cls, row: Row) -> "Schedule":
        """Read `queries.BY_NAME`."""
        return cls(Summary(*row[:9]), row[9], row[10], documents.loads(row[11]))

    def described(self) -> dict[str, Any]:
        """Answer the schedule as GetSchedule shows it."""
        one = self.summary
        shown = {name: self.definition[name] for name in _SHOWN if name in self.definition}
        return {
            "Arn": one.arn,
            "GroupName": one.group,
            "Name": one.name,
            "State": one.state,
            "CreationDate": one.created,
            "LastModificationDate": one.modified,
            **shown,
        }


@dataclass(frozen=True, slots=True)
class Group:
    """A group's row; `default` may have none, and then no dates."""

    id: int
    account: str
    region: str
    name: str
    state: str
    tags: dict[str, str]
    request: str
    created: Instant | None
    modified: Instant | None

    @classmethod
    def of_row(cls, row: Row) -> "Group":
        """Read `queries.GROUP`."""
        return cls(*(*row[:5], documents.loads(row[5]), *row[6:]))

    @classmethod
    def unwritten(cls, account: str, region: str) -> "Group":
        """Answer the group `default` as long as nothing was said about it."""
        return cls(0, account, region, DEFAULT_GROUP, "ACTIVE", {}, "", None, None)

    def described(self) -> dict[str, Any]:
        """Answer the group as GetScheduleGroup and ListScheduleGroups show it."""
        shown = {
            "Arn": group_arn(self.region, self.account, self.name),
            "Name": self.name,
            "State": self.state,
            "CreationDate": self.created,
            "LastModificationDate": self.modified,
        }
        return {name: value for name, value in shown.items() if value is not None}
