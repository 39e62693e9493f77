r"""What `lint` is given, what is looked for in it, and where: definitions, requests, templates, Terraform. Pure.

====================================================  ===================================================================
file                                                  looked at
====================================================  ===================================================================
JSON with StartAt or States, and what is nothing else a state machine definition (`language/lint.py`)
JSON with the members of CreateSchedule, PutRule,     that request, or each of an array of them, with the members
PutTargets, CreatePipe, CreateApiDestination or       that its model has (`lint_requests.py`)
CreateConnection (or Update...)
JSON or YAML with Resources                           a CloudFormation or SAM template: its schedules, rules and pipes
JSON of `terraform show -json`                        the same of a plan or state
`.tf`                                                 schedule expressions and zones, and what `jsonencode` will escape
any of them                                           attributes that are escaped: `\u003caws.scheduler...\u003e`
====================================================  ===================================================================

JSON and YAML are decoded first, so `\u003c` that is only the file's own way to write `<` is no mistake.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tasuki.cli.lint_requests import recognise, taken_for
from tasuki.cli.lint_resources import (
    Check,
    Seen,
    check_expression,
    check_input,
    check_pipe,
    check_rule,
    check_rule_target,
    check_schedule,
    warning,
)
from tasuki.cli.lint_sources import Place, Unreadable, read_json, read_yaml
from tasuki.cli.lint_terraform import Terraform, blocks
from tasuki.language.lint import Finding, survey
from tasuki.rules.escapes import escaped_attributes
from tasuki.values.errors import MalformedDocument

UNESCAPE = r'replace(replace(jsonencode(...), "\\u003c", "<"), "\\u003e", ">")'
_TEMPLATE = re.compile(r"^(?:Resources|AWSTemplateFormatVersion|Transform)\s*:", re.MULTILINE)
_DEFINITION = re.compile(r"^(?:StartAt|States)\s*:", re.MULTILINE)
_TERRAFORM = re.compile(r'^\s*(?:resource|data)\s+"[\w-]+"\s+"[\w-]+"\s*\{|^\s*locals\s*\{', re.MULTILINE)
_OF_TEMPLATE: Mapping[str, Check] = {
    "AWS::Scheduler::Schedule": check_schedule,
    "AWS::Events::Rule": check_rule,
    "AWS::Pipes::Pipe": check_pipe,
}
_OF_PLAN: Mapping[str, Check] = {
    "aws_scheduler_schedule": check_schedule,
    "aws_cloudwatch_event_rule": check_rule,
    "aws_cloudwatch_event_target": check_rule_target,
    "aws_pipes_pipe": check_pipe,
}
_TOLD_AGAIN = ("/resource_changes", "/prior_state", "/configuration", "/resource_drift")
"""Parts of a plan that say what `planned_values` says."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What was found, in which order; what the file was taken for; and whether all checks ran."""

    seen: list[Seen]
    what: str = ""
    """Empty for a definition."""
    whole: bool = True


def survey_file(name: str, text: str, *, pipe_target: bool = False) -> Survey:
    """Answer what there is to say about a file, or standard input."""
    if name.endswith(".tf") or (not name.endswith((".json", ".yaml", ".yml")) and _TERRAFORM.search(text)):
        return Survey(_ordered(_of_terraform(text)), "Terraform")
    try:
        document = read_json(text)
    except MalformedDocument:
        yaml = name.endswith((".yaml", ".yml", ".template"))
        if _DEFINITION.search(text) or not (yaml or _TEMPLATE.search(text)):
            return _of_definition(text, pipe_target)
        return _of_yaml(text)
    if name.endswith(".tf.json"):
        return Survey(_ordered(_escaped(document)), "Terraform, of which only escaped attributes were looked for")
    return _of_json(document, text, pipe_target)


def _of_json(document: Place, text: str, pipe_target: bool) -> Survey:
    seen = list(_escaped(document))
    known = _understood(document)
    if known is not None:
        what, findings = known
        return Survey(_ordered([*findings, *seen]), what)
    found = _of_definition(text, pipe_target)
    return Survey([*found.seen, *seen], "", found.whole)


def _of_definition(text: str, pipe_target: bool) -> Survey:
    found = survey(text, pipe_target=pipe_target)
    return Survey([Seen(one) for one in found.findings], "", found.whole)


def _of_yaml(text: str) -> Survey:
    try:
        documents = read_yaml(text)
    except Unreadable as bad:
        one = Finding("INVALID_YAML", "ERROR", "/", f"This is not YAML: {bad}.", "Correct the text at this place.")
        return Survey([Seen(one, bad.line)], "YAML", whole=False)
    seen: list[Seen] = []
    what = "YAML, of which only escaped attributes were looked for"
    for document in documents:
        known = _understood(document)
        if known is not None:
            what = known[0]
            seen.extend(known[1])
        seen.extend(_escaped(document))
    return Survey(_ordered(seen), what)


def _understood(document: Place) -> tuple[str, list[Seen]] | None:
    """Answer what a document is, and what there is to say about it; None for what is, or should be, a definition."""
    value = document.value
    if isinstance(value, list) and value:
        each = [_request(place) for _, place in document.members()]
        if all(check is not None for check in each):
            places = [place for _, place in document.members()]
            return "requests", [one for check, place in zip(each, places, strict=True) if check for one in check(place)]
    if not isinstance(value, dict) or "StartAt" in value or "States" in value:
        return None
    if isinstance(value.get("Resources"), dict):
        return "a template", list(_of_template(document))
    if _is_plan(value):
        return "Terraform's plan", list(_of_plan(document))
    check = _request(document)
    return None if check is None else (taken_for(value), list(check(document)))


