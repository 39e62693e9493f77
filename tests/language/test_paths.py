"""Paths: tables of AWS's dialect, and properties against another implementation where the dialects agree."""

from typing import Any

import jsonpath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasuki.language.errors import StatesError
from tasuki.language.path_steps import BadPath
from tasuki.language.paths import Missing, Path, field_missing, parse_path, path_missing, reader
from tests.language.scopes import read, scope

DOCUMENT = {
    "a": {"b": {"c": {"d": 4}}, "list": [10, 20, 30, 40]},
    "odd key": 1,
    "it's": 2,
    "x-y": 3,
    "null": None,
    "items": [{"n": 1, "s": "one", "in": [1, 2]}, {"n": 2, "s": "two"}, {"s": "three", "n": None}, {"n": "2"}],
    "Status": "200",
}
ITEMS = DOCUMENT["items"]
assert isinstance(ITEMS, list)

DEFINITE = [
    ("$", DOCUMENT),
    ("$.a.b.c.d", 4),
    ("$.a.b.c", {"d": 4}),
    ("$['a']['b'].c['d']", 4),
    ('$["a"].b', {"c": {"d": 4}}),
    ("$['odd key']", 1),
    (r"$['it\'s']", 2),
    ("$.x-y", 3),
    ("$.null", None),
    ("$.a.list[0]", 10),
    ("$.a.list[-1]", 40),
    ("$.a.list[9]", None),  # measured on AWS: past the end is null
    ("$.a.list[-9]", None),
    ("$.items[1].s", "two"),
    ("$.a['b','list']", {"b": {"c": {"d": 4}}, "list": [10, 20, 30, 40]}),
    ("$.items[0]['n','zz']", {"n": 1}),
    ("$.a.list.length()", 4),
    ("$.items.size()", 4),
    ("$.a.length()", 2),
    ("$.Status.length()", None),
    ("$.a.list.sum()", 100.0),
    ("$.a.list.min()", 10.0),
    ("$.a.list.max()", 40.0),
    ("$.a.list.avg()", 25.0),
    ("$.a.list.stddev()", pytest.approx(11.18034)),
    ("$.a.list.first()", 10),
    ("$.a.list.last()", 40),
    ("$.a.list.index(1)", 20),
    ("$.a.keys()", ["b", "list"]),
    ("$.a.list.append(50)", [10, 20, 30, 40, 50]),
    ("$.concat($.Status, '-', \"x\")", "200-x"),
    ("$$.Execution.Id", "arn:x"),
    ("$$", {"Execution": {"Id": "arn:x", "Input": {"n": 1}}, "State": {"Name": "S"}}),
    ("$v", {"w": [1, {"x": 2}]}),
    ("$v.w[1].x", 2),
    ("$v['w'][0]", 1),
    ("$größe", 9),
]
INDEFINITE = [
    ("$.a.list[*]", [10, 20, 30, 40]),
    ("$.a.list[1:3]", [20, 30]),
    ("$.a.list[:2]", [10, 20]),
    ("$.a.list[-2:]", [30, 40]),
    ("$.a.list[0,2]", [10, 30]),
    ("$.a.list[0,9]", [10]),
    ("$.a.*.c", [{"d": 4}]),
    ("$.a.b.*", [{"d": 4}]),
    ("$.items[*].s", ["one", "two", "three"]),
    ("$.items[*]['n','s']", [{"n": 1, "s": "one"}, {"n": 2, "s": "two"}, {"s": "three", "n": None}, {"n": "2"}]),
    ("$..d", [4]),
    ("$..s", ["one", "two", "three"]),
    ("$.items[*].in.length()", [2]),
    ("$..s.length()", 3),
    ("$..[0]", [10, ITEMS[0], 1]),
    ("$.items[?(@.n == 1)].s", ["one"]),
    ("$.items[?(@.n == 2)]", [ITEMS[1], ITEMS[3]]),  # a number equals the text that spells it
    ("$.items[?(@.n != 1)].s", ["two", "three"]),
    ("$.items[?(@.n > 1)].s", ["two"]),
    ("$.items[?(@.n >= 1 && @.s == 'two')].s", ["two"]),
    ("$.items[?(@.n == 1 || @.s == 'three')].s", ["one", "three"]),
    ("$.items[?(@.n == null)].s", ["three"]),
    ("$.items[?(@.s)].s", ["one", "two", "three"]),
    ("$.items[?(!@.s)]", [ITEMS[3]]),
    ("$.items[?(@.s =~ /t.*/i)].s", ["two", "three"]),
    ("$.items[?(@.s in ['one', 'two'])].n", [1, 2]),
    ("$.items[?(@.s nin ['one', 'two'])].n", [None, "2"]),
    ("$.items[?(@.in contains 2)].s", ["one"]),
    ("$.items[?(@.in size 2)].s", ["one"]),
    ("$.items[?(@['n'] === 2)].s", ["two"]),
    ("$.items[?((@.n < 2) || (@.n > 5))].s", ["one"]),
    ("$.items[?(@.n < $.a.b.c.d)].s", ["one", "two"]),
    ("$.items[?(@.in[?(@ < $.a.b.c.d)] size 2)].s", ["one"]),
    ("$.items[?(@.s==one)].n", [1]),  # deployed definitions leave the quotes out
    ("$.a[?(@.b)].list[0]", [10]),  # a filter on an object looks at the object itself
    ("$.items[?(@.s == 'a)b')]", []),
    ("$..[?(@.d == 4)]", [{"d": 4}]),
]
EMPTY = ["$.item.items[1:5]", "$.item.items[:1]", "$.items[*].itemValue", "$.items[*]", "$.items[1:].itemValue", "$[*]"]


