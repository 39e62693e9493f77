"""What every store promises its callers (store/store.py), whichever database it is on."""

import asyncio
from collections.abc import Sequence

import pytest

from tasuki.store import leases, timers
from tasuki.store.store import MOST_TURNS, STRIPES, Conflict, Tx, Unit
from tasuki.values.errors import StoreError
from tests.store.conftest import Opened

PUT = "INSERT INTO house (name, value) VALUES (?, ?)"
GET = "SELECT value FROM house WHERE name = ?"
COUNT = "SELECT count(*) FROM house WHERE name LIKE 'k%'"


def put(name: str, value: str = "v") -> Unit[str]:
    def unit(tx: Tx) -> str:
        tx.run(PUT, (name, value))
        return name

    return unit


def test_a_unit_answers_and_is_seen_by_the_next_reader(opened: Opened) -> None:
    async def play() -> None:
        assert await opened.store.write(put("k1", "one")) == "k1"
        assert await opened.store.read(lambda tx: tx.one(GET, ("k1",))) == ("one",)
        assert await opened.store.look(lambda tx: tx.one(GET, ("k1",))) == ("one",)

    opened.run(play())


def test_a_commit_answers_rings_and_fails_as_a_write_and_everybody_sees_it(opened: Opened) -> None:
    def ringing(tx: Tx) -> str:
        tx.ring("bell", 2)
        return put("k1", "one")(tx)

    def broken(tx: Tx) -> None:
        put("k2", "two")(tx)
        raise ValueError("ours")

    async def play() -> None:
        assert await opened.store.commit(ringing) == "k1"
        assert ("bell", 2) in opened.rings
        assert await opened.store.look(lambda tx: tx.one(GET, ("k1",))) == ("one",)
        with pytest.raises(ValueError, match="ours"):
            await opened.store.commit(broken)
        assert await opened.store.write(lambda tx: tx.one(COUNT)) == (1,)
        assert await opened.store.read(lambda tx: tx.one(COUNT)) == (1,)

    opened.run(play())
    opened.store.fail_pending()
    with pytest.raises(StoreError):
        opened.run(opened.store.commit(ringing))


def test_units_see_those_before_them_and_are_kept_once(opened: Opened) -> None:
    async def play() -> list[int]:
        def unit(tx: Tx) -> int:
            count = tx.one(COUNT)
            assert count is not None
            tx.run(PUT, (f"k{count[0]}", ""))
            return int(count[0])

        return await asyncio.gather(*(opened.store.write(unit) for _ in range(12)))

    assert sorted(opened.run(play())) == list(range(12))


def test_a_unit_that_is_alone_meets_nobody(opened: Opened) -> None:
    inside: set[int] = set()

    def unit(number: int, *, alone: bool) -> Unit[None]:
        def run(tx: Tx) -> None:
            if alone:
                tx.alone()
                assert not inside
            inside.add(number)
            try:
                for _ in range(5):
                    tx.one(COUNT)
                    assert not alone or inside == {number}
                tx.run(PUT, (f"k{number}", ""))
            finally:
                inside.discard(number)

        return run

    async def play() -> None:
        await asyncio.gather(*(opened.store.write(unit(one, alone=one % 7 == 0)) for one in range(40)))

    opened.run(play())
    assert opened.look(lambda tx: tx.one(COUNT)) == (40,)


def test_stripes_stay_in_range_and_locks_answer_nothing(opened: Opened) -> None:
    def unit(tx: Tx) -> int:
        tx.lock("SELECT value FROM house WHERE name = ? /*pg FOR UPDATE */", ("schema",))
        return tx.stripe

    async def play() -> list[int]:
        return await asyncio.gather(*(opened.store.write(unit) for _ in range(40)))

    assert set(opened.run(play())) <= set(range(STRIPES))


def test_many_run_and_one_answer_alike(opened: Opened) -> None:
    def unit(tx: Tx) -> tuple[object, ...]:
        tx.many(PUT, [(f"k{one}", str(one)) for one in range(5)])
        changed = tx.run("UPDATE house SET value = ? WHERE name LIKE 'k%' AND value <> '4'", ("n",))
        gone = tx.run("DELETE FROM house WHERE name = ?", ("k0",))
        none = tx.run("DELETE FROM house WHERE name = ?", ("k0",))
        made = tx.one("INSERT INTO house (name, value) VALUES ('k9', 'x') RETURNING name")
        return changed, gone, none, made, tx.one(COUNT), tx.one(GET, ("nobody",)), tx.all(GET, ("nobody",))

    async def play() -> tuple[object, ...]:
        return await opened.store.write(unit)

    assert opened.run(play()) == (4, 1, 0, ("k9",), (5,), None, [])


