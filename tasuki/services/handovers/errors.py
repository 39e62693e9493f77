"""What can be wrong with a question about handovers."""

from tasuki.values.errors import DomainError


class ValidationException(DomainError):
    """The question makes no sense."""

    code = "ValidationException"
