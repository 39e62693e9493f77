"""The model of the house's own service, `tasuki`: what AWS has no operation for, in AWS's JSON protocol.

Written as botocore writes models, so that the codecs, the checks and the errors are the same as for any other service.
A client sends `X-Amz-Target: Tasuki.ListHandovers`, signed for the service `tasuki`.
"""

from typing import Any

HOUSE = "tasuki"

_FILTERS = ("Trace", "MessageId", "ExecutionArn", "SourceArn")
_HANDOVER = ("At", "SourceArn", "MessageId", "PipeArn", "TargetArn", "ExecutionArn", "Trace", "Outcome")
_NODE = ("Id", "Host", "Url", "State", "Version", "JoinedAt", "SeenAt")
_NODE_COUNTS = ("Tasks", "MemoryMiB", "ClockAheadMs")
_DELIVERY = (
    "Id",
    "SourceArn",
    "SourceId",
    "TargetArn",
    "Trace",
    "State",
    "Since",
    "NextTryAt",
    "GivenUpAt",
    "Error",
    "Message",
)
_TICK = ("ScheduleArn", "State", "ScheduledTime", "FiresAt", "TargetArn")
_LISTINGS = ("ListHandovers", "ListPipeCounters", "ListDeliveries", "ListScheduleTicks", "ListNodes")
_COUNTERS = ("Delivered", "Duplicates", "Filtered", "Failed")
_CLOCK_OPERATIONS = ("GetClock", "AdvanceClock", "RunClock")
_CLOCK_ERRORS = ("ConflictException", "NotAtRestException")


def _clock_operation(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "http": {"method": "POST", "requestUri": "/"},
        "input": {"shape": f"{name}Input"},
        "output": {"shape": "AdvanceClockOutput" if name == "AdvanceClock" else "ClockOutput"},
        "errors": [{"shape": one} for one in ("ValidationException", *_CLOCK_ERRORS)],
    }


_CLOCK_SHAPES: dict[str, Any] = {
    "Number": {"type": "double"},
    "Flag": {"type": "boolean"},
    "Texts": {"type": "list", "member": {"shape": "Text"}},
    "Counts": {"type": "map", "key": {"shape": "Text"}, "value": {"shape": "Count"}},
    "DueNext": {"type": "structure", "members": {"At": {"shape": "Text"}, "What": {"shape": "Text"}}},
    "GetClockInput": {"type": "structure", "members": {}},
    "RunClockInput": {"type": "structure", "members": {"Speed": {"shape": "Number"}}},
    "AdvanceClockInput": {
        "type": "structure",
        "members": {
            **{key: {"shape": "Text"} for key in ("By", "To")},
            **{key: {"shape": "Number"} for key in ("PatienceSeconds", "WaitSeconds")},
        },
    },
    "ClockOutput": {
        "type": "structure",
        "members": {
            **{key: {"shape": "Text"} for key in ("Now", "Kind")},
            "Speed": {"shape": "Number"},
            "Next": {"shape": "DueNext"},
            "Busy": {"shape": "Texts"},
        },
    },
    "AdvanceClockOutput": {
        "type": "structure",
        "members": {
            **{key: {"shape": "Text"} for key in ("Now", "To")},
            "Arrived": {"shape": "Flag"},
            "Visited": {"shape": "Count"},
            "Busy": {"shape": "Texts"},
            "Counts": {"shape": "Counts"},
        },
    },
}


def house_model() -> dict[str, Any]:
    """Answer the model, as read from one of botocore's `service-2.json`."""
    return {
        "metadata": {
            "apiVersion": "2026-01-01",
            "endpointPrefix": HOUSE,
            "jsonVersion": "1.0",
            "protocol": "json",
            "signingName": HOUSE,
            "targetPrefix": "Tasuki",
        },
        "operations": {
            **{name: _operation(name) for name in _LISTINGS},
            **{name: _clock_operation(name) for name in _CLOCK_OPERATIONS},
        },
        "shapes": _shapes(),
    }


def _shapes() -> dict[str, Any]:
    text, count = {"shape": "Text"}, {"shape": "Count"}
    return {
        "Text": {"type": "string"},
        "Count": {"type": "integer"},
        "ListHandoversInput": {
            "type": "structure",
            "members": {**dict.fromkeys(_FILTERS, text), "MaxResults": {"shape": "Count"}, "NextToken": text},
        },
        "ListHandoversOutput": {
            "type": "structure",
            "members": {"Handovers": {"shape": "Handovers"}, "NextToken": text},
        },
        "Handovers": {"type": "list", "member": {"shape": "Handover"}},
        "Handover": {"type": "structure", "members": dict.fromkeys(_HANDOVER, text)},
        "ListPipeCountersInput": {"type": "structure", "members": {}},
        "ListPipeCountersOutput": {"type": "structure", "members": {"Pipes": {"shape": "PipeCounters"}}},
        "PipeCounters": {"type": "list", "member": {"shape": "PipeCounter"}},
        "PipeCounter": {
            "type": "structure",
            "members": {"Name": text, **dict.fromkeys(_COUNTERS, count)},
        },
        "ListDeliveriesInput": {
            "type": "structure",
            "members": {
                **dict.fromkeys(("SourceArn", "TargetArn"), text),
                "MaxResults": {"shape": "Count"},
                "NextToken": text,
            },
        },
        "ListDeliveriesOutput": {
            "type": "structure",
            "members": {"Deliveries": {"shape": "Deliveries"}, "NextToken": text},
        },
        "Deliveries": {"type": "list", "member": {"shape": "Delivery"}},
        "Delivery": {
            "type": "structure",
            "members": {
                **dict.fromkeys((*_DELIVERY, "DeadLetterArn"), text),
                **dict.fromkeys(("Attempts", "MaxAttempts"), count),
            },
        },
        "ListScheduleTicksInput": {
            "type": "structure",
            "members": {"ScheduleArn": text, "MaxResults": count, "NextToken": text},
        },
        "ListScheduleTicksOutput": {
            "type": "structure",
            "members": {"Ticks": {"shape": "ScheduleTicks"}, "NextToken": text},
        },
        "ScheduleTicks": {"type": "list", "member": {"shape": "ScheduleTick"}},
        "ScheduleTick": {"type": "structure", "members": dict.fromkeys(_TICK, text)},
        "ListNodesInput": {"type": "structure", "members": {}},
        "ListNodesOutput": {"type": "structure", "members": {"Nodes": {"shape": "Nodes"}}},
        "Nodes": {"type": "list", "member": {"shape": "Node"}},
        "Node": {
            "type": "structure",
            "members": {**dict.fromkeys(_NODE, text), **dict.fromkeys(_NODE_COUNTS, count)},
        },
        **_CLOCK_SHAPES,
        **{
            name: {"type": "structure", "members": {"message": text}, "exception": True}
            for name in ("ValidationException", *_CLOCK_ERRORS)
        },
    }


def _operation(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "http": {"method": "POST", "requestUri": "/"},
        "input": {"shape": f"{name}Input"},
        "output": {"shape": f"{name}Output"},
        "errors": [{"shape": "ValidationException"}],
    }
