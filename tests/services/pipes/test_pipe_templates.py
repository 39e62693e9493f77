"""Input templates, paths, record bodies and execution names."""

from typing import Any

import pytest

from tasuki.rules.paths import MISSING, compile_path
from tasuki.rules.templates import BadTemplate
from tasuki.services.pipes.naming import legal_name
from tasuki.services.pipes.records import Passenger, parsed_body
from tasuki.services.pipes.templates import compile_template
from tasuki.services.switchboard import Received
from tasuki.values import documents

CONSTANTS = {
    "pipe-arn": "arn:pipe",
    "pipe-name": "jobs",
    "source-arn": "arn:queue",
    "enrichment-arn": "",
    "target-arn": "arn:machine",
}
AT = "2026-01-01T00:00:00.000Z"


def passenger(body: str) -> Passenger:
    record = {"messageId": "m1", "receiptHandle": "r1", "body": body, "attributes": {"SenderId": "AIDA"}}
    return Passenger(Received("m1", record, "Root=1-m1", 0))


def rendered(template: str, body: str) -> Any:
    return documents.loads(compile_template(template, CONSTANTS)(passenger(body), AT))


BODY = '{"jobId": "j-1", "n": 7, "x": 1.5, "ok": true, "none": null, "o": {"k": [1, {"z": "q"}]}, "s": "a \\"b\\" \\\\ c", "list": [{"i": 1}, {"i": 2}]}'


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        # a value alone
        ("<$.body.jobId>", "j-1"),
        ("<$.body.n>", 7),
        ("<$.body.o>", {"k": [1, {"z": "q"}]}),
        ("<$.body.ok>", True),
        ("<$.body.none>", None),
        ("<$.attributes.SenderId>", "AIDA"),
        ("<$.body>", documents.loads(BODY)),
        # as values in JSON
        (
            '{"id": <$.body.jobId>, "n": <$.body.n>, "o": <$.body.o>}',
            {"id": "j-1", "n": 7, "o": {"k": [1, {"z": "q"}]}},
        ),
        ("[<$.body.o.k[1].z>, <$.body.list[0].i>]", ["q", 1]),
        ('{"all": <$.body.list[*].i>}', {"all": [1, 2]}),
        # inside strings
        ('{"id": "<$.body.jobId>"}', {"id": "j-1"}),
        ('{"t": "job <$.body.jobId> of <$.attributes.SenderId>!"}', {"t": "job j-1 of AIDA!"}),
        ('{"t": "<$.body.n>/<$.body.ok>/<$.body.none>"}', {"t": "7/true/null"}),
        ('{"t": "<$.body.s>"}', {"t": 'a "b" \\ c'}),
        ('{"t": "<$.body.o>"}', {"t": '{"k":[1,{"z":"q"}]}'}),
        ('{"t": "<$.body>"}', {"t": BODY}),
        ('{"t": "an \\"<$.body.jobId>\\" escaped"}', {"t": 'an "j-1" escaped'}),
        # nothing there
        ('{"a": <$.body.absent>, "b": "[<$.body.absent.deep>]"}', {"a": "", "b": "[]"}),
        ("<$.nothing>", ""),
        # free text
        ("Hello, sender", "Hello, sender"),
        ("Hello, <$.attributes.SenderId>: <$.body.n>", "Hello, AIDA: 7"),
        ("12<$.body.n>", "127"),
        # static JSON
        ('{"key1": "value1"}', {"key1": "value1"}),
        # other angle brackets are text
        ('{"a": "1 < 2 > <b>x</b> <$.body.n>"}', {"a": "1 < 2 > <b>x</b> 7"}),
        # what the API has decoded is not decoded again
        ('{"a": "\\u003c$.body.n\\u003e"}', {"a": "<$.body.n>"}),
        # reserved variables
        (
            '{"p": <aws.pipes.pipe-arn>, "n": "<aws.pipes.pipe-name>", "s": <aws.pipes.source-arn>, "t": "<aws.pipes.target-arn>"}',
            {"p": "arn:pipe", "n": "jobs", "s": "arn:queue", "t": "arn:machine"},
        ),
        ('{"e": "<aws.pipes.enrichment-arn>"}', {"e": ""}),
        ('{"at": <aws.pipes.event.ingestion-time>, "t": "<aws.pipes.event.ingestion-time>"}', {"at": AT, "t": AT}),
    ],
)
def test_template(template: str, expected: Any) -> None:
    assert rendered(template, BODY) == expected


