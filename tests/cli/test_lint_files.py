"""`tasuki lint` of what surrounds machines: requests, templates, plans, Terraform. A finding for each mistake, none for what is right."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasuki.cli import lint
from tasuki.cli.complaints import Code
from tasuki.cli.lint_files import survey_file
from tasuki.cli.lint_requests import recognise
from tasuki.cli.lint_resources import RESERVED
from tasuki.cli.lint_sources import read_json, read_yaml
from tasuki.cli.lint_terraform import Terraform
from tasuki.services.buses import inputs
from tasuki.services.pipes import templates
from tasuki.services.schedules import senders

TIME = "<aws.scheduler.scheduled-time>"
ESCAPED = r'{"t":"\u003caws.scheduler.scheduled-time\u003e"}'
SCHEDULE: dict[str, Any] = {
    "Name": "nightly",
    "ScheduleExpression": "cron(0 1 * * ? *)",
    "ScheduleExpressionTimezone": "Asia/Tokyo",
    "FlexibleTimeWindow": {"Mode": "OFF"},
    "Target": {
        "Arn": "arn:aws:sqs:us-east-1:000000000000:q",
        "RoleArn": "arn:aws:iam::0:role/r",
        "Input": f'{{"t": "{TIME}"}}',
    },
}
PIPE = {"Name": "p", "Source": "arn:aws:sqs:us-east-1:0:q", "Target": "arn:aws:sqs:us-east-1:0:r", "RoleArn": "r"}


def found(text: Any, name: str = "a.json") -> list[tuple[int | None, str, str]]:
    text = text if isinstance(text, str) else json.dumps(text, indent=1)
    return [(one.line, one.finding.location, one.finding.code) for one in survey_file(name, text).seen]


def codes(text: Any, name: str = "a.json") -> list[str]:
    return [code for _, _, code in found(text, name)]


def changed(**members: Any) -> dict[str, Any]:
    return {**SCHEDULE, **members}


def target(**members: Any) -> dict[str, Any]:
    return changed(Target={**SCHEDULE["Target"], **members})


# -- requests -------------------------------------------------------------------------------------------------


def test_a_request_that_is_right() -> None:
    survey = survey_file("a.json", json.dumps(SCHEDULE))
    assert (survey.seen, survey.what, survey.whole) == ([], "a request: CreateSchedule", True)


@pytest.mark.parametrize(
    ("request_", "location", "code"),
    [
        (changed(ScheduleExpression="cron(0 1 * * * *)"), "/ScheduleExpression", "BAD_SCHEDULE_EXPRESSION"),
        (changed(ScheduleExpression="at(2026-10-09)"), "/ScheduleExpression", "BAD_SCHEDULE_EXPRESSION"),
        (changed(ScheduleExpression="cron(0 0 30 2 ? *)"), "/ScheduleExpression", "NEVER_DUE"),
        (changed(ScheduleExpressionTimezone="Tokyo"), "/ScheduleExpressionTimezone", "UNKNOWN_TIME_ZONE"),
        (changed(FlexibleTimeWindow={"Mode": "FLEXIBLE"}), "/FlexibleTimeWindow", "BAD_WINDOW"),
        (
            changed(FlexibleTimeWindow={"Mode": "OFF", "MaximumWindowInMinutes": 5}),
            "/FlexibleTimeWindow/MaximumWindowInMinutes",
            "BAD_WINDOW",
        ),
        (
            changed(FlexibleTimeWindow={"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 1441}),
            "/FlexibleTimeWindow/MaximumWindowInMinutes",
            "BAD_WINDOW",
        ),
        (
            changed(
                ScheduleExpression="rate(5 minutes)",
                FlexibleTimeWindow={"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 6},
            ),
            "/FlexibleTimeWindow/MaximumWindowInMinutes",
            "WINDOW_LONGER_THAN_RATE",
        ),
        (target(Input=ESCAPED), "/Target/Input", "ESCAPED_ATTRIBUTE"),
        (target(Input="<aws.scheduler.scheduled-tiem>"), "/Target/Input", "UNKNOWN_RESERVED_VARIABLE"),
        ({"Name": "r", "ScheduleExpression": "rate(1 minutes)"}, "/ScheduleExpression", "BAD_SCHEDULE_EXPRESSION"),
        (
            {"Name": "r", "ScheduleExpression": "at(2026-10-09T16:00:00)"},
            "/ScheduleExpression",
            "BAD_SCHEDULE_EXPRESSION",
        ),
        (
            {"Rule": "r", "Targets": [{"Id": "1", "InputTransformer": {"InputTemplate": "<aws.events.rule>"}}]},
            "/Targets[0]/InputTransformer/InputTemplate",
            "UNKNOWN_RESERVED_VARIABLE",
        ),
        (
            {**PIPE, "TargetParameters": {"InputTemplate": '{"a": <aws.pipes.name>}'}},
            "/TargetParameters/InputTemplate",
            "UNKNOWN_RESERVED_VARIABLE",
        ),
        (
            {**PIPE, "EnrichmentParameters": {"InputTemplate": r'"\u003caws.pipes.event\u003e"'}},
            "/EnrichmentParameters/InputTemplate",
            "ESCAPED_ATTRIBUTE",
        ),
        ({"Arn": "a", "RoleArn": "r", "Input": "<aws.scheduler.time>"}, "/Input", "UNKNOWN_RESERVED_VARIABLE"),
    ],
)
def test_one_mistake_in_a_request(request_: dict[str, Any], location: str, code: str) -> None:
    ((line, where, what),) = found(request_)
    assert (where, what) == (location, code)
    key = f'"{location.rpartition("/")[2]}"'
    assert key in json.dumps(request_, indent=1).splitlines()[(line or 0) - 1]


def renamed(given: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    return {new if name == old else name: value for name, value in given.items()}


DESTINATION = {
    "Name": "hook",
    "ConnectionArn": "arn:aws:events:us-east-1:000000000000:connection/c/11111111-2222-3333-4444-555555555555",
    "InvocationEndpoint": "https://example.com/",
    "HttpMethod": "POST",
}
CONNECTION = {
    "Name": "c",
    "AuthorizationType": "BASIC",
    "AuthParameters": {"BasicAuthParameters": {"Username": "ann", "Password": "s3cret-word"}},
}
RULE = {"Name": "r", "ScheduleExpression": "rate(1 hour)", "State": "ENABLED"}


@pytest.mark.parametrize(
    "given",
    [
        *(SCHEDULE, DESTINATION, CONNECTION, PIPE, RULE),
        {"Rule": "r", "Targets": [{"Id": "1", "Arn": "a"}]},
        {"Name": "c", "AuthorizationType": "BASIC"},
    ],
    ids=["schedule", "destination", "connection", "pipe", "rule", "targets", "an update of a connection"],
)
def test_each_kind_of_request_is_known_and_clean(given: dict[str, Any]) -> None:
    survey = survey_file("a.json", json.dumps(given))
    assert survey.seen == []
    assert survey.what.startswith("a request: ")


def test_it_is_said_which_request_lacks_what() -> None:
    """A name and an expression are a whole PutRule; a schedule wants more."""
    survey = survey_file("a.json", json.dumps({"Name": "n", "ScheduleExpression": "cron(0 1 * * ? *)"}))
    assert survey.seen == []
    assert survey.what == "a request: PutRule; as CreateSchedule it lacks Target, FlexibleTimeWindow"
    given = {name: value for name, value in SCHEDULE.items() if name != "FlexibleTimeWindow"}
    (one,) = survey_file("a.json", json.dumps(given)).seen
    assert (one.finding.code, one.finding.severity) == ("MISSING_MEMBERS", "WARNING")
    assert "taken for CreateSchedule, and lacks FlexibleTimeWindow," in one.finding.message


@pytest.mark.parametrize(
    ("given", "old", "new"),
    [
        (SCHEDULE, "ScheduleExpression", "ScheduleExpresion"),
        (SCHEDULE, "FlexibleTimeWindow", "FlexibleTimeWindows"),
        (SCHEDULE, "Target", "Targt"),
        (RULE, "ScheduleExpression", "ScheduleExpresion"),
        ({"Name": "r", "EventPattern": "{}"}, "EventPattern", "EventPatern"),
        ({"Rule": "r", "Targets": []}, "Targets", "Taregts"),
        (PIPE, "Source", "Sorce"),
        (PIPE, "Target", "target"),
        (DESTINATION, "InvocationEndpoint", "InvocationEndPoint"),
        (CONNECTION, "AuthorizationType", "AuthorisationType"),
    ],
)
def test_a_misspelt_member_is_named_with_the_right_one(given: dict[str, Any], old: str, new: str) -> None:
    [one] = survey_file("a.json", json.dumps(renamed(given, old, new))).seen
    assert (one.finding.code, one.finding.severity, one.finding.location) == ("UNKNOWN_FIELD", "ERROR", f"/{new}")
    assert f"no member {new}" in one.finding.message
    assert one.finding.fix == f"Did you mean {old}?"


@pytest.mark.parametrize(
    ("given", "location", "near"),
    [
        (target(RetryPolicie={"MaximumRetryAttempts": 1}), "/Target/RetryPolicie", "RetryPolicy"),
        (target(RetryPolicy={"MaximumRetries": 1}), "/Target/RetryPolicy/MaximumRetries", "MaximumRetryAttempts"),
        ({"Rule": "r", "Targets": [{"Id": "1", "ARN": "a"}]}, "/Targets[0]/ARN", "Arn"),
    ],
)
def test_what_is_misspelt_deeper_down_is_found_where_it_stands(given: Any, location: str, near: str) -> None:
    [one] = survey_file("a.json", json.dumps(given)).seen
    assert (one.finding.location, near in one.finding.fix) == (location, True)


@pytest.mark.parametrize(
    ("given", "location", "says"),
    [
        ({**DESTINATION, "HttpMethod": "FETCH"}, "/HttpMethod", "enum value set"),
        (
            {**DESTINATION, "InvocationRateLimitPerSecond": 0},
            "/InvocationRateLimitPerSecond",
            "greater than or equal to 1",
        ),
        ({**DESTINATION, "InvocationRateLimitPerSecond": "5"}, "/InvocationRateLimitPerSecond", "another type"),
        ({**DESTINATION, "InvocationEndpoint": "https://ex ample/"}, "/InvocationEndpoint", "pattern"),
        (
            {n: v for n, v in DESTINATION.items() if n != "HttpMethod"}
            | {"Description": "d", "InvocationRateLimitPerSecond": 0},
            "/InvocationRateLimitPerSecond",
            "greater",
        ),
        (
            {**CONNECTION, "AuthParameters": {"BasicAuthParameters": {"Username": "ann"}}},
            "/AuthParameters/BasicAuthParameters",
            "Password is missing",
        ),
    ],
)
def test_destinations_and_connections_keep_to_the_model(given: Any, location: str, says: str) -> None:
    [one] = survey_file("a.json", json.dumps(given)).seen
    assert (one.finding.code, one.finding.location) == ("REFUSED_VALUE", location)
    assert says in one.finding.message


def test_no_secret_is_shown() -> None:
    given = {**CONNECTION, "AuthParameters": {"BasicAuthParameters": {"Username": "ann", "Password": "s3cret" * 200}}}
    said = str(survey_file("a.json", json.dumps(given)).seen)
    assert "length less than or equal to 512" in said
    assert "s3cret" not in said


@pytest.mark.parametrize(
    "given",
    [
        {"Comment": "c", "StartsAt": "A", "State": {}},
        {"Name": "n", "Description": "d", "Tags": []},
        {"source": ["a"], "detail-type": ["b"]},
        {"family": "f", "containerDefinitions": []},
    ],
)
def test_what_is_like_no_request_is_none(given: Any) -> None:
    assert recognise(given) is None


def test_requests_in_an_array() -> None:
    assert found([SCHEDULE, changed(ScheduleExpressionTimezone="Mars")])[0][1:] == (
        "[1]/ScheduleExpressionTimezone",
        "UNKNOWN_TIME_ZONE",
    )


def test_every_message_says_what_to_do() -> None:
    bad = target(Input=ESCAPED) | {
        "ScheduleExpression": "rate(5)",
        "ScheduleExpressionTimezone": "Asia/Tokio",
        "FlexibleTimeWindow": {"Mode": "OFF", "MaximumWindowInMinutes": 5},
    }
    seen = [one.finding for one in survey_file("a.json", json.dumps(bad)).seen]
    assert len(seen) == 4
    assert all(one.message and one.fix for one in seen)
    assert [one.fix for one in seen if one.code == "UNKNOWN_TIME_ZONE"] == ["Did you mean Asia/Tokyo?"]
    assert [one.severity for one in seen] == ["ERROR", "ERROR", "ERROR", "WARNING"]


def test_the_reserved_variables_are_those_of_the_rooms() -> None:
    assert all(senders._ATTRIBUTE.fullmatch(f"<aws.scheduler.{one}>") for one in RESERVED["scheduler"])
    assert RESERVED["events"] == inputs.RESERVED
    text = " ".join(f"<aws.pipes.{one}>" for one in RESERVED["pipes"])
    templates.compile_template(text, dict.fromkeys(templates.CONSTANTS, "x"))
    assert set(templates.CONSTANTS) <= set(RESERVED["pipes"])


# -- JSON's own escapes ---------------------------------------------------------------------------------------


def test_what_json_itself_escapes_is_no_mistake() -> None:
    """Go's encoder writes a plan's `<` as `\\u003c`, which is `<` again for whoever reads the file."""
    text = json.dumps(SCHEDULE).replace("<", r"\u003c").replace(">", r"\u003e")
    assert r"\u003caws.scheduler" in text
    assert found(text) == []


def test_escaped_attributes_in_any_json() -> None:
    machine = {"StartAt": "A", "States": {"A": {"Type": "Pass", "Result": {"i": ESCAPED}, "End": True}}}
    assert found(machine) == [(7, "/States/A/Result/i", "ESCAPED_ATTRIBUTE")]


# -- templates ------------------------------------------------------------------------------------------------

TEMPLATE = r"""AWSTemplateFormatVersion: 2010-09-09
Parameters:
  Hour: {Type: Number, Default: 1}
