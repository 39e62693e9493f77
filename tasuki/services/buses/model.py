"""The values of the room: buses, rules, targets and events. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasuki.store.store import Row
from tasuki.values.arns import build_arn, parse_arn
from tasuki.values.documents import dumps, loads
from tasuki.values.errors import MalformedDocument
from tasuki.values.instant import DAY, SECOND, Instant, to_iso

NAME = "buses"
DEFAULT = "default"
ENABLED = frozenset({"ENABLED", "ENABLED_WITH_ALL_CLOUDTRAIL_MANAGEMENT_EVENTS"})
ANY_SOURCE = "*"
MAX_AGE_MS, MAX_RETRIES = DAY, 185
"""How long and how often a delivery is tried unless a target says otherwise (user guide, "How EventBridge retries")."""
_RESOURCE = "event-bus/"
PUT, TOLD = LANES = (0, 1)
"""Where events wait: those that somebody put, and those that the house tells of itself. Each lane has its order."""


@dataclass(frozen=True, slots=True)
class Bus:
    """A bus. The default one is always there: before anything was said about it, its `id` is 0."""

    id: int
    account: str
    region: str
    name: str
    description: str | None = None
    policy: str | None = None
    settings: str = "{}"
    tags: str = "[]"
    created: Instant | None = None
    modified: Instant | None = None

    @property
    def arn(self) -> str:
        """Its name in the world."""
        return bus_arn(self.account, self.region, self.name)

    def listed(self) -> dict[str, Any]:
        """Answer it as ListEventBuses does."""
        shown = {
            "Name": self.name,
            "Arn": self.arn,
            "Description": self.description,
            "Policy": self.policy,
            "CreationTime": self.created,
            "LastModifiedTime": self.modified,
        }
        return {key: value for key, value in shown.items() if value is not None}

    def described(self) -> dict[str, Any]:
        """Answer it as DescribeEventBus does."""
        return {**self.listed(), **loads(self.settings)}


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a bus."""

    id: int
    bus: Bus
    name: str
    state: str
    pattern: str | None
    schedule: str | None
    description: str | None
    role: str | None
    tags: str
    created: Instant
    start_at: Instant | None
    tick: Instant | None

    @classmethod
    def of(cls, bus: Bus, row: Row) -> "Rule":
        """Make one of its row."""
        return cls(row[0], bus, *row[2:])

    @property
    def arn(self) -> str:
        """Its name in the world."""
        return rule_arn(self.bus, self.name)

    @property
    def is_enabled(self) -> bool:
        """Whether it matches and fires."""
        return self.state in ENABLED

    def listed(self) -> dict[str, Any]:
        """Answer it as ListRules does."""
        shown = {
            "Name": self.name,
            "Arn": self.arn,
            "EventPattern": self.pattern,
            "State": self.state,
            "Description": self.description,
            "ScheduleExpression": self.schedule,
            "RoleArn": self.role,
            "EventBusName": self.bus.name,
        }
        return {key: value for key, value in shown.items() if value is not None}


def bus_arn(account: str, region: str, name: str) -> str:
    """Name a bus."""
    return build_arn("events", region, account, f"event-bus/{name}")


def rule_arn(bus: Bus, name: str) -> str:
    """Name a rule; the default bus is not part of it (recorded)."""
    place = name if bus.name == DEFAULT else f"{bus.name}/{name}"
    return build_arn("events", bus.region, bus.account, f"rule/{place}")


def bus_name(text: str | None, account: str, region: str) -> str | None:
    """Answer the name in a bus's name or ARN; None for an ARN of another account or region."""
    if text is None:
        return DEFAULT
    if not text.startswith("arn:"):
        return text
    arn = parse_arn(text)
    ours = arn is not None and (arn.service, arn.account, arn.region) == ("events", account, region)
    if arn is None or not ours or not arn.resource.startswith(_RESOURCE):
        return None
    return arn.resource.removeprefix(_RESOURCE)


def in_seconds(at: Instant) -> str:
    """Write an instant as events do: `2026-10-09T16:00:00Z`."""
    return f"{to_iso(at)[:19]}Z"


def trace_header(hex24: str, now: Instant) -> str:
    """Make a correlation id (X-Ray, "Tracing header")."""
    return f"Root=1-{now // SECOND:08x}-{hex24}"


@dataclass(frozen=True, slots=True)
class Event:
    """An event. `detail` is the JSON text of an object."""

    id: str
    source: str
    detail_type: str
    account: str
    region: str
    at: Instant
    resources: Sequence[str]
    detail: str

    @property
    def body(self) -> str:
        """The JSON text that rules match and targets get; its order is AWS's."""
        head = {
            "version": "0",
            "id": self.id,
            "detail-type": self.detail_type,
            "source": self.source,
            "account": self.account,
            "time": in_seconds(self.at),
            "region": self.region,
            "resources": list(self.resources),
        }
        return f'{dumps(head)[:-1]},"detail":{self.detail}}}'


def literal_sources(pattern: str) -> frozenset[str] | None:
    """Answer the sources of which an event must have one for a pattern to match; None where it could be any.

    A top-level `$or` may put another list in the place of the literal one, so then it could be any.
    """
    try:
        read = loads(pattern)
    except MalformedDocument:  # half a surrogate pair, a number beyond doubles: the pattern's own reader takes them
        return None
    sources = read.get("source") if isinstance(read, Mapping) and "$or" not in read else None
    if isinstance(sources, list) and all(isinstance(one, str) for one in sources):
        return frozenset(sources)
    return None


def sources_of(patterns: Sequence[str]) -> str:
    """Answer what a bus's row says of all its enabled patterns: a JSON list of sources, or `*`."""
    found: set[str] = set()
    for pattern in patterns:
        literal = literal_sources(pattern)
        if literal is None:
            return ANY_SOURCE
        found |= literal
    return dumps(sorted(found))


def lane_of(source: str) -> int:
    """Answer where an event of this source waits."""
    return TOLD if source.startswith("aws.") else PUT
