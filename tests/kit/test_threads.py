"""Threads of the test's own beside the one that moves the clock, and moves that are broken off or never end."""

import asyncio
import threading
from collections.abc import Callable
from typing import Self

import boto3
import pytest

from tasuki.testing import Kit, Restless, life

ROLE = "arn:aws:iam::000000000000:role/any"


def piped(house: Kit) -> str:
    """Make a pipe from one queue to another: whatever is sent is work for the house."""
    sqs = boto3.client("sqs")
    url = str(sqs.create_queue(QueueName="a")["QueueUrl"])
    sqs.create_queue(QueueName="b")
    boto3.client("pipes").create_pipe(Name="p", RoleArn=ROLE, Source=house.queue("a").arn, Target=house.queue("b").arn)
    return url


class Beside:
    """Does something again and again in a thread, until it is left."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.times, self._work, self._over = 0, work, threading.Event()
        self.bad: list[str] = []
        self._thread = threading.Thread(target=self._go)

    def _go(self) -> None:
        while not self._over.is_set():
            try:
                self._work()
            except Exception as bad:  # noqa: BLE001 - told to the test
                self.bad.append(repr(bad))
                return
            self.times += 1

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def test_a_worker_of_the_tests_own_may_ask_while_the_clock_is_moved(house: Kit) -> None:
    url, sqs = piped(house), boto3.client("sqs")
    with Beside(lambda: sqs.send_message(QueueUrl=url, MessageBody="x")) as worker:
        for _ in range(2_000):
            house.advance(ms=1)
            if worker.times >= 50:
                break
    assert worker.bad == []
    assert house.queue("b").depth == worker.times >= 50


def test_a_crash_in_another_thread_while_the_clock_is_moved(house: Kit) -> None:
    piped(house)
    target = {"Arn": house.queue("a").arn, "RoleArn": ROLE, "Input": "<aws.scheduler.scheduled-time>"}
    boto3.client("scheduler").create_schedule(
        Name="s", ScheduleExpression="rate(1 minute)", FlexibleTimeWindow={"Mode": "OFF"}, Target=target
    )
    with Beside(house.crash) as crashes:
        house.advance(hours=5)
    assert crashes.bad == []
    told = [one.body for one in house.queue("b").messages]
    assert len(told) == len(set(told)) == 301


def test_a_move_that_was_interrupted_can_be_made_again(house: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def effect(_run: object) -> None:
        begun.set()
        assert go_on.wait(20)

    house.image("slow", seconds=1, effect=effect)
    ecs = boto3.client("ecs")
    ecs.register_task_definition(family="slow", containerDefinitions=[{"name": "main", "image": "slow", "memory": 64}])
    ecs.run_task(taskDefinition="slow")
    life = house._life
    assert life is not None

    class Impatient(Exception):
        """As KeyboardInterrupt, or what pytest-timeout raises."""

    class Asked:
        def __init__(self, asked: object) -> None:
            self._asked = asked

        def result(self) -> object:
            assert begun.wait(20)
            raise Impatient

        def __getattr__(self, name: str) -> object:
            return getattr(self._asked, name)

    ask = asyncio.run_coroutine_threadsafe
    with monkeypatch.context() as patched:
        patched.setattr("asyncio.run_coroutine_threadsafe", lambda work, loop: Asked(ask(work, loop)))
        with pytest.raises(Impatient):
            house.advance(minutes=1)
    go_on.set()
    house.advance(minutes=1)
    assert [one.exit_code for one in house.tasks("slow")] == [0]


def test_a_loop_without_end_is_told(house_factory: Callable[..., Kit], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "MOST_ROUNDS", 300)
    house = house_factory()
    url = house.client("sqs").create_queue(QueueName="a")["QueueUrl"]
    arn = house.queue("a").arn
    house.client("pipes").create_pipe(
        Name="round", RoleArn=ROLE, Source=arn, Target=arn, TargetParameters={"InputTemplate": "<$.body>"}
    )
    house.client("sqs").send_message(QueueUrl=url, MessageBody="x")
    with pytest.raises(Restless, match="after 300 rounds there is still more to do at this instant"):
        house.advance(seconds=1)
