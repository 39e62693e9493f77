"""Pipes between real queues and real machines: exactly once, redrive, names, restarts."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tasuki.services import handovers, machines, pipes, queues
from tasuki.services.pipes.naming import TAG
from tasuki.services.queues import conservation, find_queue
from tasuki.services.switchboard import Caller
from tasuki.store.store import Store, Tx
from tasuki.testing import House
from tasuki.values import documents
from tasuki.values.config import Config
from tests.services.pipes.stubs import FIRE_AND_FORGET, ROLE
from tests.stores import kept

QUEUE = "arn:aws:sqs:us-east-1:000000000000:jobs"
DEAD = "arn:aws:sqs:us-east-1:000000000000:dead"
DONE = '{"StartAt":"Done","States":{"Done":{"Type":"Succeed"}}}'
WAITING = '{"StartAt":"Wait","States":{"Wait":{"Type":"Wait","Seconds":3600,"End":true}}}'


ROOMS = (queues.room, machines.room, handovers.room, pipes.room)


class Line:
    """A queue with a dead-letter queue, a machine, and a house around them."""

    def __init__(self, definition: str = DONE, store: Callable[[House], Store] | None = None, **quotas: int) -> None:
        self.house = House(*ROOMS, config=Config(data=Path(), quotas=quotas), store=store)
        self.dead = self.call("sqs", "CreateQueue", QueueName="dead")["QueueUrl"]
        redrive = documents.dumps({"deadLetterTargetArn": DEAD, "maxReceiveCount": 3})
        self.url = self.call("sqs", "CreateQueue", QueueName="jobs", Attributes={"RedrivePolicy": redrive})["QueueUrl"]
        self.machine = self.call(
            "stepfunctions", "CreateStateMachine", name="router", definition=definition, roleArn=ROLE
        )["stateMachineArn"]

    def call(self, service: str, operation: str, **given: Any) -> dict[str, Any]:
        return self.house.call(service, operation, given)

    def pipe(self, batch: int = 10, name: str = "p", **members: Any) -> dict[str, Any]:
        source = {"SqsQueueParameters": {"BatchSize": batch, "MaximumBatchingWindowInSeconds": int(batch > 10)}}
        source |= members.pop("source", {})
        common = {"Name": name, "Source": QUEUE, "Target": self.machine, "RoleArn": ROLE, "SourceParameters": source}
        return self.call("pipes", "CreatePipe", **common, TargetParameters=FIRE_AND_FORGET, **members)

    def send(self, *bodies: str) -> list[str]:
        sent = [self.call("sqs", "SendMessage", QueueUrl=self.url, MessageBody=body)["MessageId"] for body in bodies]
        self.house.drain()
        return sent

    def count(self, url: str) -> int:
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.call("sqs", "GetQueueAttributes", QueueUrl=url, AttributeNames=names)["Attributes"]
        return sum(int(found[name]) for name in names)

    def executions(self) -> list[dict[str, Any]]:
        listed = self.call("stepfunctions", "ListExecutions", stateMachineArn=self.machine, maxResults=1000)[
            "executions"
        ]
        return [self.call("stepfunctions", "DescribeExecution", executionArn=entry["executionArn"]) for entry in listed]

    def bodies(self) -> list[str]:
        return sorted(record["body"] for run in self.executions() for record in documents.loads(run["input"]))

    def conserved(self) -> bool:
        account, region = self.house.config.account, self.house.config.region

        def unit(tx: Tx) -> bool:
            return all(conservation(tx, find_queue(tx, account, region, name)) for name in ("jobs", "dead"))

        return self.house.unit(unit)


@pytest.fixture
def line() -> Iterator[Line]:
    made = Line()
    with made.house:
        yield made


def test_from_message_to_finished_execution_under_one_trace(line: Line) -> None:
    line.pipe(batch=1)
    [sent] = line.send('{"jobId":"j1"}')
    [run] = line.executions()
    assert run["status"] == "SUCCEEDED"
    [record] = documents.loads(run["input"])
    assert record["messageId"] == sent
    assert record["attributes"]["ApproximateReceiveCount"] == "1"
    [handover] = line.call("tasuki", "ListHandovers", Trace=run["traceHeader"])["Handovers"]
    assert (handover["MessageId"], handover["ExecutionArn"]) == (sent, run["executionArn"])
    assert line.count(line.url) == 0


@pytest.mark.parametrize("batch", [1, 7, 10])
def test_a_hundred_messages(line: Line, batch: int) -> None:
    line.pipe(batch)
    for tens in range(10):
        entries = [{"Id": str(n), "MessageBody": f"{tens}{n}"} for n in range(10)]
        line.call("sqs", "SendMessageBatch", QueueUrl=line.url, Entries=entries)
    line.house.drain()
    assert line.bodies() == [f"{n:02}" for n in range(100)]
    assert line.count(line.url) == 0
    assert line.conserved()


def test_a_round_that_breaks_is_undone_whole(
    line: Line, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The unit dies after half of its starts (P3): no execution, no receive, no record of it remains."""
    line.pipe(batch=1)
    target = line.house.switchboard.targets["states"]
    started: list[str] = []

    class Dying:
        takes_arrays, takes_text, check = True, False, target.check

        @staticmethod
        def deliver(tx: Tx, arn: str, payload: str, name: str | None, caller: Caller, **_parameters: Any) -> str:
            if len(started) == 2:
                raise RuntimeError("the node dies here")
            started.append(target.deliver(tx, arn, payload, name, caller))
            return started[-1]

    for body in "abcd":
        line.call("sqs", "SendMessage", QueueUrl=line.url, MessageBody=body)
    monkeypatch.setitem(line.house.switchboard.targets, "states", Dying)
    line.house.drain()
    assert "the node dies here" in caplog.text
    assert "the round of pipe 1 broke" in caplog.text
    assert line.executions() == []
    assert line.call("tasuki", "ListHandovers")["Handovers"] == []
    monkeypatch.undo()
    line.house.advance(seconds=10)
    assert line.bodies() == list("abcd")
    assert all(
        documents.loads(run["input"])[0]["attributes"]["ApproximateReceiveCount"] == "1" for run in line.executions()
    )
    assert line.conserved()


