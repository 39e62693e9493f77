"""What a JSONata state costs in `step`, and how long the worst expressions hold a unit up.

The machine is the yardstick's in JSONata: ten Pass states that merge, a Choice, an inline Map of twenty Pass states, and
a Succeed. Run: python bench/jsonata_step.py [executions] [--profile] [--worst]
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
BUDGET_US = 70
ITEMS = 20

WORST = {
    "endless recursion": "($f := function($n){ 1 + $f($n) }; $f(1))",
    "endless tail recursion": "($f := function($n){ $f($n + 1) }; $f(1))",
    "regular expression": "$match($pad('', 30000, 'a'), /(a+)+b/)",
    "range": "$count([1..9999999])",
    "range of ranges": "[1..10000].[1..10000]",
    "growing text": "($f := function($s){ $f($s & $s) }; $f('ab'))",
    "growing array": "$reduce([1..100000], function($p, $c){ $append($p, $c) })",
    "sort": "$count($sort($map([1..200000], function($v){ -$v })))",
    "distinct": "$count($distinct([1..200000]))",
}


def definition() -> dict[str, object]:
    """Ten Pass, a Choice, a Map of twenty Pass, a Succeed."""
    states: dict[str, object] = {}
    for number in range(10):
        merged = f"{{% $merge([$states.input, {{'i': {number}, 'prev': $states.input.i}}]) %}}"
        states[f"P{number}"] = {"Type": "Pass", "Output": merged, "Next": f"P{number + 1}" if number < 9 else "C"}
    states["C"] = {
        "Type": "Choice",
        "Choices": [
            {"Condition": "{% $states.input.id < 0 %}", "Next": "Bad"},
            {"Condition": f"{{% $states.input.id >= 0 and $count($states.input.items) = {ITEMS} %}}", "Next": "M"},
        ],
        "Default": "Bad",
    }
    inner = {"X": {"Type": "Pass", "Output": "{% {'v': $states.input * 2} %}", "End": True}}
    states["M"] = {
        "Type": "Map",
        "Items": "{% $states.input.items %}",
        "ItemProcessor": {"StartAt": "X", "States": inner},
        "Output": "{% {'sum': $sum($states.result.v), 'id': $states.input.id} %}",
        "Next": "Done",
    }
    states["Done"] = {"Type": "Succeed"}
    states["Bad"] = {"Type": "Fail", "Error": "Bad"}
    return {"QueryLanguage": "JSONata", "StartAt": "P0", "States": states}


INPUT = json.dumps({"id": 7, "items": list(range(ITEMS))})


def run(machine: Machine, given: str = INPUT, status: str = "SUCCEEDED") -> int:
    """Run one execution; answer its number of events."""
    execution = Execution(
        arn="arn:aws:states:us-east-1:111111111111:execution:m:e",
        name="e",
        machine_arn="arn:aws:states:us-east-1:111111111111:stateMachine:m",
        machine_name="m",
        role_arn="arn:aws:iam::111111111111:role/r",
        input=Doc.of_text(given),
        started_at=0,
        seed="seed",
    )
    outcome = step(machine, execution, Started(), 0)
    assert execution.status == status, (execution.status, outcome.commands)
    return len(outcome.history)


def worst() -> None:
    """Print how long one step takes with each of the worst expressions."""
    for name, source in WORST.items():
        state = {"Type": "Pass", "Output": f"{{% {source} %}}", "End": True}
        machine = parse(json.dumps({"QueryLanguage": "JSONata", "StartAt": "S", "States": {"S": state}}))
        begin = time.perf_counter()
        try:
            run(machine)
            ended = "succeeded"
        except AssertionError as failed:
            ended = str(failed).rsplit("evaluation", 2)[-1][:60]
        print(f"{name:>24} {(time.perf_counter() - begin) * 1e3:>8.1f} ms  {ended}")


def main() -> None:
    """Print the table."""
    if "--worst" in sys.argv:
        worst()
        return
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
