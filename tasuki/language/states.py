"""Reading one state: which fields its type has, and what becomes of them. One function a type."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

from tasuki.language import jsonata_fields
from tasuki.language.choice import CONNECTIVES, OPERATORS, BadRule, RuleTest, compile_rule
from tasuki.language.definition import (
    Block,
    Choice,
    Expression,
    Fail,
    Flow,
    Map,
    Parallel,
    Pass,
    Rule,
    State,
    Succeed,
    Task,
    Wait,
)
from tasuki.language.distributed import read_distributed
from tasuki.language.fields import Fields
from tasuki.language.handlers import read_catch, read_retry
from tasuki.language.resources import parse_resource
from tasuki.language.schema import LARGEST, Node
from tasuki.language.waiting import read_until
from tasuki.values.documents import Doc


class Blocks(Protocol):
    """Reads a block below a state: `place` is its path below the state's (`Branches/0`), `pointer` where it stands."""

    def __call__(self, node: Node, place: str) -> Block:
        """Answer the block."""


_EVERY_STATE = {"Type", "Comment", "QueryLanguage"}
_MOVE = {"Next", "End"}
_PATHS = {"InputPath", "OutputPath"}
_RESULT = {"ResultSelector", "ResultPath"}
_HANDLERS = {"Retry", "Catch"}
_MAP = {
    "ItemProcessor",
    "ItemSelector",
    "ItemReader",
    "ItemBatcher",
    "ResultWriter",
    "Label",
    "MaxConcurrency",
    "ToleratedFailureCount",
    "ToleratedFailurePercentage",
}
_MAP_OLD = {"Iterator", "Parameters"}
"""The older names of ItemProcessor and ItemSelector."""
_TASK = {"Resource", "Credentials", "TimeoutSeconds", "HeartbeatSeconds"}

_JSONPATH_FIELDS: dict[str, set[str]] = {
    "Pass": _MOVE | _PATHS | {"Parameters", "Result", "ResultPath", "Assign"},
    "Task": _MOVE
    | _PATHS
    | _RESULT
    | _HANDLERS
    | _TASK
    | {"Parameters", "TimeoutSecondsPath", "HeartbeatSecondsPath", "Assign"},
    "Choice": _PATHS | {"Choices", "Default", "Assign"},
    "Wait": _MOVE | _PATHS | {"Seconds", "SecondsPath", "Timestamp", "TimestampPath", "Assign"},
    "Succeed": _PATHS,
    "Fail": {"Error", "ErrorPath", "Cause", "CausePath"},
    "Parallel": _MOVE | _PATHS | _RESULT | _HANDLERS | {"Branches", "Parameters", "Assign"},
    "Map": _MOVE
    | _PATHS
    | _RESULT
    | _HANDLERS
    | _MAP
    | _MAP_OLD
    | {
        "Assign",
        "ItemsPath",
        "MaxConcurrencyPath",
        "ToleratedFailureCountPath",
        "ToleratedFailurePercentagePath",
    },
}
_JSONATA_FIELDS: dict[str, set[str]] = {
    "Pass": _MOVE | {"Output", "Assign"},
    "Task": _MOVE | _HANDLERS | _TASK | {"Arguments", "Output", "Assign"},
    "Choice": {"Choices", "Default", "Output", "Assign"},
    "Wait": _MOVE | {"Seconds", "Timestamp", "Output", "Assign"},
    "Succeed": {"Output"},
    "Fail": {"Error", "Cause"},
    "Parallel": _MOVE | _HANDLERS | {"Branches", "Arguments", "Output", "Assign"},
    "Map": _MOVE | _HANDLERS | _MAP | {"Items", "Output", "Assign"},
}

TYPES = "[Task, Wait, Pass, Succeed, Fail, Choice, Parallel, Map]"
"""AWS's order, as recorded: test_state_name_invalid_state_definition."""