Resources:
  Nightly:
    Type: AWS::Scheduler::Schedule
    Properties:
      ScheduleExpression: cron(0 1 * * ? *)
      ScheduleExpressionTimezone: Asia/Tokio
      FlexibleTimeWindow: {Mode: FLEXIBLE, MaximumWindowInMinutes: 15}
      Target:
        Arn: !GetAtt Machine.Arn
        RoleArn: !Sub arn:aws:iam::${AWS::AccountId}:role/r
        Input: '{"t":"\u003caws.scheduler.scheduled-time\u003e"}'
  Computed:
    Type: AWS::Scheduler::Schedule
    Properties:
      ScheduleExpression: !Sub cron(0 ${Hour} * * ? *)
      ScheduleExpressionTimezone: !Ref Zone
      FlexibleTimeWindow: {Mode: "OFF"}
      Target: {Arn: a, RoleArn: r, Input: !Sub '{"t":"<aws.scheduler.scheduled-time>"}'}
  Rule:
    Type: AWS::Events::Rule
    Properties:
      ScheduleExpression: rate(1 minutes)
      Targets:
        - Id: "1"
          Arn: a
          InputTransformer:
            InputTemplate: '"<aws.events.rulename>"'
  Pipe:
    Type: AWS::Pipes::Pipe
    Properties:
      Source: s
      Target: t
      TargetParameters:
        InputTemplate: |
          {"at": "<aws.pipes.ingestion-time>"}
  Function:
    Type: AWS::Serverless::Function
    Properties:
      Events:
        Old: {Type: Schedule, Properties: {Schedule: every day}}
        New: {Type: ScheduleV2, Properties: {ScheduleExpression: rate(1 day), ScheduleExpressionTimezone: Nowhere}}
