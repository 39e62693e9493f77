"""CPU of buses, in process, no HTTP, in memory: what being asked costs a machine's run, and what an event costs.

    python bench/buses.py [--executions 400] [--events 2000] [--rounds 5]

Prints one line of JSON: microseconds of CPU for an execution of one Pass state without the room, with it and no rule, with a rule
for other events, and with a rule that takes its status changes into a queue; and for an event through PutEvents to one queue, by
how many rules the bus has. The least of some rounds, taken in turn, since others use the machine.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

from tasuki.services import buses, deliveries, machines, queues
from tasuki.testing import House
from tasuki.values.documents import dumps

ROLE = "arn:aws:iam::000000000000:role/bench"
PASS = dumps({"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}})
QUEUE = {"Id": "q", "Arn": "arn:aws:sqs:us-east-1:000000000000:q"}
RULES = (1, 100, 300)


def rule(house: House, name: str, pattern: dict[str, Any]) -> None:
    """Make a rule that sends to the queue."""
    house.call("events", "PutRule", Name=name, EventPattern=dumps(pattern))
    house.call("events", "PutTargets", Rule=name, Targets=[QUEUE])


def machine_house(sources: tuple[str, ...], *, has_buses: bool = True) -> House:
    """A house with a machine, and rules for these sources."""
    house = House(queues.room, machines.room, *((deliveries.room, buses.room) if has_buses else ()))
    house.call("sqs", "CreateQueue", QueueName="q", Attributes={})
    house.call("stepfunctions", "CreateStateMachine", name="m", definition=PASS, roleArn=ROLE)
    for source in sources:
        rule(house, source, {"source": [source]})
    return house


def run_executions(house: House, count: int) -> None:
    """Start so many executions, and let everything come to rest."""
    arn = "arn:aws:states:us-east-1:000000000000:stateMachine:m"
    for _ in range(count):
        house.call("stepfunctions", "StartExecution", stateMachineArn=arn, input="{}")
    house.drain()


def event_house(rules: int) -> House:
    """A house whose default bus has so many rules, one of which takes the events."""
    house = House(queues.room, deliveries.room, buses.room)
    house.call("sqs", "CreateQueue", QueueName="q", Attributes={})
    for number in range(rules):
        rule(house, f"r{number}", {"source": ["shop" if not number else f"s{number}"], "detail": {"kind": ["order"]}})
    return house


def put_events(house: House, count: int) -> None:
    """Put so many events, ten in a call, and have them delivered."""
    entry = {"Source": "shop", "DetailType": "d", "Detail": '{"kind":"order","n":1,"text":"some words about an order"}'}
    for _ in range(count // 10):
        house.call("events", "PutEvents", Entries=[entry] * 10)
    house.drain()


def least(rounds: int, works: dict[str, Callable[[], None]], count: int) -> dict[str, float]:
    """Answer the least CPU of each work, in microseconds for one of `count`; the works take turns."""
    found = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            began = time.process_time()
            work()
            found[name] = min(found[name], (time.process_time() - began) / count * 1e6)
    return {name: round(spent, 1) for name, spent in found.items()}


def main() -> None:
    """Run the measurement."""
    options = argparse.ArgumentParser()
    options.add_argument("--executions", type=int, default=400)
    options.add_argument("--events", type=int, default=2000)
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    runs = {
        "no room": machine_house((), has_buses=False),
        "no rule": machine_house(()),
        "rule for others": machine_house(("shop",)),
        "rule that takes it": machine_house(("aws.states",)),
    }
    for house in runs.values():
        run_executions(house, 50)
    executions = least(
        given.rounds,
        {name: lambda house=house: run_executions(house, given.executions) for name, house in runs.items()},  # type: ignore[misc]
        given.executions,
    )
    taken = {f"{rules} rules": event_house(rules) for rules in RULES}
    for house in taken.values():
        put_events(house, 100)
    events = least(
        given.rounds,
        {name: lambda house=house: put_events(house, given.events) for name, house in taken.items()},  # type: ignore[misc]
        given.events,
    )
    print(dumps({"cpu_us_per_execution": executions, "cpu_us_per_event": events}))


if __name__ == "__main__":
    main()
