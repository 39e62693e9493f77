"""What fuzzing is made of: paths, calls, queries and rules that are nearly right, and definitions that are damaged."""

from typing import Any

from hypothesis import strategies as st

from tests.language.test_parse_anything import RIGHT, damaged, places

Strategy = st.SearchStrategy[Any]

NAMES = st.sampled_from(["a", "b", "items", "x y", "é", "", "0", "$", "@", "length", "a" * 90])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4)
)
DOCUMENTS: Strategy = st.recursive(
    SCALARS | st.sampled_from(["a", "2024-01-01T00:00:00Z", "1", "{}", "a,b", "\U0001f600"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)

STEPS = st.one_of(
    st.sampled_from(
        ["..", "*", "[*]", ".*", "..*", "[-1]", "[0:2]", "[::]", "[0,1]", "['a','b']", ".length()", ".min()", "[?(@)]"]
    ),
    st.integers(-3, 10**12).map(lambda n: f"[{n}]"),
    NAMES.map(lambda name: f".{name}"),
    NAMES.map(lambda name: f"['{name}']"),
    st.tuples(NAMES, st.sampled_from(["==", "!=", "<", "=~", " in ", "&&", "||"]), SCALARS).map(
        lambda three: f"[?(@.{three[0]}{three[1]}{three[2]!r})]"
    ),
)
DIRT = st.text("$@.[]()'\"*?:,\\ab0-&|=!{}% \n", max_size=6)
PATHS = st.tuples(st.sampled_from(["$", "$$", "$x", "@", ""]), st.lists(STEPS | DIRT, max_size=6)).map(
    lambda two: two[0] + "".join(two[1])
)

FUNCTIONS = st.sampled_from(
    [
        "Format",
        "StringToJson",
        "JsonToString",
        "Array",
        "ArrayPartition",
        "ArrayContains",
        "ArrayRange",
        "ArrayGetItem",
        "ArrayLength",
        "ArrayUnique",
        "Base64Encode",
        "Base64Decode",
        "Hash",
        "JsonMerge",
        "MathRandom",
        "MathAdd",
        "StringSplit",
        "UUID",
        "Nothing",
    ]
)
LITERALS = st.sampled_from(
    ["1", "-0", "1e3", "null", "true", "'{}'", "'a b'", "'\\'", "''", "'MD5'", "100000", "'[1,'"]
)
CALLS: Strategy = st.recursive(
    LITERALS | PATHS | DIRT,
    lambda inner: st.tuples(FUNCTIONS, st.lists(inner, max_size=4)).map(
        lambda two: f"States.{two[0]}({', '.join(two[1])})"
    ),
    max_leaves=8,
)

WORDS = st.sampled_from(
    [
        "$states.input",
        "$states.result",
        "$states",
        ".a",
        "[0]",
        "[a=1]",
        "$sum(",
        "$map(",
        "$range(0,9,2)",
        "function($v){$v}",
        ")",
        "$partition([1,2],1)",
        "$hash('a','MD5')",
        "$parse('{}')",
        "$uuid()",
        "$random()",
        "&",
        "+",
        "?",
        ":",
        ":=",
        "$x",
        "1",
        "'a'",
        "[1..9]",
        "{'a':1}",
        "$f:=",
        "(",
        ";",
        "~>",
        "%",
        "**",
        "^(a)",
        "/a+/",
        "$eval('1')",
        "null",
        "$lookup($states,'input')",
    ]
)
QUERIES = st.lists(WORDS | DIRT, max_size=8).map(lambda parts: "{% " + "".join(parts) + " %}")

OPERATORS = st.sampled_from(
    [
        "StringEquals",
        "NumericLessThan",
        "BooleanEquals",
        "TimestampGreaterThanPath",
        "StringMatches",
        "IsPresent",
        "IsTimestamp",
        "NumericEqualsPath",
        "And",
        "Or",
        "Not",
        "Nonsense",
    ]
)
RULES: Strategy = st.recursive(
    st.fixed_dictionaries({"Variable": PATHS}),
    lambda inner: st.tuples(OPERATORS, st.lists(inner, max_size=3) | inner | SCALARS | PATHS, PATHS).map(
        lambda three: {three[0]: three[1], **({} if three[0] in {"And", "Or", "Not"} else {"Variable": three[2]})}
    ),
    max_leaves=6,
)

QUERIED: Any = {
    "QueryLanguage": "JSONata",
    "StartAt": "P",
    "States": {
        "P": {
            "Type": "Pass",
            "Output": {"a": "{% $states.input %}", "b": [1, "{% 1 %}"]},
            "Assign": {"x": "{% 2 %}"},
            "Next": "C",
        },
        "C": {
            "Type": "Choice",
            "Choices": [{"Condition": "{% $x = 2 %}", "Output": "{% $x %}", "Next": "M"}],
            "Default": "F",
        },
        "M": {
            "Type": "Map",
            "Items": "{% [1,2,3] %}",
            "ItemSelector": {"i": "{% $states.context.Map.Item.Value %}"},
            "ItemProcessor": {
                "StartAt": "I",
                "States": {"I": {"Type": "Pass", "Output": "{% $states.input.i + $x %}", "End": True}},
            },
            "MaxConcurrency": "{% 2 %}",
            "Next": "T",
        },
        "T": {
            "Type": "Task",
            "Resource": "arn:aws:states:::sqs:sendMessage",
            "Arguments": {"QueueUrl": "q", "MessageBody": "{% $string($states.input) %}"},
            "Output": "{% $states.result %}",
            "TimeoutSeconds": "{% 3 %}",
            "Retry": [{"ErrorEquals": ["States.TaskFailed"], "MaxAttempts": 1}],
            "Catch": [{"ErrorEquals": ["States.ALL"], "Output": "{% $states.errorOutput %}", "Next": "F"}],
            "Next": "W",
        },
        "W": {"Type": "Wait", "Seconds": "{% 1 %}", "Next": "S"},
        "S": {"Type": "Succeed", "Output": "{% $x %}"},
        "F": {"Type": "Fail", "Error": "{% 'E' %}", "Cause": "{% 'c' %}"},
    },
}

LEAVES = (
    DOCUMENTS
    | PATHS
    | CALLS
    | QUERIES
    | RULES
    | st.sampled_from(["P", "C", "M", "T", "W", "S", "F", "E", "JSONPath", "JSONata"])
)


def _damages(of: Any) -> Strategy:
    everywhere = places(of)
    keys = sorted(
        {place[-1] for place in everywhere if place and isinstance(place[-1], str)} | {"Iterator", "ItemReader", "v.$"}
    )
    one = st.tuples(
        st.sampled_from(everywhere), st.sampled_from(["replace", "remove", "add"]), LEAVES, st.sampled_from(keys)
    )

    def apply(damages: list[tuple[Any, ...]]) -> Any:
        made = of
        for place, damage, junk, key in damages:
            made = damaged(made, place, damage, junk, key)
        return made

    return st.lists(one, max_size=4).map(apply)


DEFINITIONS: Strategy = _damages(RIGHT) | _damages(QUERIED)