"""
WRONG = [
    (9, "/Resources/Nightly/Properties/ScheduleExpressionTimezone", "UNKNOWN_TIME_ZONE"),
    (25, "/Resources/Rule/Properties/ScheduleExpression", "BAD_SCHEDULE_EXPRESSION"),
    (30, "/Resources/Rule/Properties/Targets[0]/InputTransformer/InputTemplate", "UNKNOWN_RESERVED_VARIABLE"),
    (37, "/Resources/Pipe/Properties/TargetParameters/InputTemplate", "UNKNOWN_RESERVED_VARIABLE"),
    (43, "/Resources/Function/Properties/Events/Old/Properties/Schedule", "BAD_SCHEDULE_EXPRESSION"),
    (44, "/Resources/Function/Properties/Events/New/Properties/ScheduleExpressionTimezone", "UNKNOWN_TIME_ZONE"),
    (14, "/Resources/Nightly/Properties/Target/Input", "ESCAPED_ATTRIBUTE"),
]


@pytest.mark.parametrize("name", ["template.yaml", "template.yml", "stack.template", "-"])
def test_a_template_in_yaml(name: str) -> None:
    assert found(TEMPLATE, name) == WRONG


def test_the_same_template_in_json() -> None:
    (document,) = read_yaml(TEMPLATE)
    assert [(where, code) for _, where, code in found(document.value)] == [(where, code) for _, where, code in WRONG]


def test_in_yaml_a_text_in_double_quotes_is_unescaped() -> None:
    line = 'Resources: {A: {Type: "AWS::SQS::Queue", Properties: {X: "\\u003caws.scheduler.scheduled-time\\u003e"}}}'
    assert found(line, "a.yaml") == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Resources:\n  A: [1,\n", 3),
        ("Resources:\n\tA: 1\n", 2),
        ("Resources: &a\n  A: *a\n", 1),
        ("Resources: " + "[" * 5000, 1),
    ],
)
def test_yaml_that_cannot_be_read(text: str, line: int) -> None:
    survey = survey_file("a.yaml", text)
    (one,) = survey.seen
    assert (one.finding.code, one.line, survey.whole) == ("INVALID_YAML", line, False)


def test_yaml_whose_aliases_multiply() -> None:
    lines = ["a0: &a0 x", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 40))]
    survey = survey_file("a.yaml", "\n".join([*lines, "Resources: {}"]))
    assert survey.seen == []


def test_yaml_that_is_no_template_says_so() -> None:
    assert "only escaped" in survey_file("compose.yaml", "services: {a: {image: b}}").what


# -- Terraform ------------------------------------------------------------------------------------------------

MAIN = r"""
# jsonencode({ t = "<aws.scheduler.scheduled-time>" }) in a comment is none
resource "aws_scheduler_schedule" "nightly" {
  name                         = "nightly"
  schedule_expression          = "cron(0 1 * * * *)"
  schedule_expression_timezone = "Asia/Tokyo"
  target {
    arn   = aws_sfn_state_machine.m.arn
    input = jsonencode({
      note = "a } and a ( in ${var.text}"
      t    = "<aws.scheduler.scheduled-time>"
    })
  }
}
resource "aws_scheduler_schedule" "mended" {
  schedule_expression = "cron(${var.minute} 1 * * ? *)"
  target {
    input = replace(replace(jsonencode({ t = "<aws.scheduler.scheduled-time>" }), "\\u003c", "<"), "\\u003e", ">")
  }
}
resource "aws_scheduler_schedule" "half" {
  target { input = replace(jsonencode({ t = "<aws.scheduler.scheduled-time>" }), "\\u003c", "<") }
}
resource "aws_scheduler_schedule" "by_hand" {
  target { input = "{\"t\":\"\\u003caws.scheduler.scheduled-time\\u003e\"}" }
}
resource "aws_scheduler_schedule" "right" {
  target { input = "{\"t\":\"\u003caws.scheduler.scheduled-time\u003e\"}" }
}
resource "aws_pipes_pipe" "p" {
  target_parameters {
    input_template = <<-EOT
      {"x": "${jsonencode("<aws.pipes.pipe-name>")}", "y": "\u003caws.pipes.event\u003e"}
    EOT
  }
}
resource "aws_cloudwatch_event_rule" "r" {
  schedule_expression = "rate(1 minutes)"
}
"""


def test_terraform() -> None:
    assert found(MAIN, "main.tf") == [
        (5, "aws_scheduler_schedule.nightly/schedule_expression", "BAD_SCHEDULE_EXPRESSION"),
        (38, "aws_cloudwatch_event_rule.r/schedule_expression", "BAD_SCHEDULE_EXPRESSION"),
        (11, "jsonencode", "JSONENCODED_ATTRIBUTE"),
        (22, "jsonencode", "JSONENCODED_ATTRIBUTE"),
        (25, "aws_scheduler_schedule.by_hand input", "ESCAPED_ATTRIBUTE"),
        (33, "aws_pipes_pipe.p input_template", "ESCAPED_ATTRIBUTE"),
        (33, "jsonencode", "JSONENCODED_ATTRIBUTE"),
    ]
    assert codes(MAIN, "-") == codes(MAIN, "main.tf")


def test_half_of_the_repair_is_told_by_what_is_left() -> None:
    (half,) = [one.finding for one in survey_file("main.tf", MAIN).seen if one.line == 22]
    assert r"> as \u003e" in half.message
    assert r"\u003c" not in half.message
    assert r'replace(replace(jsonencode(...), "\\u003c", "<"), "\\u003e", ">")' in half.fix


LOCALS = r"""
locals {
  encoded = jsonencode({ t = "<aws.scheduler.scheduled-time>" })
  mended  = jsonencode({ t = "<aws.scheduler.scheduled-time>" })
  plain   = { t = "<aws.scheduler.execution-id>" }
  text    = "{\"t\": \"<aws.scheduler.schedule-arn>\"}"
}
resource "aws_scheduler_schedule" "a" {
  target { input = local.encoded }
}
resource "aws_scheduler_schedule" "b" {
  target { input = replace(replace(local.mended, "\\u003c", "<"), "\\u003e", ">") }
}
resource "aws_scheduler_schedule" "c" {
  target { input = jsonencode(local.plain) }
}
resource "aws_scheduler_schedule" "d" {
  target { input = replace(replace(jsonencode(merge(local.plain, { n = 1 })), "\\u003c", "<"), "\\u003e", ">") }
}
resource "aws_scheduler_schedule" "e" {
  target { input = local.text }
}
"""


def test_locals_are_followed() -> None:
    seen = survey_file("main.tf", LOCALS).seen
    assert [(one.line, one.finding.code) for one in seen] == [
        (3, "JSONENCODED_ATTRIBUTE"),
        (15, "JSONENCODED_ATTRIBUTE"),
    ]
    assert "<aws.scheduler.execution-id>" in seen[1].finding.message


@pytest.mark.parametrize("cut", range(0, len(MAIN), 37))
def test_a_file_that_breaks_off_is_read_as_far_as_it_goes(cut: int) -> None:
    Terraform(MAIN[:cut])


PIECES = st.sampled_from(
    [
        *"(){}[],=\n",
        '"',
        "${",
        "\\\\u003c",
        "jsonencode",
        "replace",
        "local.a",
        "a",
        "<<EOT\n",
        "EOT\n",
        "#",
        "/*",
        TIME,
    ]
)


@given(st.lists(PIECES, max_size=40))
def test_whatever_stands_in_a_file_is_read(pieces: list[str]) -> None:
    terraform = Terraform(" ".join(pieces))
    assert all(one.left for one in terraform.encoded)


def test_a_window_that_is_no_number() -> None:
    template = """
