"""What else a crashed relay has to keep: ticks of schedules, events on a bus, letters through pipes; and what is seen of them.

The driver writes down what it asked for and what was answered (`Promises`); at the end the queues and executions are emptied
into `Arrivals`, and `timely_auditor` compares the two. Schedules are `at()` a few whole seconds ahead, so that many of them are due
while their node is dead, and some that come every minute.
"""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tests.crash.relay import QUEUES, ROLE, Relay

WAYS = ("queue", "universal", "machine", "bus")
"""How a tick arrives: templated, by `aws-sdk:`, as an execution, through a bus and its rule."""
BUS = "arn:aws:events:us-east-1:000000000000:event-bus/crash"
PIPES = ("plain", "enriched")
BURST, MOST_ASKED = 8, 6
OFF = {"Mode": "OFF"}
TICK = "<aws.scheduler.scheduled-time>"
NO_ANSWER = (BotoCoreError, ClientError)
EACH_MINUTE = ("cron", "rate", "rule")

ENRICHMENT = {
    "StartAt": "Think",
    "States": {"Think": {"Type": "Wait", "Seconds": 1, "Next": "Say"}, "Say": {"Type": "Pass", "End": True}},
}
"""Long enough for a node to die meanwhile."""
PASS = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}


@dataclass
class Appointment:
    """A schedule for one instant (milliseconds, a whole second). `answered`: when the driver had CreateSchedule's answer."""

    at: int
    way: str
    goes: bool
    """Whether it is deleted once it is over."""
    answered: int | None = None

    @property
    def is_due(self) -> bool:
        """Tell whether it must fire: it was there before its time."""
        return self.answered is not None and self.answered < self.at


@dataclass
class Posting:
    """An event or a letter. `id` is the one it was answered with; None: nobody answered. `wanted`: it fits the pattern."""

    wanted: bool
    id: str | None = None


@dataclass
class Promises:
    """What the driver was told."""

    appointments: dict[str, Appointment] = field(default_factory=dict)
    events: dict[str, Posting] = field(default_factory=dict)
    letters: dict[str, Posting] = field(default_factory=dict)
    """By `PIPE-NUMBER`."""
    minutes: dict[str, tuple[int, int]] = field(default_factory=dict)
    """What comes each minute: when it was asked for, and when it was answered."""
    down: list[tuple[int, int]] = field(default_factory=list)
    """From when until when no node ran."""
    closed: int = 0
    """What was due by then must have come."""


@dataclass(frozen=True)
class Tick:
    """One that arrived: its planned time as it was written, and when the house says that it was handed over."""

    name: str
    tick: str
    at: int
    way: str


@dataclass
class Arrivals:
    """What is there at the end."""

    ticks: list[Tick] = field(default_factory=list)
    events: list[tuple[str, str]] = field(default_factory=list)
    """Number and id."""
    letters: list[tuple[str, str]] = field(default_factory=list)
    """Name and the id of the message that brought it, as the pipe told."""
    minutes: list[Tick] = field(default_factory=list)
    """Those that come each minute."""
    schedules: set[str] = field(default_factory=set)
    dead: list[str] = field(default_factory=list)
    """Dead letters."""
    left: list[str] = field(default_factory=list)
    """What is still on its way."""


def now_ms() -> int:
    """Answer this machine's time."""
    return time.time_ns() // 1_000_000