def read_state(fields: Fields, name: str, blocks: Blocks) -> State | None:
    """Read a state; None when its type is none."""
    kind = fields.value.get("Type")
    if "Type" not in fields:
        fields.complain("", "These fields are required: [Type]")
        return None
    read = _READERS.get(kind) if isinstance(kind, str) else None
    if read is None or not isinstance(kind, str):
        fields.complain("Type", f"The field 'Type' should have one of these values: {TYPES}")
        return None
    known = (_JSONATA_FIELDS if fields.language == "JSONata" else _JSONPATH_FIELDS)[kind]
    fields.only(known | _EVERY_STATE)
    return read(fields, _shared(fields, name, known), blocks)


def _shared(fields: Fields, name: str, known: set[str]) -> dict[str, Any]:
    """Read what states share, as the arguments of the state's class."""
    made: dict[str, Any] = {
        "name": name,
        "query_language": fields.language,
        "comment": fields.text("Comment"),
        "assign": fields.assign() if "Assign" in known else None,
    }
    if "Next" in known:
        made["next"], made["end"] = fields.text("Next"), fields.flag("End") or False
        if "Next" in fields and made["end"]:
            fields.complain("", "Only one of these fields may be there: [Next, End]")
        elif "Next" not in fields and not made["end"]:
            fields.complain("", "Exactly one of these fields is required: [Next, End]")
    if fields.language == "JSONata":
        made["output"] = fields.template("Output")
        return made
    made["flow"] = Flow(
        input_path=fields.selection("InputPath") if "InputPath" in known else None,
        parameters=fields.template("Parameters") if "Parameters" in known and not known >= _MAP_OLD else None,
        result_selector=fields.template("ResultSelector") if "ResultSelector" in known else None,
        result_path=fields.result_path() if "ResultPath" in known else (),
        output_path=fields.selection("OutputPath") if "OutputPath" in known else None,
    )
    return made


def _pass(fields: Fields, shared: dict[str, Any], _blocks: Blocks) -> State:
    result = Doc(fields.value["Result"]) if "Result" in fields else None
    return Pass(result=result, **shared)


def _succeed(_fields: Fields, shared: dict[str, Any], _blocks: Blocks) -> State:
    return Succeed(**shared)


def _fail(fields: Fields, shared: dict[str, Any], _blocks: Blocks) -> State:
    return Fail(error=fields.text_or_path("Error"), cause=fields.text_or_path("Cause"), **shared)


def _wait(fields: Fields, shared: dict[str, Any], _blocks: Blocks) -> State:
    return Wait(until=read_until(fields) or (lambda scope, now: now), **shared)  # noqa: ARG005 - stands in after a complaint


def _task(fields: Fields, shared: dict[str, Any], _blocks: Blocks) -> State | None:
    fields.require("Resource")
    text = fields.text("Resource")
    resource = parse_resource(text) if text is not None else None
    if text is not None and resource is None:
        fields.complain(
            "Resource",
            f"The resource provided {text} is not recognized. The value is not a valid resource ARN, "
            "or the resource is not available in this region.",
        )
    timeout = fields.whole_or_path("TimeoutSeconds", 1, LARGEST)
    heartbeat = fields.whole_or_path("HeartbeatSeconds", 1, LARGEST)
    if isinstance(timeout, int) and isinstance(heartbeat, int) and heartbeat > timeout:
        fields.complain("HeartbeatSeconds", "HeartbeatSeconds must not be greater than TimeoutSeconds")
    credentials = _credentials(fields)
    retry, catch = read_retry(fields), read_catch(fields)
    jsonata = fields.language == "JSONata"
    arguments: Expression | None = fields.template("Arguments") if jsonata else shared["flow"].parameters
    if resource is None:
        return None
    return Task(
        resource=resource,
        arguments=arguments if jsonata else None,
        timeout_seconds=timeout,
        heartbeat_seconds=heartbeat,
        credentials=credentials,
        retry=retry,
        catch=catch,
        **shared,
    )


