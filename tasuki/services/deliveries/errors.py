"""What can be wrong with a delivery."""

from collections.abc import Sequence

from tasuki.values.errors import DomainError


class ValidationException(DomainError):
    """A field of ListDeliveries is not what it must be."""

    code = "ValidationException"


class NoSuchService(DomainError):
    """Nobody here takes deliveries to such an ARN."""

    code = "ResourceNotFoundException"

    def __init__(self, arn: str, offered: Sequence[str]) -> None:
        super().__init__(
            f"There is no such service here: {arn}. Deliveries are taken by {', '.join(offered) or 'nobody'}."
        )


class Fault(DomainError):
    """A fault of ours, in this room only, so that `held` undoes what was written. Nobody outside sees it."""
