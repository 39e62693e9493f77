"""Which paths of a machine can find nothing: the shapes of documents, followed from state to state.

Every state is looked at once for each time its input's shape grows, until nothing changes (shapes only ever get less
certain, so it ends). Then each path is judged by what is known where it stands:

- `never`: no way to here fills it; the state fails whenever it runs.
- `maybe`: some ways to here fill it and others don't, or the machine itself asks elsewhere whether it is there.

What comes from outside (an execution's input, a task's result) is ANYTHING, and paths into it are never complained of.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from tasuki.language.path_steps import BadPath
from tasuki.language.paths import parse_path
from tasuki.language.payload import escape
from tasuki.language.shapes import (
    ANYTHING,
    NOTHING_INSIDE,
    Key,
    Presence,
    Shape,
    join,
    join_all,
    look,
    put,
    shape_of,
    without,
)

_ROUNDS = 40
"""How often a state is looked at again before its input counts as ANYTHING."""
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'")
_PATH = re.compile(r"(?<!\$)\$(?![\w$])(?:\.[A-Za-z_][\w-]*)*")
_ERROR = Shape({"Error": Key("always", NOTHING_INSIDE), "Cause": Key("always", NOTHING_INSIDE)}, rest=False)
_OPERAND_PATHS = re.compile(r"(?:String|Numeric|Boolean|Timestamp)\w+Path")

Tell = Callable[[str, str, Presence], None]
"""Told of a path that may find nothing: where it stands, its text, how sure that is."""


class Way(NamedTuple):
    """Where a state may lead, and with what."""

    to: str
    shape: Shape


def check_paths(definition: dict[str, Any], tell: Tell) -> None:
    """Judge every path of a machine whose schema is right."""
    _check_block(definition, "", "JSONPath", ANYTHING, tell)


def _check_block(block: dict[str, Any], pointer: str, outer: str, entry: Shape, tell: Tell) -> None:
    language = block.get("QueryLanguage", outer)
    inputs = _settle(block, language, entry)
    for name, shape in inputs.items():
        at = f"{pointer}/States/{escape(name)}"
        visit = _Visit(block["States"][name], language, at, tell)
        for _way in visit.ways(shape):
            pass
        visit.blocks(shape)


def _settle(block: dict[str, Any], language: str, entry: Shape) -> Mapping[str, Shape]:
    """Answer the input's shape of every state that is reached."""
    inputs: dict[str, Shape] = {block["StartAt"]: entry}
    rounds: dict[str, int] = {}
    todo = [block["StartAt"]]
    while todo:
        name = todo.pop(0)
        for way in _Visit(block["States"][name], language, "", _nobody).ways(inputs[name]):
            before = inputs.get(way.to)
            after = way.shape if before is None else join(before, way.shape)
            rounds[way.to] = rounds.get(way.to, 0) + 1
            if rounds[way.to] > _ROUNDS:
                after = ANYTHING
            if after != before:
                inputs[way.to] = after
                todo.append(way.to)
    return inputs


