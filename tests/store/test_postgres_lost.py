"""PostgreSQL that goes away: under a unit, under a commit, under load; and nodes that freeze. Nothing acknowledged is lost."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from tasuki.store import postgres, postgres_outcome
from tasuki.store.postgres import OUTCOME_PATIENCE, PostgresStore
from tasuki.store.postgres_outcome import Origin, is_committed, origin_of
from tasuki.store.store import Tx
from tasuki.values.errors import OutcomeUnknown, StoreError
from tests.own_postgres import NoServer, OwnServer
from tests.postgres import ask, own_server
from tests.store.postgres_relay import Cut, Relay
from tests.store.postgres_stores import make_told, opened, tell, told

ROOT = Path(__file__).resolve().parents[2]
OURS = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'tasuki%'"
MARGIN_S = 2.0
"""What two busy cores may add to a wait."""


@pytest.fixture(scope="module")
def owned() -> Iterator[OwnServer]:
    try:
        one = own_server()
    except NoServer as why:
        pytest.skip(str(why))
    with one:
        yield one


@pytest.fixture
def url(postgres_url: str) -> str:
    return postgres_url


def relayed(url: str, scene: Callable[[Relay, PostgresStore], Coroutine[Any, Any, None]], **options: Any) -> None:
    """Play a scene with a store that reaches its server through a relay."""

    async def run() -> None:
        async with Relay(url) as relay, opened(relay.url, **options) as store:
            await make_told(store)
            await scene(relay, store)

    asyncio.run(run())


# -- one unit -------------------------------------------------------------------------------------------------------


def test_a_connection_lost_in_mid_unit_costs_a_second_run(url: str) -> None:
    turns: list[int] = []

    async def scene(relay: Relay, store: PostgresStore) -> None:
        def unit(tx: Tx) -> None:
            turns.append(1)
            tx.run("INSERT INTO told (name) VALUES ('once')")
            if len(turns) == 1:
                relay.hang_up()
            tx.one("SELECT 1")

        await store.write(unit)
        assert len(turns) == 2
        assert await told(store) == ["once"]
        assert store.counters.outcomes_asked == 0

    relayed(url, scene)


@pytest.mark.parametrize("way", ["read", "look"])
def test_a_reader_whose_connection_is_lost_reads_again(url: str, way: str) -> None:
    turns: list[int] = []

    async def scene(relay: Relay, store: PostgresStore) -> None:
        def unit(tx: Tx) -> object:
            turns.append(1)
            tx.one("SELECT 1")
            if len(turns) == 1:
                relay.hang_up()
            return tx.one("SELECT count(*) FROM told")

        assert await getattr(store, way)(unit) == (0,)
        assert len(turns) == 2

    relayed(url, scene)


@pytest.mark.parametrize(("cut", "runs"), [("after", 1), ("before", 2), ("silent", 2)])
def test_what_became_of_a_commit_is_asked_for(url: str, cut: Cut, runs: int) -> None:
    """After: it is committed, and answered once. Before: it is not, and runs again. Silent: the server waits for us yet."""
    turns: list[int] = []
    rings: list[str] = []

    def unit(tx: Tx) -> int:
        turns.append(1)
        tx.run("INSERT INTO told (name) VALUES ('once')")
        tx.ring("rung")
        return len(turns)

    async def scene(relay: Relay, store: PostgresStore) -> None:
        relay.cut, relay.cut_at = cut, 1
        assert await store.write(unit) == runs
        assert relay.cuts == 1
        assert store.counters.outcomes_asked == 1
        assert await told(store) == ["once"]
        assert rings.count("rung") == 1

    relayed(url, scene, on_ring=lambda topic, _times: rings.append(topic))


def test_many_commits_cut_in_both_ways_are_each_kept_once(url: str) -> None:
    async def scene(relay: Relay, store: PostgresStore) -> None:
        cuts: tuple[Cut, ...] = ("after", "before", "after", "silent")
        for turn, cut in enumerate(cuts):
            relay.cut, relay.cut_at = cut, 6
            await asyncio.gather(*(store.write(tell(f"{turn} {n:02}")) for n in range(20)))
        assert await told(store) == [f"{turn} {n:02}" for turn in range(4) for n in range(20)]
        assert store.counters.outcomes_asked == 24

    relayed(url, scene)


def test_a_server_that_stays_away_during_a_commit_leaves_its_outcome_unknown(url: str) -> None:
    patience_s = 0.4

    async def scene(relay: Relay, store: PostgresStore) -> None:
        relay.cut, relay.cut_at, relay.refuses = "after", 1, True
        began = time.monotonic()
        with pytest.raises(OutcomeUnknown, match=r"may have been kept, or not\. Look before you try again"):
            await store.write(tell("perhaps"))
        assert time.monotonic() - began < OUTCOME_PATIENCE * patience_s + MARGIN_S
        relay.refuses = False
        assert await told(store) == ["perhaps"]

    relayed(url, scene, patience_s=patience_s)


OF_THE_FUTURE = "9223372036854775807"


def test_a_transaction_of_which_the_server_knows_nothing_is_unknown(url: str) -> None:
    async def scene(_relay: Relay, store: PostgresStore) -> None:
        here = await origin(store)
        with pytest.raises(OutcomeUnknown):
            await is_committed(OF_THE_FUTURE, here, store._connect, 2)

    relayed(url, scene)


def test_after_a_crash_an_id_may_be_another_transactions(url: str) -> None:
    async def scene(_relay: Relay, store: PostgresStore) -> None:
        connect, before = store._connect, Origin((await origin(store)).server, "another crash ago")
        committed = str(await store.write(lambda tx: (tx.one(OWN_ID) or ("",))[0]))
        with pytest.raises(OutcomeUnknown):
            await is_committed(committed, before, connect, 2)
        assert await is_committed(committed, await origin(store), connect, 2)
        assert not await is_committed(OF_THE_FUTURE, before, connect, 2)
        running: list[str] = []

        async def ask_for_it() -> None:
            while not running:
                await store.look(lambda tx: tx.one("SELECT 1"))
            assert not await is_committed(running[0], before, connect, 2)
            assert await is_committed(running[0], await origin(store), connect, 2)

        def unit(tx: Tx) -> None:
            running.extend(str(one) for one in tx.one(OWN_ID) or ())
            tx.one("SELECT pg_sleep(0.5)")

        await asyncio.gather(store.write(unit), ask_for_it())

    relayed(url, scene)


OWN_ID = "SELECT pg_current_xact_id()::text"


async def origin(store: PostgresStore) -> Origin:
    """Answer where a store stands."""
    connection = await store._connect()
    try:
        return await origin_of(connection)
    finally:
        connection.terminate()


def test_a_server_that_took_over_is_not_believed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A standby that was promoted has another timeline: it may have lost our commit, and given its id to another one."""

    async def scene(relay: Relay, store: PostgresStore) -> None:
        async def promoted(_connection: object) -> Origin:
            return Origin("7001 00000002")

        await store.write(tell("before"))
        monkeypatch.setattr(postgres_outcome, "origin_of", promoted)
        relay.cut, relay.cut_at = "after", 1
        with pytest.raises(OutcomeUnknown):
            await store.write(tell("perhaps"))

    relayed(url, scene, connections=1)


