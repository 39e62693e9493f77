"""What can be wrong with a call to Pipes (botocore `pipes`, 2015-10-07)."""

from tasuki.values.documents import dumps
from tasuki.values.errors import DomainError


class ValidationException(DomainError):
    """An input that breaks a rule. Build it with `invalid_field`."""

    code = "ValidationException"


class NotFoundException(DomainError):
    """No such pipe."""

    code = "NotFoundException"
    status = 404


class ConflictException(DomainError):
    """The pipe is there already. Carries `resourceId` and `resourceType`."""

    code = "ConflictException"
    status = 409


class ServiceQuotaExceededException(DomainError):
    """Too many pipes. Carries `resourceId`, `resourceType`, `serviceCode`, `quotaCode`."""

    code = "ServiceQuotaExceededException"
    status = 402


def invalid_field(name: str, message: str) -> ValidationException:
    """One field is wrong.

    The text is JSON, as AWS writes it for Pipes (seen in `terraform-provider-aws` issues 32018 and 41573):
    `{"ValidationErrorFields":[{"Name":"...","Message":"..."}]}`; `fieldList` says the same in the error's own shape.
    """
    text = dumps({"ValidationErrorFields": [{"Name": name, "Message": message}]})
    return ValidationException(text, fieldList=[{"name": name, "message": message}])


def no_such_pipe(name: str) -> NotFoundException:
    """Answer the error for a name (or ARN) that no pipe has."""
    return NotFoundException(f"Pipe {name} does not exist.")


class UnresolvedParameter(DomainError):
    """A dynamic parameter that finds nothing in an event. Never leaves the house: it is why a delivery failed."""

    code = "UnresolvedParameter"


class BadAnswer(DomainError):
    """An enrichment's answer that can't be handed on. Never leaves the house: it is why a batch failed."""

    code = "BadAnswer"