class _Visit:
    """One state: its paths are judged by the shape of its input, and what it hands on is told."""

    def __init__(self, state: dict[str, Any], language: str, pointer: str, tell: Tell) -> None:
        self.state = state
        self.language = state.get("QueryLanguage", language)
        self.pointer = pointer
        self.tell = tell

    def ways(self, given: Shape) -> Iterator[Way]:
        """Go through where the state may lead."""
        kind = self.state["Type"]
        if self.language == "JSONata":
            yield from self._jsonata(given, kind)
            return
        seen = self.select("InputPath", given)
        if kind == "Choice":
            yield from self._choices(seen)
            return
        for field in (
            "SecondsPath",
            "TimestampPath",
            "TimeoutSecondsPath",
            "HeartbeatSecondsPath",
            "MaxConcurrencyPath",
        ):
            self._judge(field, seen)
        for field in (
            "ErrorPath",
            "CausePath",
            "ItemsPath",
            "ToleratedFailureCountPath",
            "ToleratedFailurePercentagePath",
        ):
            self._judge(field, seen)
        for place, catcher in enumerate(self.state.get("Catch", ())):
            yield Way(catcher["Next"], _at(catcher.get("ResultPath", "$"), given, _ERROR))
            self._template(catcher.get("Assign"), f"{self.pointer}/Catch[{place}]/Assign", _ERROR)
        output = self._output(kind, given, seen)
        if "Next" in self.state:
            yield Way(self.state["Next"], output)

    def _output(self, kind: str, given: Shape, seen: Shape) -> Shape:
        effective = self.field("Parameters", seen) if kind != "Map" else seen
        if kind in {"Task", "Parallel", "Map"}:
            result = ANYTHING
        elif "Result" in self.state:
            result = shape_of(self.state["Result"])
        else:
            result = effective
        self._template(self.state.get("Assign"), f"{self.pointer}/Assign", result)
        if "ResultSelector" in self.state:
            result = self.field("ResultSelector", ANYTHING)
        if kind in {"Pass", "Task", "Parallel", "Map"}:
            result = _at(self.state.get("ResultPath", "$"), given, result)
        return self.select("OutputPath", result)

    def _jsonata(self, given: Shape, kind: str) -> Iterator[Way]:
        """JSONata's expressions are not looked into; what they hand on is ANYTHING but where they hand on the input."""
        output = ANYTHING if kind in {"Task", "Parallel", "Map"} or "Output" in self.state else given
        for rule in self.state.get("Choices", ()):
            yield Way(rule["Next"], ANYTHING if "Output" in rule else given)
        for catcher in self.state.get("Catch", ()):
            yield Way(catcher["Next"], ANYTHING if "Output" in catcher else _ERROR)
        for field in ("Next", "Default"):
            if field in self.state:
                yield Way(self.state[field], output)

    def _choices(self, seen: Shape) -> Iterator[Way]:
        """Each rule is asked after those before it said no."""
        for place, rule in enumerate(self.state["Choices"]):
            yes, seen_next = self._rule(rule, f"{self.pointer}/Choices[{place}]", seen)
            self._template(rule.get("Assign"), f"{self.pointer}/Choices[{place}]/Assign", yes)
            yield Way(rule["Next"], self.select("OutputPath", yes))
            seen = seen_next
        self._template(self.state.get("Assign"), f"{self.pointer}/Assign", seen)
        if "Default" in self.state:
            yield Way(self.state["Default"], self.select("OutputPath", seen))

    def _rule(self, rule: dict[str, Any], pointer: str, seen: Shape) -> tuple[Shape, Shape]:
        """Judge a rule; answer what is known when it says yes, and when it says no."""
        if "Not" in rule:
            yes, no = self._rule(rule["Not"], f"{pointer}/Not", seen)
            return no, yes
        for connective in ("And", "Or"):
            if connective in rule:
                # And: each is asked when all before it said yes. Or: when all before it said no.
                sides = []
                here = seen
                for place, inner in enumerate(rule[connective]):
                    yes, no = self._rule(inner, f"{pointer}/{connective}[{place}]", here)
                    here, side = (yes, no) if connective == "And" else (no, yes)
                    sides.append(side)
                return (here, join_all(sides)) if connective == "And" else (join_all(sides), here)
        steps = _reference(rule["Variable"])
        if "IsPresent" in rule:
            if not steps:
                return seen, seen
            there, gone = _made_sure(seen, steps), without(seen, steps)
            return (there, gone) if rule["IsPresent"] else (gone, there)
        self._tell(f"{pointer}/Variable", rule["Variable"], seen)
        for field, operand in rule.items():
            if _OPERAND_PATHS.fullmatch(field):
                self._tell(f"{pointer}/{field}", operand, seen)
        return seen, seen

    def select(self, field: str, shape: Shape) -> Shape:
        """Judge InputPath or OutputPath; answer what it selects."""
        text = self.state.get(field, "$")
        if text is None:
            return shape_of({})
        self._judge(field, shape)
        steps = _reference(text)
        return ANYTHING if steps is None else look(shape, steps)[1]

    def _judge(self, field: str, shape: Shape) -> None:
        if isinstance(self.state.get(field), str):
            self._tell(f"{self.pointer}/{field}", self.state[field], shape)

    def field(self, field: str, shape: Shape) -> Shape:
        """Judge a template by what `$` means in it; answer what it makes. Without one, that is `$` itself."""
        if field not in self.state:
            return shape
        return self._template(self.state[field], f"{self.pointer}/{field}", shape)

    def _template(self, template: Any, pointer: str, shape: Shape) -> Shape:
        if isinstance(template, list):
            for place, inner in enumerate(template):
                self._template(inner, f"{pointer}/{place}", shape)
            return ANYTHING
        if not isinstance(template, dict):
            return NOTHING_INSIDE
        keys: dict[str, Key] = {}
        for name, value in template.items():
            at = f"{pointer}/{escape(name)}"
            if not name.endswith(".$"):
                keys[name] = Key("always", self._template(value, at, shape))
                continue
            self._tell(at, value, shape)
            steps = _reference(value)
            keys[name[:-2]] = Key("always", ANYTHING if steps is None else look(shape, steps)[1])
        return Shape(keys, rest=False)

    def _tell(self, at: str, text: str, shape: Shape) -> None:
        """Tell of every path in a text that may find nothing. One that names many nodes finds an empty list at worst."""
        for steps in _paths_in(text):
            presence, _ = look(shape, steps)
            if presence in {"never", "maybe"}:
                self.tell(at, "$" + "".join(f".{step}" for step in steps), presence)

    def blocks(self, given: Shape) -> None:
        """Look into the blocks below the state."""
        quiet = _Visit(self.state, self.language, "", _nobody)
        seen = ANYTHING if self.language == "JSONata" else quiet.select("InputPath", given)
        entry = ANYTHING if self.language == "JSONata" else quiet.field("Parameters", seen)
        for place, branch in enumerate(self.state.get("Branches", ())):
            _check_block(branch, f"{self.pointer}/Branches[{place}]", self.language, entry, self.tell)
        selector = "ItemSelector" if "ItemSelector" in self.state else "Parameters"
        for name in ("ItemProcessor", "Iterator"):
            if name in self.state:
                entry = ANYTHING
                if selector in self.state and self.language != "JSONata":
                    entry = self.field(selector, seen)
                _check_block(
                    self.state[name],
                    f"{self.pointer}/{name}",
                    self.language,
                    ANYTHING if "ItemBatcher" in self.state else entry,
                    self.tell,
                )


def _nobody(_at: str, _text: str, _presence: Presence) -> None:
    """Nobody is told."""


def _made_sure(shape: Shape, steps: tuple[str | int, ...]) -> Shape:
    return put(shape, steps, look(shape, steps)[1])


def _at(where: str | None, given: Shape, result: Shape) -> Shape:
    """Answer what a ResultPath makes of the input and a result."""
    if where is None:
        return given
    steps = _reference(where)
    return ANYTHING if steps is None else put(given, steps, result)


def _reference(text: Any) -> tuple[str | int, ...] | None:
    """Answer the steps of a plain path into `$`; None for everything else."""
    if not isinstance(text, str) or not text.startswith("$"):
        return None
    try:
        path = parse_path(text)
    except BadPath:
        return None
    return path.reference if path.variable == "" else None


def _paths_in(text: Any) -> Iterator[tuple[str | int, ...]]:
    """Go through the paths into `$` of a path's or an intrinsic call's text, each as far as it is plain."""
    if not isinstance(text, str):
        return
    if text.startswith("$"):
        steps = _reference(text)
        if steps is not None:
            yield steps
        return
    for found in _PATH.findall(_QUOTED.sub("", text)):
        yield tuple(found.split(".")[1:])
