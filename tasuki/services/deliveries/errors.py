"""What can be wrong with a delivery, in AWS's words."""

from tasuki.values.errors import DomainError


class ValidationException(DomainError):
    """A field is not what it must be."""

    code = "ValidationException"
