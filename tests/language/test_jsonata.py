"""JSONata expressions: what they answer, what they may use, how they fail, and which no machine may hold."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given as example
from hypothesis import strategies as st

from tasuki.language.definition import Scope
from tasuki.language.errors import InvalidDefinition
from tasuki.language.jsonata import Query, QueryFailed
from tasuki.language.jsonata_compile import BadQuery, Fuel, compile_query
from tasuki.language.jsonata_functions import seeded_fraction
from tasuki.language.jsonata_scan import scan
from tasuki.language.parse import parse
from tasuki.values.chance import Chance
from tasuki.values.documents import Doc, dumps

NOW = 1_760_025_600_000


def scope(given: Any = None, *, result: Any = None, context: Any = None, seed: int = 7, **variables: Any) -> Scope:
    made = Scope(Doc(given), lambda: context or {}, variables, Chance.seeded(seed), now=NOW, fuel=Fuel())
    made.result = None if result is None else Doc(result)
    return made


def ask(source: str, given: Any = None, **more: Any) -> Any:
    return Query(source, "Output")(scope(given, **more))


def fails(source: str, given: Any = None, **more: Any) -> str:
    with pytest.raises(QueryFailed) as failed:
        ask(source, given, **more)
    assert failed.value.error == "States.QueryEvaluationError"
    assert failed.value.location == "Output"
    prefix = f"The JSONata expression '{source}' specified for the field 'Output' "
    assert failed.value.cause.startswith(prefix)
    return failed.value.cause.removeprefix(prefix)


def refused(source: str) -> list[tuple[str, str, str]]:
    state = {"Type": "Pass", "End": True, "Output": {"v": f"{{% {source} %}}"}}
    try:
        parse(dumps({"QueryLanguage": "JSONata", "StartAt": "E", "States": {"E": state}}))
    except InvalidDefinition as no:
        return [(one.code, one.message, one.location) for one in no.diagnoses]
    return []


def test_pf_01_the_functions_that_step_functions_adds() -> None:
    assert ask('$parse("{\\"a\\":1}").a') == 1
    assert ask("$partition([1,2,3,4],2)") == [[1, 2], [3, 4]]
    assert ask("$range(0,6,2)") == [0, 2, 4, 6]
    assert ask('$hash("input","SHA-1")') == "140f86aae51ab9e1cda9b4254fe98a74eb54c1a1"
    assert ask("$random(42)") == 0.7275636800328681
    assert ask("$uuid()")[14] == "4"


def test_pf_02_a_bare_name_is_refused_where_it_stands() -> None:
    expected = ("UNSUPPORTED_JSONATA_EXPRESSION", "Reference to 'phone' at the top level is not supported.")
    for source in ("phone", "'x' & phone", "{'a': phone.work}", "`phone`[0]", "$map([1], function($v){ phone })"):
        assert refused(source) == [(*expected, "/States/E/Output/v")]
    both = [message for _, message, _ in refused("b + a.b + b")]
    assert both == [f"Reference to '{name}' at the top level is not supported." for name in "ba"]
    for source in ("$", "$$.a", "$[0]"):
        name = "$$" if source.startswith("$$") else "$"
        assert refused(source)[0][1] == f"Reference to '{name}' at the top level is not supported."


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("1 +", "Unexpected end of expression"),
        ("$x :=", "Unexpected end of expression"),
        ('"unterminated', "String literal must be terminated by a matching quote"),
        ('{"a":}', 'The symbol "}" cannot be used as a unary operator'),
        ('$match("a", /abc', "No terminating / in regular expression"),
        ("$states.input[1,2)", 'Expected "]", got ","'),
        ("", "Unexpected end of expression"),
        ("$states.input.a ?? 1", 'The symbol "?" cannot be used as a unary operator'),
        ("$states.input.a ?: 1", 'The symbol ":" cannot be used as a unary operator'),
    ],
)
def test_what_2_0_6_cannot_parse_is_refused(source: str, message: str) -> None:
    """PF-07 among them: `?:` and `??` came with 2.1."""
    assert refused(source) == [("INVALID_JSONATA_EXPRESSION", message, "/States/E/Output/v")]


def test_what_looks_like_a_reference_and_is_none() -> None:
    for source in (
        "$states.input.phone",
        "$states.input.orders[price > 5].name",
        "$states.input.a.($ + 1)",
        "$map($states.input.a, function($v, $i){ $v.price * $i })",
        "$states.input.a^(>price).id",
        "$states.input.a{kind: $sum(price)}",
        "'a ?: b ?? c'",
        "$contains('x', /a?:b/)",
        "($f := function($a, $b)<n-n?:n>{ $a }; $f(1))",
        "/* phone */ 1 / 2 / 3",
        "$states.input ~> |a|{'b': c}|",
        "$string()",
    ):
        assert refused(source) == [], source


def test_pf_03_causes_are_worded_in_full() -> None:
    assert fails('$sum(["a"])') == (
        'threw an error during evaluation. T0412: Argument 1 of function "sum" must be an array of "numbers"'
    )
    assert fails("$nope(1)") == "threw an error during evaluation. T1006: Attempted to invoke a non-function"
    assert fails("1 + 'a'").endswith('T2002: The right side of the "+" operator must evaluate to a number')
    assert fails("$toMillis('x')").endswith(
        'D3110: The argument of the toMillis function must be an ISO 8601 formatted timestamp. Given "x"'
    )


def test_pf_05_merge() -> None:
    given = {"a": {"hello": "world"}, "b": {"foo": "bar"}}
    assert ask("$merge([$states.input.a,$states.input.b])", given) == {"hello": "world", "foo": "bar"}


def test_nothing_and_functions_are_no_results() -> None:
    assert fails("$none") == "returned nothing (undefined)."
    assert fails("$states.input.a.b", {"a": 1}) == "returned nothing (undefined)."
    assert fails("$states.result") == "returned nothing (undefined)."
    assert fails("$f := function($x){$x}") == "returned an unsupported result type."
    assert fails("$sum") == "returned an unsupported result type."
    assert ask("null") is None


def test_there_is_no_eval() -> None:
    assert fails('$eval("1")') == "threw an error during evaluation. T1006: Attempted to invoke a non-function"


def test_what_states_holds() -> None:
    context = {"State": {"Name": "S"}}
    assert ask("$states.context.State.Name", context=context) == "S"
    assert ask("$keys($states)", {"a": 1}, result=2, context=context) == ["input", "result", "context"]
    assert ask("$exists($states)") is True
    assert ask("[$states.input, $states.result]", {"a": 1}, result=[2]) == [{"a": 1}, 2]


def test_variables_and_the_names_of_functions() -> None:
    assert ask("$a & $b.c", a="x", b={"c": 1}) == "x1"
    assert ask("$count", count=3) == 3
    assert ask("$count + $sum([$range, 1])", count=3, range=1) == 5
    assert ask("$list", list=[1]) == [1]
    assert Query("($x := $a; $x + $sum($b))", "Output").variables == {"a", "b"}
    assert Query("$parse($range($n, 1, 1))", "Output").variables == {"n"}


def test_the_context_of_a_call_is_no_document() -> None:
    assert fails("$string()", {"a": 1}) == "returned nothing (undefined)."
    assert ask("$count($states.input.a.$string())", {"a": [1, 2]}) == 2


def test_time_and_chance_are_arguments() -> None:
    assert ask("$now()") == "2025-10-09T16:00:00.000Z"
    assert ask("$millis()") == NOW
    drawn = "[$random(), $uuid(), $shuffle([1..20])]"
    assert ask(drawn, seed=1) == ask(drawn, seed=1) != ask(drawn, seed=2)
    assert seeded_fraction(0) == 0.730967787376657


def test_functions_at_their_edges() -> None:
    assert ask("$range(1, 9, 9)") == 1
    assert ask("$range(-1.7, 2, 1)") == [-1, 0, 1, 2]
    assert ask("$range(3, 1, -1)") == [3, 2, 1]
    assert fails("$range(1, 9, 0)").startswith("threw an error during evaluation. ")
    assert fails("$range(5, 1, 1)") == fails("$range($none, 1, 1)") == "returned nothing (undefined)."
    assert ask("$partition([], 2)") == []
    assert fails("$partition([1], -1)").startswith("threw an error during evaluation. ")
    assert ask("$type($parse('null'))") == "null"
    assert ask("['1', '[2]'].$parse($)") == [1, 2]
    assert fails("$parse('{')").startswith("threw an error during evaluation. ")
    assert fails("$hash('a', 'CRC')").startswith("threw an error during evaluation. ")
    assert fails("$parse(1)").endswith('T0410: Argument 1 of function "parse" does not match function signature')


def test_long_arrays_are_made_distinct_in_no_time() -> None:
    """The library compares every member with every other: half a minute for this one."""
    numbers = list(range(60_000))
    assert ask("$count($distinct($append($states.input, $states.input)))", numbers) == len(numbers)
    assert ask("$distinct($states.input.a)", [{"a": 1}, {"a": 1}]) == 1
    assert ask("$distinct([1, 1])") == [1]
    objects = [{f"k{place}": 1} for place in range(12_000)]
    assert ask("$count($keys($states.input))", objects) == len(objects)
    assert ask("{'b': 1, 'c': 2}.$keys()") == ["b", "c"]


STACK = "threw an error during evaluation: Stack overflow error: Check for non-terminating recursive function."
TIME = "threw an error during evaluation: Expression evaluation timeout: Check for infinite loop"
MEMORY = (
    "threw an error during evaluation: Expression evaluation memory limit exceeded: Check for excessive memory usage"
)


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("($f := function($n){ 1 + $f($n) }; $f(1))", STACK),
        ("($f := function($n){ $f($n + 1) }; $f(1))", TIME),
        ("+".join(["1"] * 200), STACK),
        ("$count([1..1000000])", MEMORY),
        ("$count([1..9999999999])", "threw an error during evaluation. D2014: "),
        ("$range(1, 10000000, 1)", MEMORY),
        ("($f := function($s){ $f($s & $s) }; $f('ab'))", MEMORY),
        ("$match($pad('', 30000, 'a'), /(a+)+b/)", TIME),
        ("[1..10000].[1..10000]", "threw an error during evaluation: Expression evaluation "),
        ("$reduce([1..100000], function($p, $c){ $append($p, $c) })", TIME),
    ],
)
def test_runaways_end(source: str, cause: str) -> None:
    assert fails(source).startswith(cause)


def test_a_state_has_so_much_fuel_and_no_more() -> None:
    here = scope()
    busy = Query("$sum($map([1..5000], function($v){ $v }))", "Output")
    for _ in range(20):
        assert busy(here) == 12_502_500
    assert here.fuel.spent > 1_000_000
    here.fuel.spent = here.fuel.limit - 1
    with pytest.raises(QueryFailed, match="timeout"):
        busy(here)
    here.fuel.refill()
    assert busy(here) == 12_502_500


def test_deep_expressions_neither_compile_nor_crash() -> None:
    for source in ("[" * 5_000 + "]" * 5_000, "(" * 5_000 + "1" + ")" * 5_000, "$f(" * 5_000 + ")" * 5_000):
        with pytest.raises(BadQuery):
            compile_query(source)


def test_documents_that_are_too_deep_for_the_library_fail_the_state() -> None:
    deep: Any = 1
    for _ in range(200):
        deep = [deep]
    assert fails("$count($states.input.a)", {"a": deep}).startswith("threw an error during evaluation. ")


def test_the_scanner_knows_division_from_expressions() -> None:
    assert scan("$a / b / 'c' & /d?:e/").newer is None
    assert scan("($a) / 2 ?: 1").newer is not None
    assert scan("$a[/x ?? y/]").newer is None
    assert scan("a.b[c]").names == ("a", "c")


WORDS = "$states.input $x $sum ( ) [ ] { } 1 'a' \" /a/ .. . , : ? ~> function($v) <n:n> | ^ @$y #$i % * ** := $ `b` é /* */ λ -"
PIECES = st.sampled_from([*WORDS.split(), "\n"])


@example(st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=30))
def test_any_text_is_compiled_or_refused_and_fails_in_words(source: str) -> None:
    """Nothing else is raised, whatever the library thinks of it."""
    with suppress(BadQuery, QueryFailed):
        ask(source, {"a": [1, {"b": 2}]}, x=[1])
