"""What the driver raises, sorted by what can be done about it, and put into a sentence for who has to do it."""

import socket

import asyncpg

from tasuki.store.postgres_address import Address
from tasuki.values.errors import StoreError, StoreFull

MET = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError, asyncpg.LockNotAvailableError)
"""The unit met another one; nothing of it was kept, and it runs again."""

GONE = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.IdleInTransactionSessionTimeoutError,
)
"""The connection is lost, or there is none to be had just now."""


class OutcomeUnknown(StoreError):
    """The connection was lost during a commit, and the server that comes back does not know what became of it."""

    def __init__(self) -> None:
        super().__init__(
            "The connection to the database was lost during a commit, and it cannot tell what became of it: "
            "the change may have been kept, or not. Look before you try again."
        )


def clear_error(bad: Exception, address: Address) -> StoreError:
    """Say what an error of the server means to a caller. Nothing was changed."""
    if isinstance(bad, asyncpg.DiskFullError):
        return StoreFull("The database's disk is full; nothing was changed. Free some space and try again.")
    if isinstance(bad, asyncpg.ReadOnlySQLTransactionError):
        return StoreError(f"{address.shown} only reads now (a standby?); nothing was changed. Name the primary server.")
    return StoreError(f"The database refused ({bad}); nothing was changed.")


def connect_error(bad: Exception, address: Address) -> StoreError:
    """Say why a node cannot begin on this database, and what to do."""
    if isinstance(bad, StoreError):
        return bad
    at = address.shown
    if isinstance(bad, asyncpg.InvalidPasswordError | asyncpg.InvalidAuthorizationSpecificationError):
        return StoreError(
            f"{at} refuses the user or the password ({bad}). Check both; the password may come from PGPASSWORD."
        )
    if isinstance(bad, asyncpg.InvalidCatalogNameError):
        return StoreError(f"{at}: there is no database of that name. Make it: createdb {address.database}")
    if isinstance(bad, asyncpg.InsufficientPrivilegeError):
        return StoreError(
            f"The user of {at} may not do this: {bad}. Give it the right: GRANT CREATE ON DATABASE {address.database} TO "
            f"the user (or make it the owner of schema {address.schema})."
        )
    if isinstance(bad, asyncpg.TooManyConnectionsError):
        return StoreError(f"{at} takes no more connections ({bad}). Raise max_connections, or stop what holds them.")
    if isinstance(bad, asyncpg.CannotConnectNowError):
        return StoreError(f"{at} is starting or stopping ({bad}). Try again in a moment.")
    if isinstance(bad, socket.gaierror):
        return StoreError(f"{at}: the host's name is not known ({bad.strerror}). Check the host in --store.")
    if isinstance(bad, TimeoutError):
        return StoreError(f"{at} does not answer. Check host and port in --store, and firewalls between.")
    if isinstance(bad, OSError):
        return StoreError(
            f"No database server answers at {at} ({bad.strerror or bad}). Start it, or check host and port."
        )
    return StoreError(f"{at} can't be used ({bad}).")
