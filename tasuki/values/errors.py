"""The tree of errors.

::

    TasukiError
    ├── DomainError            a caller's fault or a normal "no"; becomes an AWS error at the door
    │   └── (each room's own, in services/ROOM/errors.py, with AWS's code, status and text)
    ├── MalformedDocument      text that is not JSON, or a value JSON cannot say
    ├── StoreError             the store could not keep its promise; nothing was acknowledged
    │   ├── StoreFull          the disk is full; the unit was rolled back
    │   ├── OutcomeUnknown     the database cannot tell whether the unit was kept
    │   ├── StoreNewer         the file was written by a newer Tasuki
    │   ├── StoreBusy          another node holds the file
    │   └── StoreTaken         something is there already, and nobody said that it may be replaced
    └── ConfigError            a setting is wrong; names the setting and the fix

An impossible state is an `AssertionError`: it stops the unit and rolls it back. Never one dressed as the other.
"""

from typing import Any, ClassVar


class TasukiError(Exception):
    """The root of everything we raise on purpose."""


class DomainError(TasukiError):
    """A request that cannot be granted. Subclasses carry AWS's own words.

    `code` is the error's name on the wire (JSON `__type`), `query_code` the older name where a service has one
    (SQS: `x-amzn-query-error`, and the code in XML), `status` the HTTP status, `sender` whose fault it is, `fields`
    further members of the error's shape.
    """

    code: ClassVar[str] = "InternalFailure"
    query_code: ClassVar[str | None] = None
    status: ClassVar[int] = 400
    sender: ClassVar[bool] = True

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.message = message
        self.fields = fields


class MalformedDocument(TasukiError):
    """Text that is not JSON, or a value that JSON cannot say."""


class StoreError(TasukiError):
    """The store could not keep its promise. Nothing was acknowledged."""


class StoreFull(StoreError):
    """The disk is full; the unit was rolled back."""


class OutcomeUnknown(StoreError):
    """The connection was lost during a commit, and the server that comes back does not know what became of it."""

    def __init__(self) -> None:
        super().__init__(
            "The connection to the database was lost during a commit, and it cannot tell what became of it: "
            "the change may have been kept, or not. Look before you try again."
        )


class StoreNewer(StoreError):
    """The data directory was written by a newer Tasuki."""


class StoreBusy(StoreError):
    """Another node holds this data directory."""


class StoreTaken(StoreError):
    """Something is there already, and nobody said that it may be replaced."""


class ConfigError(TasukiError):
    """A setting is wrong. The text names the setting and the fix."""
