"""The machines of the simulation: small ones of every shape that can wait, fail, retry, branch or call another room.

Their inputs are drawn in `actions_machines.py`: `n` decides at Choices, `s` is how long to wait, `items` what to map over,
`image` what to run. What a machine sends to a queue has a key that no other send ever has.
"""

from typing import Any

TICKS = "ticks"
"""Where schedules, rules and pipes deliver to, and nobody purges."""
URL = "http://127.0.0.1:4566/000000000000"
ARN = "arn:aws:states:us-east-1:000000000000"
WAIT = {"Type": "Wait", "SecondsPath": "$.s"}
FAIL = {"Type": "Fail", "Error": "Odd", "Cause": "n is odd"}
SORRY = {"Type": "Pass", "Result": "caught"}


def _chain(**states: dict[str, Any]) -> dict[str, Any]:
    """A machine of states that follow each other, unless they say where to go."""
    names = list(states)
    made = {}
    for name, after in zip(names, [*names[1:], None], strict=True):
        state = states[name]
        if state["Type"] not in {"Choice", "Fail", "Succeed"} and not {"Next", "End"} & state.keys():
            state = {**state, **({"Next": after} if after is not None else {"End": True})}
        made[name] = state
    return {"StartAt": names[0], "States": made}


def _fork(then: str, otherwise: str) -> dict[str, Any]:
    """A Choice: an odd `n` (1 or 3) goes one way."""
    odd = [{"Variable": "$.n", "NumericEquals": number, "Next": then} for number in (1, 3)]
    return {"Type": "Choice", "Choices": odd, "Default": otherwise}


def _task(resource: str, parameters: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"Type": "Task", "Resource": f"arn:aws:states:::{resource}", "Parameters": parameters, **more}


_KEY = "States.Format('x:{}:{}', $$.Execution.Id, $$.Execution.RedriveCount)"


def _tell(queue: str, **more: Any) -> dict[str, Any]:
    """A state that sends a message with a key of its own."""
    body = {"key.$": _KEY, "kind": "machine"}
    return _task("sqs:sendMessage", {"QueueUrl": f"{URL}/{queue}", "MessageBody": body}, ResultPath=None, **more)


_RETRY = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 2, "MaxAttempts": 2, "BackoffRate": 3.0}]
_CATCH = [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.why", "Next": "Sorry"}]
_SAVED: dict[str, Any] = {"Retry": _RETRY, "Catch": _CATCH}
_DONE = {"Type": "Succeed"}
_CHOOSE = _chain(C=_fork("F", "P"), P={"Type": "Pass"}, W=WAIT, D=_DONE, F=FAIL)
_ITEM = _chain(C=_fork("F", "W"), W=WAIT, D=_DONE, F=FAIL)
_ASK = {
    "QueueUrl": f"{URL}/tokens",
    "MessageBody": {"key.$": _KEY, "token.$": "$$.Task.Token"},
}
_SORRY_END: dict[str, Any] = {"Done": _DONE, "Sorry": {**SORRY, "Next": "Done"}}


def _run(image: str = "$.image", **more: Any) -> dict[str, Any]:
    path = {"TaskDefinition.$": image} if image.startswith("$") else {"TaskDefinition": image}
    return {**path, **more}


_TOKEN = {
    "ContainerOverrides": [{"Name": "main", "Environment": [{"Name": "TOKEN", "Value.$": "$$.Task.Token"}]}],
}


def _distributed(kind: str) -> dict[str, Any]:
    processor = {**_ITEM, "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": kind}}
    many = {"Type": "Map", "Label": f"Items{kind.title()}", "ItemsPath": "$.items", "ItemProcessor": processor}
    return _chain(M={**many, "MaxConcurrency": 2, "ToleratedFailurePercentage": 40, **_SAVED}, **_SORRY_END)


_ONE = _chain(P={"Type": "Pass", "Parameters": {"key.$": "States.Format('en:{}', $.id)", "n.$": "$.n"}})
_ENRICH = _chain(
    C={
        "Type": "Choice",
        "Choices": [
            {
                "And": [{"Variable": "$[0].n", "IsPresent": True}, {"Variable": "$[0].n", "NumericEquals": 3}],
                "Next": "N",
            }
        ],
        "Default": "E",
    },
    E={"Type": "Map", "ItemProcessor": _ONE, "End": True},
    N={"Type": "Choice", "Choices": [{"Variable": "$[1]", "IsPresent": True, "Next": "F"}], "Default": "Z"},
    Z={"Type": "Pass", "Result": [], "End": True},
    F={"Type": "Fail", "Error": "Odd", "Cause": "the first of several has n = 3"},
)
"""Makes an event with a key of its own of each record; a lone one with n = 3 of none, and a batch that begins with such a one fails."""

