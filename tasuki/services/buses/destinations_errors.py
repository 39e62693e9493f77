"""What can be wrong with a connection, an API destination or a call to one (botocore `events`, 2015-10-07)."""

from tasuki.values.errors import DomainError


class Invalid(DomainError):
    """A field is not what it must be."""

    code = "ValidationException"


class NoSuch(DomainError):
    """No such connection or destination."""

    code = "ResourceNotFoundException"


class Exists(DomainError):
    """The name is taken."""

    code = "ResourceAlreadyExistsException"


class TooMany(DomainError):
    """The account has as many as it may."""

    code = "LimitExceededException"


class Inactive(DomainError):
    """The destination's connection is gone or not authorized: nothing can be delivered until that is mended.

    The code is one of those that EventBridge writes to dead letters (user guide, "Using dead-letter queues").
    """

    code = "NO_PERMISSIONS"


def invalid(field: str, reason: str) -> Invalid:
    """Answer the error for a field, in the form that EventBridge uses."""
    return Invalid(f"Parameter {field} is not valid. Reason: {reason}")


def no_such_connection(name: str) -> NoSuch:
    """Answer the error for a connection that isn't there (AWS says "describe", whatever was to be done with it)."""
    return NoSuch(f"Failed to describe the connection(s). Connection '{name}' does not exist.")


def no_such_destination(name: str, verb: str = "describe") -> NoSuch:
    """Answer the error for a destination that isn't there."""
    return NoSuch(f"Failed to {verb} the api-destination(s). An api-destination '{name}' does not exist.")
