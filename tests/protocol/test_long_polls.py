"""Long polls: they wait on the bell, lose no ring, and claim nothing for a client that left."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tasuki.protocol.http import Limits, application
from tasuki.runtime.bell import Bell
from tasuki.values.config import Config
from tasuki.values.errors import DomainError
from tasuki.values.operations import Crowd, NotYet, Operation, Request, acting
from tests.protocol.knocking import PORT, Heard, Script, ScriptedStore, StillClock, knocking, make_door, turn, written

URL = "http://127.0.0.1:4566/000000000000/jobs"
TOPIC = "queue:jobs"


@dataclass
class Shelf:
    """A queue of one kind of message."""

    clock: StillClock
    messages: list[str] = field(default_factory=list)
    wait_ms: int = 20_000
    wake_at: int | None = None
    crowd: Crowd | None = None
    looks: int = 0
    claims: int = 0

    def not_yet(self) -> NotYet:
        return NotYet(TOPIC, self.until, self.wake_at, {}, self.crowd)

    def __post_init__(self) -> None:
        self.until = self.clock.now() + self.wait_ms

    def look(self, _tx: Any, _request: Request) -> NotYet | None:
        self.looks += 1
        return None if self.messages else self.not_yet()

    def run(self, _tx: Any, _request: Request) -> dict[str, Any] | NotYet:
        if not self.messages:
            return self.not_yet()
        self.claims += 1
        return {"Messages": [{"MessageId": "m", "Body": self.messages.pop(0)}]}


@dataclass
class House:
    shelf: Shelf
    bell: Bell
    clock: StillClock
    store: ScriptedStore
    real: StillClock
    app: Callable[..., Awaitable[None]]

    def poll(self, receive: Any = None) -> "asyncio.Task[Heard]":
        return asyncio.ensure_future(
            knocking(self.app, written("sqs", "ReceiveMessage", {"QueueUrl": URL}), receive or hanging_on())
        )

    async def until_waiting(self, count: int = 1, topic: str = TOPIC) -> None:
        while self.bell.waiting(topic) != count:
            await turn()
        for _ in range(10):
            await turn()

    def put(self, body: str) -> None:
        self.shelf.messages.append(body)
        self.bell.ring(TOPIC)


def hanging_on(gone: asyncio.Event | None = None) -> Callable[[], Awaitable[dict[str, Any]]]:
    """A client that sends its body and then waits, until it hangs up."""
    body = written("sqs", "ReceiveMessage", {"QueueUrl": URL}).body
    parts = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if parts:
            return parts.pop()
        await (gone or asyncio.Event()).wait()
        return {"type": "http.disconnect"}

    return receive


def house(*, manual: bool = False, limits: Limits | None = None, **shelf: Any) -> House:
    clock, real, bell, store = StillClock(), StillClock(), Bell(), ScriptedStore()
    stock = Shelf(clock, **shelf)
    door = make_door(
        Script(),
        operations={"sqs": {"ReceiveMessage": Operation("poll", stock.run, stock.look)}},
        bell=bell,
        clock=clock,
        real_clock=real,
        store=store,
        config=Config(data=Path(), port=PORT, clock="manual" if manual else "real"),
        limits=limits or Limits(),
    )
    return House(stock, bell, clock, store, real, application(door))


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(10):
            await story()

    asyncio.run(bounded())


def test_what_is_there_is_answered_at_once() -> None:
    async def story() -> None:
        it = house(messages=["a"])
        assert b'"Body":"a"' in (await it.poll()).body
        assert it.store.kinds == ["read", "write"]

    run(story)


def test_a_ring_wakes_the_poll() -> None:
    async def story() -> None:
        it = house()
        poll = it.poll()
        await it.until_waiting()
        assert "write" not in it.store.kinds
        it.put("a")
        assert b'"Body":"a"' in (await poll).body
        assert it.bell.waiting(TOPIC) == 0

    run(story)


def test_a_ring_between_looking_and_waiting_is_not_lost() -> None:
    async def story() -> None:
        it = house()
        poll = it.poll()
        while not it.shelf.looks:
            await turn()
        it.put("a")  # looked, and not waiting yet
        assert b'"Body":"a"' in (await poll).body

    run(story)


def test_k_rings_serve_k_polls() -> None:
    async def story() -> None:
        it = house()
        polls = [it.poll() for _ in range(5)]
        await it.until_waiting(5)
        for n in range(5):
            it.put(f"m{n}")
        answers = await asyncio.gather(*polls)
        assert sorted(heard.body.count(b"Body") for heard in answers) == [1] * 5

    run(story)


def test_the_end_of_a_poll_is_an_empty_answer() -> None:
    async def story() -> None:
        it = house(wait_ms=10)
        poll = it.poll()
        await it.until_waiting()
        it.clock.instant = it.shelf.until
        heard = await poll
        assert (heard.status, heard.body) == (200, b"{}")

    run(story)


def test_a_poll_ends_at_its_first_end_though_each_look_names_a_later_one() -> None:
    async def story() -> None:
        it = house()
        end = it.shelf.until
        poll = it.poll()
        await it.until_waiting()
        it.clock.instant = end - 1
        it.shelf.until = end + 20_000
        it.bell.ring(TOPIC)
        await it.until_waiting()
        it.clock.instant = end
        it.bell.ring(TOPIC)
        assert (await poll).body == b"{}"

    run(story)


def test_a_short_poll_does_not_wait() -> None:
    async def story() -> None:
        it = house(wait_ms=0)
        assert (await it.poll()).body == b"{}"
        assert it.shelf.looks == 1

    run(story)


def test_a_message_that_becomes_visible_is_seen_without_a_ring() -> None:
    async def story() -> None:
        it = house()
        it.shelf.wake_at = it.clock.now() + 5
        poll = it.poll()
        await it.until_waiting()
        it.shelf.messages.append("late")
        assert b'"Body":"late"' in (await poll).body

    run(story)


def test_a_manual_clock_moves_polls_on() -> None:
    async def story() -> None:
        it = house(manual=True)
        poll = it.poll()
        await it.until_waiting(topic="clock")
        it.clock.instant += 5_000
        it.bell.ring("clock", 1_000)
        await it.until_waiting(topic="clock")
        assert not poll.done()
        it.clock.instant = it.shelf.until
        it.bell.ring("clock", 1_000)
        assert (await poll).body == b"{}"

    run(story)


def test_nothing_is_claimed_for_a_client_that_left() -> None:
    async def story() -> None:
        it = house()
        gone = asyncio.Event()
        poll = it.poll(hanging_on(gone))
        await it.until_waiting()
        gone.set()
        assert (await poll).status == 0
        assert it.bell.waiting(TOPIC) == 0
        it.put("a")
        assert it.shelf.claims == 0

    run(story)


def test_the_ring_of_a_client_that_left_goes_to_the_next() -> None:
    async def story() -> None:
        it = house()
        gone = asyncio.Event()
        first = it.poll(hanging_on(gone))
        await it.until_waiting(1)
        second = it.poll()
        await it.until_waiting(2)
        gone.set()
        it.put("a")
        assert b'"Body":"a"' in (await second).body
        assert (await first).status == 0
        assert it.shelf.claims == 1

    run(story)


def test_somebody_was_faster() -> None:
    async def story() -> None:
        it = house()
        poll = it.poll()
        await it.until_waiting()
        it.store.before_write = it.shelf.messages.clear
        it.put("a")
        await it.until_waiting()
        it.store.before_write = lambda: None
        it.put("b")
        assert b'"Body":"b"' in (await poll).body

    run(story)


def test_more_polls_than_seats_are_throttled() -> None:
    async def story() -> None:
        it = house(limits=Limits(long_polls=1))
        first = it.poll()
        await it.until_waiting()
        heard = await it.poll()
        assert heard.status == 403
        assert heard.headers["x-amzn-query-error"] == "RequestThrottled;Sender"
        it.put("a")
        assert (await first).status == 200
        it.put("b")
        assert (await it.poll()).status == 200

    run(story)


def test_only_so_many_wait_for_the_same_thing() -> None:
    class Crowded(DomainError):
        code = "OverLimit"

    async def story() -> None:
        it = house()
        it.shelf.crowd = Crowd(2, lambda: Crowded("too many"))
        waiting = [it.poll(), it.poll()]
        await it.until_waiting(2)
        assert (await it.poll()).headers["x-amzn-query-error"].startswith("OverLimit")
        it.put("a")
        assert (await waiting[0]).status == 200
        third = it.poll()
        await it.until_waiting(2)
        it.put("b")
        it.put("c")
        assert {(await waiting[1]).status, (await third).status} == {200}

    run(story)


def test_waiting_polls_take_no_room_from_requests() -> None:
    async def story() -> None:
        it = house(limits=Limits(in_flight=1))
        first = it.poll()
        await it.until_waiting()
        second = it.poll()
        await it.until_waiting(2)
        it.put("a")
        it.put("b")
        assert {(await first).status, (await second).status} == {200}

    run(story)


def test_a_node_that_ends_answers_its_polls_at_once_and_those_that_still_come() -> None:
    async def story() -> None:
        it = house()
        polls = [it.poll(), it.poll()]
        await it.until_waiting(2)
        it.bell.close()
        for poll in (*polls, it.poll()):
            heard = await poll
            assert (heard.status, heard.body) == (200, b"{}")
        assert it.shelf.claims == 0

    run(story)


def test_under_a_clock_that_stands_still_a_poll_ends_after_as_much_real_time() -> None:
    async def story() -> None:
        it = house(manual=True, wait_ms=20_000)
        poll = it.poll()
        await it.until_waiting(topic="clock")
        it.real.instant += 19_999
        it.bell.ring("clock")  # the house's clock was moved, by next to nothing
        await it.until_waiting(topic="clock")
        assert not poll.done()
        it.real.instant += 1
        it.bell.ring("clock")
        assert (await poll).body == b"{}"
        assert it.clock.now() < it.shelf.until

    run(story)


def test_under_a_clock_that_stands_still_nobody_need_ring_for_a_poll_to_end() -> None:
    async def story() -> None:
        it = house(manual=True, wait_ms=10)
        poll = it.poll()
        await it.until_waiting(topic="clock")
        it.real.instant += 10
        assert (await poll).body == b"{}"

    run(story)


def test_an_act_is_cancelled_when_its_client_hangs_up() -> None:
    async def story() -> None:
        gone, began, cancelled = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def act(_request: Request) -> dict[str, Any]:
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
            return {}

        app = application(make_door(Script(), operations={"sqs": {"ReceiveMessage": acting(act)}}))
        knock = written("sqs", "ReceiveMessage", {"QueueUrl": URL})
        asked = asyncio.ensure_future(knocking(app, knock, hanging_on(gone)))
        await began.wait()
        gone.set()
        assert (await asked).status == 0
        assert cancelled.is_set()

    run(story)
