"""Reading a definition's JSON: every object with the JSON pointer it stands at, every complaint collected.

Texts of complaints are AWS's where one is recorded or known from public reports; `parse` says which.
"""

from collections.abc import Collection
from typing import Any

from tasuki.language.errors import Diagnosis
from tasuki.language.payload import escape

SCHEMA = "SCHEMA_VALIDATION_FAILED"
LARGEST = 99_999_999
"""AWS's largest number of seconds and of attempts."""


class Complaints:
    """The diagnoses of one definition, in the order they were found."""

    def __init__(self) -> None:
        self.found: list[Diagnosis] = []
        self.later: list[Diagnosis] = []
        """What is right but not served yet: counts only when nothing else is wrong."""

    def add(self, pointer: str, message: str, code: str = SCHEMA) -> None:
        """Complain about what stands at `pointer`."""
        self.found.append(Diagnosis(code, message, pointer or "/"))

    def not_yet(self, pointer: str, what: str, instead: str) -> None:
        """Refuse what a later release will take."""
        if not any(diagnosis.message.startswith(what) for diagnosis in self.later):
            message = f"{what} comes with a later release of Tasuki; {instead}"
            self.later.append(Diagnosis(SCHEMA, message, pointer or "/"))


class Node:
    """An object of the definition."""

    __slots__ = ("complaints", "pointer", "value")

    def __init__(self, value: dict[str, Any], pointer: str, complaints: Complaints) -> None:
        self.value = value
        self.pointer = pointer
        self.complaints = complaints

    def __contains__(self, field: str) -> bool:
        return field in self.value

    def at(self, field: str) -> str:
        """Answer the pointer of a field."""
        return f"{self.pointer}/{escape(field)}"

    def complain(self, field: str, message: str) -> None:
        """Complain about a field; about the object itself when `field` is empty."""
        self.complaints.add(self.at(field) if field else self.pointer, message)

    def only(self, fields: Collection[str]) -> None:
        """Refuse every field but these."""
        for field in self.value:
            if field not in fields:
                self.complain(field, "Field is not supported")

    def require(self, *fields: str) -> bool:
        """Demand fields; tell whether all are there."""
        absent = [field for field in fields if field not in self.value]
        if absent:
            self.complain("", f"These fields are required: [{', '.join(absent)}]")
        return not absent

    def at_most_one(self, *fields: str) -> str | None:
        """Answer which of the fields is there; complain when there is more than one."""
        present = [field for field in fields if field in self.value]
        if len(present) > 1:
            self.complain("", f"Only one of these fields may be there: [{', '.join(fields)}]")
        return present[0] if present else None

    def exactly_one(self, *fields: str) -> str | None:
        """Answer which of the fields is there; complain when it is none or more than one."""
        present = self.at_most_one(*fields)
        if present is None:
            self.complain("", f"Exactly one of these fields is required: [{', '.join(fields)}]")
        return present

    def text(self, field: str) -> str | None:
        """Answer a text; complain when it is something else."""
        value = self.value.get(field)
        if isinstance(value, str):
            return value
        if field in self.value:
            self.complain(field, "Expected value of type String")
        return None

    def flag(self, field: str) -> bool | None:
        """Answer a boolean; complain when it is something else."""
        value = self.value.get(field)
        if isinstance(value, bool):
            return value
        if field in self.value:
            self.complain(field, "Expected value of type Boolean")
        return None

    def integer(self, field: str, least: int, most: int = LARGEST) -> int | None:
        """Answer a whole number within bounds; complain when it is something else."""
        value = self.value.get(field)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            if field in self.value:
                self.complain(field, "Expected value of type Integer")
            return None
        if not least <= value <= most:
            self.complain(field, f"Value must be between {least} and {most}")
            return None
        return value

    def number(self, field: str, least: float, most: float) -> float | None:
        """Answer a number within bounds; complain when it is something else."""
        value = self.value.get(field)
        if isinstance(value, bool) or not isinstance(value, int | float):
            if field in self.value:
                self.complain(field, "Expected value of type Number")
            return None
        if not least <= value <= most:
            self.complain(field, f"Value must be between {least:g} and {most:g}")
            return None
        return float(value)

    def object(self, field: str, *, filled: bool = False) -> "Node | None":
        """Answer an object below; complain when it is something else (or empty, where that is wrong)."""
        value = self.value.get(field)
        if not isinstance(value, dict):
            if field in self.value:
                self.complain(field, "Expected value of type Object")
            return None
        if filled and not value:
            self.complain(field, "Value cannot be empty")
            return None
        return Node(value, self.at(field), self.complaints)

    def array(self, field: str, *, filled: bool = False) -> list[Any] | None:
        """Answer an array; complain when it is something else (or empty, where that is wrong)."""
        value = self.value.get(field)
        if not isinstance(value, list):
            if field in self.value:
                self.complain(field, "Expected value of type Array")
            return None
        if filled and not value:
            self.complain(field, "Value cannot be empty")
            return None
        return value

    def objects(self, field: str, *, filled: bool = False) -> "list[Node]":
        """Answer the objects of an array below, those that are some; complain about the others."""
        made = []
        for place, value in enumerate(self.array(field, filled=filled) or ()):
            if isinstance(value, dict):
                made.append(Node(value, f"{self.at(field)}[{place}]", self.complaints))
            else:
                self.complaints.add(f"{self.at(field)}[{place}]", "Expected value of type Object")
        return made
