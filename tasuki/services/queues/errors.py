"""What SQS refuses, with its own codes, statuses and texts.

`code` is the name in the JSON protocol, `query_code` the older one that SDKs still show (header `x-amzn-query-error`,
and the code in XML). Texts are those that AWS answered in recorded calls, unless a docstring says otherwise.
"""

from typing import Any, ClassVar

from tasuki.values.errors import DomainError


class QueueDoesNotExist(DomainError):
    """No queue of that name. The query protocol has a longer text: `query_message`."""

    code = "QueueDoesNotExist"
    query_code = "AWS.SimpleQueueService.NonExistentQueue"
    query_message: ClassVar[str] = "The specified queue does not exist for this wsdl version."

    def __init__(self) -> None:
        super().__init__("The specified queue does not exist.")


class QueueNameExists(DomainError):
    """A queue of that name has another value for an attribute that was given."""

    code = "QueueNameExists"
    query_code = "QueueAlreadyExists"

    def __init__(self, attribute: str) -> None:
        super().__init__(f"A queue already exists with the same name and a different value for attribute {attribute}")


class QueueDeletedRecently(DomainError):
    """The name rests for a minute after its queue was deleted."""

    code = "QueueDeletedRecently"
    query_code = "AWS.SimpleQueueService.QueueDeletedRecently"

    def __init__(self, seconds: int) -> None:
        super().__init__(
            f"You must wait {seconds} seconds after deleting a queue before you can create another with the same name."
        )


class PurgeQueueInProgress(DomainError):
    """A queue is purged once a minute at most."""

    code = "PurgeQueueInProgress"
    query_code = "AWS.SimpleQueueService.PurgeQueueInProgress"
    status = 403

    def __init__(self, name: str) -> None:
        super().__init__(f"Only one PurgeQueue operation on {name} is allowed every 60 seconds.")


class InvalidParameterValue(DomainError):
    """A parameter that is out of its range, or makes no sense here."""

    code = "InvalidParameterValueException"
    query_code = "InvalidParameterValue"

    @classmethod
    def of(cls, value: Any, parameter: str, reason: str) -> "InvalidParameterValue":
        """Say it in AWS's usual words."""
        return cls(f"Value {value} for parameter {parameter} is invalid. Reason: {reason}")


class MissingRequiredParameter(DomainError):
    """A parameter that must be there and is not, or is empty."""

    code = "MissingRequiredParameterException"
    query_code = "MissingParameter"

    def __init__(self, parameter: str) -> None:
        super().__init__(f"The request must contain the parameter {parameter}.")


class InvalidAttributeName(DomainError):
    """A queue attribute that does not exist, or not for this type of queue."""

    code = "InvalidAttributeName"
    query_code = "InvalidAttributeName"


class InvalidAttributeValue(DomainError):
    """A queue attribute's value out of its range."""

    code = "InvalidAttributeValue"
    query_code = "InvalidAttributeValue"


class InvalidMessageContents(DomainError):
    """A body with characters that XML 1.0 cannot carry."""

    code = "InvalidMessageContents"
    query_code = "InvalidMessageContents"


class EmptyBatchRequest(DomainError):
    """A batch without entries (text from the API reference)."""

    code = "EmptyBatchRequest"
    query_code = "AWS.SimpleQueueService.EmptyBatchRequest"


class TooManyEntriesInBatchRequest(DomainError):
    """A batch of more than ten."""

    code = "TooManyEntriesInBatchRequest"
    query_code = "AWS.SimpleQueueService.TooManyEntriesInBatchRequest"


class BatchEntryIdsNotDistinct(DomainError):
    """Two entries with one id."""

    code = "BatchEntryIdsNotDistinct"
    query_code = "AWS.SimpleQueueService.BatchEntryIdsNotDistinct"


class InvalidBatchEntryId(DomainError):
    """An entry id that is empty, too long, or has other characters."""

    code = "InvalidBatchEntryId"
    query_code = "AWS.SimpleQueueService.InvalidBatchEntryId"


class BatchRequestTooLong(DomainError):
    """A batch of more than 1 MiB."""

    code = "BatchRequestTooLong"
    query_code = "AWS.SimpleQueueService.BatchRequestTooLong"


class ReceiptHandleIsInvalid(DomainError):
    """A receipt handle that we did not give out for this queue."""

    code = "ReceiptHandleIsInvalid"
    query_code = "ReceiptHandleIsInvalid"
    status = 404

    def __init__(self, handle: str) -> None:
        super().__init__(f'The input receipt handle "{handle}" is not a valid receipt handle.')


class MessageNotInflight(DomainError):
    """Its time was up and it was received again since, and now it waits (text from the API reference)."""

    code = "MessageNotInflight"
    query_code = "AWS.SimpleQueueService.MessageNotInflight"

    def __init__(self) -> None:
        super().__init__("The specified message isn't in flight.")


class OverLimit(DomainError):
    """Too many messages in flight, or too many statements in a policy (text from the API reference)."""

    code = "OverLimit"
    query_code = "OverLimit"
    status = 403


class UnsupportedOperation(DomainError):
    """What SQS, or this release, does not do."""

    code = "UnsupportedOperation"
    query_code = "AWS.SimpleQueueService.UnsupportedOperation"


class ResourceNotFound(DomainError):
    """A queue or a move task that a move task's call names, and that does not exist."""

    code = "ResourceNotFoundException"
    query_code = "ResourceNotFoundException"
    status = 404


class SdkClientException(DomainError):
    """Step Functions cannot reach what a QueueUrl names."""

    code = "SdkClientException"
