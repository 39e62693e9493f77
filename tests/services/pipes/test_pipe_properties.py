"""Whatever is sent, changed, stopped, started and however time moves: every message ends in exactly one place."""

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tasuki.values.errors import DomainError
from tests.services.pipes.stubs import FIRE_AND_FORGET, MACHINE, QUEUE, ROLE, Bench, ExecutionLimitExceeded

NAMES = st.sampled_from(["p", "q"])


class PipesPlay(RuleBasedStateMachine):
    """Two pipes on one queue, in all hands at once."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench()
        self.bench.queue.max_receives = 4
        self.sent: list[str] = []
        self.pipes: set[str] = set()

    def teardown(self) -> None:
        self.bench.house.close()

    @rule(
        bodies=st.lists(st.sampled_from(['{"v":1}', '{"v":2}', "plain", "bad"]), min_size=1, max_size=12),
        drain=st.booleans(),
    )
    def send(self, bodies: list[str], drain: bool) -> None:
        self.sent += self.bench.send(*bodies, drain=drain)

    @precondition(lambda self: self.bench.machine.gone is None)
    @rule(name=NAMES, batch=st.sampled_from([1, 3, 10, 25]), window=st.sampled_from([0, 30]), filtered=st.booleans())
    def define(self, name: str, batch: int, window: int, filtered: bool) -> None:
        pattern = [{"Pattern": '{"body":{"v":[1]}}'}] if filtered else []
        sqs = {"BatchSize": batch, "MaximumBatchingWindowInSeconds": max(window, int(batch > 10))}
        parameters = {"SqsQueueParameters": sqs, "FilterCriteria": {"Filters": pattern}}
        given: dict[str, Any] = {"Name": name, "RoleArn": ROLE, "SourceParameters": parameters}
        if name in self.pipes:
            self.bench.call("UpdatePipe", given)
        else:
            self.bench.call(
                "CreatePipe", {**given, "Source": QUEUE, "Target": MACHINE, "TargetParameters": FIRE_AND_FORGET}
            )
            self.pipes.add(name)

    @precondition(lambda self: self.pipes)
    @rule(data=st.data(), operation=st.sampled_from(["StartPipe", "StopPipe", "DeletePipe"]))
    def command(self, data: st.DataObject, operation: str) -> None:
        name = data.draw(st.sampled_from(sorted(self.pipes)))
        self.bench.call(operation, {"Name": name})
        if operation == "DeletePipe":
            self.pipes.remove(name)

    @rule(mood=st.sampled_from(["willing", "refusing", "picky"]))
    def target(self, mood: str) -> None:
        def refuse(payload: str) -> DomainError | None:
            refused = mood == "refusing" or (mood == "picky" and '"bad"' in payload)
            return ExecutionLimitExceeded("no") if refused else None

        self.bench.machine.refuse = refuse

    @rule(gone=st.sampled_from([None, "it is gone"]))
    def machine_comes_and_goes(self, gone: str | None) -> None:
        self.bench.machine.gone = gone
        if gone is None:
            for name in self.pipes:
                self.bench.call("StartPipe", {"Name": name})

    @rule(seconds=st.sampled_from([1, 20, 31, 400]))
    def wait(self, seconds: int) -> None:
        self.bench.house.advance(seconds=seconds)

    @invariant()
    def every_message_is_in_exactly_one_place(self) -> None:
        started = [record["messageId"] for records in self.bench.inputs for record in records]
        filtered = [h["MessageId"] for h in self.bench.handovers() if h["Outcome"] == "FILTERED"]
        places = started + filtered + self.bench.waiting + self.bench.dead
        assert sorted(places) == sorted(self.sent)
        delivered = [h["MessageId"] for h in self.bench.handovers() if h["Outcome"] == "DELIVERED"]
        assert delivered == started


PipesPlay.TestCase.settings = settings(
    max_examples=80, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestPipesPlay = PipesPlay.TestCase
