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
_COUNTERS = ("Delivered", "Duplicates", "Filtered", "Failed")


def house_model() -> dict[str, Any]:
    """Answer the model, as read from one of botocore's `service-2.json`."""
    text, count = {"shape": "Text"}, {"shape": "Count"}
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
            "ListHandovers": {
                "name": "ListHandovers",
                "http": {"method": "POST", "requestUri": "/"},
                "input": {"shape": "ListHandoversInput"},
                "output": {"shape": "ListHandoversOutput"},
                "errors": [{"shape": "ValidationException"}],
            },
            "ListPipeCounters": {
                "name": "ListPipeCounters",
                "http": {"method": "POST", "requestUri": "/"},
                "input": {"shape": "ListPipeCountersInput"},
                "output": {"shape": "ListPipeCountersOutput"},
                "errors": [{"shape": "ValidationException"}],
            },
            "ListDeliveries": {
                "name": "ListDeliveries",
                "http": {"method": "POST", "requestUri": "/"},
                "input": {"shape": "ListDeliveriesInput"},
                "output": {"shape": "ListDeliveriesOutput"},
                "errors": [{"shape": "ValidationException"}],
            },
            "ListScheduleTicks": {
                "name": "ListScheduleTicks",
                "http": {"method": "POST", "requestUri": "/"},
                "input": {"shape": "ListScheduleTicksInput"},
                "output": {"shape": "ListScheduleTicksOutput"},
                "errors": [{"shape": "ValidationException"}],
            },
            "ListNodes": {
                "name": "ListNodes",
                "http": {"method": "POST", "requestUri": "/"},
                "input": {"shape": "ListNodesInput"},
                "output": {"shape": "ListNodesOutput"},
                "errors": [{"shape": "ValidationException"}],
            },
        },
        "shapes": {
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
            "ValidationException": {"type": "structure", "members": {"message": text}, "exception": True},
        },
    }