def test_the_event_as_received_and_parsed() -> None:
    record = {"messageId": "m1", "receiptHandle": "r1", "body": '{"n":1}', "attributes": {"SenderId": "AIDA"}}
    assert rendered('{"e": <aws.pipes.event>}', '{"n":1}') == {"e": record}
    assert rendered('{"e": <aws.pipes.event.json>}', '{"n":1}') == {"e": {**record, "body": {"n": 1}}}
    assert documents.loads(rendered('{"e": "<aws.pipes.event>"}', '{"n":1}')["e"]) == record


@pytest.mark.parametrize("body", ["plain", "{broken", '"text"', "42", ""])
def test_a_body_that_is_no_object_or_array_stays_text(body: str) -> None:
    assert parsed_body({"body": body}) == body
    assert rendered('{"b": <$.body>, "in": "<$.body.x>"}', body) == {"b": body, "in": ""}


@pytest.mark.parametrize(
    ("template", "complaint"),
    [
        ('{"a": <$.body.x}', "looks like JSON and isn't"),
        ('{"a": hello <$.body.x>}', "looks like JSON and isn't"),
        ('{"a": -<$.body.n>}', "looks like JSON and isn't"),
        ("[<$.body.n><$.body.n>]", "looks like JSON and isn't"),
        ("{<$.body.s>: 1}", "looks like JSON and isn't"),
        ('{"a": 1,}', "looks like JSON and isn't"),
        ('{"a": <$.body..x>}', "is not a path"),
        ('{"a": <$body>}', "is not a path"),
        ('{"a": <aws.pipes.nonsense>}', "is not a reserved variable; known are aws.pipes. followed by pipe-arn"),
    ],
)
def test_template_that_could_never_give_json_is_refused(template: str, complaint: str) -> None:
    with pytest.raises(BadTemplate, match=complaint.replace(".", r"\.")):
        compile_template(template, CONSTANTS)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$", {"a": {"b-c": [10, {"d": 1}]}, "e": []}),
        ("$.a.b-c[0]", 10),
        ("$.a['b-c'][1].d", 1),
        ('$["a"]["b-c"][1].d', 1),
        ("$.a.b-c[2]", MISSING),
        ("$.a[0]", MISSING),
        ("$.e[*].x", []),
        ("$.a.*", [[10, {"d": 1}]]),
        ("$.a.b-c[*].d", [1]),
    ],
)
def test_path(path: str, expected: Any) -> None:
    find = compile_path(path)
    assert find is not None
    assert find({"a": {"b-c": [10, {"d": 1}]}, "e": []}) == expected


@pytest.mark.parametrize("path", ["", "a", "$a", "$.", "$..a", "$.a[", "$.a[-1]", "$.a[x]", "$.a b"])
def test_not_a_path(path: str) -> None:
    assert compile_path(path) is None


def test_legal_names_stay_and_others_keep_apart() -> None:
    assert legal_name("job-1_a.b") == "job-1_a.b"
    assert legal_name("a" * 80) == "a" * 80
    assert legal_name("a b") == legal_name("a b")
    made = {legal_name(text) for text in ("a b", "a/b", "a-b", "", "a" * 81, "a" * 82, "é", "ジョブ")}
    assert len(made) == 8
    assert all(0 < len(name) <= 80 and name.isascii() and " " not in name for name in made)
