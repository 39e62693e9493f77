"""Wake-ups: turns for waiters, flags for subscribers."""

import asyncio

from tasuki.runtime.bell import EVERYTHING, Bell


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_ring_for_k_wakes_the_first_k_waiters() -> None:
    async def play() -> list[str]:
        bell, woken = Bell(), []

        async def wait(name: str) -> None:
            if await bell.wait("q", 60):
                woken.append(name)

        tasks = [asyncio.create_task(wait(name)) for name in "abcd"]
        await settle()
        assert bell.waiting("q") == 4
        bell.ring("q", 2)
        await settle()
        assert woken == ["a", "b"]
        bell.ring("q", 9)
        await settle()
        await asyncio.gather(*tasks)
        assert bell.waiting("q") == 0
        return woken

    assert asyncio.run(play()) == ["a", "b", "c", "d"]


def test_a_ring_for_everything_wakes_everybody_who_waits() -> None:
    async def play() -> list[bool]:
        bell = Bell()
        tasks = [asyncio.create_task(bell.wait(topic, 60)) for topic in ("q", "q", "r", EVERYTHING)]
        await settle()
        bell.ring(EVERYTHING)
        assert bell.waiting("q") == bell.waiting("r") == 0
        return await asyncio.gather(*tasks)

    assert asyncio.run(play()) == [True] * 4


def test_who_goes_away_takes_nobodys_turn() -> None:
    async def play() -> None:
        bell = Bell()
        first = asyncio.create_task(bell.wait("q", 60))
        second = asyncio.create_task(bell.wait("q", 60))
        await settle()
        first.cancel()
        await settle()
        bell.ring("q")
        assert await second
        assert bell.waiting("q") == 0

    asyncio.run(play())


def test_a_turn_that_its_waiter_cannot_use_any_more_goes_to_the_next() -> None:
    async def play() -> None:
        bell = Bell()
        first = asyncio.create_task(bell.wait("q", 60))
        second = asyncio.create_task(bell.wait("q", 60))
        await settle()
        bell.ring("q")  # first is woken ...
        first.cancel()  # ... and goes away before it can look
        await settle()
        assert second.done()
        assert await second

    asyncio.run(play())


def test_a_wait_ends_with_its_time() -> None:
    assert asyncio.run(Bell().wait("q", 0)) is False


def test_subscribers_hear_every_ring_of_their_topics() -> None:
    async def play() -> None:
        bell = Bell()
        event = bell.subscribe(("a", "b"))
        bell.ring("c")
        assert not event.is_set()
        bell.ring("b")
        assert event.is_set()

    asyncio.run(play())
