"""Which request of Scheduler, EventBridge or Pipes a document is meant to be, and what the service's model says of it. Pure.

A document is recognised by likeness: by the members that it has, one misspelt among them.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from tasuki.cli.lint_resources import Check, Seen, check_pipe, check_rule, check_schedule, error, warning
from tasuki.cli.lint_sources import Place
from tasuki.values.service_checks import Serialization, complaints, convert
from tasuki.values.service_models import Action, Member, Shape, service_model

_REQUESTS: Mapping[tuple[str, str], Check | None] = {
    ("scheduler", "CreateSchedule"): check_schedule,
    ("scheduler", "UpdateSchedule"): check_schedule,
    ("events", "PutRule"): check_rule,
    ("events", "PutTargets"): check_rule,
    ("pipes", "CreatePipe"): check_pipe,
    ("pipes", "UpdatePipe"): check_pipe,
    ("events", "CreateApiDestination"): None,
    ("events", "UpdateApiDestination"): None,
    ("events", "CreateConnection"): None,
    ("events", "UpdateConnection"): None,
}
"""What looks at the texts of each; where nothing does, the model's constraints are all there is to say."""
_EVERYBODYS = frozenset(
    {"Name", "Description", "State", "DesiredState", "Tags", "RoleArn", "ClientToken", "StartDate", "EndDate"}
)
"""Members by which no request is known."""
_LIKE = 0.8
_AT = re.compile(r"^Value .*?at '([^']*)' failed to satisfy constraint: ", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Taken:
    """What a document is taken for."""

    action: Action
    check: Check | None

    def look(self, place: Place) -> Iterator[Seen]:
        """Say what is wrong with it."""
        found = list(_unknown(self.action.input, place, self.action.name))
        yield from found
        if self.check is not None:
            if not found and (missing := _missing(self.action, place.value)):
                yield warning(
                    place,
                    "MISSING_MEMBERS",
                    f"This is taken for {self.action.name}, and lacks {', '.join(missing)}, which it requires.",
                    f"Add {'it' if len(missing) == 1 else 'them'}, unless given elsewhere. {_see(self.action)}",
                )
            yield from self.check(place)
        elif not found:
            yield from _broken(self.action, place)


def taken_for(value: Any) -> str:
    """Say which request a document is taken for; and of one that may be meant for a schedule as well, what that would lack."""
    taken = recognise(value)
    if taken is None:
        return "a request"
    said = f"a request: {taken.action.name}"
    model = service_model("scheduler")
    create = model.action("CreateSchedule") if model is not None else None
    if create is not None and taken.action.name == "PutRule" and set(value) <= set(create.input.members):
        said += f"; as CreateSchedule it lacks {', '.join(_missing(create, value))}"
    return said


def _missing(action: Action, value: Any) -> list[str]:
    return [name for name in action.input.members if name in action.input.required and value.get(name) is None]


def recognise(value: Any) -> Taken | None:
    """Answer the request that a document is most like: two members at least, half of its members, one of them telling."""
    if not isinstance(value, dict):
        return None
    best: tuple[float, int] | None = None
    taken = None
    for (service, name), check in _REQUESTS.items():
        model = service_model(service)
        action = model.action(name) if model is not None else None
        if action is None:
            continue
        members = action.input.members
        near = {key: key if key in members else _near(key, members) for key in value}
        hits = [found for found in near.values() if found]
        if len(hits) < 2 or 2 * len(hits) < len(value) or not set(hits) - _EVERYBODYS:
            continue
        exact = sum(key == found for key, found in near.items())
        score = (exact + 0.9 * (len(hits) - exact), -len(set(action.input.required) - set(hits)))
        if best is None or score > best:
            best, taken = score, Taken(action, check)
    return taken


def _near(name: str, members: Mapping[str, Member]) -> str:
    """Answer the member that a misspelt name may mean, or nothing."""
    by_small = {one.lower(): one for one in members}
    found = get_close_matches(name.lower().replace("_", ""), by_small, 1, _LIKE)
    return by_small[found[0]] if found else ""


def _unknown(shape: Shape, place: Place, where: str) -> Iterator[Seen]:
    """Name the members that the model doesn't know, at every depth."""
    if shape.document:
        return
    if shape.kind == "structure" and isinstance(place.value, dict):
        for name, inner in place.members():
            if name in shape.members:
                yield from _unknown(shape.members[name].shape, inner, name)
                continue
            near = _near(name, shape.members)
            yield error(
                inner,
                "UNKNOWN_FIELD",
                f"{where} has no member {name}.",
                f"Did you mean {near}?" if near else f"It has {', '.join(shape.members)}.",
            )
    elif shape.kind == "list" and isinstance(place.value, list):
        for _, inner in place.members():
            yield from _unknown(shape.element.shape, inner, shape.element.shape.name)
    elif shape.kind == "map" and isinstance(place.value, dict):
        for name, inner in place.members():
            yield from _unknown(shape.pair[1].shape, inner, name)


def _broken(action: Action, place: Place) -> Iterator[Seen]:
    """Say what the model's constraints say."""
    given: dict[str, Any] = {}
    for name, inner in place.members():
        member = action.input.members[name]
        if inner.value is None:
            continue
        try:
            given[name] = convert(member.shape, inner.value, member.timestamp)
        except Serialization as bad:
            yield error(inner, "REFUSED_VALUE", f"{name} is of another type: {bad.message}", _see(action))
            return
    for said in complaints(action.input, given, ""):
        found = _AT.match(said)
        at, why = (found[1], said[found.end() :]) if found else ("", said)
        missing = why == "Member must not be null"
        here = _place_at(place, at)
        name = here.pointer.rpartition("/")[2] if not missing else at.rpartition(".")[2]
        name = name[:1].upper() + name[1:]
        yield error(
            here,
            "REFUSED_VALUE",
            f"{name} is missing: {action.name} requires it." if missing else f"{name} is refused: {why}.",
            _see(action),
        )


def _see(action: Action) -> str:
    return f"{action.name} has {', '.join(action.input.members)}; required: {', '.join(action.input.required)}."


def _place_at(place: Place, at: str) -> Place:
    """Follow a place as the model's complaints name it (`authParameters.basicAuthParameters`) as far as it goes."""
    for word in at.split("."):
        inner = dict(place.members())
        key = str(int(word) - 1) if word.isdecimal() else next((k for k in inner if k[:1].lower() + k[1:] == word), "")
        place = inner.get(key, place)
    return place
