"""The fields of a state, read in the language of the state: what is a path, a template or a query becomes an `Expression`."""

from typing import Any, Literal

from tasuki.language import jsonata_fields, jsonata_templates
from tasuki.language.definition import Expression, QueryLanguage, Scope
from tasuki.language.errors import StatesError
from tasuki.language.jsonata import Query
from tasuki.language.jsonata_compile import BadQuery
from tasuki.language.jsonata_templates import Template, is_query
from tasuki.language.path_steps import BadPath
from tasuki.language.paths import Complaint, Path, is_variable_name, parse_path, path_missing
from tasuki.language.payload import compile_template, compile_value
from tasuki.language.schema import Complaints, Node
from tasuki.values.documents import dumps

ResultPath = tuple[str | int, ...] | Literal["discard"]


class Fields(Node):
    """An object whose fields may hold paths, templates or queries. `variables` collects the names that are read."""

    __slots__ = ("language", "state_pointer", "variables")

    def __init__(
        self, value: dict[str, Any], pointer: str, complaints: Complaints, language: QueryLanguage, variables: set[str]
    ) -> None:
        super().__init__(value, pointer, complaints)
        self.language = language
        self.state_pointer = pointer
        self.variables = variables

    def of(self, node: Node) -> "Fields":
        """Read an object below in the same language."""
        below = Fields(node.value, node.pointer, self.complaints, self.language, self.variables)
        below.state_pointer = self.state_pointer
        return below

    def location(self, field: str) -> str:
        """Answer where a field stands below its state, as failures of expressions tell it: `Choices[0]/Condition`."""
        return self.at(field).removeprefix(f"{self.state_pointer}/")

    def path(self, field: str) -> Path | None:
        """Answer a path; complain about what is none."""
        text = self.text(field)
        if text is None:
            return None
        try:
            path = parse_path(text)
        except BadPath as bad:
            self.complain(field, f"Value is not a valid JSONPath: {bad}")
            return None
        if path.variable not in {"", "$"}:
            self.variables.add(path.variable)
        return path

    def bound(self, field: str, complaint: Complaint = path_missing) -> Expression | None:
        """Answer the expression of a path."""
        path = self.path(field)
        return None if path is None else path.bind(complaint)

    def selection(self, field: str) -> Expression | None:
        """Answer InputPath or OutputPath: None for `$`, an empty object for JSON null."""
        if field in self and self.value[field] is None:
            return lambda scope: {}  # noqa: ARG005 - an expression's shape
        path = self.path(field)
        if path is None or (path.variable == "" and not path.steps):
            return None
        return path.bind(path_missing)

    def result_path(self, field: str = "ResultPath") -> ResultPath:
        """Answer where a result goes: () is `$`, "discard" is JSON null."""
        if field not in self:
            return ()
        if self.value[field] is None:
            return "discard"
        text = self.text(field)
        if text is None:
            return ()
        try:
            path = parse_path(text)
            steps = path.reference if path.variable == "" else None
        except BadPath:
            steps = None
        if steps is None:
            self.complain(field, "Value is not a Reference Path")
            return ()
        return steps

    def template(self, field: str) -> Expression | None:
        """Answer a payload template, or JSONata's counterpart."""
        if field not in self:
            return None
        if self.language == "JSONata":
            return self.jsonata_template(field)
        return compile_template(self.value[field], self.variables, self._complain_template, self.at(field))

    def jsonata_template(self, field: str) -> Template:
        """Answer a template of JSONata's."""

        def complain(pointer: str, code: str, message: str) -> None:
            self.complaints.add(pointer, message, code)

        made = jsonata_templates.compile_template(self.value[field], self.location(field), self.at(field), complain)
        for query in made.queries:
            self.variables |= query.variables
        return made

    def _complain_template(self, pointer: str, key: str, reason: str) -> None:
        self.complaints.add(
            pointer,
            f"The value for the field '{key}' must be a valid JSONPath or a valid intrinsic function call ({reason})",
        )

    def assign(self) -> Expression | None:
        """Answer Assign: variable name to value."""
        if "Assign" not in self:
            return None
        names = self.object("Assign")
        if names is None:
            return None
        for key in names.value:
            name = key.removesuffix(".$") if self.language == "JSONPath" else key
            if not is_variable_name(name) or name == "states":
                names.complain("", f"'{name}' is not a valid name of a variable")
        return self.template("Assign")

    def query(self, field: str) -> Query | None:
        """Answer the query of a field that holds one; complain when no machine may hold it."""
        try:
            made = jsonata_templates.read_query(self.value[field], self.location(field))
        except BadQuery as bad:
            for message in bad.messages:
                self.complaints.add(self.at(field), message, bad.code)
            return None
        self.variables |= made.variables
        return made

    def holds_query(self, field: str) -> bool:
        """Tell whether a field holds a query."""
        return self.language == "JSONata" and is_query(self.value.get(field))

    def number(self, field: str, least: float, most: float) -> Any:
        """Answer a number, or in JSONata mode what computes it."""
        if self.holds_query(field):
            query = self.query(field)
            return None if query is None else jsonata_fields.number(query, least, most)
        return super().number(field, least, most)

    def whole(self, field: str, least: int, most: int) -> Any:
        """Answer a whole number, or in JSONata mode what computes it."""
        if self.holds_query(field):
            query = self.query(field)
            return None if query is None else jsonata_fields.whole(query, least, most)
        return self.integer(field, least, most)

    def whole_or_path(self, field: str, least: int, most: int) -> Any:
        """Answer a whole number given as `field`, or the expression of one given as `fieldPath`; None when neither is."""
        if self.at_most_one(field, f"{field}Path") == f"{field}Path":
            return self.whole_path(f"{field}Path", least, most)
        return self.whole(field, least, most)

    def whole_path(self, field: str, least: int, most: int) -> Expression | None:
        """Answer the expression of a whole number (words recorded: test_max_concurrency_path, test_map_state_tolerated_failure_count_path)."""
        path = self.path(field)
        if path is None:
            return None
        read, name = path.bind(path_missing), field.removesuffix("Path")

        def number(scope: Scope) -> int:
            value = read(scope)
            if isinstance(value, bool) or not isinstance(value, int):
                raise not_a(field, value, "integer", path)
            if value < least:
                raise StatesError(
                    "States.Runtime", f"{name} cannot be negative." if least == 0 else _bounds(name, least, most)
                )
            if value > most:
                raise StatesError("States.Runtime", _bounds(name, least, most))
            return value

        return number

    def percentage_or_path(self, field: str) -> Any:
        """Answer a percentage given as `field` or as `fieldPath` (words recorded: test_map_state_tolerated_failure_percentage_path)."""
        by_path = f"{field}Path"
        if self.at_most_one(field, by_path) != by_path:
            return self.number(field, 0, 100)
        path = self.path(by_path)
        if path is None:
            return None
        read = path.bind(path_missing)

        def percentage(scope: Scope) -> float:
            value = read(scope)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise not_a(by_path, value, "float", path)
            if not 0 <= value <= 100:
                raise StatesError("States.Runtime", f"{_bounds(field, 0, 100)}")
            return float(value)

        return percentage

    def text_or_path(self, field: str) -> Any:
        """Answer Error or Cause: a text, or the expression of one given as ErrorPath or CausePath (or as a query)."""
        by_path = f"{field}Path"
        if self.at_most_one(field, by_path) != by_path:
            if self.holds_query(field):
                query = self.query(field)
                return None if query is None else jsonata_fields.text(query)
            return self.text(field)
        text = self.text(by_path)
        if text is None:
            return None
        try:
            read = compile_value(text, by_path, self.variables)
        except BadPath as bad:
            self.complain(by_path, f"Value must be a valid JSONPath or a valid intrinsic function call ({bad})")
            return None

        def words(scope: Scope) -> str:
            value = read(scope)
            if not isinstance(value, str):
                raise StatesError(
                    "States.Runtime", f"The {by_path} parameter does not reference a string: {text} == {plain(value)}"
                )
            return value

        return words

    def items(self) -> Expression | None:
        """Answer the expression of a Map's items; in JSONPath mode it makes sure of an array."""
        if self.language == "JSONata":
            return self._jsonata_items()
        path = self.path("ItemsPath") if "ItemsPath" in self else parse_path("$")
        if path is None:
            return None
        read, text = path.bind(path_missing), path.text

        def items(scope: Scope) -> Any:
            found = read(scope)
            if not isinstance(found, list):
                raise StatesError("States.Runtime", f'Reference path "{text}" must point to array.')
            return found

        return items

    def _jsonata_items(self) -> Expression | None:
        """Answer the expression of Items: a query or an array with queries in it; by default the input."""
        if "Items" not in self:
            return jsonata_fields.items_of_input
        if self.holds_query("Items"):
            query = self.query("Items")
            return None if query is None else jsonata_fields.array(query)
        if self.array("Items") is None:
            return None
        return self.jsonata_template("Items")


def plain(value: Any) -> str:
    """Write a value as AWS shows it in errors: texts bare, the rest as JSON."""
    return value if isinstance(value, str) else dumps(value)


def not_a(field: str, value: Any, kind: str, path: Path) -> StatesError:
    """Word the error of a number by path that is none."""
    return StatesError(
        "States.Runtime", f'The {field} field refers to value "{plain(value)}" which is not a valid {kind}: {path.text}'
    )


def _bounds(name: str, least: int, most: int) -> str:
    return f"{name} must be between {least} and {most}."
