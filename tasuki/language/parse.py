"""From the text of a definition to a `Machine`, or to every complaint about it.

First the schema of each object, then (`check`) how states hang together; what is right but served by a later release
is refused last. Locations are JSON pointers as AWS writes them, with array places in brackets: `/States/C/Choices[0]/Next`.
"""

from typing import Any

from tasuki.language.check import check_graph, check_names
from tasuki.language.definition import Block, Machine, QueryLanguage, State
from tasuki.language.errors import Diagnosis, InvalidDefinition
from tasuki.language.fields import Fields
from tasuki.language.payload import escape
from tasuki.language.schema import LARGEST, SCHEMA, Complaints, Node
from tasuki.language.states import read_state
from tasuki.language.variables import check_scopes
from tasuki.values.documents import loads
from tasuki.values.errors import MalformedDocument
from tasuki.values.unreadable import unrecognized

LARGEST_DEFINITION_BYTES = 1_048_576

LONE_STATE = "StateName"
"""What AWS calls a state that is given without its machine (recorded: test_parallel_state_empty_branches)."""

_DEEPEST = 40
"""How many blocks may lie in each other (TOO_DEEPLY_NESTED; AWS's own bound is not published)."""


def parse(text: str) -> Machine:
    """Compile a definition. Raises `InvalidDefinition` with at least one diagnosis."""
    return _compile(read_object(text))


def parse_state(text: str) -> Machine:
    """Compile one state without its machine: a block that holds it alone, under the name that AWS gives it.

    Where it leads to is not looked at. Raises `InvalidDefinition`.
    """
    return _compile({"StartAt": LONE_STATE, "States": {LONE_STATE: read_object(text)}}, alone=True)


def read_object(text: str) -> dict[str, Any]:
    """Read the text of a definition. Raises `InvalidDefinition`."""
    try:
        value = loads(text) if text.strip() else None
    except MalformedDocument as bad:
        raise InvalidDefinition([_unreadable(text, str(bad))]) from None
    if not isinstance(value, dict):
        raise InvalidDefinition([Diagnosis(SCHEMA, "Definition must be a valid JSON object", "")])
    return value


def _compile(value: dict[str, Any], *, alone: bool = False) -> Machine:
    complaints = Complaints()
    try:
        machine = _Machine(Node(value, "", complaints)).read()
    except RecursionError:
        reason = "Templates, rules or filters lie too deep in each other"
        raise InvalidDefinition([Diagnosis("TOO_DEEPLY_NESTED", reason, "/")]) from None
    if not complaints.found:
        check_names(value, complaints)
        check_graph(value, complaints, alone=alone)
        check_scopes(value, complaints)
    found = complaints.found or complaints.later
    if found:
        raise InvalidDefinition(found)
    return machine


def _unreadable(text: str, reason: str) -> Diagnosis:
    """Say why a text is not JSON: for a text that begins with a bare word in the words of AWS's parser, as recorded."""
    word = unrecognized(text)
    if word is None:
        return Diagnosis("INVALID_JSON_DESCRIPTION", reason, "/")
    before = text[: word.read]
    column = len(before) - (before.rfind("\n") + 1) + 1
    shown = text if len(text) <= 500 else f'{text[:500]}"[truncated {len(text) - 500} chars]'
    source = f'[Source: (String)"{shown}"; line: {before.count(chr(10)) + 1}, column: {column}]'
    return Diagnosis("INVALID_JSON_DESCRIPTION", f"{word.message}\n at {source}", source)


class _Machine:
    """One definition while it is read."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self.complaints = root.complaints
        self.language: QueryLanguage = "JSONPath"
        self.blocks: dict[str, Block] = {}
        self.references: dict[str, tuple[str, ...]] = {}

    def read(self) -> Machine:
        root = self.root
        root.only({"StartAt", "States", "Comment", "Version", "TimeoutSeconds", "QueryLanguage"})
        self.language = self._language(root, "JSONPath")
        version = root.text("Version")
        if version not in {None, "1.0"}:
            root.complain("Version", "The field 'Version' should have one of these values: [1.0]")
        block = self.block(root, "", self.language, 0)
        return Machine(
            root=block,
            blocks=self.blocks,
            timeout_seconds=root.integer("TimeoutSeconds", 1, LARGEST),
            comment=root.text("Comment"),
            query_language=self.language,
            references=self.references,
        )

    def _language(self, node: Node, outer: QueryLanguage) -> QueryLanguage:
        value = node.text("QueryLanguage")
        if value is None:
            return outer
        if value not in {"JSONPath", "JSONata"}:
            node.complain(
                "QueryLanguage", "The field 'QueryLanguage' should have one of these values: [JSONPath, JSONata]"
            )
            return outer
        if value == "JSONata":
            return "JSONata"
        if self.language == "JSONata":
            node.complain("", "'QueryLanguage' can not be 'JSONPath' if set to 'JSONata' for whole state machine")
        return "JSONPath"

    def block(self, node: Node, path: str, language: QueryLanguage, depth: int) -> Block:
        """Read an object with States and StartAt."""
        absent = [field for field in ("States", "StartAt") if field not in node]
        if absent:
            node.complain("", f"These fields are required: [{', '.join(absent)}]")
        if depth > _DEEPEST:
            self.complaints.add(
                node.pointer, f"Blocks lie more than {_DEEPEST} deep in each other", "TOO_DEEPLY_NESTED"
            )
            return Block(path=path, start_at="", states={})
        states: dict[str, State] = {}
        listed = node.object("States", filled=True)
        for name, value in listed.value.items() if listed is not None else ():
            pointer = f"{node.pointer}/States/{escape(name)}"
            if not isinstance(value, dict):
                self.complaints.add(pointer, "Expected value of type Object")
                continue
            state = self._state(name, Node(value, pointer, self.complaints), path, language, depth)
            if state is not None:
                states[name] = state
        made = Block(path=path, start_at=node.text("StartAt") or "", states=states, query_language=language)
        self.blocks[path] = made
        return made

    def _state(self, name: str, node: Node, path: str, outer: QueryLanguage, depth: int) -> State | None:
        language = self._language(node, outer)
        variables: set[str] = set()
        fields = Fields(node.value, node.pointer, self.complaints, language, variables)
        below = f"{path}/States/{escape(name)}"

        def blocks(node: Node, place: str) -> Block:
            allowed: set[str] = {"StartAt", "States", "Comment", "QueryLanguage"}
            node.only(allowed if place.startswith("Branches") else allowed | {"ProcessorConfig"})
            inherited: Any = self._language(node, self.language)
            return self.block(node, f"{below}/{place}", inherited, depth + 1)

        state = read_state(fields, name, blocks)
        if variables:
            self.references[name] = tuple(sorted(variables))
        return state
