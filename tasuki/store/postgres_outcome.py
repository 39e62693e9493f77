"""What became of a commit whose answer was lost: the server is asked, by the transaction's id.

A server that crashed may give an id a second time: whatever had the id before, and did not reach the disk, never was. So after
a crash (its statistics are reset then, and only then) the answer is read otherwise:

=============  ================  ============================================
it says        no crash          a crash since we got the id
=============  ================  ============================================
committed      it is committed   ours, or another one's: nobody knows
aborted        it is not         it is not
in progress    wait              another one's; ours is not committed
of the future  nobody knows      it is not
forgotten      nobody knows      nobody knows
=============  ================  ============================================

Another server than it was (a standby that took over has another timeline) knows nothing of our ids.
"""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import asyncpg

from tasuki.store.postgres_errors import BROKEN
from tasuki.values.errors import OutcomeUnknown, StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

GIVE_UP_AFTER_S = 1.0
"""A transaction that is still in progress then has lost us: it is ended, so that there is an answer."""
_PAUSE_S = 0.1

ORIGIN = (
    "SELECT (SELECT system_identifier FROM pg_control_system())::text || ' ' || "
    "left(pg_walfile_name(pg_current_wal_insert_lsn()), 8), (SELECT stats_reset FROM pg_stat_bgwriter)::text"
)
_STATUS = "SELECT pg_xact_status($1::text::xid8)"
_END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_xid = xid($1::text::xid8)"


@dataclass(frozen=True, slots=True)
class Origin:
    """Which server's history a connection stands in, and since which crash of it. Empty where the server does not tell."""

    server: str = ""
    crash: str = ""


async def origin_of(connection: "asyncpg.Connection[Any]") -> Origin:
    """Answer where a connection stands."""
    try:
        row = await connection.fetchrow(ORIGIN)
    except (asyncpg.InsufficientPrivilegeError, asyncpg.FeatureNotSupportedError, asyncpg.UndefinedFunctionError):
        return Origin()
    return Origin(row[0] or "", row[1] or "") if row is not None else Origin()


async def is_committed(
    xid: str, origin: Origin, connect: "Callable[[], Awaitable[asyncpg.Connection[Any]]]", patience_s: float
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
        except (*BROKEN, StoreError):
            await asyncio.sleep(_PAUSE_S)
            continue
        try:
            here = await origin_of(connection)
            if here.server != origin.server:
                raise OutcomeUnknown
            answer = await _ask(connection, xid, crashed=here.crash != origin.crash)
            if answer is None and not is_ended and loop.time() - began > GIVE_UP_AFTER_S:
                is_ended = True
                await connection.fetch(_END, xid)
        except BROKEN:
            answer = None
        finally:
            connection.terminate()
        if answer is not None:
            return answer
        await asyncio.sleep(_PAUSE_S)
    raise OutcomeUnknown


async def _ask(connection: "asyncpg.Connection[Any]", xid: str, *, crashed: bool) -> bool | None:
    """Ask once, and read the answer by the table above; None: wait."""
    try:
        said = await connection.fetchval(_STATUS, xid)
    except asyncpg.InvalidParameterValueError as bad:  # of the future
        if crashed:
            return False
        raise OutcomeUnknown from bad
    if said == "aborted" or (said == "in progress" and crashed):
        return False
    if said == "in progress":
        return None
    if said == "committed" and not crashed:
        return True
    raise OutcomeUnknown
