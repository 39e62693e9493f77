"""The PostgreSQL store, beyond what every store promises: units that meet, and what is said of what fails."""

import asyncio
import gc
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import asyncpg
import pytest
from greenlet import greenlet

from tasuki.store import postgres
from tasuki.store.postgres import MOST_REPEATS, PostgresStore
from tasuki.store.postgres_clock import DatabaseClock
from tasuki.store.store import STRIPES, Tx
from tasuki.testing import ManualClock
from tasuki.values.errors import StoreError, StoreFull, StoreNewer
from tests.own_postgres import NoServer
from tests.postgres import ask, drop_schema, in_schema, new_schema, server
from tests.store.postgres_stores import make_told, opened, tell, told

ROW = "SELECT name FROM told WHERE name = ? FOR UPDATE"
FAIL = "DO $$ BEGIN RAISE SQLSTATE '{}'; END $$"
SLOW = "SELECT pg_sleep({})"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A store's URL, in a schema that the tests of this module share; each begins with nothing in the table `told`."""
    try:
        base = server()
    except NoServer as why:
        pytest.skip(str(why))
    schema = new_schema()
    yield in_schema(base, schema)
    drop_schema(base, schema)


def base_of(url: str) -> str:
    """Answer the URL without the schema."""
    return url.partition("?")[0]


def play(url: str, scene: Callable[[PostgresStore], Coroutine[Any, Any, None]], **options: Any) -> None:
    """Play a scene with a store, in a loop of its own."""

    async def run() -> None:
        async with opened(url, **options) as store:
            await make_told(store)
            await scene(store)

    asyncio.run(run())


# -- units that meet --------------------------------------------------------------------------------------------


def test_a_deadlock_is_broken_by_running_one_again(url: str) -> None:
    async def scene(store: PostgresStore) -> None:
        await asyncio.gather(store.write(tell("a")), store.write(tell("b")))
        holding: set[str] = set()

        def crossing(first: str, second: str) -> Callable[[Tx], None]:
            def unit(tx: Tx) -> None:
                tx.lock(ROW, (first,))
                holding.add(first)
                while len(holding) < 2:
                    tx.one("SELECT 1")
                tx.lock(ROW, (second,))
                tx.run("INSERT INTO told (name) VALUES (?)", (f"{first} {second}",))

            return unit

        await asyncio.gather(store.write(crossing("a", "b")), store.write(crossing("b", "a")))
        assert await told(store) == ["a", "a b", "b", "b a"]
        assert store.counters.replays >= 1

    play(url, scene)


@pytest.mark.parametrize("code", ["40001", "40P01", "55P03"])
def test_whoever_met_another_runs_again_and_its_room_hears_nothing_of_it(url: str, code: str) -> None:
    turns: list[int] = []
    heard: list[Exception] = []

    def unit(tx: Tx) -> None:
        turns.append(1)
        tx.run("INSERT INTO told (name) VALUES ('x')")
        try:
            if len(turns) < 3:
                tx.run(FAIL.format(code))
        except Exception as bad:  # noqa: BLE001 - as a room may that pauses what fails
            heard.append(bad)
        tx.run("INSERT INTO told (name) VALUES ('y')")

    async def scene(store: PostgresStore) -> None:
        await store.write(unit)
        assert await told(store) == ["x", "y"]
        assert (len(turns), heard) == (3, [])

    play(url, scene)


def test_who_meets_a_new_key_runs_again_and_sees_who_has_it(postgres_url: str) -> None:
    def unit(tx: Tx) -> str:
        if tx.one("SELECT value FROM house WHERE name = 'k'") is not None:
            return "there"
        tx.run("INSERT INTO house (name, value) VALUES ('k', 'v')")
        return "made"

    async def scene(store: PostgresStore) -> None:
        answers = await asyncio.gather(*(store.write(unit) for _ in range(12)))
        assert sorted(answers) == ["made"] + ["there"] * 11

    play(postgres_url, scene)