def _credentials(fields: Fields) -> Expression | None:
    node = fields.object("Credentials")
    if node is None:
        return None
    names = {"RoleArn"} if fields.language == "JSONata" else {"RoleArn", "RoleArn.$"}
    if not names & set(node.value):
        node.complain("", "The field 'RoleArn' is required but was missing")
        return None
    node.only(names)
    node.text("RoleArn")
    return fields.template("Credentials")


def _choice(fields: Fields, shared: dict[str, Any], _blocks: Blocks) -> State:
    fields.require("Choices")
    rules = [_rule(fields.of(node)) for node in fields.objects("Choices", filled=True)]
    return Choice(choices=tuple(rule for rule in rules if rule), default=fields.text("Default"), **shared)


def _rule(fields: Fields) -> Rule | None:
    fields.require("Next")
    following = fields.text("Next") or ""
    if fields.language == "JSONata":
        fields.only({"Condition", "Next", "Assign", "Output", "Comment"})
        return Rule(test=_condition(fields), next=following, assign=fields.assign(), output=fields.template("Output"))
    fields.only({"Variable", "Next", "Assign", "Comment"} | OPERATORS | CONNECTIVES)
    try:
        test: RuleTest = compile_rule(fields.value, fields.variables)
    except BadRule as bad:
        fields.complaints.add(f"{fields.pointer}/{bad.field}" if bad.field else fields.pointer, bad.message)
        return None
    return Rule(test=test, next=following, assign=fields.assign())


def _condition(fields: Fields) -> Expression:
    """Answer a rule's test; after a complaint one that never matches."""
    fields.require("Condition")
    value = fields.value.get("Condition")
    if fields.holds_query("Condition"):
        query = fields.query("Condition")
        if query is not None:
            return jsonata_fields.boolean(query)
    elif not isinstance(value, bool) and "Condition" in fields:
        fields.complain("Condition", "Expected value of type Boolean")
    return lambda scope: value is True  # noqa: ARG005 - an expression's shape


def _parallel(fields: Fields, shared: dict[str, Any], blocks: Blocks) -> State:
    fields.require("Branches")
    branches = [blocks(node, f"Branches/{place}") for place, node in enumerate(fields.objects("Branches", filled=True))]
    return Parallel(
        branches=tuple(branches),
        arguments=fields.template("Arguments") if fields.language == "JSONata" else None,
        retry=read_retry(fields),
        catch=read_catch(fields),
        **shared,
    )


def _map(fields: Fields, shared: dict[str, Any], blocks: Blocks) -> State | None:
    name = fields.at_most_one("ItemProcessor", "Iterator")
    if name is None:
        fields.complain("", "These fields are required: [ItemProcessor]")
        return None
    node = fields.object(name)
    selector = fields.at_most_one("ItemSelector", "Parameters")
    item_selector = fields.template(selector) if selector else None
    items = fields.items()
    concurrency = fields.whole_or_path("MaxConcurrency", 0, LARGEST)
    count = fields.whole_or_path("ToleratedFailureCount", 0, LARGEST)
    percentage = fields.percentage_or_path("ToleratedFailurePercentage")
    retry, catch = read_retry(fields), read_catch(fields)
    if node is None:
        return None
    return Map(
        processor=blocks(node, name),
        distributed=read_distributed(fields, node),
        items=items,
        item_selector=item_selector,
        max_concurrency=0 if concurrency is None else concurrency,
        tolerated_failure_count=count,
        tolerated_failure_percentage=percentage,
        retry=retry,
        catch=catch,
        **shared,
    )


_Reader: TypeAlias = Callable[[Fields, dict[str, Any], Blocks], State | None]
_READERS: Mapping[str, _Reader] = {
    "Pass": _pass,
    "Task": _task,
    "Choice": _choice,
    "Wait": _wait,
    "Succeed": _succeed,
    "Fail": _fail,
    "Parallel": _parallel,
    "Map": _map,
}
