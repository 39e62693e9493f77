"""What can be wrong with a bus or a rule, in AWS's words."""

from tasuki.values.errors import DomainError


class ValidationException(DomainError):
    """A field is not what it must be."""

    code = "ValidationException"
