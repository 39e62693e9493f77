"""The official suite of JSONata, 1,686 cases, through our boundary: our limits, our functions, no `$eval`.

The suite gives its expressions an input document, which expressions in a machine have not: so the refusal of top-level
references is left out here. Every case that is not met is listed with its reason and must fail; AWS differs in nearly
all of them, too.
"""

import json
from collections import Counter
from functools import cache
from typing import Any

import pytest

from tasuki.language.definition import Scope
from tasuki.language.jsonata import Query, QueryFailed
from tasuki.language.jsonata_compile import BadQuery, Fuel, compile_with_input
from tasuki.values.chance import Chance
from tasuki.values.documents import Doc
from tests.engine.recorded import FOLDER as RECORDED

FOLDER = RECORDED.parent / "jsonata"
NEWER = "`?:` and `??` came with JSONata 2.1; AWS's is 2.0.6 and refuses them"
NO_EVAL = "Step Functions has no $eval"
SIZE = "more members than an array may have here, and more memory than AWS gives"
LONG = "takes about as long as an expression may: met on a quiet machine"
DEPTH = "deeper than a hundred levels, AWS's limit"
SURROGATE = "a text with half a character: no JSON document of ours can hold one"
KNOWN = {
    "flattening/large#0": LONG,
    "flattening/large#1": LONG,
    "range-operator/case021": SIZE,
    "range-operator/case024": SIZE,
    "tail-recursion/case001": DEPTH,
    "function-encodeUrl/case002": SURROGATE,
    "function-encodeUrlComponent/case002": SURROGATE,
    "function-string/case019": "the library says of 1/0 that the number is out of range (D1001) before $string can say so (D3001)",
}
TIMED = {"flattening/large#0", "flattening/large#1"}
"""Met or not, as the machine's other work lets it."""
LIMITS = ("Stack overflow", "Expression evaluation timeout", "Expression evaluation memory")


@cache
def cases() -> dict[str, dict[str, Any]]:
    path = FOLDER / "cases.jsonl"
    if not path.exists():
        return {}
    with path.open() as lines:
        return {case["id"]: case for case in map(json.loads, lines)}


def known(case: dict[str, Any]) -> str | None:
    if case["group"] in {"coalescing-operator", "default-operator"}:
        return NEWER
    return NO_EVAL if case["group"] == "function-eval" else KNOWN.get(case["id"])


@cache
def answer(identity: str) -> tuple[str, Any]:
    """Answer what became of a case: `result`, `undefined` or `code`, and which."""
    case = cases()[identity]
    scope = Scope(Doc(None), dict, case.get("bindings") or {}, Chance.seeded(1), now=1_700_000_000_000, fuel=Fuel())
    try:
        text = Query(case["expr"], "Output", compile_with_input(case["expr"])).over(_given(case), scope)
    except BadQuery as bad:
        return "refused", bad.code
    except QueryFailed as failed:
        said = failed.cause.split("evaluation", 1)[1].lstrip(".: ")
        return "code", "U1001" if said.startswith(LIMITS) else said.split(":")[0]
    return ("undefined", None) if text is None else ("result", json.loads(text))


def _given(case: dict[str, Any]) -> str | None:
    if "data" in case:
        return json.dumps(case["data"])
    dataset = case.get("dataset")
    return (FOLDER / "datasets" / f"{dataset}.json").read_text() if dataset else None


def met(identity: str) -> bool:
    case = cases()[identity]
    kind, value = answer(identity)
    if "result" in case:
        return kind == "result" and same(case["result"], value, unordered=case.get("unordered", False))
    if case.get("undefinedResult"):
        return kind == "undefined"
    code = case.get("code") or case["error"]["code"]
    return (kind == "code" and value == code) or (kind == "refused" and code.startswith("S"))


def same(expected: Any, value: Any, *, unordered: bool = False) -> bool:
    if isinstance(expected, bool) or isinstance(value, bool):
        return expected is value
    if isinstance(expected, int | float) and isinstance(value, int | float):
        return abs(expected - value) <= 1e-12 * abs(expected)
    if isinstance(expected, dict) and isinstance(value, dict):
        return expected.keys() == value.keys() and all(same(expected[key], value[key]) for key in expected)
    if isinstance(expected, list) and isinstance(value, list):
        if unordered:
            return len(expected) == len(value) and all(any(same(one, other) for other in value) for one in expected)
        return len(expected) == len(value) and all(map(same, expected, value))
    return type(expected) is type(value) and expected == value


here = pytest.mark.skipif(not cases(), reason=f"no suite in {FOLDER}: set TASUKI_CONFORMANCE")


@here
@pytest.mark.parametrize("identity", [identity for identity, case in cases().items() if known(case) is None])
def test_case(identity: str) -> None:
    assert met(identity), (cases()[identity], answer(identity))


@here
@pytest.mark.parametrize(
    "identity",
    [
        pytest.param(identity, marks=pytest.mark.xfail(reason=reason, strict=identity not in TIMED))
        for identity, case in cases().items()
        if (reason := known(case)) is not None
    ],
)
def test_case_that_is_known_to_differ(identity: str) -> None:
    assert met(identity)


@here
def test_how_many_cases_are_met(capsys: pytest.CaptureFixture[str]) -> None:
    reasons = Counter(known(case) for identity, case in cases().items() if not met(identity))
    with capsys.disabled():
        print(f"\nJSONata suite: {len(cases())} cases; met: {len(cases()) - reasons.total()}")  # noqa: T201
        for reason, count in reasons.items():
            print(f"  {count} not: {reason}")  # noqa: T201
    assert None not in reasons