def test_a_key_that_stays_taken_is_the_units_own_fault(url: str) -> None:
    turns: list[int] = []

    def unit(tx: Tx) -> None:
        turns.append(1)
        tx.run("INSERT INTO house (name, value) VALUES ('schema', 'v')")

    async def scene(store: PostgresStore) -> None:
        with pytest.raises(asyncpg.UniqueViolationError):
            await store.write(unit)
        assert len(turns) == MOST_REPEATS

    play(url, scene)


def test_one_that_is_alone_keeps_other_nodes_away_too(url: str) -> None:
    inside: set[int] = set()

    def unit(number: int) -> Callable[[Tx], None]:
        def run(tx: Tx) -> None:
            alone = number % 8 == 0
            if alone:
                tx.alone()
            inside.add(number)
            try:
                for _ in range(5):
                    tx.one("SELECT 1")
                    assert not alone or inside == {number}
            finally:
                inside.discard(number)

        return run

    async def run() -> None:
        async with opened(url) as one, opened(url) as other:
            await asyncio.gather(*((one if n % 2 else other).write(unit(n)) for n in range(60)))

    asyncio.run(run())


def test_stripes_are_spread_over_the_connections(url: str) -> None:
    def unit(tx: Tx) -> int:
        tx.one("SELECT 1")
        return tx.stripe

    async def scene(store: PostgresStore) -> None:
        stripes = await asyncio.gather(*(store.write(unit) for _ in range(200)))
        assert set(stripes) == set(range(STRIPES))

    play(url, scene)


# -- what fails ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "params", "error"),
    [
        ("INSERT INTO told (name) VALUES (?)", (7,), "expected str"),
        ("SELECT nothing FROM told", (), "does not exist"),
        ("SELECT CAST(CAST(? AS TEXT) AS BIGINT)", ("seven",), "invalid input syntax"),
        ("SELECT 1 / CAST(? AS BIGINT)", (0,), "division by zero"),
        ("SELECT name FROM told WHERE name = ?", (), "expects 1 argument"),
    ],
)
@pytest.mark.parametrize("way", ["write", "read", "look"])
def test_a_fault_of_ours_is_said_at_once_and_shows_where(
    url: str, sql: str, params: tuple[Any, ...], error: str, way: str
) -> None:
    def faulty_unit(tx: Tx) -> None:
        tx.all(sql, params)

    async def scene(store: PostgresStore) -> None:
        began = time.monotonic()
        with pytest.raises(Exception, match=error) as caught:
            await getattr(store, way)(faulty_unit)
        assert not isinstance(caught.value, StoreError)
        assert time.monotonic() - began < 2
        assert "faulty_unit" in "".join(traceback.format_exception(caught.value))
        assert store.counters.replays == 0
        assert await store.write(tell("next")) == "next"

    play(url, scene)


def test_a_unit_that_goes_on_over_a_failed_statement_is_not_acknowledged(url: str) -> None:
    def careless(tx: Tx) -> None:
        tx.run("INSERT INTO told (name) VALUES ('lost')")
        try:
            tx.one("SELECT nothing FROM told")
        except asyncpg.UndefinedColumnError:
            return

    def careful(tx: Tx) -> None:
        tx.run("INSERT INTO told (name) VALUES ('kept')")
        tx.run("SAVEPOINT here")
        try:
            tx.one("SELECT nothing FROM told")
        except asyncpg.UndefinedColumnError:
            tx.run("ROLLBACK TO here")

    async def scene(store: PostgresStore) -> None:
        with pytest.raises(AssertionError, match="rolled back"):
            await store.write(careless)
        await store.write(careful)
        assert await told(store) == ["kept"]

    play(url, scene)