def test_whoever_waits_for_a_database_that_is_gone_is_told_in_time(url: str) -> None:
    patience_s = 0.6

    async def scene(relay: Relay, store: PostgresStore) -> None:
        relay.refuses = True
        relay.hang_up()
        began = time.monotonic()
        ways: list[Callable[[Any], Awaitable[Any]]] = [store.write, store.read, store.look]
        done = await asyncio.gather(*(ways[n % 3](tell(f"{n}")) for n in range(60)), return_exceptions=True)
        assert time.monotonic() - began < patience_s + MARGIN_S
        assert all(isinstance(one, StoreError) and "nothing was changed" in str(one) for one in done)
        relay.refuses = False
        assert await store.write(tell("back")) == "back"
        assert await told(store) == ["back"]

    relayed(url, scene, patience_s=patience_s, connections=3)


# -- under load -----------------------------------------------------------------------------------------------------


def kill_one(server: OwnServer) -> None:
    """SIGKILL a backend of ours: the server restarts all of them, and recovers."""
    ((pid,), *_) = ask(server.url, OURS)
    os.kill(pid, signal.SIGKILL)


def send_all_away(server: OwnServer) -> None:
    """End all our connections, ten times."""
    for _ in range(10):
        ask(server.url, f"SELECT pg_terminate_backend(pid) FROM ({OURS}) AS ours")


BLOWS: dict[str, Callable[[OwnServer], None]] = {
    "restarted": lambda server: server.restart("fast"),
    "crashed": lambda server: server.restart("immediate"),
    "killed": lambda server: server.restart("kill"),
    "a backend killed": kill_one,
    "all sent away": send_all_away,
}


