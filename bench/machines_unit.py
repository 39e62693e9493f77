"""CPU per execution of 33 states (ten Pass, a Choice, a Map of twenty Pass, Succeed), in process, no HTTP, in memory.

    python bench/machines_unit.py [--executions 300] [--later] [--profile]

`--later` starts by delivery (one unit inserts, another steps) instead of stepping at once. Prints one line of JSON.
Budget: 2.5 ms of CPU an execution.
"""

import argparse
import cProfile
import pstats
import time
from typing import Any

from tasuki.services import machines
from tasuki.services.switchboard import Caller
from tasuki.testing import House
from tasuki.values.documents import dumps, loads

ITEMS, PASSES = 20, 10
STATES = PASSES + 1 + 1 + ITEMS + 1
ROLE = "arn:aws:iam::000000000000:role/bench"


def definition() -> str:
    """Answer the machine of 33 states."""
    states: dict[str, Any] = {
        f"P{i}": {
            "Type": "Pass",
            "Parameters": {"n": i, "id.$": "$.id"},
            "ResultPath": "$.last",
            "Next": f"P{i + 1}" if i + 1 < PASSES else "C",
        }
        for i in range(PASSES)
    }
    enough = {
        "And": [{"Variable": "$.id", "NumericGreaterThanEquals": 0}, {"Variable": "$.items[19]", "IsPresent": True}]
    }
    states["C"] = {
        "Type": "Choice",
        "Choices": [{"Variable": "$.id", "NumericLessThan": 0, "Next": "Bad"}, {**enough, "Next": "M"}],
        "Default": "Bad",
    }
    item = {"X": {"Type": "Pass", "Parameters": {"v.$": "$"}, "End": True}}
    states["M"] = {
        "Type": "Map",
        "ItemsPath": "$.items",
        "ItemProcessor": {"ProcessorConfig": {"Mode": "INLINE"}, "StartAt": "X", "States": item},
        "ResultPath": "$.out",
        "Next": "Done",
    }
    states["Done"] = {"Type": "Succeed"}
    states["Bad"] = {"Type": "Fail", "Error": "Bad"}
    return dumps({"StartAt": "P0", "States": states})


def main() -> None:
    """Run the measurement."""
    options = argparse.ArgumentParser()
    options.add_argument("--executions", type=int, default=300)
    options.add_argument("--later", action="store_true")
    options.add_argument("--profile", action="store_true")
    given = options.parse_args()
    with House(machines.room) as house:
        arn = house.call("stepfunctions", "CreateStateMachine", name="bench", definition=definition(), roleArn=ROLE)[
            "stateMachineArn"
        ]

        def start(number: int) -> str:
            text = dumps({"id": number, "items": list(range(ITEMS))})
            if given.later:
                target = house.switchboard.targets["states"]
                caller = Caller(house.config.account, house.config.region, str(number), "")
                return house.unit(lambda tx: target.deliver(tx, arn, text, None, caller))
            return str(house.call("stepfunctions", "StartExecution", stateMachineArn=arn, input=text)["executionArn"])

        for number in range(20):
            start(number)
        house.drain()
        profile = cProfile.Profile()
        if given.profile:
            profile.enable()
        began = time.process_time()
        arns = [start(number) for number in range(given.executions)]
        if given.later:
            house.drain()
        spent = time.process_time() - began
        profile.disable()
        if given.profile:
            pstats.Stats(profile).sort_stats("tottime").print_stats(35)
        for number, execution in enumerate(arns):
            described = house.call("stepfunctions", "DescribeExecution", executionArn=execution)
            assert described["status"] == "SUCCEEDED", described
            output = loads(described["output"])
            assert output["id"] == number, output
            assert output["out"] == [{"v": k} for k in range(ITEMS)], output
        events = house.call("stepfunctions", "GetExecutionHistory", executionArn=arns[-1], maxResults=1000)["events"]
    each = spent / given.executions
    print(
        dumps(
            {
                "cpu_ms_per_execution": round(each * 1e3, 3),
                "states_per_s": round(STATES / each),
                "events": len(events),
                "how": "later" if given.later else "at once",
            }
        )
    )


if __name__ == "__main__":
    main()
