"""Small load files whose answers can be worked out by hand."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

from tasuki.testing.loads import Plan, read_plan

HOUR_S = 3600

SMALL: dict[str, Any] = {
    "title": "small",
    "seed": 7,
    "days": 0.25,
    "starts": "2026-01-05",
    "load": {"arrivals": "trace", "trace": [{"at": 0}]},
    "versions": {
        "v1": {
            "share": 1,
            "duration": {"kind": "fixed", "minutes": 10},
            "vcpu": 2,
            "memory_gb": 4,
            "start_seconds": 45,
        }
    },
    "workers": {"poll_seconds": 20, "visibility_seconds": 300, "extend": True, "receives": 3},
    "strategies": {
        "always_on": {"workers": 1},
        "backlog": {
            "protect": [False, True],
            "per_worker": 1,
            "least": 1,
            "most": 4,
            "every_seconds": 60,
            "out_cooldown_seconds": 0,
            "in_cooldown_seconds": 0,
        },
        "task_per_job": {"tries": 3, "retry_seconds": 10, "backoff_rate": 2, "aws_pollers": 5},
    },
    "prices": {
        "region": "nowhere",
        "date": "2026-03-01",
        "fargate": {"vcpu_hour": 1.0, "gb_hour": 0.25, "least_seconds": 60, "source": "by hand"},
        "sqs": {"per_million_requests": 1000, "source": "by hand"},
        "states": {"per_thousand_transitions": 1, "source": "by hand"},
        "pipes": {"per_million_requests": 10_000, "source": "by hand"},
    },
    "limits": {"running_tasks": 100, "source": "by hand"},
}


def changed(**changes: Any) -> dict[str, Any]:
    """The small file with other values: keys are paths, `a__b`; None takes a key out."""
    tree = deepcopy(SMALL)
    for path, value in changes.items():
        *tables, key = path.split("__")
        at = tree
        for one in tables:
            at = at.setdefault(one, {})
        if value is None:
            del at[key]
        else:
            at[key] = value
    return tree


def write(folder: Path, tree: dict[str, Any]) -> Path:
    """Write a tree as TOML."""
    file = folder / "load.toml"
    file.write_text("\n".join(f"{key} = {toml(value)}" for key, value in tree.items()))
    return file


def toml(value: Any) -> str:
    """Write a value as TOML has it, tables in one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f'"{key}" = {toml(one)}' for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(toml(one) for one in value) + "]"
    return json.dumps(value)


def plan(folder: Path, **changes: Any) -> Plan:
    """Read the small file with other values."""
    return read_plan(write(folder, changed(**changes)))


def at(*instants: Any, **more: Any) -> dict[str, Any]:
    """A load of jobs at these seconds."""
    return {"arrivals": "trace", "trace": [{"at": one, **more} for one in instants]}
