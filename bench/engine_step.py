"""What a state costs in `step`: CPU per execution and per state, history objects and their texts included.

The machine is the yardstick's: ten Pass states with Parameters and ResultPath, a Choice, an inline Map of twenty Pass
states, and a Pass to end with. Run: python bench/engine_step.py [executions] [--profile]
"""

import cProfile
import json
import pstats
import sys
import time

from tasuki.engine.events import Started
from tasuki.engine.execution import Execution
from tasuki.engine.step import step
from tasuki.language.definition import Machine
from tasuki.language.parse import parse
from tasuki.values.documents import Doc

STATES = 33
BUDGET_US = 25


def definition() -> dict[str, object]:
    """Ten Pass, a Choice, a Map of twenty Pass, a Pass."""
    states: dict[str, object] = {}
    for number in range(10):
        states[f"P{number}"] = {
            "Type": "Pass",
            "Parameters": {"n.$": "$.n", "fixed": "value", "nested": {"a.$": "$.order.id"}},
            "ResultPath": f"$.r{number}",
            "Next": f"P{number + 1}" if number < 9 else "C",
        }
    states["C"] = {
        "Type": "Choice",
        "Choices": [{"Variable": "$.n", "NumericGreaterThan": 5, "Next": "M"}],
        "Default": "E",
    }
    states["M"] = {
        "Type": "Map",
        "ItemsPath": "$.items",
        "ItemProcessor": {"StartAt": "I", "States": {"I": {"Type": "Pass", "End": True}}},
        "ResultPath": "$.mapped",
        "Next": "E",
    }
    states["E"] = {"Type": "Pass", "End": True}
    return {"StartAt": "P0", "States": states}


INPUT = json.dumps({"n": 7, "order": {"id": "o-1", "lines": [1, 2, 3]}, "items": [{"k": i} for i in range(20)]})


def run(machine: Machine) -> int:
    """Run one execution; answer its number of events."""
    execution = Execution(
        arn="arn:aws:states:us-east-1:111111111111:execution:m:e",
        name="e",
        machine_arn="arn:aws:states:us-east-1:111111111111:stateMachine:m",
        machine_name="m",
        role_arn="arn:aws:iam::111111111111:role/r",
        input=Doc.of_text(INPUT),
        started_at=0,
        seed="seed",
    )
    outcome = step(machine, execution, Started(), 0)
    assert execution.status == "SUCCEEDED", (execution.status, outcome.commands)
    return len(outcome.history)


def main() -> None:
    """Print the table."""
    count = int(next((word for word in sys.argv[1:] if word.isdigit()), "2000"))
    machine = parse(json.dumps(definition()))
    events = run(machine)
    if "--profile" in sys.argv:
        profile = cProfile.Profile()
        profile.runcall(lambda: [run(machine) for _ in range(count)])
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)
        return
    best = float("inf")
    for _ in range(20):  # the best slice: what the machine's other work did not disturb
        begin = time.process_time()
        for _ in range(count // 20):
            run(machine)
        best = min(best, (time.process_time() - begin) / (count // 20))
    each = best * 1e6 / STATES
    print(f"{'states':>8} {'events':>8} {'ms/execution':>14} {'us/state':>10} {'states/s':>10}")
    print(f"{STATES:>8} {events:>8} {best * 1e3:>14.3f} {each:>10.1f} {1e6 / each:>10,.0f}")
    if each > BUDGET_US:
        sys.exit(f"over the budget of {BUDGET_US} us a state")


if __name__ == "__main__":
    main()
