"""Errors that every AWS service shares (AWS General Reference, "Common errors"), and a few words of our own.

::

    DomainError
    ├── MissingToken, IncompleteSignature, InvalidSignature, UnknownKey, AccessDenied      who are you?
    ├── (Serialization, Validation, MissingParameter: values/service_checks.py)            what do you say?
    ├── UnknownOperation, NotOffered, InvalidAction                                        what do you want?
    ├── Throttled, TooLarge, RequestTimeout, Unavailable, InternalFailure                  not now
    └── Refused                                                                            not from there

`query_code` is the name in the query protocol, where it differs.
"""

from tasuki.values.errors import DomainError


class MissingToken(DomainError):
    """The request is not signed."""

    code = "MissingAuthenticationTokenException"
    query_code = "MissingAuthenticationToken"
    status = 403


class IncompleteSignature(DomainError):
    """The Authorization header can't be read, or says too little."""

    code = "IncompleteSignatureException"
    query_code = "IncompleteSignature"


class InvalidSignature(DomainError):
    """The signature is another one, too old, or for something else."""

    code = "InvalidSignatureException"
    query_code = "SignatureDoesNotMatch"
    status = 403


class UnknownKey(DomainError):
    """Nobody has this access key."""

    code = "UnrecognizedClientException"
    query_code = "InvalidClientTokenId"
    status = 403


class AccessDenied(DomainError):
    """The key is known but may not do this."""

    code = "AccessDeniedException"
    query_code = "AccessDenied"
    status = 403


class UnknownOperation(DomainError):
    """The service has no such operation."""

    code = "UnknownOperationException"
    query_code = "InvalidAction"


class NotOffered(UnknownOperation):
    """AWS has the operation, Tasuki does not."""


class NotFound(UnknownOperation):
    """No operation of a REST service lives at this method and path."""

    status = 404


class MissingAction(DomainError):
    """A query request without `Action`."""

    code = "MissingAction"


class Throttled(DomainError):
    """More requests at once than this node takes."""

    code = "ThrottlingException"
    query_code = "Throttling"


class QueueThrottled(DomainError):
    """The same in SQS's words."""

    code = "RequestThrottled"
    query_code = "RequestThrottled"
    status = 403


class TooManyRequests(Throttled):
    """The same with the status that REST services give it."""

    status = 429


class TooLarge(DomainError):
    """The body is longer than the door is wide."""

    code = "RequestEntityTooLargeException"
    query_code = "RequestEntityTooLarge"
    status = 413


class RequestTimeout(DomainError):
    """The body did not come in time."""

    code = "RequestTimeoutException"
    query_code = "RequestTimeout"
    status = 408


class Refused(DomainError):
    """A browser's page, or a name that is not ours: refused before anything else is looked at."""

    code = "AccessDeniedException"
    query_code = "AccessDenied"
    status = 403


class MalformedHeaders(DomainError):
    """A header that decides something is there twice."""

    code = "IncompleteSignatureException"
    query_code = "IncompleteSignature"


class Unavailable(DomainError):
    """The store cannot take it now; nothing was stored. SDKs try again."""

    code = "ServiceUnavailable"
    query_code = "ServiceUnavailable"
    status = 503
    sender = False


class InternalFailure(DomainError):
    """Our own fault (the log has it under the request id), or nobody knows whether it was stored. SDKs try again."""

    code = "InternalFailure"
    query_code = "InternalFailure"
    status = 500
    sender = False