class Appointments:
    """Drives them against the nodes of a relay that was built."""

    def __init__(self, relay: Relay) -> None:
        self.relay = relay
        self.promises = Promises()
        self._chance = relay.chance
        self._open: dict[str, dict[str, Any]] = {}
        """Schedules whose creation was not answered: asked for once more, under the same token."""
        self._urls: dict[str, str] = {}

    # -- what is set up ---------------------------------------------------------------------------------------

    def build(self) -> None:
        """Create the queues, machines, rules and pipes."""
        client = self.relay.client
        sqs, states, events = client("sqs"), client("stepfunctions"), client("events")
        for name in ("ticks", "minutes", "events", "dead", *PIPES, *(f"{pipe}-out" for pipe in PIPES)):
            self._urls[name] = sqs.create_queue(QueueName=name)["QueueUrl"]
        made = {
            name: states.create_state_machine(name=name, definition=json.dumps(what), roleArn=ROLE, type=kind)[
                "stateMachineArn"
            ]
            for name, what, kind in (("timely", PASS, "STANDARD"), ("enriching", ENRICHMENT, "EXPRESS"))
        }
        self.machine = made["timely"]
        events.create_event_bus(Name="crash")
        self._rule("ticks", {"source": ["crash.ticks"]}, {"InputPath": "$.detail"})
        self._rule("events", {"source": ["crash.driver"], "detail": {"keep": [True]}}, {})
        for pipe in PIPES:
            enrichment = {"Enrichment": made["enriching"]} if pipe == "enriched" else {}
            client("pipes").create_pipe(
                Name=pipe,
                Source=f"{QUEUES}:{pipe}",
                SourceParameters={
                    "SqsQueueParameters": {"BatchSize": 10, "MaximumBatchingWindowInSeconds": 1},
                    "FilterCriteria": {"Filters": [{"Pattern": json.dumps({"body": {"keep": [True]}})}]},
                },
                Target=f"{QUEUES}:{pipe}-out",
                TargetParameters={"InputTemplate": '{"name": <$.body.name>, "id": <$.messageId>}'},
                RoleArn=ROLE,
                **enrichment,
            )
        for of in EACH_MINUTE:
            asked = now_ms()
            self._each_minute(of)
            self.promises.minutes[of] = (asked, now_ms())

    def _rule(self, queue: str, pattern: dict[str, Any], more: dict[str, Any]) -> None:
        events = self.relay.client("events")
        events.put_rule(Name=queue, EventBusName="crash", EventPattern=json.dumps(pattern))
        target = {"Id": "1", "Arn": f"{QUEUES}:{queue}", "DeadLetterConfig": {"Arn": f"{QUEUES}:dead"}, **more}
        events.put_targets(Rule=queue, EventBusName="crash", Targets=[target])

    def _each_minute(self, of: str) -> None:
        if of == "rule":
            events = self.relay.client("events")
            events.put_rule(Name=of, ScheduleExpression="cron(* * * * ? *)")
            said = {"InputPathsMap": {"tick": "$.time"}, "InputTemplate": '{"tick": <tick>, "name": "rule"}'}
            events.put_targets(Rule=of, Targets=[{"Id": "1", "Arn": f"{QUEUES}:minutes", "InputTransformer": said}])
            return
        expression = {"cron": "cron(* * * * ? *)", "rate": "rate(1 minute)"}[of]
        target = self._target(f"{QUEUES}:minutes", {"tick": TICK, "name": of})
        self.relay.client("scheduler").create_schedule(
            Name=of, ScheduleExpression=expression, FlexibleTimeWindow=OFF, Target=target
        )

    def _target(self, arn: str, said: dict[str, Any]) -> dict[str, Any]:
        return {"Arn": arn, "RoleArn": ROLE, "Input": json.dumps(said), "DeadLetterConfig": {"Arn": f"{QUEUES}:dead"}}

    # -- what is asked for ------------------------------------------------------------------------------------

    def go_on(self) -> None:
        """Make some appointments, put some events, send some letters."""
        self._ask_again()
        for _ in range(2):
            self._appoint()
        self._put_events()
        self._post()

    def while_asked(self, strike: Callable[[], Any]) -> None:
        """Strike while the nodes are asked for more: what is not answered then may be there or not."""
        striker = threading.Timer(self._chance.uniform(0, 0.06), strike)
        striker.start()
        for _ in range(MOST_ASKED):
            if striker.is_alive():
                self.go_on()
                self.relay.send()
        striker.join()

    def burst(self) -> None:
        """Make appointments for one and the same instant, and come back a moment before it or after."""
        at = (now_ms() + 1_300) // 1000 * 1000
        for _ in range(BURST):
            self._appoint(at)
        until = at + self._chance.randrange(-6, 14)
        while now_ms() < until - 30:
            self.relay.depth(self.relay.jobs)
        while now_ms() < until:
            pass

    def note_down(self, since: int) -> None:
        """Note that no node ran from then until now."""
        self.promises.down.append((since, now_ms()))

    def _appoint(self, at: int | None = None) -> None:
        number = len(self.promises.appointments)
        name, way = f"at-{number}", WAYS[number % len(WAYS)]
        at = at or (now_ms() // 1000 + self._chance.choice([1, 2, 2, 3, 4])) * 1000
        made = Appointment(at, way, goes=self._chance.random() < 0.5)
        self.promises.appointments[name] = made
        self._open[name] = {
            "Name": name,
            "ScheduleExpression": f"at({time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(made.at // 1000))})",
            "FlexibleTimeWindow": OFF,
            "ActionAfterCompletion": "DELETE" if made.goes else "NONE",
            "ClientToken": name,
            "Target": self._aim(way, {"tick": TICK, "name": name}),
        }
        self._create(name)

    def _aim(self, way: str, said: dict[str, Any]) -> dict[str, Any]:
        if way == "machine":
            return self._target(self.machine, said)
        if way == "bus":
            event = {"DetailType": "tick", "Source": "crash.ticks"}
            return {**self._target(BUS, said), "EventBridgeParameters": event}
        if way == "universal":
            sent = {"QueueUrl": self._urls["ticks"], "MessageBody": json.dumps(said)}
            return self._target("arn:aws:scheduler:::aws-sdk:sqs:sendMessage", sent)
        return self._target(f"{QUEUES}:ticks", said)

    def _create(self, name: str) -> bool:
        try:
            self.relay.client("scheduler").create_schedule(**self._open[name])
        except NO_ANSWER:
            return False
        self.promises.appointments[name].answered = now_ms()
        del self._open[name]
        return True

    def _ask_again(self) -> None:
        """Ask once more for what was not answered; what is refused then would be a broken promise of the token."""
        for name in list(self._open):
            if not self._create(name):
                return

    def _put_events(self) -> None:
        events = self.promises.events
        some = [(f"event-{len(events) + k}", self._chance.random() < 0.8) for k in range(3)]
        events |= {name: Posting(wanted) for name, wanted in some}
        entries = [
            {
                "EventBusName": "crash",
                "Source": "crash.driver",
                "DetailType": "event",
                "Detail": json.dumps({"name": name, "keep": wanted}),
            }
            for name, wanted in some
        ]
        try:
            answer = self.relay.client("events").put_events(Entries=entries)
        except NO_ANSWER:
            return
        for (name, _), entry in zip(some, answer["Entries"], strict=True):
            events[name].id = entry.get("EventId")

    def _post(self) -> None:
        pipe = self._chance.choice(PIPES)
        letters = self.promises.letters
        some = [(f"{pipe}-{len(letters) + k}", self._chance.random() < 0.8) for k in range(4)]
        letters |= {name: Posting(wanted) for name, wanted in some}
        entries = [{"Id": name, "MessageBody": json.dumps({"name": name, "keep": wanted})} for name, wanted in some]
        try:
            answer = self.relay.client("sqs").send_message_batch(QueueUrl=self._urls[pipe], Entries=entries)
        except NO_ANSWER:
            return
        for sent in answer["Successful"]:
            letters[sent["Id"]].id = sent["MessageId"]

    # -- what became of it ------------------------------------------------------------------------------------

    def gather(self, within_s: float = 30) -> Arrivals:
        """Wait until all are over that are on their way, and take everything."""
        for name in list(self._open):
            self._create(name)
        last = max((one.at for one in self.promises.appointments.values()), default=0)
        got = Arrivals()
        deadline = time.monotonic() + within_s
        while now_ms() <= last or self._missing(got):
            if time.monotonic() > deadline:
                break  # the auditor says what is missing
            # a long poll on an empty queue is a wait that costs nobody anything
            self.relay.sqs.receive_message(QueueUrl=self.relay.idle, WaitTimeSeconds=1)
            self._take(got)
        self.promises.closed = now_ms() - 10_000  # a busy machine is late
        self.relay.sqs.receive_message(QueueUrl=self.relay.idle, WaitTimeSeconds=1)  # what comes twice comes later
        self._take(got)
        self._executions(got)
        pages = self.relay.client("scheduler").get_paginator("list_schedules").paginate()
        got.schedules = {one["Name"] for page in pages for one in page["Schedules"]}
        got.left = [name for name in PIPES if self.relay.depth(self._urls[name])]
        return got

    def _missing(self, got: Arrivals) -> bool:
        """Tell whether there is less than what must come: an execution is looked at in the end."""
        promised = self.promises
        ticks = {name for name, one in promised.appointments.items() if one.is_due and one.way != "machine"}
        events, letters = (
            {name for name, one in these.items() if one.id and one.wanted}
            for these in (promised.events, promised.letters)
        )
        arrived = {one.name for one in got.ticks}, {name for name, _ in got.events}, {name for name, _ in got.letters}
        sources = any(self.relay.depth(self._urls[name]) for name in PIPES)
        return sources or not (ticks <= arrived[0] and events <= arrived[1] and letters <= arrived[2])

    def _take(self, got: Arrivals) -> None:
        for queue, into in (("ticks", got.ticks), ("minutes", got.minutes)):
            for body, sent in self._emptied(queue):
                way = self.promises.appointments[body["name"]].way if queue == "ticks" else queue
                into.append(Tick(body["name"], body["tick"], sent, way))
        got.events += [(body["detail"]["name"], body["id"]) for body, _ in self._emptied("events")]
        for pipe in PIPES:
            got.letters += [(body["name"], body["id"]) for body, _ in self._emptied(f"{pipe}-out")]
        got.dead += [json.dumps(body) for body, _ in self._emptied("dead")]

    def _emptied(self, queue: str) -> list[tuple[Any, int]]:
        """Take all messages of a queue: body and when it was sent."""
        taken: list[tuple[Any, int]] = []
        while True:
            messages = self.relay.sqs.receive_message(
                QueueUrl=self._urls[queue],
                MaxNumberOfMessages=10,
                VisibilityTimeout=3600,
                MessageSystemAttributeNames=["SentTimestamp"],
            ).get("Messages")
            if not messages:
                return taken
            taken += [(json.loads(one["Body"]), int(one["Attributes"]["SentTimestamp"])) for one in messages]

    def _executions(self, got: Arrivals) -> None:
        states = self.relay.states
        for page in states.get_paginator("list_executions").paginate(stateMachineArn=self.machine):
            for one in page["executions"]:
                said = json.loads(states.describe_execution(executionArn=one["executionArn"])["input"])
                at = round(one["startDate"].timestamp() * 1000)
                got.ticks.append(Tick(said["name"], said["tick"], at, "machine"))
