"""How StartSyncExecution tells of an execution, to a client and to a Task. Pure."""

from typing import Any

from tasuki.values.instant import Instant

BILLED_STEP_MS = 100
BILLED_MIB = 64
"""The smallest step of billed memory; what an execution really takes is not measured."""


def sync_answer(
    facts: dict[str, Any], ending: dict[str, Any], *, included: bool = True, trace: str | None = None
) -> dict[str, Any]:
    """Answer what StartSyncExecution says: what was known at the start, and how it ended."""
    details = {"included": included}
    answer = {**facts, "inputDetails": details, "outputDetails": details}
    answer |= {name: value for name, value in ending.items() if value is not None}
    if not included:
        answer.pop("input")
        answer.pop("output", None)
    if trace:
        answer["traceHeader"] = trace
    answer["billingDetails"] = _billing(facts["startDate"], ending["stopDate"])
    return answer


def _billing(started_at: Instant, stopped_at: Instant) -> dict[str, int]:
    steps = max(1, -(-(stopped_at - started_at) // BILLED_STEP_MS))
    return {"billedDurationInMilliseconds": steps * BILLED_STEP_MS, "billedMemoryUsedInMB": BILLED_MIB}
