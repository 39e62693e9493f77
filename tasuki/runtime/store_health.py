"""`doctor --store`: how a store is doing, read from outside of any node, and what to do where it is not well."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from tasuki.runtime.clock import WallClock
from tasuki.runtime.which_store import DATABASE, store_of
from tasuki.services.tasks.nodes import HEARD_MS
from tasuki.store import sqlite_file
from tasuki.store.backup import OF_THE_HOUSE
from tasuki.store.migrations import migrations
from tasuki.store.standing import STANDS_AT
from tasuki.values.errors import StoreError, StoreNewer
from tasuki.values.instant import MINUTE, SECOND, Instant, to_iso

Ask = Callable[..., Sequence[Sequence[Any]]]
"""Runs a statement (with `?` for what follows it) and answers its rows."""

COUNTED = 100_000
"""Rows of a table that are counted at most."""
LATE_MS = MINUTE
LARGE_LOG = 256 << 20
CLOCK_MS = SECOND
"""Clocks that differ by this much are worth a word."""
LONG_MS = 5 * MINUTE
MANY_DEAD = 200_000


class Finding(NamedTuple):
    """One thing looked at: `state` is ok, limited (it works, but) or no (something is wrong)."""

    what: str
    state: str
    found: str
    advice: str = ""


_COUNT = "SELECT count(*) FROM (SELECT 1 FROM {} LIMIT {}) few"
_OLDEST_TIMER = "SELECT due, room FROM timers ORDER BY due LIMIT 1"
_READY = "SELECT count(*) FROM (SELECT 1 FROM ready LIMIT ?) few"
_FIRST_READY = (
    "SELECT e.last_at, e.started_at FROM ready r JOIN executions e ON e.id = r.execution ORDER BY r.turn LIMIT 1"
)
_IN_FLIGHT = (
    "SELECT count(*) FROM shelves s JOIN messages m ON m.shelf = s.shelf "
    "WHERE s.queue_id IS NOT NULL AND m.visible_at > ? AND m.receipt IS NOT NULL"
)
_EXPIRED_LEASES = "SELECT count(*) FROM leases WHERE until <= ?"
# What a queue was sent, less what became of it, less what stands there: nothing is left over (promise P8).
_LOST = (
    "SELECT q.name, (SELECT coalesce(CAST(sum(sent + moved_in - deleted - expired - purged - moved_to_dlq - redriven) AS BIGINT), 0) "
    "FROM shelf_counts c WHERE c.shelf = q.shelf) - (SELECT count(*) FROM messages m WHERE m.shelf = q.shelf) "
    "FROM queues q ORDER BY q.name"
)


def examine(data: Path, store: str | None) -> list[Finding]:
    """Look at everything; changes nothing. Raises a `StoreError` when the store cannot be opened, `ConfigError`."""
    url = store_of(data, store)
    return _sqlite(data / DATABASE) if url is None else _postgres(url)


# -- both stores ----------------------------------------------------------------------------------------------------


def _contents(ask: Ask, tables: Sequence[str], now: Instant, stands_at: Instant | None) -> Iterator[Finding]:
    yield _rows(ask, tables)
    house = now if stands_at is None else stands_at
    if stands_at is not None:
        yield Finding("clock", "ok", f"moved by hand; it stands at {to_iso(stands_at)}")
    yield _timers(ask, house)
    yield _ready(ask, house)
    yield Finding("messages in flight", "ok", str(ask(_IN_FLIGHT, house)[0][0]))
    expired = ask(_EXPIRED_LEASES, now)[0][0]
    yield Finding("expired leases", "ok", f"{expired}" + (", free to be taken" if expired else ""))
    yield _conservation(ask)


def _schema(version: int, where: str) -> Finding:
    known = migrations()[-1][0]
    if version > known:
        raise StoreNewer(f"{where} has schema {version}, and this Tasuki knows {known}. Upgrade Tasuki.")
    if version < known:
        raise StoreError(
            f"{where} has schema {version}, and this Tasuki needs {known}. The next `tasuki up` brings it up to date; look then."
        )
    return Finding("schema", "ok", f"version {version}")


def _rows(ask: Ask, tables: Sequence[str]) -> Finding:
    found = [(table, ask(_COUNT.format(table, COUNTED))[0][0]) for table in tables if table not in OF_THE_HOUSE]
    shown = [f"{table} {count if count < COUNTED else f'{COUNTED} or more'}" for table, count in found if count]
    return Finding("rows", "ok", ", ".join(shown) or "none")


def _timers(ask: Ask, now: Instant) -> Finding:
    rows = ask(_OLDEST_TIMER)
    if not rows:
        return Finding("oldest timer", "ok", "none")
    due, room = rows[0]
    if now - due <= LATE_MS:
        said = f"due in {_span(due - now)}" if due > now else "due now"
        return Finding("oldest timer", "ok", f"{said} ({room})")
    return Finding(
        "oldest timer",
        "limited",
        f"overdue by {_span(now - due)} ({room})",
        "start a node; if one runs, its log says what fails",
    )


def _ready(ask: Ask, now: Instant) -> Finding:
    count, first = ask(_READY, COUNTED)[0][0], ask(_FIRST_READY)
    if not first:
        return Finding("executions that wait for a turn", "ok", str(count))
    waited = now - max(first[0])
    late = waited > LATE_MS
    advice = "start a node; if one runs, it is overloaded, or its log says what fails" if late else ""
    return Finding(
        "executions that wait for a turn",
        "limited" if late else "ok",
        f"{count}, the first of them for {_span(waited)}",
        advice,
    )


def _conservation(ask: Ask) -> Finding:
    """Tell whether every message is accounted for: one statement, and so one moment."""
    rows = ask(_LOST)
    wrong = [f"{name} {over:+}" for name, over in rows if over]
    if not wrong:
        return Finding("messages accounted for", "ok", f"{len(rows)} {'queue' if len(rows) == 1 else 'queues'}")
    return Finding(
        "messages accounted for",
        "no",
        f"sent, less what became of it: {', '.join(wrong[:5])}",
        "this should never be; keep a backup (tasuki backup) and report it",
    )


def _span(ms: int) -> str:
    for unit, word in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")):
        if ms >= 2 * unit:
            return f"{ms // unit} {word}"
    return f"{max(ms, 0)} ms"


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"


# -- SQLite ---------------------------------------------------------------------------------------------------------


def _sqlite(path: Path) -> list[Finding]:
    if not path.exists():
        raise StoreError(f"{path} is not there: no node has run on this data directory.")
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as reader:
            reader.set_busy_timeout(sqlite_file.BUSY_MS)
            return list(_sqlite_findings(reader, path))
    except apsw.Error as bad:
        raise StoreError(f"{path} can't be read ({bad}). Restore a backup: tasuki restore FILE --force") from bad


def _sqlite_findings(reader: apsw.Connection, path: Path) -> Iterator[Finding]:
    sqlite_file.migrations_due(reader)  # raises for what is not ours
    yield Finding("store", "ok", f"{path}, SQLite {apsw.sqlite_lib_version()}")
    yield _schema(int(str(reader.pragma("user_version"))), str(path.parent))
    yield Finding("size", "ok", _mib(path.stat().st_size))
    log = path.with_name(f"{path.name}-wal")
    size = log.stat().st_size if log.exists() else 0
    large = size > LARGE_LOG
    advice = (
        "another program has held the file open for long; it shrinks when the node is started again" if large else ""
    )
    yield Finding("log", "limited" if large else "ok", _mib(size), advice)

    def ask(sql: str, *given: Any) -> Sequence[Sequence[Any]]:
        return reader.execute(sql, given).fetchall()

    tables = [row[0] for row in ask("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
    stands = ask(STANDS_AT)
    yield from _contents(ask, sorted(tables), WallClock().now(), stands[0][0] if stands else None)
    found = [str(row[0]) for row in ask("PRAGMA quick_check(3)")]
    whole = found == ["ok"]
    advice = "" if whole else "the disk has lost something: stop the node, keep a copy of the files, restore a backup"
    yield Finding("integrity", "ok" if whole else "no", "; ".join(found), advice)


# -- PostgreSQL -------------------------------------------------------------------------------------------------------

_PG_FACTS = (
    "SELECT current_setting('server_version'), current_setting('synchronous_commit'), current_setting('fsync'), "
    "(SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE n.nspname = $1 AND c.relkind = 'r'), (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'), "
    "current_setting('max_connections')::int, (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
)
_PG_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = $1 ORDER BY tablename"
_PG_REPLICAS = "SELECT coalesce(application_name, ''), sync_state FROM pg_stat_replication"
# Every node that has joined, with how many tasks it has in hand; and tasks of nodes that nobody knows.
_PG_NODES = (
    "SELECT id, host, seen_at, stopped_at, lost_at, (SELECT count(*) FROM tasks WHERE node = nodes.id AND stopped_at IS NULL) "
    "FROM nodes ORDER BY joined_at, id"
)
_PG_UNKNOWN = (
    "SELECT count(*) FROM tasks WHERE stopped_at IS NULL AND node IS NOT NULL "
    "AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = tasks.node)"
)
_PG_LONG = (
    "SELECT pid, coalesce(application_name, ''), (extract(epoch FROM now() - xact_start) * 1000)::bigint FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start < now() - $1 * interval '1 millisecond' "
    "ORDER BY xact_start LIMIT 5"
)


_PG_DEAD = (
    "SELECT current_setting('autovacuum'), coalesce(sum(n_live_tup), 0)::bigint, coalesce(sum(n_dead_tup), 0)::bigint "
    "FROM pg_stat_user_tables WHERE schemaname = $1"
)


def _postgres(url: str) -> list[Finding]:
    from tasuki.store import postgres_schema  # its driver is loaded only where it is used
    from tasuki.store.backup_postgres import connected
    from tasuki.store.postgres_dialect import statement

    async def look() -> list[Finding]:
        async with connected(url, read_only=True) as (connection, address):
            version = await postgres_schema.version_of(connection, address)
            if not version:
                raise StoreError(f"{address.shown} holds no house yet: no node has run there.")
            asked = WallClock().now()
            facts = await connection.fetchrow(_PG_FACTS, address.schema)
            heard = WallClock().now()
            assert facts is not None
            found = [
                Finding("store", "ok", f"{address.shown}, PostgreSQL {facts[0]}"),
                _schema(version, address.shown),
                *server_findings(tuple(facts), (asked + heard) // 2),
                replicas(await connection.fetch(_PG_REPLICAS)),
                long_transactions(await connection.fetch(_PG_LONG, LONG_MS)),
                dead_rows(tuple(await connection.fetchrow(_PG_DEAD, address.schema) or ("on", 0, 0))),
                nodes_finding(await connection.fetch(_PG_NODES), await connection.fetchval(_PG_UNKNOWN), facts[6]),
            ]
            tables = [row[0] for row in await connection.fetch(_PG_TABLES, address.schema)]
            # What both stores are asked is written for one that answers at once: it is asked ahead.
            answers: dict[tuple[Any, ...], Sequence[Sequence[Any]]] = {}
            stands_at = await connection.fetchval(STANDS_AT)
            for sql, *given in _asked(tables, facts[6], stands_at):
                answers[sql, *given] = await connection.fetch(statement(sql), *given)
            return found + list(_contents(lambda *words: answers[words], tables, facts[6], stands_at))

    return asyncio.run(look())


def _asked(tables: Sequence[str], now: Instant, stands_at: Instant | None) -> list[tuple[Any, ...]]:
    """Answer all that `_contents` asks."""
    asked: list[tuple[Any, ...]] = []

    def ask(*words: Any) -> Sequence[Sequence[Any]]:
        asked.append(words)
        return [] if words[0] in {_OLDEST_TIMER, _FIRST_READY, _LOST} else [(0,)]

    list(_contents(ask, tables, now, stands_at))
    return asked


def server_findings(facts: Sequence[Any], asked_at: Instant) -> Iterator[Finding]:
    """Judge what the server says of itself (`_PG_FACTS`), asked at an instant of this machine."""
    _, commit, fsync, size, connections, most, now = facts
    yield Finding("size", "ok", _mib(size))
    full = connections * 5 > most * 4
    advice = "raise max_connections, or run fewer nodes (each takes up to 17)" if full else ""
    yield Finding("connections", "limited" if full else "ok", f"{connections} of {most}", advice)
    found = f"synchronous_commit {commit} (nodes ask for on), fsync {fsync}"
    safe = fsync == "on"
    yield Finding(
        "durability",
        "ok" if safe else "no",
        found,
        "" if safe else "with fsync off a power cut loses what was acknowledged; turn it on",
    )
    ahead = now - asked_at
    apart = abs(ahead) > CLOCK_MS
    words = (
        "alike to a second"
        if not apart
        else f"the database is {_span(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'} this machine"
    )
    advice = "all nodes go by the database's clock, but signatures by this machine's: set it (NTP)" if apart else ""
    yield Finding("clocks", "limited" if apart else "ok", words, advice)


def dead_rows(facts: Sequence[Any]) -> Finding:
    """Judge what changed and deleted rows have left behind (`_PG_DEAD`): the server's autovacuum is to sweep it up."""
    autovacuum, live, dead = facts
    found = f"{dead} beside {live} live ones, autovacuum {autovacuum}"
    if autovacuum != "on":
        return Finding(
            "dead rows", "limited", found, "turn autovacuum on: without it tables only grow, and all gets slower"
        )
    behind = dead > MANY_DEAD and dead > 3 * live
    advice = "autovacuum does not keep up: look for long transactions, or lower autovacuum_naptime" if behind else ""
    return Finding("dead rows", "limited" if behind else "ok", found, advice)