def test_a_reader_that_fails_or_goes_away_leaves_the_store_usable(opened: Opened) -> None:
    def bad(tx: Tx) -> None:
        tx.one(COUNT)
        raise ValueError("no")

    async def play() -> None:
        for reader in (opened.store.read, opened.store.look):
            for _ in range(20):
                with pytest.raises(ValueError, match="no"):
                    await reader(bad)
                task = asyncio.ensure_future(reader(lambda tx: tx.one(COUNT)))
                await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
            assert await reader(lambda tx: tx.one(COUNT)) == (0,)
        assert await opened.store.write(put("k1")) == "k1"

    opened.run(play())


def test_a_failing_unit_rolls_back_alone(opened: Opened) -> None:
    def bad(tx: Tx) -> None:
        tx.run(PUT, ("k-bad", ""))
        raise ValueError("no")

    async def play() -> Sequence[object]:
        return await asyncio.gather(
            opened.store.write(put("k1")),
            opened.store.write(bad),
            opened.store.write(put("k2")),
            return_exceptions=True,
        )

    first, second, third = opened.run(play())
    assert (first, third) == ("k1", "k2")
    assert isinstance(second, ValueError)
    assert opened.look(lambda tx: tx.all("SELECT name FROM house WHERE name LIKE 'k%' ORDER BY name")) == [
        ("k1",),
        ("k2",),
    ]


def test_a_conflict_is_run_again_with_nothing_in_hand_and_kept_once(opened: Opened) -> None:
    turns: list[int] = []

    def unit(tx: Tx) -> int:
        assert tx.notes == {}
        turns.append(1)
        tx.notes["turn"] = len(turns)
        tx.run(PUT, ("k", "once"))
        tx.ring(f"turn {len(turns)}")
        if len(turns) < 3:
            raise Conflict
        return len(turns)

    async def play() -> Sequence[object]:
        return await asyncio.gather(
            opened.store.write(put("k1")), opened.store.write(unit), opened.store.write(put("k2"))
        )

    assert opened.run(play()) == ["k1", 3, "k2"]
    assert opened.look(lambda tx: tx.one(COUNT)) == (3,)
    assert opened.rings == [("turn 3", 1)]


def test_whoever_never_agrees_is_told_and_nothing_is_left(opened: Opened) -> None:
    turns: list[int] = []

    def unit(tx: Tx) -> None:
        turns.append(1)
        tx.run(PUT, ("k-never", ""))
        raise Conflict

    async def play() -> None:
        with pytest.raises(StoreError, match="met at the same rows; nothing was changed"):
            await opened.store.write(unit)
        assert await opened.store.write(put("k1")) == "k1"

    opened.run(play())
    assert MOST_TURNS <= len(turns) <= MOST_TURNS + 1
    assert opened.look(lambda tx: tx.one(COUNT)) == (1,)


class Odd(BaseException):
    """What no handler of a room catches."""


@pytest.mark.parametrize(
    ("raised", "seen"), [(Odd, Odd), (asyncio.CancelledError, asyncio.CancelledError), (StopIteration, RuntimeError)]
)
def test_whatever_a_unit_raises_is_its_callers_and_nobody_elses(
    opened: Opened, raised: type[BaseException], seen: type[BaseException]
) -> None:
    def odd(tx: Tx) -> None:
        tx.run(PUT, ("k-odd", ""))
        raise raised

    async def play() -> Sequence[object]:
        units = (opened.store.write(one) for one in (put("k1"), odd, put("k2")))
        answers = await asyncio.wait_for(asyncio.gather(*units, return_exceptions=True), 5)
        assert await asyncio.wait_for(opened.store.write(put("k3")), 5) == "k3"
        return answers

    first, second, third = opened.run(play())
    assert (first, third) == ("k1", "k2")
    assert isinstance(second, seen)
    assert opened.look(lambda tx: tx.one(COUNT)) == (3,)


def test_a_broken_constraint_rolls_back_that_unit_alone(opened: Opened) -> None:
    async def play() -> Sequence[object]:
        return await asyncio.gather(
            opened.store.write(put("k1")),
            opened.store.write(put("k1")),
            opened.store.write(put("k2")),
            return_exceptions=True,
        )

    first, second, third = opened.run(play())
    assert third == "k2"
    assert [isinstance(one, Exception) for one in (first, second)].count(True) == 1
    assert opened.look(lambda tx: tx.one(COUNT)) == (2,)