Resources:
  A:
    Type: AWS::Scheduler::Schedule
    Properties: {FlexibleTimeWindow: {Mode: FLEXIBLE, MaximumWindowInMinutes: .inf}}
"""
    assert found(template, "a.yaml") == []


def test_interpolations_without_end() -> None:
    assert codes("a = " + '"${' * 3000, "main.tf") == ["TOO_DEEPLY_NESTED"]


def test_a_plan() -> None:
    schedule = {
        "type": "aws_scheduler_schedule",
        "values": {
            "schedule_expression": "rate(5 minutes)",
            "schedule_expression_timezone": "Nowhere",
            "flexible_time_window": [{"mode": "FLEXIBLE", "maximum_window_in_minutes": 9}],
            "target": [{"input": ESCAPED}],
        },
    }
    root = {"resources": [], "child_modules": [{"resources": [schedule]}]}
    changes = [{"change": {"after": schedule["values"]}}]  # a plan tells everything several times
    plan = {"terraform_version": "1.9.0", "planned_values": {"root_module": root}, "resource_changes": changes}
    at = "/planned_values/root_module/child_modules[0]/resources[0]/values"
    assert [(where, code) for _, where, code in found(plan)] == [
        (f"{at}/schedule_expression_timezone", "UNKNOWN_TIME_ZONE"),
        (f"{at}/flexible_time_window[0]/maximum_window_in_minutes", "WINDOW_LONGER_THAN_RATE"),
        (f"{at}/target[0]/input", "ESCAPED_ATTRIBUTE"),
    ]
    assert codes({"resource": {"x": ESCAPED}}, "main.tf.json") == ["ESCAPED_ATTRIBUTE"]


# -- lines, and the command -----------------------------------------------------------------------------------

DOCUMENTS = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(DOCUMENTS)
def test_lines_of_json(document: Any) -> None:
    """Each text is where its line says it is, in whatever way the document is laid out."""
    text = json.dumps(document, indent=1)
    place = read_json(text)
    assert place.value == document
    lines = text.splitlines()
    for one in place.texts():
        assert json.dumps(one.value) in lines[one.line - 1]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(SCHEDULE))
    bad.write_text(json.dumps(changed(ScheduleExpressionTimezone="Asia/Tokio"), indent=1))
    assert lint.check([str(good)], pipe_target=False, as_json=False) is Code.DONE
    assert capsys.readouterr().out == f"{good}: clean (a request: CreateSchedule)\n"
    assert lint.check([str(bad)], pipe_target=False, as_json=False) is Code.NO
    assert capsys.readouterr().out.splitlines() == [
        f"{bad}:4 /ScheduleExpressionTimezone error UNKNOWN_TIME_ZONE",
        "    There is no time zone 'Asia/Tokio': names are IANA's, spelled exactly.",
        "    Did you mean Asia/Tokyo?",
    ]
    assert lint.check([str(bad)], pipe_target=False, as_json=True) is Code.NO
    (one,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (one["file"], one["line"], one["code"]) == (str(bad), 4, "UNKNOWN_TIME_ZONE")
