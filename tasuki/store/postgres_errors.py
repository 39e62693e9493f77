"""What the driver raises, sorted by what can be done about it, and put into a sentence for who has to do it.

=========  ==================================================  =====================================================
sort       what it was                                         what a unit does about it
=========  ==================================================  =====================================================
met        another unit's rows (40001, 40P01, 55P03)           it runs again
taken      a unique key that appeared meanwhile (23505)        it runs again, and sees who has it
outdated   a statement prepared before the tables changed      it runs again, on a new connection
gone       the connection, or there is none to be had          it runs again, when there is one
refused    the server cannot, or may not, just now             its caller gets a `StoreError`: nothing was changed
wrong      a statement or a value of ours                      its caller gets the driver's error: our own fault
=========  ==================================================  =====================================================
"""

import re
import socket
from difflib import get_close_matches
from typing import Literal, TypeAlias

import asyncpg

from tasuki.store.postgres_address import QUESTIONS, SETTINGS, SPELLED, Address
from tasuki.store.store import MET_TOO_OFTEN
from tasuki.values.errors import ConfigError, StoreError, StoreFull

Sort: TypeAlias = Literal["met", "taken", "outdated", "gone", "refused", "wrong"]

MET = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError, asyncpg.LockNotAvailableError)
OUTDATED = (
    asyncpg.InvalidCachedStatementError,
    asyncpg.exceptions.OutdatedSchemaCacheError,
    asyncpg.InvalidSQLStatementNameError,  # somebody in between said DISCARD ALL
)
GONE = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.IdleSessionTimeoutError,
    asyncpg.exceptions.InternalClientError,  # the driver lost the thread: a connection that ended while it began, say
)
"""The connection is lost, or there is none to be had just now."""
BROKEN = (*GONE, asyncpg.InterfaceError, asyncpg.ProtocolViolationError)
"""The same, for whoever only asks again on another connection."""
POOLED = (asyncpg.InvalidSQLStatementNameError, asyncpg.DuplicatePreparedStatementError)
"""What prepared statements end in where a pooler gives each transaction another connection."""
NO_POOLER = (
    "name the database server itself (a node holds few connections, and keeps them), or a pooler in session mode."
)
_PARAMETER = re.compile(r'unrecognized configuration parameter "([^"]+)"')
OURS = ("0A", "22", "23", "42", "54")
"""Classes of SQLSTATE that no waiting mends: not supported, data, constraints, syntax and names, limits of its own (the size of
a row in an index)."""


class Failed(Exception):
    """A statement failed, or the connection with it. Nothing of the unit was kept."""

    def __init__(self, why: Exception, sort: Sort) -> None:
        super().__init__(why)
        self.why, self.sort = why, sort


def sort_of(why: Exception, *, closed: bool) -> Sort:
    """Sort an error of the driver's. `closed`: whether the connection is, after it."""
    if isinstance(why, MET):
        return "met"
    if isinstance(why, OUTDATED):
        return "outdated"
    if isinstance(why, GONE) or closed:
        return "gone"
    if isinstance(why, asyncpg.UniqueViolationError):
        return "taken"
    if isinstance(why, asyncpg.PostgresError):
        code = str(why.sqlstate or "")
        return "wrong" if code[:2] in OURS and not isinstance(why, asyncpg.InsufficientPrivilegeError) else "refused"
    return "wrong"


def caller_error(why: Exception, sort: Sort, address: Address) -> Exception:
    """Answer what a caller gets for an error that does not go away. Nothing was changed."""
    if sort == "met":
        return StoreError(MET_TOO_OFTEN)
    if sort in {"gone", "outdated"}:
        return StoreError(f"The database can't be reached ({_said(why)}); nothing was changed. Try again.")
    if sort in {"wrong", "taken"}:
        return why
    if isinstance(why, asyncpg.DiskFullError):
        return StoreFull("The database's disk is full; nothing was changed. Free some space and try again.")
    if isinstance(why, asyncpg.ReadOnlySQLTransactionError):
        return StoreError(f"{address.shown} only reads now (a standby?); nothing was changed. Name the primary server.")
    return StoreError(f"The database refused ({_said(why)}); nothing was changed.")


def connect_error(bad: Exception, address: Address) -> StoreError:
    """Say why a node cannot begin on this database, and what to do."""
    if isinstance(bad, StoreError):
        return bad
    at, said = address.shown, _said(bad)
    if isinstance(bad, asyncpg.InvalidPasswordError | asyncpg.InvalidAuthorizationSpecificationError):
        return StoreError(
            f"{at} refuses the user or the password ({said}). Check both; the password may come from PGPASSWORD."
        )
    if isinstance(bad, asyncpg.InvalidCatalogNameError):
        return StoreError(f"{at}: there is no database of that name. Make it: createdb {address.database}")
    if isinstance(bad, asyncpg.InsufficientPrivilegeError):
        return StoreError(
            f"The user of {at} may not do this: {said}. Give it the right: GRANT CREATE ON DATABASE {address.database} TO "
            f"the user (or make it the owner of schema {address.schema})."
        )
    if isinstance(bad, asyncpg.TooManyConnectionsError):
        return StoreError(f"{at} takes no more connections ({said}). Raise max_connections, or stop what holds them.")
    if isinstance(bad, asyncpg.CannotConnectNowError):
        return StoreError(f"{at} is starting or stopping ({said}). Try again in a moment.")
    if isinstance(bad, POOLED):
        return pooler_error(address)
    if isinstance(bad, asyncpg.ProtocolViolationError) and "startup parameter" in said:
        return StoreError(
            f"{at} refuses the settings of a connection ({said}): a pooler, like PgBouncer? N{NO_POOLER[1:]}"
        )
    if isinstance(bad, asyncpg.UndefinedObjectError) and (unknown := _PARAMETER.search(said)):
        near = get_close_matches(unknown[1], (*QUESTIONS, *SETTINGS), n=1)
        hint = (
            f"did you mean ?{near[0]}="
            if near
            else f"known are {', '.join((*QUESTIONS, *SETTINGS))}, and the server's own"
        )
        return StoreError(
            f"{at}: the server knows no setting {unknown[1]}, which stands behind the ? in --store; {hint}"
        )
    if isinstance(bad, socket.gaierror):
        return StoreError(f"{at}: the host's name is not known ({bad.strerror}). Check the host in --store.")
    if isinstance(bad, TimeoutError):
        return StoreError(f"{at} does not answer. Check host and port in --store, and firewalls between.")
    if isinstance(bad, OSError):
        return StoreError(
            f"No database server answers at {at} ({bad.strerror or said}). Start it, or check host and port."
        )
    return StoreError(f"{at} can't be used ({said}).")


def pooler_error(address: Address) -> StoreError:
    """Say that transactions wander from connection to connection there."""
    return StoreError(
        f"At {address.shown} answers a pooler in transaction mode, and a node needs connections that stay: {NO_POOLER}"
    )


def wrong_url(bad: Exception) -> ConfigError:
    """Say that the driver cannot make sense of the URL."""
    return ConfigError(f"--store: {_said(bad)}; {SPELLED}")


def _said(bad: Exception) -> str:
    """Answer what an error says, on one line."""
    return " ".join(str(bad).split()) or type(bad).__name__
