"""What can be wrong with a call to Scheduler (botocore `scheduler`, 2021-06-30). The model's member is `Message`."""

from tasuki.values.errors import DomainError


class SchedulerError(DomainError):
    """Any of them. The text stands under `message`, where most clients look, and under the model's `Message`."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Message=message)


class ValidationException(SchedulerError):
    """A field is not what it must be."""

    code = "ValidationException"


class ResourceNotFoundException(SchedulerError):
    """No such schedule or group."""

    code = "ResourceNotFoundException"
    status = 404


class ConflictException(SchedulerError):
    """It is there already, or is being deleted, or the client token came with another request before."""

    code = "ConflictException"
    status = 409


class ServiceQuotaExceededException(SchedulerError):
    """Too many of them."""

    code = "ServiceQuotaExceededException"
    status = 402


def no_such_schedule(name: str) -> ResourceNotFoundException:
    """Answer the error for a name that no schedule of the group has."""
    return ResourceNotFoundException(f"Schedule {name} does not exist.")


def no_such_group(name: str) -> ResourceNotFoundException:
    """Answer the error for a name that no group has."""
    return ResourceNotFoundException(f"Schedule group {name} does not exist.")


def is_being_deleted(name: str) -> ConflictException:
    """Answer the error for a group whose schedules are on their way out."""
    return ConflictException(f"Schedule group {name} is being deleted.")


def used_before(token: str) -> ConflictException:
    """Answer the error for a client token that came with another request."""
    return ConflictException(f"ClientToken {token} was used before, for a request with other parameters.")
