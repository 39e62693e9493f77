"""Definitions that the plays share."""

from typing import Any

# Integrations whose parameters nobody checks: what the plays are about is what comes after.
WORK = "arn:aws:states:::sns:publish"
TOKEN = "arn:aws:states:::sns:publish.waitForTaskToken"
SYNC = "arn:aws:states:::glue:startJobRun.sync"
ALL = ["States.ALL"]


def machine(start: str = "A", /, *, timeout: int | None = None, **states: Any) -> dict[str, Any]:
    """Answer a definition; the first state is called A unless said otherwise."""
    made: dict[str, Any] = {"StartAt": start, "States": states}
    if timeout is not None:
        made["TimeoutSeconds"] = timeout
    return made


def task(resource: str = WORK, **fields: Any) -> dict[str, Any]:
    """Answer a Task state that ends its block unless it has a Next."""
    made = {"Type": "Task", "Resource": resource, **fields}
    return made if "Next" in made else {**made, "End": True}


def pass_(**fields: Any) -> dict[str, Any]:
    """Answer a Pass state that ends its block unless it has a Next."""
    made = {"Type": "Pass", **fields}
    return made if "Next" in made else {**made, "End": True}


def wait(seconds: int, **fields: Any) -> dict[str, Any]:
    """Answer a Wait state that ends its block unless it has a Next."""
    made = {"Type": "Wait", "Seconds": seconds, **fields}
    return made if "Next" in made else {**made, "End": True}


def parallel(*blocks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Answer a Parallel state that ends its block unless it has a Next."""
    made = {"Type": "Parallel", "Branches": list(blocks), **fields}
    return made if "Next" in made else {**made, "End": True}


def map_(block: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Answer a Map state that ends its block unless it has a Next."""
    made = {"Type": "Map", "ItemProcessor": block, **fields}
    return made if "Next" in made else {**made, "End": True}
