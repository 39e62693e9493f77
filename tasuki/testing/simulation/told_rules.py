"""What clients were told about rules and events, and who has to get which: worked out apart from the room.

A rule is looked at when an event's turn comes, which is between the moment it was taken in and the next rest of the house. Whoever
wants it all that time has to get it; who wants it at some moment of that time may.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tasuki.rules.expressions import parse_expression
from tasuki.values.instant import SECOND, Instant

_RULE = "arn:aws:events:us-east-1:000000000000:rule/"


class Event(NamedTuple):
    """An event that a bus took in. `kind` and `n` are of its detail; None: nobody knows what it says."""

    bus: str
    id: str
    source: str
    kind: str | None
    n: int | None
    at: Instant


Wants = Callable[[Event], bool | None]
"""Whether a pattern matches; None where that depends on what nobody knows."""


def _many(event: Event) -> bool | None:
    return None if event.kind is None else event.n is not None and event.n > 1


def _kinds(event: Event) -> bool | None:
    if event.source not in {"shop", "pipe"}:
        return False
    return None if event.kind is None else event.kind in {"a", "b"}


PATTERNS: Mapping[str, tuple[str, Wants]] = {
    "shop": ('{"source":["shop"]}', lambda event: event.source == "shop"),
    "kinds": ('{"source":["shop","pipe"],"detail":{"kind":["a","b"]}}', _kinds),
    "many": ('{"detail":{"n":[{"numeric":[">",1]}]}}', _many),
    "prefix": ('{"source":[{"prefix":"sh"}]}', lambda event: event.source.startswith("sh")),
    "but": ('{"source":[{"anything-but":["shop","aws.states","aws.ecs"]}]}', lambda event: event.source != "shop"),
    "clock": ('{"source":["clock"],"detail-type":["Tick"]}', lambda event: event.source == "clock"),
    "states": ('{"source":["aws.states"],"detail":{"status":["SUCCEEDED","FAILED"]}}', lambda _event: False),
    "tasks": ('{"source":["aws.ecs"],"detail":{"lastStatus":["STOPPED"]}}', lambda _event: False),
}
"""By name: the pattern, and the same in our own words, for events that did not come from the house itself."""
OF_THE_HOUSE = ("states", "tasks")


@dataclass(frozen=True, slots=True)
class RuleEra:
    """What a rule says from `at` on. `since` is from when it counts its times without a break; None: it plans none."""

    at: Instant
    pattern: str = ""
    schedule: str = ""
    enabled: bool = True
    targets: Mapping[str, str] = field(default_factory=dict)
    since: Instant | None = None


@dataclass(slots=True)
class ToldRules:
    """All rules, by ARN, and all events."""

    eras: dict[str, list[RuleEra]] = field(default_factory=lambda: defaultdict(list))
    """The last era of a rule that was deleted is disabled and has no targets."""
    gone: set[str] = field(default_factory=set)
    events: dict[tuple[str, str], Event] = field(default_factory=dict)
    waiting: list[Event] = field(default_factory=list)
    """Taken in since the house was last at rest."""
    forwarded: set[tuple[object, ...]] = field(default_factory=set)
    """What was passed on to a bus, and is one of `events` there."""
    planned: set[str] = field(default_factory=set)
    """Keys of planned times that were looked at."""

    def there(self) -> list[str]:
        """Answer the rules that are there."""
        return [arn for arn in self.eras if arn not in self.gone]

    def change(self, arn: str, at: Instant, **what: object) -> None:
        """A rule was given something new."""
        known = self.eras[arn]
        before = known[-1] if known and arn not in self.gone else RuleEra(at)
        after = replace(before, at=at, **what)  # type: ignore[arg-type]
        goes_on = before.enabled and after.enabled and before.schedule == after.schedule and before.since is not None
        if not after.enabled or not after.schedule:
            after = replace(after, since=None)
        elif not goes_on:
            after = replace(after, since=at)
        known.append(after)
        self.gone.discard(arn)

    def delete(self, arn: str, at: Instant) -> None:
        """A rule was deleted."""
        if arn in self.eras and arn not in self.gone:
            self.change(arn, at, enabled=False, targets={}, pattern="", schedule="")
            self.gone.add(arn)

    def take(self, event: Event) -> None:
        """A bus took in an event."""
        if (event.bus, event.id) not in self.events:
            self.events[event.bus, event.id] = event
            self.waiting.append(event)

    def during(self, arn: str, since: Instant, until: Instant) -> Iterator[RuleEra]:
        """Answer what a rule said between two instants, both included; a change at one instant counts on both its sides."""
        known = self.eras.get(arn, [])
        ends = [*(era.at for era in known[1:]), None]
        for era, end in zip(known, ends, strict=True):
            if era.at <= until and (end is None or end >= since):
                yield era

    def may(self, arn: str, event: Event, target: str, until: Instant) -> bool:
        """Tell whether a rule may have given an event to a target."""
        return any(
            era.enabled
            and target in era.targets.values()
            and era.pattern
            and PATTERNS[era.pattern][1](event) is not False
            for era in self.during(arn, event.at, until)
        )

    def must(self, event: Event, until: Instant) -> Iterator[tuple[str, str]]:
        """Answer (rule, target) of who has to get an event."""
        for arn in self.eras:
            known = self.eras[arn]
            if bus_of(arn) != event.bus or known[0].at >= event.at:
                continue
            eras = list(self.during(arn, event.at, until))
            if all(era.enabled and era.pattern and PATTERNS[era.pattern][1](event) for era in eras):
                first, *rest = (set(era.targets.values()) for era in eras)
                for target in sorted(first.intersection(*rest)):
                    yield arn, target


def bus_of(arn: str) -> str:
    """Answer the bus of a rule."""
    bus, _, name = arn.removeprefix(_RULE).partition("/")
    return bus if name else "default"


def rule_arn(bus: str, name: str) -> str:
    """Answer a rule's ARN."""
    return _RULE + (name if bus == "default" else f"{bus}/{name}")


def due_between(era: RuleEra, after: Instant, until: Instant) -> Iterator[Instant]:
    """Answer the planned times of a rule, after one instant and up to another."""
    if era.since is None:
        return
    expression = parse_expression(era.schedule, "rule")
    due = expression.next(max(after, era.since), start=era.since)
    while due is not None and due <= until:
        yield due
        due = expression.next(due, start=era.since)


def plans(era: RuleEra, second: Instant) -> bool:
    """Tell whether a planned time, as the event tells it (in whole seconds), is one of a rule's."""
    if era.since is None:
        return False
    due = parse_expression(era.schedule, "rule").next(second - 1, start=era.since)
    return due is not None and due // SECOND == second // SECOND and due > era.since
