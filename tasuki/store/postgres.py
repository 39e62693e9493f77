"""PostgreSQL: units beside each other, each a short transaction on a pooled connection.

Theory of operation::

    write(unit) ─► a connection ─► BEGIN, the house lock (shared), xid and time ─► unit ─► COMMIT ─► bells, reply
                                      │                                             │        │
                                      │        met another unit: ROLLBACK, again ◄──┘        │ connection lost: what
                                      └─ the connection is gone: another one, again          ▼ became of our xid?
                                                                     committed ─► reply · aborted ─► again · else: say so

A commit is acknowledged when the server has flushed it (`synchronous_commit = on`, whatever the server's default is). A unit
may run again from the top until its COMMIT is sent; from then on only the server knows, and is asked by the transaction id
(`pg_xact_status`). After a failover to an asynchronous standby nobody knows: the caller is told that.

What keeps units apart stands in store.py. Reads run in a READ ONLY snapshot; looks without any transaction.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg

from tasuki.store import postgres_schema
from tasuki.store.postgres_address import Address, read_address
from tasuki.store.postgres_bell import PostgresBell
from tasuki.store.postgres_clock import DatabaseClock
from tasuki.store.postgres_errors import BROKEN, Failed, caller_error, connect_error, sort_of, wrong_url
from tasuki.store.postgres_outcome import is_committed, origin_of
from tasuki.store.postgres_seats import NoSeat, Seat, Seats
from tasuki.store.postgres_tx import PostgresTx, WantsAlone, play
from tasuki.store.store import MOST_TURNS, STRIPES, Conflict, T, Unit
from tasuki.values.chance import Chance
from tasuki.values.errors import StoreError
from tasuki.values.instant import Clock, Instant

CONNECTIONS = 16
"""Connections of a node for units, and so units that run at once."""
PATIENCE_S = 10.0
"""How long a unit waits for a connection, or a database that is not there (restarted, say), before its caller hears of it."""
OUTCOME_PATIENCE = 3
"""So many times longer, whoever lost the answer of a commit waits for word of it."""
COMMAND_S = 20.0
"""How long a statement may take before its connection counts as lost. Longer than `lock_timeout`: the server's word comes first."""
MOST_REPEATS = 20
"""How often a unit runs again for a unique key: the second time it sees who has it, and each time there may be yet another."""
FROZEN_S = 5
"""How long a unit may do nothing before the server ends it: its node is frozen, and others wait for its rows, or for the
house, no longer than `PATIENCE_S`. A unit that was ended so by mistake runs again."""
_STOPPING = "The node is stopping; nothing was changed."
_BUSY = "All connections to the database were in use for too long; nothing was changed. Try again."

_SETTINGS = {
    "synchronous_commit": "on",
    "lock_timeout": "15s",
    "idle_in_transaction_session_timeout": f"{FROZEN_S}s",
    "jit": "off",
}
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_HOUSE_LOCK = (
    "SELECT pg_advisory_xact_lock{shared}($1, $2), pg_current_xact_id()::text, "
    "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
)
_TIME = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_SHARED, _ALONE = _HOUSE_LOCK.format(shared="_shared"), _HOUSE_LOCK.format(shared="")
_LOCK_CLASS = 0x7A5C1


@dataclass(slots=True)
class Counters:
    """What a store did since it was opened."""

    units: int = 0
    statements: int = 0
    replays: int = 0
    reconnects: int = 0
    outcomes_asked: int = 0