class Load:
    """Twenty writers, and what each of them was told."""

    def __init__(self, store: PostgresStore) -> None:
        self.store = store
        self.kept: list[str] = []
        self.refused: list[str] = []
        self.unknown: list[str] = []
        self.slowest_s = 0.0

    async def write(self, writer: int, until: asyncio.Event) -> None:
        """Write until it is over, and five times more."""
        number, more = 0, 5
        while more:
            name = f"{writer} {number}"
            number, more = number + 1, more - until.is_set()
            began = time.monotonic()
            try:
                self.kept.append(await self.store.write(tell(name)))
            except OutcomeUnknown:
                self.unknown.append(name)
            except StoreError:
                self.refused.append(name)
            self.slowest_s = max(self.slowest_s, time.monotonic() - began)


@pytest.mark.parametrize("blow", sorted(BLOWS))
def test_under_load_what_was_acknowledged_is_there_once_and_what_was_refused_is_not(
    owned: OwnServer, blow: str
) -> None:
    async def run() -> None:
        schema = f"load_{blow.replace(' ', '_')}"
        async with opened(f"{owned.url}?schema={schema}") as store:
            await make_told(store)
            load, over = Load(store), asyncio.Event()
            writers = [asyncio.ensure_future(load.write(n, over)) for n in range(20)]
            while len(load.kept) < 200:
                await asyncio.wait(writers, timeout=0.02)
            await asyncio.to_thread(BLOWS[blow], owned)
            over.set()
            await asyncio.gather(*writers)
            there = await told(store)
            assert len(there) == len(set(there)), "a unit was kept twice"
            assert set(load.kept) <= set(there), "an acknowledged unit is lost"
            assert not set(load.refused) & set(there), "a refused unit was kept"
            assert set(there) <= {*load.kept, *load.unknown}
            assert load.slowest_s < store._patience_s + MARGIN_S
            assert store.counters.reconnects + store.counters.outcomes_asked > 0, "nobody noticed anything"

    asyncio.run(run())


# -- a frozen node --------------------------------------------------------------------------------------------------