def test_bells_ring_after_the_commit_and_only_for_what_was_committed(opened: Opened) -> None:
    def bad(tx: Tx) -> None:
        tx.ring("bad")
        raise ValueError

    def good(tx: Tx) -> None:
        tx.run(PUT, ("k", ""))
        tx.ring("good", 3)
        assert opened.rings == []

    async def play() -> None:
        await asyncio.gather(opened.store.write(bad), opened.store.write(good), return_exceptions=True)

    opened.run(play())
    assert opened.rings == [("good", 3)]


def test_time_stands_still_within_a_unit_and_the_two_times_are_apart(opened: Opened) -> None:
    opened.clock.set(opened.clock.now() + 5_000)

    async def play() -> tuple[int, int]:
        return await opened.store.write(lambda tx: (tx.now, tx.real_now))

    now, real_now = opened.run(play())
    assert (now, real_now) == (opened.clock.now(), opened.real_clock.now())
    assert now != real_now


def test_a_caller_that_goes_away_does_not_undo_its_unit(opened: Opened) -> None:
    async def play() -> None:
        task = asyncio.create_task(opened.store.write(put("k1")))
        await asyncio.sleep(0)
        task.cancel()
        await opened.store.write(put("k2"))
        for _ in range(1_000):  # the first one may still be at it
            if await opened.store.look(lambda tx: tx.one(COUNT)) == (2,):
                return
        raise AssertionError("it was undone")

    opened.run(play())


def test_a_store_that_closes_refuses_the_units_that_have_not_run_and_all_later_ones(opened: Opened) -> None:
    async def play() -> None:
        await opened.store.write(put("k1"))
        late = asyncio.ensure_future(opened.store.write(put("k2")))
        await asyncio.sleep(0)
        opened.store.fail_pending()
        with pytest.raises(StoreError, match="stopping"):
            await late
        with pytest.raises(StoreError, match="stopping"):
            await opened.store.write(put("k3"))

    opened.run(play())
    assert opened.look(lambda tx: tx.one(COUNT)) == (1,)


def test_timers_fire_in_order_once_and_can_be_moved(opened: Opened) -> None:
    async def play() -> None:
        write, now = opened.store.write, opened.clock.now()
        await write(lambda tx: timers.set_timer(tx, "room", "b", now + 2_000))
        await write(lambda tx: timers.set_timer(tx, "room", "a", now + 1_000))
        await write(lambda tx: timers.set_timer(tx, "room", "b", now + 3_000))
        assert await opened.store.look(timers.next_due) == now + 1_000
        assert not await write(lambda tx: timers.claim(tx, "room", "a"))
        opened.clock.set(now + 3_000)
        assert await opened.store.look(lambda tx: timers.due(tx, 10)) == [
            ("room", "a", now + 1_000),
            ("room", "b", now + 3_000),
        ]
        assert await write(lambda tx: timers.claim(tx, "room", "a"))
        assert not await write(lambda tx: timers.claim(tx, "room", "a"))
        await write(lambda tx: timers.postpone(tx, "room", "b", tx.now + 500))
        assert await opened.store.look(timers.next_due) == now + 3_500
        await write(lambda tx: timers.clear_timer(tx, "room", "b"))
        assert await opened.store.look(timers.next_due) is None

    opened.run(play())


def test_a_lease_is_held_by_one_renewed_by_its_holder_and_free_after_its_time(opened: Opened) -> None:
    async def play() -> None:
        write, until = opened.store.write, opened.real_clock.now() + 1_000
        assert await write(lambda tx: leases.take(tx, "room", "k", "one", until))
        assert not await write(lambda tx: leases.take(tx, "room", "k", "two", until))
        assert await write(lambda tx: leases.renew(tx, "room", "k", "one", until + 1_000))
        assert not await write(lambda tx: leases.renew(tx, "room", "k", "two", until + 9_000))
        opened.clock.set(opened.clock.now() + 3_600_000)  # house time takes nobody's lease away
        assert await write(lambda tx: leases.holds(tx, "room", "k", "one"))
        opened.real_clock.set(until + 1_000)
        assert not await write(lambda tx: leases.holds(tx, "room", "k", "one"))
        assert not await write(lambda tx: leases.renew(tx, "room", "k", "one", until + 9_000))
        assert await write(lambda tx: leases.take(tx, "room", "k", "two", until + 9_000))
        await write(lambda tx: leases.release(tx, "room", "k", "one"))
        assert await write(lambda tx: leases.holds(tx, "room", "k", "two"))

    opened.run(play())
