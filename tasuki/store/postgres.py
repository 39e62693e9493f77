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
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import asyncpg

from tasuki.store import postgres_schema
from tasuki.store.postgres_address import Address, read_address
from tasuki.store.postgres_bell import PostgresBell
from tasuki.store.postgres_clock import DatabaseClock
from tasuki.store.postgres_errors import GONE, MET, OutcomeUnknown, clear_error, connect_error
from tasuki.store.postgres_tx import PostgresTx, WantsAlone, play
from tasuki.store.store import STRIPES, Conflict, T, Unit
from tasuki.values.chance import Chance
from tasuki.values.errors import StoreError
from tasuki.values.instant import Clock, Instant

log = logging.getLogger("tasuki.store")

CONNECTIONS = 16
"""Connections of a node for units, and so units that run at once."""
PATIENCE_S = 10.0
"""How long a unit waits for a database that is not there (restarted, say) before its caller hears of it."""
MOST_TURNS = 50
"""How often a unit runs again that meets others; then its caller hears of it."""
MOST_REPEATS = 3
"""How often a unit runs again for a unique key: the second time it sees who has it."""
_STOPPING = "The node is stopping; nothing was changed."
_UNREACHABLE = "The database can't be reached; nothing was changed. Try again."

_HOUSE_LOCK = (
    "SELECT pg_advisory_xact_lock{shared}($1, $2), pg_current_xact_id()::text, "
    "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
)
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

    `wall` is this machine's clock. `clock` and `real_clock` are for tests that hold the time; left out, both times are the database's.
    """

    def __init__(
        self,
        url: str,
        *,
        chance: Chance,
        wall: Clock,
        on_ring: Callable[[str, int], None] = lambda _topic, _times: None,
        clock: Clock | None = None,
        real_clock: Clock | None = None,
        connections: int = CONNECTIONS,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.address: Address = read_address(url)
        self.database_clock = DatabaseClock(wall)
        self.clock: Clock = clock or self.database_clock
        self.real_clock: Clock = real_clock or self.database_clock
        self.counters = Counters()
        self._chance, self._on_ring = chance, on_ring
        self._patience_s, self._connections = patience_s, connections
        self._pool: asyncpg.Pool[Any] | None = None
        self._lock_key = 0
        self._bell = PostgresBell(self._connect, self.address.schema, self.real_clock, on_ring)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: set[asyncio.Task[Any]] = set()
        self._stripes: dict[int, int] = {}
        self._next_stripe = chance.bits(32) % STRIPES  # so that nodes begin at different ones
        self._stopping = False

    # -- the outer face -------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Connect, and bring the schema up to date. Raises a `StoreError` with a sentence that says what to do."""
        self._loop = asyncio.get_running_loop()
        try:
            connection = await self._connect()
        except (*GONE, asyncpg.PostgresError, ValueError) as bad:
            raise connect_error(bad, self.address) from bad
        try:
            await postgres_schema.prepare(connection, self.address)
            self._lock_key = await connection.fetchval("SELECT hashtext($1)", self.address.schema)
            seen = await connection.fetchval("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
            self.database_clock.saw(seen)
        finally:
            await connection.close()
        self._pool = asyncpg.create_pool(
            min_size=0,
            max_size=self._connections,
            connect=lambda *_, **__: self._connect(),  # the pool's own way would lay its settings over ours
            reset=_leave_as_it_is,
            max_queries=1 << 62,
            max_inactive_connection_lifetime=60,
        )
        await self._pool
        self._bell.start()

    async def write(self, unit: Unit[T]) -> T:
        """Run a unit; answer after its commit has been flushed. A caller that goes away does not undo it."""
        if self._stopping:
            raise StoreError(_STOPPING)
        task = asyncio.get_running_loop().create_task(self._write(unit))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def read(self, unit: Unit[T]) -> T:
        """Run a unit that only reads, on a snapshot."""
        return await self._patiently(lambda connection: self._read(connection, unit))

    async def look(self, unit: Unit[T]) -> T:
        """Run a unit that only reads; each of its statements sees what is committed by then."""
        return await self._patiently(lambda connection: self._look(connection, unit))

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
            self._closing = loop.create_task(self._close())
        else:
            loop.run_until_complete(self._close())

    async def _close(self) -> None:
        if self._running:
            await asyncio.wait(self._running, timeout=self._patience_s)
        await self._bell.close()
        if self._pool is not None:
            self._pool.terminate()
            await asyncio.sleep(0)

    # -- a unit ---------------------------------------------------------------------------------------------

    async def _write(self, unit: Unit[T]) -> T:
        is_alone, turns, repeats = False, 0, 0
        loop = asyncio.get_running_loop()
        gone_since: float | None = None
        while True:
            try:
                return await self._once(unit, is_alone=is_alone)
            except WantsAlone:
                is_alone = True
            except asyncpg.UniqueViolationError as bad:
                repeats += 1
                if repeats >= MOST_REPEATS:
                    raise clear_error(bad, self.address) from bad
            except (Conflict, *MET) as bad:
                turns += 1
                if turns >= MOST_TURNS:
                    raise StoreError("Too many units met at the same rows; nothing was changed. Try again.") from bad
                await asyncio.sleep(self._chance.fraction() * 0.002 * min(turns, 20))
            except asyncpg.DataError:
                raise  # a value that a column cannot hold: ours, not the connection's
            except GONE as bad:
                gone_since = gone_since or loop.time()
                if loop.time() - gone_since > self._patience_s:
                    raise StoreError(_UNREACHABLE) from bad
                self.counters.reconnects += 1
                await asyncio.sleep(0.05 + self._chance.fraction() * 0.2)
            except asyncpg.PostgresError as bad:
                raise clear_error(bad, self.address) from bad
            self.counters.replays += 1

    async def _once(self, unit: Unit[T], *, is_alone: bool) -> T:
        """Run a unit once. Raises what the unit raises, and the driver's errors."""
        pool = self._pool
        assert pool is not None, "open comes first"
        async with pool.acquire() as connection:
            await connection.execute("BEGIN")
            committing = False
            xid = ""
            try:
                row = await connection.fetchrow(_ALONE if is_alone else _SHARED, _LOCK_CLASS, self._lock_key)
                assert row is not None, "a SELECT of functions answers"
                _, xid, seen = row
                now, real_now = self._times(seen)
                tx = PostgresTx(connection, now, real_now, self._chance, self._stripe_of(connection), is_alone=is_alone)
                result = await play(unit, tx)
                committing = True
                await connection.execute("COMMIT")
            except GONE as bad:
                if not committing:
                    raise
                await self._ask_outcome(xid, bad)
            except BaseException:
                if not connection.is_closed():
                    await _roll_back(connection)
                raise
        self.counters.units += 1
        self.counters.statements += tx.statements
        for topic, times in tx.rings:
            self._on_ring(topic, times)
        if tx.rings:
            self._bell.tell(tx.rings)
        return result

    async def _ask_outcome(self, xid: str, lost: Exception) -> None:
        """The connection was lost while it committed. Returns if it is committed; raises `GONE`'s error if it is not."""
        self.counters.outcomes_asked += 1
        loop = asyncio.get_running_loop()
        until = loop.time() + 3 * self._patience_s
        while loop.time() < until:
            try:
                connection = await self._connect()
                try:
                    status = await connection.fetchval("SELECT pg_xact_status($1::text::xid8)", xid)
                finally:
                    await connection.close()
            except (*GONE, StoreError):
                await asyncio.sleep(0.1)
                continue
            except asyncpg.PostgresError as bad:  # a transaction of the future: this is another server than it was
                raise OutcomeUnknown from bad
            if status == "committed":
                return
            if status == "aborted":
                raise lost
            if status is None:
                break
            await asyncio.sleep(0.02)
        raise OutcomeUnknown from lost

    async def _read(self, connection: "asyncpg.pool.PoolConnectionProxy[Any]", unit: Unit[T]) -> T:
        await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            return await self._look(connection, unit)
        finally:
            if not connection.is_closed():
                await _roll_back(connection)

    async def _look(self, connection: "asyncpg.pool.PoolConnectionProxy[Any]", unit: Unit[T]) -> T:
        tx = PostgresTx(connection, self.clock.now(), self.real_clock.now(), self._chance)
        result = await play(unit, tx)
        self.counters.statements += tx.statements
        return result

    async def _patiently(self, work: "Callable[[asyncpg.pool.PoolConnectionProxy[Any]], Coroutine[Any, Any, T]]") -> T:
        """Do what only reads, again on another connection when one is lost."""
        pool = self._pool
        assert pool is not None, "open comes first"
        loop = asyncio.get_running_loop()
        until = loop.time() + self._patience_s
        while True:
            try:
                async with pool.acquire() as connection:
                    return await work(connection)
            except asyncpg.DataError:
                raise
            except GONE as bad:
                if loop.time() > until:
                    raise StoreError(_UNREACHABLE) from bad
                await asyncio.sleep(0.05 + self._chance.fraction() * 0.2)
            except asyncpg.PostgresError as bad:
                raise clear_error(bad, self.address) from bad

    def _stripe_of(self, connection: "asyncpg.pool.PoolConnectionProxy[Any]") -> int:
        """Answer a connection's stripe: each of this node's another one, as far as they go."""
        pid = connection.get_server_pid()
        stripe = self._stripes.get(pid)
        if stripe is None:
            if len(self._stripes) > 100 * STRIPES:
                self._stripes.clear()  # of connections that are long gone
            self._next_stripe = (self._next_stripe + 1) % STRIPES
            stripe = self._stripes[pid] = self._next_stripe
        return stripe

    def _times(self, seen: Instant) -> tuple[Instant, Instant]:
        """Answer house time and real time of a unit: the database's, unless somebody holds the clocks."""
        present = self.database_clock.saw(seen)
        now = present if self.clock is self.database_clock else self.clock.now()
        return now, present if self.real_clock is self.database_clock else self.real_clock.now()

    # -- connections ----------------------------------------------------------------------------------------

    async def _connect(self) -> "asyncpg.Connection[Any]":
        """Open a connection as all of ours are. Raises the driver's errors."""
        settings = {"search_path": self.address.schema, "application_name": "tasuki"} | _SETTINGS
        connection: asyncpg.Connection[Any] = await asyncpg.connect(
            self.address.dsn,
            timeout=self._patience_s,
            command_timeout=60,
            statement_cache_size=1_000,
            max_cached_statement_lifetime=0,
            server_settings={**settings, **self.address.settings},
        )
        await connection.set_type_codec("numeric", schema="pg_catalog", encoder=str, decoder=_whole, format="text")
        return connection


_SETTINGS = {
    "synchronous_commit": "on",
    "lock_timeout": "15s",
    "idle_in_transaction_session_timeout": "60s",  # of a node that was frozen in mid-unit: others need its rows
    "jit": "off",
}


async def _roll_back(connection: "asyncpg.pool.PoolConnectionProxy[Any]") -> None:
    try:
        await connection.execute("ROLLBACK")
    except (*GONE, asyncpg.PostgresError):
        connection.terminate()


async def _leave_as_it_is(_connection: Any) -> None:
    """Spare the round trip that a pool makes to clean a connection: units leave nothing behind."""


def _whole(text: str) -> int | float:
    """Read what a sum of integers is."""
    return float(text) if "." in text else int(text)
