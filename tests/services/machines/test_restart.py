"""Between any two units the node may be gone: a house opened again on the same file goes on (P2)."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tasuki.services.switchboard import Ending
from tasuki.testing import ManualClock
from tests.services.machines.stubs import Play, task
from tests.stores import kept

MACHINE = {
    "StartAt": "M",
    "States": {
        "M": {
            "Type": "Map",
            "MaxConcurrency": 2,
            "ItemProcessor": task("ecs:runTask.sync", {"Count.$": "$"}),
            "Next": "W",
        },
        "W": {"Type": "Wait", "Seconds": 30, "Next": "L"},
        "L": {"Type": "Pass", "Parameters": {"n.$": "States.ArrayLength($)"}, "Next": "C"},
        "C": {"Type": "Choice", "Choices": [{"Variable": "$.n", "NumericEquals": 600, "Next": "S"}], "Default": "I"},
        "I": {"Type": "Pass", "Parameters": {"n.$": "States.MathAdd($.n, 1)"}, "Next": "C"},
        "S": {"Type": "Succeed"},
    },
}


class Node:
    """A house on a file that can be left at any time and opened again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = ManualClock()
        self.calls = Play()
        self.calls.house.close()

    @contextmanager
    def up(self) -> Iterator[Play]:
        play = Play(clock=self.clock, store=kept(self.path))
        for name in ("sqs", "ecs"):
            getattr(play, name).calls = getattr(self.calls, name).calls
        try:
            yield play
        finally:
            play.house.close()


def test_an_execution_goes_on_over_restarts_without_gap_or_repeat(tmp_path: Path) -> None:
    node = Node(tmp_path / "tasuki.db")
    with node.up() as play:
        execution = play.run(MACHINE, list(range(5)))
    for call in range(5):
        with node.up() as play:
            watcher = play.ecs.calls[call][1].watcher
            assert watcher is not None
            ending = Ending(succeeded=True, output={"N": call})
            play.house.unit(partial(play.house.switchboard.finished, watcher=watcher, ending=ending))
        with node.up() as play:
            play.house.unit(play.house.rooms["machines"].polls[0].run)
    node.clock.set(node.clock.now() + 30_000)
    with node.up() as play:
        play.house.advance(ms=0)
    for _ in range(20):
        with node.up() as play:
            play.house.unit(play.house.rooms["machines"].polls[0].run)
    with node.up() as play:
        assert play.output(execution) == {"n": 600}
        events = play.events(execution)
        assert [event["id"] for event in events] == list(range(1, len(events) + 1))
        assert len(play.ecs.calls) == 5
        assert play.left_over() == {}


def test_express_executions_go_on_over_restarts_and_begin_once(tmp_path: Path) -> None:
    node = Node(tmp_path / "tasuki.db")
    message = {"QueueUrl": "q", "MessageBody": "b"}
    send = {"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage", "Parameters": message}
    wait = {"Type": "Wait", "Seconds": 30}
    states = {
        "A": {**wait, "Next": "B"},
        "B": {**send, "Next": "C"},
        "C": {**wait, "Next": "D"},
        "D": {**send, "End": True},
    }
    machine = {"StartAt": "A", "States": states}
    with node.up() as play:
        play.start(play.create(machine, type="EXPRESS"))
        play.house.call("stepfunctions", "StartSyncExecution", stateMachineArn=play.create(machine, type="EXPRESS"))
    for sent in (2, 4):
        node.clock.set(node.clock.now() + 30_000)
        with node.up() as play:
            play.house.drain()
            assert len(play.sqs.calls) == sent
    with node.up() as play:
        assert play.rows("express") == 1  # the answer of the caller who is gone
        play.house.advance(hours=1)
        assert play.rows("express") == 0
        assert play.left_over() == {}
