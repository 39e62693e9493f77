"""What can be wrong with a bus, a rule or an event, in AWS's words where they are on record. All are HTTP 400."""

from tasuki.values.errors import DomainError


class ValidationException(DomainError):
    """A field is not what it must be."""

    code = "ValidationException"


class ResourceNotFoundException(DomainError):
    """No such bus, rule or statement."""

    code = "ResourceNotFoundException"


class ResourceAlreadyExistsException(DomainError):
    """A bus of this name is there."""

    code = "ResourceAlreadyExistsException"


class InvalidEventPatternException(DomainError):
    """A pattern that matches nothing because it is none."""

    code = "InvalidEventPatternException"


class LimitExceededException(DomainError):
    """One more than there may be."""

    code = "LimitExceededException"

    def __init__(self) -> None:
        super().__init__("The requested resource exceeds the maximum number allowed.")


class PolicyLengthExceededException(DomainError):
    """A bus's policy is too long."""

    code = "PolicyLengthExceededException"


class FailedEntry(DomainError):
    """`events:putEvents` of Step Functions, when an entry failed: the message is the whole answer as JSON (recorded)."""

    code = "FailedEntry"


class NoSuchBus(DomainError):
    """An event for a bus that isn't there (any more)."""

    code = "ResourceNotFoundException"


class ThirdBus(DomainError):
    """An event that came from another bus is not passed on to a third one (user guide, "Sending events between event buses")."""

    code = "THIRD_ACCOUNT_HOP_DETECTED"


class InvalidJson(DomainError):
    """What a target's template made of an event is no JSON (recorded: such an event reaches nobody)."""

    code = "INVALID_JSON"


def no_bus(name: str) -> ResourceNotFoundException:
    """Answer the error for a bus that isn't there."""
    return ResourceNotFoundException(f"Event bus {name} does not exist.")


def no_rule(name: str, bus: str) -> ResourceNotFoundException:
    """Answer the error for a rule that isn't there."""
    return ResourceNotFoundException(f"Rule {name} does not exist on EventBus {bus}.")
