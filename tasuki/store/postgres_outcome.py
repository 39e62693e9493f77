"""What became of a commit whose answer was lost: the server is asked, by the transaction's id."""

import asyncio
from typing import TYPE_CHECKING, Any

import asyncpg

from tasuki.store.postgres_errors import GONE, OutcomeUnknown
from tasuki.values.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

GIVE_UP_AFTER_S = 1.0
"""A transaction that is still in progress then has lost us: it is ended, so that there is an answer."""
_GLANCE_S = 0.02
_PAUSE_S = 0.1

ORIGIN = (
    "SELECT (SELECT system_identifier FROM pg_control_system())::text || ' ' || "
    "left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)"
)
"""Which server's history a connection stands in: a standby that took over has another timeline, and its own idea of our ids."""
_STATUS = "SELECT pg_xact_status($1::text::xid8)"
_END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_xid = xid($1::text::xid8)"


async def origin_of(connection: "asyncpg.Connection[Any]") -> str:
    """Answer it, or "" where the server does not tell."""
    try:
        return str(await connection.fetchval(ORIGIN))
    except (asyncpg.InsufficientPrivilegeError, asyncpg.FeatureNotSupportedError, asyncpg.UndefinedFunctionError):
        return ""


async def is_committed(
    xid: str, origin: str, connect: "Callable[[], Awaitable[asyncpg.Connection[Any]]]", patience_s: float
) -> bool:
    """Answer whether a transaction committed, waiting for the server, and for the transaction's end.

    Raises `OutcomeUnknown` when nobody can tell: the server stays away, forgot it, or is another one.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    is_ended = False
    while loop.time() - began < patience_s:
        try:
            connection = await connect()
        except (*GONE, asyncpg.InterfaceError, StoreError):
            await asyncio.sleep(_PAUSE_S)
            continue
        try:
            if origin and (here := await origin_of(connection)) and here != origin:
                raise OutcomeUnknown
            while loop.time() - began < patience_s:
                status = await connection.fetchval(_STATUS, xid)
                if status in {"committed", "aborted"}:
                    return bool(status == "committed")
                if status is None:
                    raise OutcomeUnknown
                if not is_ended and loop.time() - began > GIVE_UP_AFTER_S:
                    is_ended = True
                    await connection.fetch(_END, xid)
                await asyncio.sleep(_GLANCE_S)
        except (*GONE, asyncpg.InterfaceError):
            await asyncio.sleep(_PAUSE_S)
        except asyncpg.PostgresError as bad:  # a transaction of the future: this is another server than it was
            raise OutcomeUnknown from bad
        finally:
            connection.terminate()
    raise OutcomeUnknown