def test_a_pipe_that_breaks_does_not_keep_the_others_waiting(
    line: Line, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    line.call("sqs", "CreateQueue", QueueName="other")
    line.pipe(name="broken")
    other = {"Name": "sound", "Source": QUEUE.replace("jobs", "other"), "Target": line.machine, "RoleArn": ROLE}
    line.call("pipes", "CreatePipe", **other, TargetParameters=FIRE_AND_FORGET)
    target = line.house.switchboard.targets["states"]

    class Broken:
        takes_arrays, takes_text, check = True, False, target.check

        @staticmethod
        def deliver(tx: Tx, arn: str, payload: str, name: str | None, caller: Caller, **_parameters: Any) -> str:
            if caller.origin.endswith("broken"):
                raise RuntimeError("a fault of ours")
            return target.deliver(tx, arn, payload, name, caller)

    monkeypatch.setitem(line.house.switchboard.targets, "states", Broken)
    for url in (line.url, line.url.replace("jobs", "other")):
        line.call("sqs", "SendMessage", QueueUrl=url, MessageBody=url.rsplit("/", 1)[1])
    line.house.drain()
    assert "a fault of ours" in caplog.text
    assert line.bodies() == ["other"]
    monkeypatch.undo()
    line.house.advance(seconds=10)
    assert line.bodies() == ["jobs", "other"]


def test_a_message_at_which_rounds_break_again_and_again_holds_up_no_other(
    line: Line, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    dead = line.call("sqs", "CreateQueue", QueueName="dead")["QueueUrl"]
    policy = {"deadLetterTargetArn": QUEUE.replace("jobs", "dead"), "maxReceiveCount": "2"}
    line.call("sqs", "SetQueueAttributes", QueueUrl=line.url, Attributes={"RedrivePolicy": documents.dumps(policy)})
    line.pipe(batch=1)
    target = line.house.switchboard.targets["states"]

    class Poisoned:
        takes_arrays, takes_text, check = True, False, target.check

        @staticmethod
        def deliver(tx: Tx, arn: str, payload: str, name: str | None, caller: Caller, **_parameters: Any) -> str:
            if "poison" in payload:
                raise RuntimeError("a fault of ours")
            return target.deliver(tx, arn, payload, name, caller)

    monkeypatch.setitem(line.house.switchboard.targets, "states", Poisoned)
    for body in ("poison", "b", "c"):
        line.call("sqs", "SendMessage", QueueUrl=line.url, MessageBody=body)
    line.house.drain()
    line.house.advance(seconds=30)
    assert "a fault of ours" in caplog.text
    assert line.bodies() == ["b", "c"]
    line.house.advance(minutes=5)
    assert (line.count(line.url), line.count(dead)) == (0, 1)
    failed = [
        one["Outcome"] for one in line.call("tasuki", "ListHandovers")["Handovers"] if one["Outcome"] != "DELIVERED"
    ]
    assert failed == ["FAILED: Tasuki broke down at this batch; the node's log says why"] * 2


def test_a_house_that_comes_back_goes_on(tmp_path: Path) -> None:
    store = kept(tmp_path / "tasuki.db")
    first = Line(store=store)
    first.pipe()
    first.call("sqs", "SendMessage", QueueUrl=first.url, MessageBody="before the end")
    first.house.close()
    with House(*ROOMS, store=store, seed=1) as house:
        house.drain()
        [entry] = house.call("tasuki", "ListHandovers")["Handovers"]
        assert entry["Outcome"] == "DELIVERED"
        run = house.call("stepfunctions", "DescribeExecution", executionArn=entry["ExecutionArn"])
        assert documents.loads(run["input"])[0]["body"] == "before the end"
        assert house.call("pipes", "DescribePipe", Name="p")["CurrentState"] == "RUNNING"


def test_a_full_machine_sends_messages_back_and_at_last_to_the_dead_letter_queue() -> None:  # PF-40
    line = Line(WAITING, open_executions=2)
    with line.house:
        line.pipe(batch=1)
        line.send("a", "b", "c")
        assert len(line.executions()) == 2
        assert line.count(line.url) == 1
        assert "ExecutionLimitExceeded" in line.call("pipes", "DescribePipe", Name="p")["StateReason"]
        line.house.advance(minutes=10)
        assert line.count(line.url) == 0
        assert line.count(line.dead) == 1
        assert line.conserved()


def test_a_full_machine_that_has_room_in_time_gets_the_message() -> None:
    line = Line(WAITING.replace("3600", "40"), open_executions=2)
    with line.house:
        line.pipe(batch=1)
        line.send("a", "b", "c")
        line.house.advance(minutes=3)
        assert line.bodies() == ["a", "b", "c"]
        assert line.count(line.dead) == 0
        assert "StateReason" not in line.call("pipes", "DescribePipe", Name="p")


def test_starts_above_the_rate_are_put_off_and_lose_nothing() -> None:
    line = Line(WAITING.replace("3600", "1"), start_executions_per_second=1)
    with line.house:
        line.pipe(batch=1)
        line.send("a", "b", "c")
        assert len(line.executions()) == 1
        assert "ThrottlingException" in line.call("pipes", "DescribePipe", Name="p")["StateReason"]
        line.house.advance(minutes=3)
        assert line.bodies() == ["a", "b", "c"]
        assert line.count(line.dead) == 0


def test_a_deleted_machine_and_a_deleted_queue_stop_the_pipe(line: Line) -> None:
    line.pipe()
    line.call("stepfunctions", "DeleteStateMachine", stateMachineArn=line.machine)
    line.send("a")
    described = line.call("pipes", "DescribePipe", Name="p")
    assert described["CurrentState"] == "STOPPED"
    assert described["StateReason"].startswith("Target: ")
    assert line.count(line.url) == 1
    assert line.conserved()


def test_a_deleted_queue_stops_the_pipe(line: Line) -> None:
    line.pipe()
    line.call("sqs", "DeleteQueue", QueueUrl=line.url)
    line.call("sqs", "SendMessage", QueueUrl=line.dead, MessageBody="anything that rings")
    line.house.drain()
    described = line.call("pipes", "DescribePipe", Name="p")
    assert described["CurrentState"] == "STOPPED"
    assert described["StateReason"] == f"Source: The queue {QUEUE} does not exist."


def test_a_job_sent_twice_runs_once(line: Line) -> None:
    line.pipe(batch=1, Tags={TAG: "$.body.jobId"})
    line.send('{"jobId":"j1"}', '{"jobId":"j1"}', '{"jobId":"j2"}')
    line.house.advance(hours=1)
    line.send('{"jobId":"j1"}')
    assert sorted(run["name"] for run in line.executions()) == ["j1", "j2"]
    outcomes = [entry["Outcome"] for entry in line.call("tasuki", "ListHandovers")["Handovers"]]
    assert outcomes == ["DELIVERED", "DUPLICATE", "DELIVERED", "DUPLICATE"]
    assert line.count(line.url) == 0


def test_delayed_messages_come_in_their_time(line: Line) -> None:
    line.pipe()
    line.call("sqs", "SendMessage", QueueUrl=line.url, MessageBody="later", DelaySeconds=60)
    line.house.advance(seconds=59)
    assert line.executions() == []
    line.house.advance(seconds=1)
    assert line.bodies() == ["later"]


class LinePlay(RuleBasedStateMachine):
    """Sends, deploys, stops, starts and time, with real rooms: nothing is lost, nothing is started twice."""

    def __init__(self) -> None:
        super().__init__()
        self.line = Line(WAITING.replace("3600", "50"), open_executions=8)
        self.sent: list[str] = []
        self.line.pipe(batch=1)

    def teardown(self) -> None:
        self.line.house.close()

    @rule(bodies=st.lists(st.sampled_from(['{"v":1}', '{"v":2}', "plain"]), min_size=1, max_size=6))
    def send(self, bodies: list[str]) -> None:
        self.sent += self.line.send(*bodies)

    @rule(batch=st.sampled_from([1, 4, 20]), filtered=st.booleans(), desired=st.sampled_from(["RUNNING", "STOPPED"]))
    def update(self, batch: int, filtered: bool, desired: str) -> None:
        filters = [{"Pattern": '{"body":{"v":[1]}}'}] if filtered else []
        sqs = {"BatchSize": batch, "MaximumBatchingWindowInSeconds": int(batch > 10)}
        source = {"SqsQueueParameters": sqs, "FilterCriteria": {"Filters": filters}}
        self.line.call("pipes", "UpdatePipe", Name="p", RoleArn=ROLE, SourceParameters=source, DesiredState=desired)

    @rule(operation=st.sampled_from(["StartPipe", "StopPipe"]))
    def command(self, operation: str) -> None:
        self.line.call("pipes", operation, Name="p")

    @rule(seconds=st.sampled_from([1, 31, 100]))
    def wait(self, seconds: int) -> None:
        self.line.house.advance(seconds=seconds)

    @precondition(lambda self: self.sent)
    @rule()
    def snatch(self) -> None:
        """Somebody else consumes a message."""
        found = self.line.call("sqs", "ReceiveMessage", QueueUrl=self.line.url).get("Messages", [])
        for message in found:
            self.line.call("sqs", "DeleteMessage", QueueUrl=self.line.url, ReceiptHandle=message["ReceiptHandle"])
            self.sent.remove(message["MessageId"])

    @invariant()
    def every_message_is_in_exactly_one_place(self) -> None:
        started = [record["messageId"] for run in self.line.executions() for record in documents.loads(run["input"])]
        entries = self.line.call("tasuki", "ListHandovers", MaxResults=1000)["Handovers"]
        filtered = [entry["MessageId"] for entry in entries if entry["Outcome"] == "FILTERED"]
        gone = started + filtered
        assert len(set(gone)) == len(gone)
        assert set(gone) <= set(self.sent)
        assert len(gone) + self.line.count(self.line.url) + self.line.count(self.line.dead) == len(self.sent)
        assert self.line.conserved()


LinePlay.TestCase.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
TestLinePlay = LinePlay.TestCase