def test_a_frozen_node_gives_up_its_rows_and_its_unit_runs_again_when_it_wakes(url: str) -> None:
    async def run() -> None:
        async with opened(url) as store:
            await store.write(lambda tx: tx.run("INSERT INTO house (name, value) VALUES ('count', '10')"))
            frozen = subprocess.Popen(  # noqa: ASYNC220 - a moment
                [
                    sys.executable,
                    "-m",
                    "tests.store.postgres_frozen",
                    f"{url}&idle_in_transaction_session_timeout=700ms",
                ],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            with frozen:
                assert frozen.stdin is not None
                assert frozen.stdout is not None
                try:
                    assert await asyncio.to_thread(frozen.stdout.readline) == "in hand\n"
                    frozen.send_signal(signal.SIGSTOP)
                    began = time.monotonic()
                    await store.write(lambda tx: tx.run("UPDATE house SET value = '20' WHERE name = 'count'"))
                    assert time.monotonic() - began > 0.1, "its row was not in its hand"
                    frozen.send_signal(signal.SIGCONT)
                    frozen.stdin.write("\n")
                    frozen.stdin.flush()
                    assert await asyncio.to_thread(frozen.stdout.readline) == "added in turn 2: 21\n"
                finally:
                    frozen.kill()

    asyncio.run(run())


def test_a_node_frozen_in_mid_unit_does_not_hold_up_the_house_until_others_lose_patience(url: str) -> None:
    async def run() -> None:
        async with opened(url) as store:
            await make_told(store)
            frozen = await store._connect()
            try:
                await frozen.execute("BEGIN")
                await frozen.fetchrow(postgres._SHARED, postgres._LOCK_CLASS, store._lock_key)
                alone = asyncio.create_task(store.write(lambda tx: tx.alone()))
                await asyncio.gather(alone, *(store.write(tell(f"behind {n}")) for n in range(4)))
            finally:
                frozen.terminate()

    asyncio.run(run())
    assert postgres.FROZEN_S + MARGIN_S < postgres.PATIENCE_S


# -- the bell -------------------------------------------------------------------------------------------------------


class Rung:
    """What a node's bell heard, to be waited for."""

    def __init__(self) -> None:
        self.heard: dict[str, int] = {}
        self._changed = asyncio.Event()

    def __call__(self, topic: str, times: int) -> None:
        self.heard[topic] = self.heard.get(topic, 0) + times
        self._changed.set()

    async def until(self, *topics: str) -> None:
        """Wait until all of them rang."""
        async with asyncio.timeout(10):
            while not set(topics) <= set(self.heard):
                self._changed.clear()
                await self._changed.wait()


def ringing(*topics: str) -> Callable[[Tx], None]:
    """Answer a unit that rings."""

    def unit(tx: Tx) -> None:
        for topic in topics:
            tx.ring(topic, 2)

    return unit


def two_nodes(url: str, scene: Callable[[PostgresStore, PostgresStore, Rung, Rung], Coroutine[Any, Any, None]]) -> None:
    """Play a scene with two nodes that know of each other."""

    async def run() -> None:
        here, there = Rung(), Rung()
        async with opened(url, on_ring=here) as one:
            await here.until("clock")
            here.heard.clear()
            async with opened(url, on_ring=there) as other:
                await there.until("clock")
                for name in range(100):  # whoever came last said hello, and the first one knows: it passes rings on
                    await one.write(ringing(f"hello {name}"))
                    if any(topic.startswith("hello") for topic in there.heard):
                        break
                await other.write(ringing("answer"))
                await here.until("answer")
                await scene(one, other, here, there)

    asyncio.run(run())


def test_nodes_ring_each_other_at_once(url: str) -> None:
    async def scene(one: PostgresStore, other: PostgresStore, here: Rung, there: Rung) -> None:
        for turn in range(10):
            for store, rung in ((one, there), (other, here)):
                topic = f"turn {turn} {id(rung)}"
                await store.write(ringing(topic))
                began = time.monotonic()
                await rung.until(topic)
                assert time.monotonic() - began < 0.1 if turn else True
                assert rung.heard[topic] == 2

    two_nodes(url, scene)


def test_rings_go_together(url: str) -> None:
    async def scene(one: PostgresStore, _other: PostgresStore, _here: Rung, there: Rung) -> None:
        before = one._bell.notifies
        await asyncio.gather(*(one.write(ringing("busy", f"t{n % 7}")) for n in range(400)))
        await one.write(ringing("last"))
        await there.until("last")
        assert there.heard["busy"] == 800
        assert one._bell.notifies - before < 200

    two_nodes(url, scene)


def test_rings_of_any_length_and_number_arrive_or_ring_for_everything(url: str) -> None:
    async def scene(one: PostgresStore, _other: PostgresStore, _here: Rung, there: Rung) -> None:
        long = [f"{n}:" + "ä" * 200 for n in range(60)]
        await one.write(ringing(*long))
        await there.until(*long)
        there.heard.clear()
        await one.write(ringing("x" * 9_000))
        await there.until("clock")
        there.heard.clear()
        await one.write(ringing(*(f"{n}:" + "y" * 200 for n in range(5_000))))
        await there.until("clock")
        assert len(there.heard) == 1

    two_nodes(url, scene)


def test_a_bell_that_was_lost_comes_back_and_says_so(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tasuki.store")
    monkeypatch.setattr("tasuki.store.postgres_bell.PAUSE_S", 30)  # one that listened until now does not wait for it

    async def scene(one: PostgresStore, _other: PostgresStore, here: Rung, there: Rung) -> None:
        here.heard.clear()
        there.heard.clear()
        listening = f"SELECT pg_terminate_backend(pid) FROM ({OURS} AND query LIKE '%pg_notify%') AS bells"
        assert len(ask(url.partition("?")[0], listening)) >= 2
        await asyncio.gather(here.until("clock"), there.until("clock"))  # look at everything: rings may be lost
        for turn in range(100):
            await one.write(ringing(f"again {turn}"))
            if any(topic.startswith("again") for topic in there.heard):
                break
        await there.until("clock")
        assert any(topic.startswith("again") for topic in there.heard)

    two_nodes(url, scene)
    said = [record.getMessage() for record in caplog.records if "the bell" in record.getMessage()]
    assert [words.startswith("the bell between nodes is lost (") for words in said].count(True) == 2
    assert said.count("the bell between nodes is back") == 2


def test_words_of_other_programs_on_our_channel_are_no_rings(url: str) -> None:
    async def scene(one: PostgresStore, _other: PostgresStore, _here: Rung, there: Rung) -> None:
        for said in ("", "hello", "[]", '{"rings": 7}', '{"rings": {"t": "x"}}', '{"hello": true}'):
            ask(url.partition("?")[0], "SELECT pg_notify($1, $2)", f"tasuki_{one.address.schema}", said)
        there.heard.clear()
        await one.write(ringing("true"))
        await there.until("true")
        assert "t" not in there.heard

    two_nodes(url, scene)


def test_the_patience_of_a_commit_is_longer_than_that_of_a_unit() -> None:
    assert OUTCOME_PATIENCE * postgres.PATIENCE_S < 60, "who asks over HTTP waits for a minute"