@pytest.mark.parametrize(
    ("code", "error", "said"),
    [
        ("53100", StoreFull, "disk is full; nothing was changed"),
        ("25006", StoreError, "only reads now"),
        ("57014", StoreError, "refused"),
        ("53200", StoreError, "refused"),
        ("42501", StoreError, "refused"),
    ],
)
def test_what_the_server_refuses_is_put_into_words(url: str, code: str, error: type[StoreError], said: str) -> None:
    """The codes are the server's; what brings them about (a full disk, say) is not: it raises them as it is told."""

    def unit(tx: Tx) -> None:
        tx.run("INSERT INTO told (name) VALUES ('x')")
        tx.run(FAIL.format(code))

    async def scene(store: PostgresStore) -> None:
        with pytest.raises(error, match=said):
            await store.write(unit)
        assert await told(store) == []

    play(url, scene)


def test_a_statement_that_does_not_end_is_given_up_with_its_connection(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "COMMAND_S", 0.3)

    async def scene(store: PostgresStore) -> None:
        began = time.monotonic()
        for way in (store.write, store.read, store.look):
            with pytest.raises(StoreError, match="can't be reached"):
                await way(lambda tx: tx.one(SLOW.format(30)))
        assert time.monotonic() - began < 10
        assert await store.write(tell("next")) == "next"

    play(url, scene, patience_s=0.5, connections=1)


def test_who_waits_too_long_for_a_connection_is_told(url: str) -> None:
    async def scene(store: PostgresStore) -> None:
        slow = asyncio.ensure_future(store.write(lambda tx: tx.one(SLOW.format(1))))
        await asyncio.sleep(0)
        for way in (store.write, store.read, store.look):
            with pytest.raises(StoreError, match="in use for too long; nothing was changed"):
                await way(lambda tx: tx.one("SELECT 1"))
        await slow
        assert await store.write(tell("next")) == "next"

    play(url, scene, patience_s=0.2, connections=1)


def test_tables_that_changed_under_a_prepared_statement_are_seen_anew(postgres_url: str) -> None:
    everything = "SELECT * FROM told"

    async def scene(store: PostgresStore) -> None:
        ways: list[Callable[..., Awaitable[Any]]] = [store.write, store.read, store.look]
        await store.write(tell("x"))
        for number, way in enumerate(ways):
            assert len((await way(lambda tx: tx.all(everything)))[0]) == number + 1
            ask(base_of(postgres_url), f"ALTER TABLE {store.address.schema}.told ADD COLUMN c{number} BIGINT")
            assert len((await way(lambda tx: tx.all(everything)))[0]) == number + 2

    play(postgres_url, scene, connections=1)


def test_a_node_of_a_schema_that_was_changed_gets_no_new_connection(postgres_url: str) -> None:
    async def scene(store: PostgresStore) -> None:
        await store.write(lambda tx: tx.run("UPDATE house SET value = '9999' WHERE name = 'schema'"))
        ask(base_of(postgres_url), SEND_AWAY, f"tasuki {store.address.schema}")
        with pytest.raises(StoreNewer, match="has schema 9999 now, and this node knows"):
            await store.write(tell("x"))

    play(postgres_url, scene)


SEND_AWAY = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1"

# -- who goes away --------------------------------------------------------------------------------------------------


def test_any_exception_ends_a_unit_and_leaves_no_greenlet(url: str) -> None:
    class Odd(BaseException):
        pass

    def odd(tx: Tx) -> None:
        tx.run("INSERT INTO told (name) VALUES ('odd')")
        raise Odd

    async def scene(store: PostgresStore) -> None:
        for _ in range(30):
            with pytest.raises(Odd):
                await store.write(odd)
        assert await told(store) == []
        gc.collect()
        left = [one for one in gc.get_objects() if isinstance(one, greenlet) and not one.dead]
        assert len(left) <= 1 + 2, "the thread's own, and one for each connection"

    play(url, scene, connections=2)


def test_a_loop_may_be_run_by_one_thread_and_then_by_another(url: str) -> None:
    loop = asyncio.new_event_loop()
    context = opened(url, connections=1)
    store = loop.run_until_complete(context.__aenter__())
    loop.run_until_complete(make_told(store))
    with ThreadPoolExecutor(1) as aside:
        assert aside.submit(loop.run_until_complete, store.write(tell("x"))).result() == "x"
    assert loop.run_until_complete(told(store)) == ["x"]
    loop.run_until_complete(context.__aexit__(None, None, None))
    loop.close()