def _is_plan(value: Any) -> bool:
    return isinstance(value, dict) and ("terraform_version" in value or "planned_values" in value)


def _request(place: Place) -> Check | None:
    """Answer what looks at a request, or at a part of one, by the members it has."""
    value: Any = place.value
    if not isinstance(value, dict) or "StartAt" in value or "States" in value:
        return None
    taken = recognise(value)
    if taken is not None:
        return taken.look
    if "FlexibleTimeWindow" in value or ("Target" in value and "ScheduleExpression" in value):
        return check_schedule
    if "ScheduleExpression" in value or "EventPattern" in value or isinstance(value.get("Targets"), list):
        return check_rule
    if "Source" in value and "Target" in value:
        return check_pipe
    if "Arn" in value and ("RoleArn" in value or "Input" in value):
        return _check_target
    return None


def _check_target(place: Place) -> Iterator[Seen]:
    given = place.at("Input")
    if given is not None:
        yield from check_input(given)


# -- templates and plans --------------------------------------------------------------------------------------


def _of_template(document: Place) -> Iterator[Seen]:
    resources = document.at("Resources")
    for _, resource in resources.members() if resources is not None else ():
        kind, properties = resource.at("Type"), resource.at("Properties")
        if kind is None or kind.text is None or properties is None:
            continue
        if (check := _OF_TEMPLATE.get(kind.text)) is not None:
            yield from check(properties)
        elif kind.text.startswith("AWS::Serverless::"):
            yield from _of_sam(properties)


def _of_sam(properties: Place) -> Iterator[Seen]:
    """Look at the events of a function or state machine (SAM, "Schedule" and "ScheduleV2")."""
    events = properties.at("Events")
    for _, event in events.members() if events is not None else ():
        kind, given = event.at("Type"), event.at("Properties")
        if kind is None or given is None:
            continue
        if kind.text == "ScheduleV2":
            yield from check_schedule(given)
        elif kind.text == "Schedule":
            yield from check_expression(given.at("Schedule"), "rule")
        elif kind.text in {"EventBridgeRule", "CloudWatchEvent"}:
            yield from check_rule_target(given)


def _of_plan(document: Place) -> Iterator[Seen]:
    for values in ("planned_values", "values"):
        root = document.at(values, "root_module")
        todo = [root] if root is not None else []
        while todo:
            module = todo.pop()
            for name in ("resources", "child_modules"):
                for _, one in _entries(module, name):
                    if name == "child_modules":
                        todo.append(one)
                        continue
                    kind, given = one.at("type"), one.at("values")
                    check = _OF_PLAN.get(kind.text or "") if kind is not None else None
                    if check is not None and given is not None:
                        yield from check(given)


def _entries(place: Place, name: str) -> Iterable[tuple[str, Place]]:
    found = place.at(name)
    return found.members() if found is not None and isinstance(found.value, list) else ()


# -- what is escaped ------------------------------------------------------------------------------------------


def _escaped(document: Place) -> Iterator[Seen]:
    again = _TOLD_AGAIN if _is_plan(document.value) else ()
    for text in document.texts():
        if text.pointer.startswith(again):
            continue
        for attribute in escaped_attributes(text.value):
            yield _escape_at(text, attribute)


def _escape_at(place: Place, attribute: str) -> Seen:
    return warning(
        place,
        "ESCAPED_ATTRIBUTE",
        rf"{attribute} is escaped here (\u003c...\u003e): AWS replaces text only, so the target gets these words, not the value.",
        f"Write < and > themselves. Where jsonencode made it: {UNESCAPE}",
    )


def _of_terraform(text: str) -> Iterator[Seen]:
    try:
        terraform = Terraform(text)
    except RecursionError:
        yield Seen(
            Finding("TOO_DEEPLY_NESTED", "ERROR", "/", "Templates lie too deep in each other.", "Split them."), 1
        )
        return
    for one in terraform.texts:
        for attribute in escaped_attributes(one.value):
            yield _escape_at(_at(terraform, one.at, f"{one.block} {one.field}".strip(), one.value), attribute)
    for found in terraform.encoded:
        marks = " and ".join({"c": r"< as \u003c", "e": r"> as \u003e"}[one] for one in sorted(found.left))
        yield warning(
            _at(terraform, found.at, "jsonencode", ""),
            "JSONENCODED_ATTRIBUTE",
            f"jsonencode writes {marks}, so {found.attribute} is never replaced: the target gets these words, not the value.",
            f"Turn them back: {UNESCAPE}",
        )
    for block, texts in blocks(terraform):
        dialect = {"aws_scheduler_schedule": "scheduler", "aws_cloudwatch_event_rule": "rule"}.get(
            block.partition(".")[0]
        )
        if dialect is None:
            continue
        given = {name: one.value for name, one in texts.items()}
        lines = {f"{block}/{name}": terraform.line(one.at) for name, one in texts.items()}
        place = Place(given, block, lines)
        yield from check_schedule(place) if dialect == "scheduler" else check_rule(place)


def _at(terraform: Terraform, at: int, what: str, value: str) -> Place:
    return Place(value, what, {what: terraform.line(at)})


def _ordered(seen: Iterable[Seen]) -> list[Seen]:
    """Each once, errors first, then by line."""
    return sorted(dict.fromkeys(seen), key=lambda one: (one.finding.severity != "ERROR", one.line or 0))