class PostgresStore:
    """A schema of a PostgreSQL database, shared with any number of other nodes.

    `wall` is this machine's clock, `steady` one that is never set. `clock` and `real_clock` are for tests that hold the time; left out, both times are the database's.
    """

    name = "units"

    def __init__(
        self,
        url: str,
        *,
        chance: Chance,
        wall: Clock,
        steady: Callable[[], int] | None = None,
        on_ring: Callable[[str, int], None] = lambda _topic, _times: None,
        clock: Clock | None = None,
        real_clock: Clock | None = None,
        connections: int = CONNECTIONS,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.address: Address = read_address(url)
        self.database_clock = DatabaseClock(wall, steady)
        self.clock: Clock = clock or self.database_clock
        self.real_clock: Clock = real_clock or self.database_clock
        self.counters = Counters()
        self._chance, self._on_ring = chance, on_ring
        self._patience_s = patience_s
        self._seats = Seats(self._sit, connections)
        self._lock_key = 0
        self._bell = PostgresBell(
            lambda: self._connect(synchronous_commit="off"),  # a ring that is lost may be lost
            self.address.schema,
            self.real_clock,
            on_ring,
            self._see_time,
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: set[asyncio.Task[Any]] = set()
        self._next_stripe = chance.bits(32) % STRIPES  # so that nodes begin at different ones
        self._stopping = False

    # -- the outer face -------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Connect, and bring the schema up to date. Raises a `StoreError` with a sentence that says what to do, `ConfigError`."""
        self._loop = asyncio.get_running_loop()
        try:
            connection = await self._connect(lock_timeout="0", application_name="tasuki starts")
        except asyncpg.exceptions.ClientConfigurationError as bad:
            raise wrong_url(bad) from bad
        except (*BROKEN, asyncpg.PostgresError, ValueError) as bad:
            raise connect_error(bad, self.address) from bad
        try:
            await postgres_schema.refuse_pooler(connection, self._connect, self.address)
            await postgres_schema.prepare(connection, self.address)
            self._lock_key = await connection.fetchval("SELECT hashtext($1)", self.address.schema)
            await self._see_time(connection)
            await connection.close(timeout=self._patience_s)
        except (*BROKEN, asyncpg.PostgresError) as bad:
            raise connect_error(bad, self.address) from bad
        finally:
            connection.terminate()
        self._bell.start()

    async def write(self, unit: Unit[T]) -> T:
        """Run a unit; answer after its commit has been flushed. A caller that goes away does not undo it."""
        if self._stopping:
            raise StoreError(_STOPPING)
        task = asyncio.get_running_loop().create_task(self._write(unit))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def commit(self, unit: Unit[T]) -> T:
        """As `write`: a commit that is not waited for would be seen by readers, on other connections, which don't wait for it."""
        return await self.write(unit)

    async def read(self, unit: Unit[T]) -> T:
        """Run a unit that only reads, on a snapshot."""
        return await self._patiently(lambda seat: self._read(seat, unit))

    async def look(self, unit: Unit[T]) -> T:
        """Run a unit that only reads; each of its statements sees what is committed by then."""
        return await self._patiently(lambda seat: self._look(seat, unit))

    @property
    def busy(self) -> int:
        """How many units are being written. They keep the time at which they began, whatever happens to the clock."""
        return len(self._running)

    def fail_pending(self) -> None:
        """Refuse units that come from now on; those that run are let run."""
        self._stopping = True

    def close(self) -> None:
        """Let the units in hand come to their end, and let go of the connections."""
        self.fail_pending()
        loop = self._loop
        if loop is None or loop.is_closed():
            return
        if loop.is_running():
            self._leaving = loop.create_task(self.leave())
        else:
            loop.run_until_complete(self.leave())

    async def leave(self) -> None:
        """Close, for whoever can await it."""
        self.fail_pending()
        try:
            if self._running:
                await asyncio.wait(self._running, timeout=self._patience_s)
            await self._bell.close()
        finally:
            self._seats.close()
        await asyncio.sleep(0)  # the loop lets go of the sockets

    # -- a unit ---------------------------------------------------------------------------------------------

    async def _write(self, unit: Unit[T]) -> T:
        until = asyncio.get_running_loop().time() + self._patience_s
        tries = _Tries()
        is_alone = False
        while True:
            try:
                return await self._once(unit, until, is_alone=is_alone)
            except WantsAlone:
                is_alone = True
            except Conflict as bad:
                await self._before_again(Failed(bad, "met"), tries, until)
            except Failed as bad:
                await self._before_again(bad, tries, until)
            self.counters.replays += 1

    async def _before_again(self, bad: Failed, tries: "_Tries", until: float) -> None:
        """Wait a little before a unit runs again, or raise what its caller gets."""
        why, sort = bad.why, bad.sort
        is_late = asyncio.get_running_loop().time() >= until
        if sort == "gone":
            tries.gone += 1
            self.counters.reconnects += 1
            is_over = is_late
            pause = 0.0 if tries.gone == 1 else 0.05 + self._chance.fraction() * 0.2
        else:
            tries.met += 1
            is_over = tries.met >= (MOST_REPEATS if sort in {"taken", "outdated"} else MOST_TURNS) or is_late
            pause = self._chance.fraction() * 0.002 * min(tries.met, 20)
        if is_over or sort in {"refused", "wrong"}:
            raise caller_error(why, sort, self.address) from why
        await asyncio.sleep(pause)

    async def _once(self, unit: Unit[T], until: float, *, is_alone: bool) -> T:
        """Run a unit once. Raises what the unit raises, and `Failed`."""
        seat = await self._take(until)
        try:
            if self._stopping:
                raise StoreError(_STOPPING)
            xid, tx, result = await self._play(seat, unit, is_alone=is_alone)
            lost = await _commit(seat.connection)
        finally:
            self._seats.give(seat)
        if lost is not None:
            self.counters.outcomes_asked += 1
            if not await is_committed(xid, seat.origin, self._connect, OUTCOME_PATIENCE * self._patience_s):
                raise Failed(lost, "gone")
        self.counters.units += 1
        self.counters.statements += tx.statements
        for topic, times in tx.rings:
            self._on_ring(topic, times)
        if tx.rings:
            self._bell.tell(tx.rings)
        return result

    async def _play(self, seat: Seat, unit: Unit[T], *, is_alone: bool) -> tuple[str, PostgresTx, T]:
        """Run a unit up to its commit; answer its transaction's id, its view of it, and its result."""
        connection = seat.connection
        try:
            with _failing(connection):
                await connection.execute("BEGIN")
                asked = self.database_clock.steady()
                row = await connection.fetchrow(_ALONE if is_alone else _SHARED, _LOCK_CLASS, self._lock_key)
            assert row is not None, "a SELECT of functions answers"
            now, real_now = self._times(row[2], self.database_clock.steady() - asked)
            tx = PostgresTx(connection, now, real_now, self._chance, seat.stripe, is_alone=is_alone)
            return row[1], tx, await play(unit, tx, seat.side)
        except BaseException as bad:
            await _undo(connection, bad)
            raise

    async def _read(self, seat: Seat, unit: Unit[T]) -> T:
        with _failing(seat.connection):
            await seat.connection.execute(_SNAPSHOT)
        result = await self._look(seat, unit)
        with _failing(seat.connection):
            await seat.connection.execute("COMMIT")
        return result

    async def _look(self, seat: Seat, unit: Unit[T]) -> T:
        tx = PostgresTx(seat.connection, self.clock.now(), self.real_clock.now(), self._chance, seat.stripe)
        result = await play(unit, tx, seat.side)
        self.counters.statements += tx.statements
        return result

    async def _patiently(self, work: Callable[[Seat], Coroutine[Any, Any, T]]) -> T:
        """Do what only reads, again on another connection when one is lost."""
        until = asyncio.get_running_loop().time() + self._patience_s
        tries = _Tries()
        while True:
            try:
                seat = await self._take(until)
                try:
                    return await work(seat)
                except BaseException as bad:
                    await _undo(seat.connection, bad)
                    raise
                finally:
                    self._seats.give(seat)
            except Failed as bad:
                await self._before_again(bad, tries, until)

    def _times(self, seen: Instant, trip_ms: int) -> tuple[Instant, Instant]:
        """Answer house time and real time of a unit: the database's, unless somebody holds the clocks."""
        present = self.database_clock.saw(seen, trip_ms)
        now = present if self.clock is self.database_clock else self.clock.now()
        return now, present if self.real_clock is self.database_clock else self.real_clock.now()

    async def _see_time(self, connection: "asyncpg.Connection[Any]") -> None:
        asked = self.database_clock.steady()
        seen = await connection.fetchval(_TIME)
        self.database_clock.saw(seen, self.database_clock.steady() - asked)

    # -- connections ----------------------------------------------------------------------------------------

    async def _take(self, until: float) -> Seat:
        seats = self._seats
        try:
            return await seats.take(until)
        except NoSeat:
            raise StoreError(_BUSY) from None
        except StoreError:
            raise
        except Exception as bad:  # whatever a server or a network has to say to a newcomer
            sort = sort_of(bad, closed=False)
            raise Failed(bad, "refused" if sort == "wrong" else sort) from bad

    async def _sit(self, until: float) -> Seat:
        """Open a connection for units."""
        patience_s = min(self._patience_s, until - asyncio.get_running_loop().time())
        connection = await self._connect(max(patience_s, 0.1))
        try:
            await postgres_schema.refuse_other_version(connection, self.address)
            origin = await origin_of(connection)
        except BaseException:
            connection.terminate()
            raise
        self._next_stripe = (self._next_stripe + 1) % STRIPES  # each connection another one, as far as they go
        return Seat(connection, self._next_stripe, origin)

    async def _connect(self, patience_s: float | None = None, **settings: str) -> "asyncpg.Connection[Any]":
        """Open a connection as all of ours are. Raises the driver's errors."""
        connection: asyncpg.Connection[Any] = await asyncpg.connect(
            self.address.dsn,
            timeout=self._patience_s if patience_s is None else patience_s,
            command_timeout=COMMAND_S,
            statement_cache_size=1_000,
            max_cached_statement_lifetime=0,
            server_settings={
                "search_path": self.address.schema,
                "application_name": postgres_schema.session_name(self.address),
                **_SETTINGS,
                **self.address.settings,
                **settings,
            },
        )
        await connection.set_type_codec("numeric", schema="pg_catalog", encoder=str, decoder=_whole, format="text")
        return connection


@dataclass(slots=True)
class _Tries:
    """How often a unit ran in vain: it met others, or the connection was gone."""

    met: int = 0
    gone: int = 0


@contextmanager
def _failing(connection: "asyncpg.Connection[Any]") -> Iterator[None]:
    """Sort the errors of our own statements, as `play` does a unit's."""
    try:
        yield
    except Exception as bad:
        raise Failed(bad, sort_of(bad, closed=connection.is_closed())) from bad


async def _commit(connection: "asyncpg.Connection[Any]") -> Exception | None:
    """Commit; answer the error that came instead of an answer, if nobody knows yet. Raises `Failed` when it did not commit."""
    try:
        said = await connection.execute("COMMIT")
    except Exception as bad:
        sort = sort_of(bad, closed=connection.is_closed())
        if isinstance(bad, asyncpg.PostgresError) and sort != "gone":
            raise Failed(bad, sort) from bad
        connection.terminate()
        return bad
    except BaseException:
        connection.terminate()
        raise
    assert said == "COMMIT", "a statement of the unit had failed, and the unit went on: everything was rolled back"
    return None


async def _undo(connection: "asyncpg.Connection[Any]", bad: BaseException) -> None:
    """Roll back; a connection that is not known to be whole after `bad` is given up."""
    is_known = isinstance(bad, WantsAlone | Exception) and not (
        isinstance(bad, Failed) and bad.sort in {"gone", "outdated"}
    )
    if is_known and not connection.is_closed():
        try:
            if connection.is_in_transaction():
                await connection.execute("ROLLBACK")
        except Exception:  # noqa: BLE001 - given up, then
            is_known = False
        except BaseException:
            connection.terminate()
            raise
    if not is_known:
        connection.terminate()


def _whole(text: str) -> int | float:
    """Read what a sum of integers is."""
    return float(text) if "." in text else int(text)