def replicas(rows: Sequence[Sequence[Any]]) -> Finding:
    """Tell which standbys there are: (name, state)."""
    if not rows:
        return Finding("replication", "ok", "no standby is connected (or this user may not see it)")
    shown = ", ".join(f"{name or 'a standby'} {state}" for name, state in rows)
    waits = any(state in {"sync", "quorum"} for _, state in rows)
    advice = "" if waits else "after a failover to an asynchronous standby the last commits may be missing"
    return Finding("replication", "ok", shown, advice)


def nodes_finding(rows: Sequence[Sequence[Any]], unknown: int, now: Instant) -> Finding:
    """Tell which nodes are there, and which have tasks and are not.

    Rows are (id, host, seen at, stopped at, lost at, tasks in hand); `unknown` counts the tasks of nodes that have no row.
    """
    counts: dict[str, int] = {}
    missed: list[str] = []
    state = "ok"
    for name, host, seen_at, stopped_at, lost_at, tasks in rows:
        is_up = stopped_at is None and lost_at is None and now - seen_at <= HEARD_MS
        word = "up" if is_up else "lost" if lost_at is not None else "stopped" if stopped_at is not None else "silent"
        counts[word] = counts.get(word, 0) + 1
        if tasks and not is_up:
            missed.append(
                f"{name} on {host or 'a host unknown'} is {word} since {_span(now - seen_at)}, with {tasks} tasks"
            )
            state = "limited" if word == "stopped" and state == "ok" else "no" if word != "stopped" else state
    if unknown:
        missed.append(f"{unknown} {'tasks are' if unknown > 1 else 'task is'} of a node that nobody knows")
        state = "no"
    words = ", ".join(f"{count} {word}" for word, count in counts.items()) or "none has joined"
    advice = (
        "" if state == "ok" else "start them again on their data directories; else their tasks end, and Retry decides"
    )
    return Finding("nodes", state, "; ".join([words, *missed[:5]]), advice)


def long_transactions(rows: Sequence[Sequence[Any]]) -> Finding:
    """Tell who holds a transaction open for long: (pid, name, milliseconds)."""
    if not rows:
        return Finding("long transactions", "ok", "none")
    shown = ", ".join(f"pid {pid} ({name or 'unnamed'}) for {_span(ms)}" for pid, name, ms in rows)
    return Finding(
        "long transactions", "limited", shown, "they keep the server from cleaning up; end them if they are stuck"
    )