@pytest.mark.parametrize(("path", "value"), DEFINITE, ids=lambda case: case if isinstance(case, str) else "")
def test_definite_paths(path: str, value: Any) -> None:
    assert parse_path(path).definite
    assert read(path, DOCUMENT, v={"w": [1, {"x": 2}]}, größe=9) == value


@pytest.mark.parametrize(("path", "value"), INDEFINITE, ids=lambda case: case if isinstance(case, str) else "")
def test_indefinite_paths(path: str, value: Any) -> None:
    assert not parse_path(path).definite
    assert read(path, DOCUMENT) == value


@pytest.mark.parametrize("path", EMPTY)
def test_an_indefinite_path_of_nothing_is_an_empty_list(path: str) -> None:
    """Recorded: test_json_path_array_wildcard_or_slice_with_no_input."""
    assert read(path, {}) == []


def test_a_backslash_in_a_name_stands_for_itself() -> None:
    """Recorded: test_escape_sequence_parsing[ESCAPE_SEQUENCES_JSONPATH]."""
    assert read('$[\'Test\\""Name"\']', {'Test\\""Name"': 'Value"\\'}) == 'Value"\\'


def test_failed_tasks_are_found_by_status() -> None:
    """Field pitfall PF-09."""
    rows = [{"Status": "201", "id": 1}, {"Status": "500", "id": 2}, {"id": 3}]
    assert read("$[?(@.Status != '201')]", rows) == rows[1:]


MISSING = [
    ("$.no", "No results for path: $['no']"),
    ("$.no.such.path", "Missing property in path $['no']"),
    ("$.a.b.no", "No results for path: $['a']['b']['no']"),
    (
        "$.Status.x",
        (
            "Expected to find an object with property ['x'] in path $['Status'] but found "
            "'com.fasterxml.jackson.databind.node.TextNode'. This is not a json object according to the JsonProvider: "
            "'com.jayway.jsonpath.spi.json.JacksonJsonNodeJsonProvider'."
        ),
    ),
    ("$.Status[0]", 'Filter: [0] can only be applied to arrays. Current context is: "200"'),
    ("$.no[0]", "Missing property in path $['no']"),
    ("$.a.b.sum()", "Aggregation function attempted to calculate value using empty array"),
    ("$$.Execution.no", "No results for path: $['Execution']['no']"),
    ("$v.no", "No results for path: $['no']"),
    ("$unknown", "No variable named 'unknown'"),
]


@pytest.mark.parametrize(("path", "reason"), MISSING)
def test_a_definite_path_of_nothing_says_why(path: str, reason: str) -> None:
    """The first two are recorded: test_invalid_jsonpath, test_catch_states_runtime."""
    with pytest.raises(StatesError) as caught:
        read(path, DOCUMENT, v={})
    assert (caught.value.error, caught.value.cause) == ("States.Runtime", f"Invalid path '{path}' : {reason}")