def test_a_caller_that_goes_away_in_mid_statement_leaves_the_connection_in_order(url: str) -> None:
    async def busy(store: PostgresStore) -> bool:
        return bool(await store.look(lambda tx: tx.one(ACTIVE, (store.address.schema,))))

    async def scene(store: PostgresStore) -> None:
        for way in (store.read, store.look):
            for _ in range(5):
                task = asyncio.ensure_future(way(lambda tx: tx.one(SLOW.format(30))))
                while not await busy(store):
                    pass
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
        assert await store.write(tell("next")) == "next"

    play(url, scene, connections=2)


ACTIVE = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'tasuki ' || ? AND query LIKE 'SELECT pg_sleep%' AND state = 'active'"


def test_closing_lets_units_in_hand_end_and_leaves_no_task(url: str) -> None:
    async def run() -> None:
        async with opened(url, connections=4) as store:
            await make_told(store)
            units = [asyncio.ensure_future(store.write(tell(f"{n:02}"))) for n in range(40)]
            await units[3]
            store.close()
            done = await asyncio.gather(*units, return_exceptions=True)
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1
        kept = [one for one in done if isinstance(one, str)]
        refused = [one for one in done if isinstance(one, StoreError)]
        assert len(kept) + len(refused) == 40
        assert refused
        assert all("stopping; nothing was changed" in str(one) for one in refused)
        async with opened(url) as again:
            assert await told(again) == sorted(kept)

    asyncio.run(run())


def test_a_store_that_never_opened_can_be_closed() -> None:
    async def run() -> None:
        with pytest.raises(StoreError, match="No database server answers"):
            async with opened("postgresql://nobody@127.0.0.1:1/nothing", patience_s=1):
                pass
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(run())


# -- the clock ------------------------------------------------------------------------------------------------------


class Counter:
    """Milliseconds since a machine was switched on, as a test says."""

    now = 0

    def __call__(self) -> int:
        return self.now


def test_the_databases_clock_goes_on_between_answers_and_never_back() -> None:
    wall, steady = ManualClock(), Counter()
    clock = DatabaseClock(wall, steady)
    assert clock.saw(1_000_000, 2) == 1_000_000
    steady.now = 500
    assert clock.now() == 1_000_500
    wall.set(wall.now() + 3_600_000)  # somebody sets this machine's clock
    assert clock.now() == 1_000_500
    assert clock.saw(1_000_400, 0) == 1_000_500
    assert clock.now() == 1_000_500
    assert clock.ahead_ms == 1_000_400 - wall.now()


def test_a_slow_answer_does_not_move_the_databases_clock() -> None:
    steady = Counter()
    clock = DatabaseClock(ManualClock(), steady)
    clock.saw(1_000_000, 1)
    steady.now = 4_000
    assert clock.saw(1_000_100, 4_000) == 1_000_100  # what the database said 3.9 s ago
    assert clock.now() == 1_004_000
    steady.now = 20_000
    clock.saw(1_019_000, 2_000)  # the quick one was long ago: now this one counts, and it may be behind, never ahead
    assert clock.now() == 1_019_000


def test_the_time_of_a_unit_is_the_databases_and_the_same_for_all_nodes(url: str) -> None:
    async def run() -> None:
        async with opened(url) as one, opened(url) as other:
            instants = [await store.write(lambda tx: tx.now) for _ in range(20) for store in (one, other)]
            assert instants == sorted(instants)
            ((server,),) = ask(base_of(url), "SELECT extract(epoch FROM clock_timestamp()) * 1000")
            assert abs(one.clock.now() - float(server)) < 500

    asyncio.run(run())


def test_no_message_shows_the_password() -> None:
    secret = "guess-me"
    store_url = f"postgresql://nobody:{secret}@127.0.0.1:1/nothing"
    with pytest.raises(StoreError) as caught:
        play(store_url, make_told, patience_s=1)
    assert secret not in "".join(traceback.format_exception(caught.value))
