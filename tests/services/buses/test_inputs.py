"""What a target gets of an event, and that the index of sources never keeps an event from a rule that matches it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasuki.rules.patterns import compile_pattern
from tasuki.services.buses.errors import InvalidJson
from tasuki.services.buses.inputs import Seen, compile_input
from tasuki.services.buses.model import ANY_SOURCE, Bus, Event, bus_name, sources_of
from tasuki.services.buses.shelf import Compiled, Rules
from tasuki.services.buses.targets import compile_target

ACCOUNT, REGION = "000000000000", "us-east-1"
ARN = f"arn:aws:events:{REGION}:{ACCOUNT}:rule/r"


def seen(detail: Any = None) -> Seen:
    text = json.dumps({"n": 1, "s": 'say "hi"', "list": ["a", "b"], "none": None} if detail is None else detail)
    event = Event("id-1", "shop", "order", ACCOUNT, REGION, 1_775_000_000_000, ("arn:x",), text)
    return Seen(json.loads(event.body), event.body, 1_775_000_001_000, "Root=1-65c3b0a4-0123456789abcdef01234567")


def rendered(detail: Any = None, **target: Any) -> str:
    return compile_input({"Id": "t", **target}, ARN, "r")(seen(detail))


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("<n>", "1"),
        ("<s>", '"say \\"hi\\""'),
        ('"<s>"', '"say \\"hi\\""'),
        ('"of <list> and <none>, <missing>."', '"of [a,b] and null, ."'),
        ('{"a":<list>,"b":"<n>","c":<missing>}', '{"a":["a","b"],"b":"1","c":""}'),
        ("<n> of <s>", '"1 of say \\"hi\\""'),
        ('{"r":"<aws.events.rule-name>","t":<aws.events.event.ingestion-time>}', '{"r":"r","t":"2026-03-31T23:33:21Z"}'),
        ('{"a":"1 < 2 > 0"}', '{"a":"1 < 2 > 0"}'),
    ],
)  # fmt: skip
def test_templates(template: str, text: str) -> None:
    paths = {
        "n": "$.detail.n",
        "s": "$.detail.s",
        "list": "$.detail.list",
        "none": "$.detail.none",
        "missing": "$.detail.x",
    }
    assert rendered(InputTransformer={"InputPathsMap": paths, "InputTemplate": template}) == text


def test_the_whole_event_may_be_part_of_a_template() -> None:
    template = '{"whole":<aws.events.event.json>,"head":<aws.events.event>}'
    made = json.loads(rendered(InputTransformer={"InputTemplate": template}))
    assert made["whole"] == seen().event
    assert "detail" not in made["head"]
    assert made["head"]["detailType"] == "order"


def test_an_input_path_that_finds_nothing_gives_null() -> None:
    assert rendered(InputPath="$.detail.nowhere") == "null"
    assert rendered(InputPath="$") == json.dumps(seen().event, separators=(",", ":"))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_a_template_makes_json_or_says_that_it_cannot(value: Any) -> None:
    transformer = {"InputPathsMap": {"v": "$.detail.v"}, "InputTemplate": '{"value":<v>,"inside":"a <v> b"}'}
    try:
        made = json.loads(rendered({"v": value}, InputTransformer=transformer))
    except InvalidJson:
        assert '"' in json.dumps(value)
        assert isinstance(value, dict | list)
    else:
        assert made["value"] == value


def test_dynamic_path_parameters_find_their_values_in_the_event() -> None:
    http = {
        "PathParameterValues": ["$.detail.n", "fixed"],
        "HeaderParameters": {"X-Source": "$.source", "X-None": "$.detail.x"},
        "QueryStringParameters": {"l": "$.detail.list"},
    }
    arn = f"arn:aws:events:{REGION}:{ACCOUNT}:api-destination/d/0"
    aim = compile_target({"Id": "t", "Arn": arn, "HttpParameters": http}, ARN, "r")
    assert aim.parameters(seen()) == {
        "PathParameterValues": ["1", "fixed"],
        "HeaderParameters": {"X-Source": "shop", "X-None": ""},
        "QueryStringParameters": {"l": '["a","b"]'},
    }


@pytest.mark.parametrize(
    ("given_name", "name"),
    [
        (None, "default"),
        ("b", "b"),
        (f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/b", "b"),
        (f"arn:aws:events:eu-west-1:{ACCOUNT}:event-bus/b", None),
        (f"arn:aws:events:{REGION}:111111111111:event-bus/b", None),
        (f"arn:aws:events:{REGION}:{ACCOUNT}:rule/b", None),
        ("arn:nonsense", None),
    ],
)
def test_names_of_buses(given_name: str | None, name: str | None) -> None:
    assert bus_name(given_name, ACCOUNT, REGION) == name


# -- the index of sources -----------------------------------------------------------------------------------

SOURCES = ("a", "b", "c", "d")
_leaf = st.sampled_from(SOURCES) | st.sampled_from([{"prefix": "a"}, {"anything-but": "b"}, {"exists": True}])
_source = st.lists(_leaf, min_size=1, max_size=3)
_clause = st.fixed_dictionaries({}, optional={"source": _source, "detail-type": st.just(["t"])}).filter(bool)
_pattern = st.builds(
    lambda clause, either: {**clause, **({"$or": either} if either else {})},
    _clause,
    st.none() | st.lists(_clause, min_size=2, max_size=3),
)


@given(st.lists(_pattern, max_size=5), st.sampled_from(SOURCES), st.sampled_from(["t", "u"]))
def test_no_rule_misses_an_event_for_its_source(patterns: list[Any], source: str, kind: str) -> None:
    texts = [json.dumps(pattern) for pattern in patterns]
    event = {"source": source, "detail-type": kind, "detail": {}}
    rules = Rules(Bus(1, ACCOUNT, REGION, "default"))
    for number, text in enumerate(texts, 1):
        rules.add(Compiled(number, f"r{number}", "arn", compile_pattern(text), ()), text)
    matching = [number for number, text in enumerate(texts, 1) if compile_pattern(text)(event)]
    found = [rule.id for rule in rules.for_source(source, 0)]
    assert found == sorted(set(found))
    assert [rule.id for rule in rules.for_source(source, 0) if rule.matches(event)] == matching
    listed = sources_of(texts)
    assert not matching or listed == ANY_SOURCE or source in json.loads(listed)