STANDARD: dict[str, dict[str, Any]] = {
    "wait": _chain(W=WAIT, D=_DONE),
    "choose": _CHOOSE,
    "limited": {**_chain(W=WAIT, V=WAIT, D=_DONE), "TimeoutSeconds": 90},
    "announce": _chain(W=WAIT, T=_tell("notes", Retry=_RETRY), D=_DONE),
    "retry": _chain(T=_tell("q1", **_SAVED), **_SORRY_END),
    "parallel": _chain(
        All={"Type": "Parallel", "Branches": [_chain(A=WAIT), _CHOOSE, _chain(B={"Type": "Pass"})], **_SAVED},
        **_SORRY_END,
    ),
    "map": _chain(
        M={"Type": "Map", "ItemsPath": "$.items", "MaxConcurrency": 3, "ItemProcessor": _ITEM, **_SAVED}, **_SORRY_END
    ),
    "nest": _chain(
        N=_task(
            "states:startExecution.sync:2", {"StateMachineArn": f"{ARN}:stateMachine:choose", "Input.$": "$"}, **_SAVED
        ),
        **_SORRY_END,
    ),
    "spawn": _chain(
        N=_task("states:startExecution", {"StateMachineArn": f"{ARN}:stateMachine:announce", "Input.$": "$"}),
    ),
    "job": _chain(
        J=_task("ecs:runTask.sync", _run(), ResultPath=None, **_SAVED), T=_tell("notes", Next="Done"), **_SORRY_END
    ),
    "hurried": _chain(J=_task("ecs:runTask.sync", _run(), TimeoutSeconds=40, **_SAVED), **_SORRY_END),
    "fleet": _chain(J=_task("ecs:runTask", _run(StartedBy="fleet"), **_SAVED), **_SORRY_END),
    "ask": _chain(
        Q=_task(
            "sqs:sendMessage.waitForTaskToken",
            _ASK,
            HeartbeatSeconds=300,
            TimeoutSeconds=4_000,
            Catch=_CATCH,
        ),
        **_SORRY_END,
    ),
    "ask_forever": _chain(Q=_task("sqs:sendMessage.waitForTaskToken", _ASK, Catch=_CATCH), **_SORRY_END),
    "call": _chain(
        J=_task(
            "ecs:runTask.waitForTaskToken", _run(Overrides=_TOKEN), TimeoutSeconds=7_200, Retry=_RETRY, Catch=_CATCH
        ),
        **_SORRY_END,
    ),
    "press": _chain(
        A={
            "Type": "Task",
            "Resource": f"{ARN}:activity:press",
            "TimeoutSeconds": 3_600,
            "HeartbeatSeconds": 120,
            **_SAVED,
        },
        **_SORRY_END,
    ),
    "consult": _chain(
        X=_task(
            "aws-sdk:sfn:startSyncExecution",
            {"StateMachineArn": f"{ARN}:stateMachine:quick", "Input.$": "States.JsonToString($)"},
            **_SAVED,
        ),
        **_SORRY_END,
    ),
    "worker": _chain(
        G=_task("aws-sdk:sfn:getActivityTask", {"ActivityArn": f"{ARN}:activity:press"}, **_SAVED), **_SORRY_END
    ),
    "items": _distributed("STANDARD"),
    "items_express": _distributed("EXPRESS"),
    "jsonata": {
        "QueryLanguage": "JSONata",
        "StartAt": "A",
        "States": {
            "A": {"Type": "Pass", "Assign": {"twice": "{% $states.input.n * 2 %}"}, "Next": "W"},
            "W": {"Type": "Wait", "Seconds": "{% $states.input.s %}", "Next": "M"},
            "M": {
                "Type": "Map",
                "Items": "{% [1..$twice + 1] %}",
                "MaxConcurrency": 1,
                "ItemProcessor": {"StartAt": "B", "States": {"B": {"Type": "Wait", "Seconds": 1, "End": True}}},
                "End": True,
            },
        },
    },
}
"""The Standard machines, by name."""

EXPRESS: dict[str, dict[str, Any]] = {
    "quick": _CHOOSE,
    "batch": _chain(W={"Type": "Wait", "Seconds": 3}, D=_DONE),
    "partial": _chain(P={"Type": "Pass", "Parameters": {"batchItemFailures.$": "$[?(@.n == 1)]"}}),
    "enrich": _ENRICH,
    "enrich_late": _chain(W={"Type": "Wait", "Seconds": 40}, **_ENRICH["States"]),
}
"""The Express machines, by name."""

QUEUES: dict[str, dict[str, str]] = {
    "dead": {},
    "jobs": {
        "VisibilityTimeout": "20",
        "RedrivePolicy": '{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":2}',
    },
    "notes": {},
    "tokens": {"VisibilityTimeout": "5"},
    "short": {"MessageRetentionPeriod": "120"},
    "late": {"DelaySeconds": "7"},
    TICKS: {"MessageRetentionPeriod": "1209600"},
}
"""The queues that are there from the start, with their attributes; `q1` to `q4` come and go."""
