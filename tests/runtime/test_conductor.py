"""The conductor over a house that is served: it visits what is due in order, waits for what is at work, and says so when that has no end."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tasuki.runtime import conductor as conducting
from tasuki.runtime.conductor import ClockBusy, Conductor, Restless
from tasuki.runtime.loop import Loop
from tasuki.services import handovers, machines, queues, tasks
from tasuki.testing import House
from tasuki.values.documents import dumps, loads
from tasuki.values.instant import DAY, HOUR, MINUTE, SECOND, Instant

ROLE = "arn:aws:iam::000000000000:role/any"
BOUND_S = 20


class Seconds:
    """Real time, as a test lets it pass."""

    def __init__(self) -> None:
        self.passed = 0.0

    def __call__(self) -> float:
        return self.passed


class Courier:
    name = "courier"

    def __init__(self) -> None:
        self.busy = 0


class Stage:
    """A house that is served, and its conductor."""

    def __init__(self, house: House) -> None:
        self.house, self.seconds, self.courier = house, Seconds(), Courier()
        self.loop = Loop(house.duties, house.bell, house.clock, movable=True)
        self.kept: list[Instant] = []
        self.running: set[str] = set()
        self.conductor = Conductor(
            loop=self.loop,
            clock=house.clock,
            bell=house.bell,
            keep=self.keep,
            steady=self.seconds,
            tasks=lambda: self.running,
            couriers=[self.courier],
        )

    async def keep(self, instant: Instant) -> None:
        assert instant >= self.house.now, "written before it moves"
        self.kept.append(instant)
        await asyncio.sleep(0)

    def play(self, story: Callable[[], Awaitable[None]]) -> None:
        async def bounded() -> None:
            serving = asyncio.create_task(self.loop.serve())
            try:
                async with asyncio.timeout(BOUND_S):
                    await story()
            finally:
                serving.cancel()
                await asyncio.gather(serving, return_exceptions=True)

        self.house._run(bounded())

    async def call(self, service: str, operation: str, **given: Any) -> dict[str, Any]:
        return await self.house.calling(service, operation, given)

    async def start(self, name: str, states: dict[str, Any], text: str = "{}") -> str:
        definition = dumps({"StartAt": next(iter(states)), "States": states})
        machine = await self.call("stepfunctions", "CreateStateMachine", name=name, definition=definition, roleArn=ROLE)
        said = await self.call(
            "stepfunctions", "StartExecution", stateMachineArn=machine["stateMachineArn"], input=text, name="x"
        )
        return str(said["executionArn"])

    async def told(self, execution: str) -> dict[str, Any]:
        return await self.call("stepfunctions", "DescribeExecution", executionArn=execution)

    async def events(self, execution: str, *, whole: bool = False) -> list[Any]:
        said = await self.call("stepfunctions", "GetExecutionHistory", executionArn=execution, maxResults=1000)
        return [event if whole else (event["timestamp"], event["type"]) for event in said["events"]]

    async def unanswered(self, **more: Any) -> dict[str, Any]:
        """Make a state that waits for a word that nobody says."""
        queue = await self.call("sqs", "CreateQueue", QueueName="unread")
        given = {"QueueUrl": queue["QueueUrl"], "MessageBody.$": "$$.Task.Token"}
        resource = "arn:aws:states:::sqs:sendMessage.waitForTaskToken"
        return {"Type": "Task", "Resource": resource, "Parameters": given, **more, "End": True}

    async def turns(self, until: Callable[[], bool] | None = None) -> None:
        """Let everybody have some turns, or as many as it takes."""
        for _ in range(40) if until is None else iter(until, True):
            self.loop.rested.set()
            await asyncio.sleep(0)


@pytest.fixture
def stage() -> Iterator[Stage]:
    with House(handovers.room, queues.room, tasks.room, machines.room) as house:
        yield Stage(house)


def test_a_wait_of_thirty_days_is_two_visits(stage: Stage) -> None:
    async def story() -> None:
        began = stage.house.now
        arn = await stage.start("waits", {"W": {"Type": "Wait", "Seconds": 30 * DAY // SECOND, "End": True}})
        before = await stage.conductor.advance(began + 30 * DAY - 1)
        assert (before.arrived, before.now) == (True, began + 30 * DAY - 1)
        assert (await stage.told(arn))["status"] == "RUNNING"
        progress = await stage.conductor.advance(began + 31 * DAY)
        assert progress.arrived
        assert progress.now == stage.house.now == began + 31 * DAY
        told = await stage.told(arn)
        assert (told["status"], told["stopDate"]) == ("SUCCEEDED", began + 30 * DAY)
        assert stage.kept == sorted(stage.kept)
        assert {began + 30 * DAY, began + 31 * DAY} <= set(stage.kept)

    stage.play(story)


def test_everything_due_happens_at_its_own_instant_and_in_order(stage: Stage) -> None:
    """PF-60: all settle before the call returns, and a failure is seen at the instant at which it was due."""

    async def story() -> None:
        began = stage.house.now
        retry = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 10, "BackoffRate": 2, "MaxAttempts": 3}]
        fails = await stage.start("fails", {"T": await stage.unanswered(TimeoutSeconds=5, Retry=retry)})
        waits = await stage.start("waits", {"W": {"Type": "Wait", "Seconds": 40, "End": True}})
        progress = await stage.conductor.advance(began + DAY)
        assert progress.arrived
        # tries of 5 s each, after 0, 10, 20 and 40 s of backoff
        timeouts = [at - began for at, kind in await stage.events(fails) if kind == "TaskTimedOut"]
        assert timeouts == [5 * SECOND, 20 * SECOND, 45 * SECOND, 90 * SECOND]
        assert (await stage.told(fails))["stopDate"] == began + 90 * SECOND
        assert (await stage.told(waits))["stopDate"] == began + 40 * SECOND

    stage.play(story)


def test_heartbeats_visibility_delays_and_dead_letters_follow_the_clock(stage: Stage) -> None:
    async def story() -> None:
        began = stage.house.now
        dead = await stage.call("sqs", "CreateQueue", QueueName="dead")
        target = "arn:aws:sqs:us-east-1:000000000000:dead"
        redrive = dumps({"deadLetterTargetArn": target, "maxReceiveCount": 1})
        jobs = await stage.call(
            "sqs", "CreateQueue", QueueName="jobs", Attributes={"VisibilityTimeout": "30", "RedrivePolicy": redrive}
        )
        await stage.call("sqs", "SendMessage", QueueUrl=jobs["QueueUrl"], MessageBody="a", DelaySeconds=60)

        async def receive(url: str) -> list[str]:
            said = await stage.call("sqs", "ReceiveMessage", QueueUrl=url)
            return [one["Body"] for one in said.get("Messages", [])]

        await stage.conductor.advance(began + 59 * SECOND)
        assert await receive(jobs["QueueUrl"]) == []
        await stage.conductor.advance(began + 60 * SECOND)
        assert await receive(jobs["QueueUrl"]) == ["a"]
        await stage.conductor.advance(began + 89 * SECOND)
        assert await receive(jobs["QueueUrl"]) == []
        await stage.conductor.advance(began + 90 * SECOND)
        assert await receive(jobs["QueueUrl"]) == []  # moved on: its count is used up
        assert await receive(dead["QueueUrl"]) == ["a"]
        activity = await stage.call("stepfunctions", "CreateActivity", name="beats")
        state = {"Type": "Task", "Resource": activity["activityArn"], "HeartbeatSeconds": 20, "End": True}
        arn = await stage.start("beats", {"T": state})
        job = await stage.call("stepfunctions", "GetActivityTask", activityArn=activity["activityArn"])
        began = stage.house.now
        await stage.conductor.advance(began + 15 * SECOND)
        await stage.call("stepfunctions", "SendTaskHeartbeat", taskToken=job["taskToken"])
        await stage.conductor.advance(began + 34 * SECOND)
        assert (await stage.told(arn))["status"] == "RUNNING"
        await stage.conductor.advance(began + HOUR)
        told = await stage.told(arn)
        assert (told["status"], told["stopDate"]) == ("FAILED", began + 35 * SECOND)

    stage.play(story)


def test_a_task_that_runs_holds_the_clock_as_long_as_there_is_patience(stage: Stage) -> None:
    async def story() -> None:
        began = stage.house.now
        stage.running.add("job/1")

        def is_held(task: str, seconds: float) -> bool:
            return stage.conductor._waited.get(task, -1) >= seconds

        moving = asyncio.create_task(stage.conductor.advance(began + HOUR, patience_s=60))
        await stage.turns(lambda: is_held("job/1", 0))
        await stage.turns()
        assert stage.house.now == began
        stage.seconds.passed += 59
        await stage.turns(lambda: is_held("job/1", 59))
        assert stage.house.now == began, "a minute has not passed"
        stage.seconds.passed += 2
        stage.loop.rested.set()
        assert (await moving).arrived
        assert stage.house.now == began + HOUR
        # who used up our patience is not waited for again; a task that is new is
        assert (await stage.conductor.advance(began + 2 * HOUR)).arrived
        stage.running = {"job/2"}
        moving = asyncio.create_task(stage.conductor.advance(began + 3 * HOUR))
        await stage.turns(lambda: is_held("job/2", 0))
        await stage.turns()
        assert stage.house.now == began + 2 * HOUR
        stage.running.clear()
        stage.loop.rested.set()
        assert (await moving).arrived

    stage.play(story)


def test_a_call_that_has_no_more_time_says_what_is_still_at_work_and_the_next_goes_on(stage: Stage) -> None:
    async def story() -> None:
        began = stage.house.now
        stage.courier.busy = 1
        moving = asyncio.create_task(stage.conductor.advance(began + HOUR, within_s=10))
        await stage.turns()
        with pytest.raises(ClockBusy):
            await stage.conductor.advance(began + MINUTE)
        stage.seconds.passed += 11
        stage.loop.rested.set()
        progress = await moving
        assert (progress.arrived, progress.now, progress.visited) == (False, began, 0)
        assert "courier" in progress.busy
        stage.courier.busy = 0
        assert (await stage.conductor.advance(began + HOUR)).arrived

    stage.play(story)


class Spinner:
    """A duty that is never done."""

    name, topics = "spinner", ("spin",)

    def __init__(self, house: House, trouble: Exception | None = None) -> None:
        self.house, self.trouble = house, trouble

    async def round(self) -> Instant | None:
        if self.trouble is not None:
            raise self.trouble
        return self.house.now


def test_a_house_that_never_comes_to_rest_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conducting, "MOST_ROUNDS", 200)
    monkeypatch.setattr(conducting, "LOOK_S", 0.01)
    with House(queues.room, duties=(Spinner,)) as house:
        stage = Stage(house)

        async def story() -> None:
            with pytest.raises(Restless, match=r"200 rounds.*spinner"):
                await stage.conductor.advance(house.now + HOUR)

        stage.play(story)


def test_a_duty_that_fails_again_and_again_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasuki.runtime.loop.FIRST_PAUSE_S", 0.001)
    with House(queues.room, duties=(lambda house: Spinner(house, ValueError("broken")),)) as house:
        stage = Stage(house)

        async def story() -> None:
            with pytest.raises(Restless, match="spinner fails again and again"):
                await stage.conductor.advance(house.now + HOUR)

        stage.play(story)


def test_work_that_a_client_brings_while_the_next_instant_is_written_belongs_to_this_one(stage: Stage) -> None:
    async def story() -> None:
        began = stage.house.now
        wait = {"W": {"Type": "Wait", "Seconds": 5, "Next": "V"}, "V": {"Type": "Wait", "Seconds": 5, "End": True}}
        started: list[str] = []
        keep = stage.keep

        async def keep_and_bring(instant: Instant) -> None:
            await keep(instant)
            if not started:
                started.append(await stage.start("late", wait))

        stage.conductor._keep = keep_and_bring
        assert (await stage.conductor.advance(began + DAY)).arrived
        told = await stage.told(started[0])
        assert (told["startDate"], told["stopDate"]) == (began, began + 10 * SECOND)

    stage.play(story)


def test_a_clock_that_runs_visits_what_is_due_and_stops_when_told(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conducting, "TICK_S", 0)

    async def story() -> None:
        began = stage.house.now
        arn = await stage.start("waits", {"W": {"Type": "Wait", "Seconds": 100, "End": True}})
        await stage.conductor.run(60)
        with pytest.raises(ClockBusy):
            await stage.conductor.advance(began + HOUR)
        stage.seconds.passed += 2
        await stage.turns(lambda: stage.house.now >= began + 2 * MINUTE)
        assert (await stage.told(arn))["stopDate"] == began + 100 * SECOND
        await stage.turns(lambda: stage.house.now >= began + 2 * MINUTE)
        assert stage.house.now == began + 2 * MINUTE
        stage.running.add("job/1")  # no faster than the task
        stage.seconds.passed += 2
        await stage.turns(lambda: stage.house.now >= began + 2 * MINUTE + 2 * SECOND)
        assert stage.house.now == began + 2 * MINUTE + 2 * SECOND
        await stage.conductor.run(0)
        assert stage.conductor.speed == 0
        stage.seconds.passed += 60
        await stage.turns()
        assert stage.house.now == began + 2 * MINUTE + 2 * SECOND

    stage.play(story)


def test_a_clock_that_is_stopped_before_it_ran_and_one_that_is_started_twice(stage: Stage) -> None:
    async def story() -> None:
        began = stage.house.now
        await stage.conductor.run(60)
        await stage.conductor.run(0)
        assert (await stage.conductor.advance(began + HOUR)).arrived
        await asyncio.gather(*(stage.conductor.run(speed) for speed in (60, 61, 62)))
        assert stage.conductor.speed == 62
        await stage.conductor.run(0)
        assert (await stage.conductor.advance(began + 2 * HOUR)).arrived

    stage.play(story)


class Seldom:
    """A duty with something to do each ten minutes, which notes when it was asked."""

    name, topics = "seldom", ("seldom",)

    def __init__(self, house: House) -> None:
        self.house, self.due = house, house.now + 10 * MINUTE
        self.looks: list[Instant] = []
        self.work: list[Instant] = []
        self.is_owed = False

    async def round(self) -> Instant | None:
        now = self.house.now
        self.looks.append(now)
        if self.is_owed or self.due <= now:
            self.work.append(now)
            self.is_owed, self.due = False, now - now % MINUTE + 10 * MINUTE
        return self.due


@contextmanager
def beside_ticks(between: Callable[[Seldom, House], None]) -> Iterator[tuple[Stage, Seldom]]:
    """A duty that is due each minute, and calls `between` then, and one that is due seldom."""
    made: list[Seldom] = []

    class Often:
        name, topics = "often", ("often",)

        def __init__(self, house: House) -> None:
            self.house, self.due = house, house.now + MINUTE

        async def round(self) -> Instant | None:
            if self.due <= self.house.now:
                self.due += MINUTE
                between(made[0], self.house)
            return self.due

    def seldom(house: House) -> Seldom:
        made.append(Seldom(house))
        return made[0]

    with House(queues.room, duties=(seldom, Often)) as house:
        yield Stage(house), made[0]


def test_only_who_is_due_is_asked_on_the_way_and_everybody_at_the_target() -> None:
    with beside_ticks(lambda _seldom, _house: None) as (stage, seldom):

        async def story() -> None:
            began = stage.house.now
            progress = await stage.conductor.advance(began + 25 * MINUTE)
            assert progress.visited == 25
            assert seldom.work == [began + 10 * MINUTE, began + 20 * MINUTE]
            assert sorted(set(seldom.looks)) == [began, *seldom.work, began + 25 * MINUTE]

        stage.play(story)


def test_who_hears_its_bell_on_the_way_acts_at_that_instant() -> None:
    def bring(seldom: Seldom, house: House) -> None:
        if house.now % (7 * MINUTE) == 0:
            seldom.is_owed = True
            house.bell.ring("seldom")

    with beside_ticks(bring) as (stage, seldom):

        async def story() -> None:
            began = stage.house.now
            await stage.conductor.advance(began + 25 * MINUTE)
            rung = {at for at in range(began + MINUTE, began + 26 * MINUTE, MINUTE) if at % (7 * MINUTE) == 0}
            assert len(rung) in {3, 4}
            assert rung <= set(seldom.work)

        stage.play(story)


def test_a_ring_that_was_lost_on_the_way_costs_no_more_than_the_way() -> None:
    def bring(seldom: Seldom, _house: House) -> None:
        seldom.is_owed = not seldom.work  # and nobody rings

    with beside_ticks(bring) as (stage, seldom):

        async def story() -> None:
            began = stage.house.now
            await stage.conductor.advance(began + 5 * MINUTE)
            assert seldom.work == [began + 5 * MINUTE]
            assert not seldom.is_owed

        stage.play(story)


def test_a_long_poll_is_woken_at_each_instant_on_the_way() -> None:
    """It may end by house time at any of them (protocol/dispatch.py), and takes a place anew after each look."""
    with beside_ticks(lambda _seldom, _house: None) as (stage, _):

        async def story() -> None:
            began, seen = stage.house.now, []

            async def poll() -> None:
                while stage.house.now < began + 3 * MINUTE:
                    assert await stage.house.bell.wait("clock", None)
                    seen.append(stage.house.now)

            polling = asyncio.create_task(poll())
            await asyncio.sleep(0)
            await stage.conductor.advance(began + 10 * MINUTE)
            await polling
            assert seen[-1] == began + 3 * MINUTE
            assert set(seen) == {began + MINUTE, began + 2 * MINUTE, began + 3 * MINUTE}

        stage.play(story)


def test_the_same_seed_and_inputs_give_the_same_history_byte_for_byte() -> None:
    """P10, over the conductor."""

    def played() -> bytes:
        with House(handovers.room, queues.room, tasks.room, machines.room, seed=11) as house:
            stage = Stage(house)
            seen: list[Any] = []

            async def story() -> None:
                retry = [
                    {
                        "ErrorEquals": ["States.ALL"],
                        "IntervalSeconds": 7,
                        "BackoffRate": 2,
                        "MaxAttempts": 4,
                        "JitterStrategy": "FULL",
                    }
                ]
                task = await stage.unanswered(TimeoutSeconds=3, Retry=retry)
                mark = {"Type": "Pass", "Parameters": {"id.$": "States.UUID()"}, "Next": "T"}
                arns = [await stage.start(f"m{n}", {"P": mark, "T": task}) for n in range(5)]
                await stage.conductor.advance(house.now + HOUR)
                for arn in arns:
                    seen.extend(await stage.events(arn, whole=True))

            stage.play(story)
            return dumps(seen).encode()

    first = played()
    assert first == played()
    assert sum(event["type"] == "TaskTimedOut" for event in loads(first.decode())) == 25