def test_a_template_says_which_field_and_what_input() -> None:
    """Recorded: test_invalid_jsonpath."""
    expression = parse_path("$$.Execution.Input.no").bind(field_missing("value.$"))
    with pytest.raises(StatesError) as caught:
        expression(scope({"int-literal": 0}))
    assert caught.value.cause == (
        "The JSONPath '$$.Execution.Input.no' specified for the field 'value.$' could not be found in the input "
        "'{\"int-literal\":0}'"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "$.",
        "$.a.",
        "$a b",
        "$[",
        "$[]",
        "$[a]",
        "$['a'",
        "$.a[1:2",
        "$..",
        "$.a[?(@.b]",
        "$.a[?(@.b ==)]",
        "$-a",
        "$.a[?(@.b == 'x)]",
        "$.a.nope()",
        "$.a.length().b",
        "$.a b",
        "$['a',0]",
        "$.a[0,]",
        "$.a[?(@.b =~ /(/)]",
        "$1",
    ],
)
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(BadPath):
        parse_path(text)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("$", ()),
        ("$.a['b c'][2]", ("a", "b c", 2)),
        ("$.a[-1]", None),
        ("$.a[*]", None),
        ("$..a", None),
        ("$.a[0:1]", None),
    ],
)
def test_reference_paths(text: str, steps: tuple[str | int, ...] | None) -> None:
    assert parse_path(text).reference == steps


NAMES = st.sampled_from("abc")
SCALARS = st.none() | st.booleans() | st.integers(-3, 3)


def documents(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=3),
        max_leaves=12,
    )


DOCUMENTS = documents(SCALARS | st.sampled_from(["x", "y", ""]))
PLAIN_STEPS = st.one_of(NAMES.map(".{}".format), NAMES.map("['{}']".format), st.integers(-3, 3).map("[{}]".format))
SLICES = st.tuples(st.none() | st.integers(-3, 3), st.none() | st.integers(-3, 3)).map(
    lambda ends: "[" + ":".join("" if end is None else str(end) for end in ends) + "]"
)
MANY_STEPS = st.one_of(PLAIN_STEPS, st.sampled_from([".*", "[*]", "..a", "..*", "[0,1]"]), SLICES)


@given(document=DOCUMENTS, steps=st.lists(PLAIN_STEPS, max_size=4))
def test_definite_paths_agree_with_another_implementation(document: Any, steps: list[str]) -> None:
    text = "$" + "".join(steps)
    try:
        found = [reader(parse_path(text).steps, strict=True)(document)]
    except Missing:
        found = []
    assert found == jsonpath.findall(text, document)


@given(document=documents(SCALARS), steps=st.lists(MANY_STEPS, min_size=1, max_size=4))
def test_indefinite_paths_agree_with_another_implementation(document: Any, steps: list[str]) -> None:
    """Without texts: the other one slices them too."""
    text = "$" + "".join(steps)
    path = parse_path(text)
    if path.definite:
        return
    found, expected = reader(path.steps)(document), jsonpath.findall(text, document)
    if ".." in text:  # the order of descent is each implementation's own
        found, expected = sorted(found, key=repr), sorted(expected, key=repr)
    assert found == expected


@given(
    rows=st.lists(
        st.dictionaries(NAMES, st.integers(-2, 2) | st.sampled_from(["x", "y"]) | st.none(), max_size=3), max_size=6
    ),
    name=NAMES,
    operator=st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
    literal=st.integers(-2, 2) | st.sampled_from(["'x'", "'y'"]),
    second=st.sampled_from(["", " && @.b == 1", " || @.c == 'x'", " && (@.a > 0 || @.b)"]),
)
def test_filters_agree_with_another_implementation(
    rows: list[dict[str, Any]], name: str, operator: str, literal: Any, second: str
) -> None:
    text = f"$[?(@.{name} {operator} {literal}{second})]"
    assert reader(parse_path(text).steps)(rows) == jsonpath.findall(text, rows)


@given(document=DOCUMENTS, steps=st.lists(MANY_STEPS, max_size=4))
def test_reading_is_a_function_of_the_document(document: Any, steps: list[str]) -> None:
    path = parse_path("$" + "".join(steps))
    before = repr(document)
    first, second = (_outcome(path, document) for _ in range(2))
    assert first == second
    assert repr(document) == before


def _outcome(path: Path, document: Any) -> Any:
    try:
        return path.bind(path_missing)(scope(document))
    except StatesError as gone:
        return gone.cause
