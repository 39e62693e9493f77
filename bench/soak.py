"""`make soak`: a task of 61 minutes through `.sync`, while its node is killed twice. It ends once.

By the wall clock, with a real process: what a machine's sleep, a node's restart or a lease might do to a long task shows only in
time. `MINUTES` (61) sets how long; `STORE=postgresql://...` names a PostgreSQL database, in which it makes a schema of its own and
drops it in the end. Prints one line a minute, one when something changes, and a summary.
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.crash.relay import ROLE, Relay
from tests.postgres import drop_schema, in_schema, new_schema

MINUTES = float(os.environ.get("MINUTES", "61"))
LATE_S = 60
"""How long after its end the execution may be told of it."""


def machine() -> str:
    """Run the task, once: a second try would be the failure that we look for."""
    environment = [{"Name": "JOB", "Value": "soak"}, {"Name": "LIFE", "Value": str(MINUTES * 60)}]
    run = {
        "Type": "Task",
        "Resource": "arn:aws:states:::ecs:runTask.sync",
        "Parameters": {
            "TaskDefinition": "soak",
            "Overrides": {
                "ContainerOverrides": [{"Name": "main", "Environment": [*environment, {"Name": "TRY", "Value": "0"}]}]
            },
        },
        "End": True,
    }
    return json.dumps({"StartAt": "Run", "States": {"Run": run}})


def play(relay: Relay) -> list[str]:
    """Run it; answer what went wrong."""
    relay.node.start()
    container = {"name": "main", "image": "job", "memory": 32}
    relay.client("ecs").register_task_definition(family="soak", containerDefinitions=[container])
    states: Any = relay.states
    arn = states.create_state_machine(name="soak", definition=machine(), roleArn=ROLE)["stateMachineArn"]
    began = time.monotonic()
    execution = states.start_execution(stateMachineArn=arn, name="soak")["executionArn"]
    kills = [MINUTES * 60 / 3, MINUTES * 60 * 2 / 3]
    killed, said, due_s = 0, "", 0.0
    while True:
        gone = time.monotonic() - began
        status = relay.states.describe_execution(executionArn=execution)["status"]
        now = f"{status}, killed {killed} times, {relay.marks('soak')}"
        if now != said or gone >= due_s:
            print(f"{gone / 60:6.1f} min  {now}", flush=True)
            said, due_s = now, gone + 60
        if status != "RUNNING" or gone > MINUTES * 60 + LATE_S:
            break
        if kills and gone >= kills[0]:
            kills.pop(0)
            relay.node.kill()
            killed += 1
            time.sleep(min(20.0, MINUTES))
            relay.node.start()
        time.sleep(min(5.0, MINUTES))
    return findings(relay, execution, status, killed)


def findings(relay: Relay, execution: str, status: str, killed: int) -> list[str]:
    """Compare the execution's history with what the task wrote down itself."""
    wrong = []
    events = relay.history(execution)
    types = [event["type"] for event in events]
    marks = relay.marks("soak")
    if status != "SUCCEEDED":
        wrong.append(f"the execution is {status}: {types}")
    if [word for word, _, _ in marks] != ["began", "ended"] or len({pid for _, pid, _ in marks}) != 1:
        wrong.append(f"the task wrote down {marks}")
    if killed != 2:
        wrong.append(f"the node was killed {killed} times")
    once = [types.count(one) for one in ("TaskScheduled", "TaskSubmitted", "TaskSucceeded")]
    if once != [1, 1, 1]:
        wrong.append(f"the history has {types}")
    else:
        took = events[types.index("TaskSucceeded")]["timestamp"] - events[types.index("TaskSubmitted")]["timestamp"]
        print(f"the task took {took.total_seconds():.1f} s by the history")
        if took.total_seconds() < MINUTES * 60 - 1:
            wrong.append(f"it ended after {took}")
    return wrong


def main() -> int:
    """Run it in a folder of its own, and in a schema of its own."""
    base, schema = os.environ.get("STORE") or None, new_schema()
    try:
        store = None if base is None else in_schema(base, schema)
    except ValueError as bad:
        print(f"STORE: {bad}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="tasuki-soak-") as folder:
        relay = Relay(Path(folder) / "data", seed=1, store=store)
        try:
            wrong = play(relay)
        finally:
            relay.stop_all()
            if base is not None:
                drop_schema(base, schema)
    for one in wrong:
        print(f"WRONG: {one}")
    print(f"soak: one task of {MINUTES:g} minutes, its node killed twice: {'ended once' if not wrong else 'FAILED'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
