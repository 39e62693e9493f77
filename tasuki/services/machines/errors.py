"""What Step Functions says no with: AWS's codes and texts (API model; recorded texts in the conformance set).

All are status 400, with the shape's name as code, as AWS answers them.
"""

from tasuki.values.errors import DomainError


class InvalidArn(DomainError):
    """Not an ARN of the kind that is wanted."""

    code = "InvalidArn"

    def __init__(self, reason: str) -> None:
        super().__init__(f"Invalid Arn: '{reason}'")


class InvalidName(DomainError):
    """A name with a character that is not allowed, or of a wrong length."""

    code = "InvalidName"

    def __init__(self, name: str) -> None:
        super().__init__(f"Invalid Name: '{name}'")


class InvalidDefinition(DomainError):
    """A definition with at least one error; the text holds all of them."""

    code = "InvalidDefinition"

    def __init__(self, reason: str) -> None:
        super().__init__(f"Invalid State Machine Definition: '{reason}'")


class Unsupported(DomainError):
    """A state that TestState does not run: AWS's code is the same as of a wrong definition, the text is bare."""

    code = "InvalidDefinition"


class InvalidExecutionInput(DomainError):
    """The input of an execution is no JSON text."""

    code = "InvalidExecutionInput"

    def __init__(self, reason: str) -> None:
        super().__init__(f"Invalid State Machine Execution Input: '{reason}'")


class InvalidOutput(DomainError):
    """The output of a task is no JSON text."""

    code = "InvalidOutput"

    def __init__(self, reason: str) -> None:
        super().__init__(f"Invalid Output: '{reason}'")


class InvalidToken(DomainError):
    """A page token or task token that we did not make, or not for this."""

    code = "InvalidToken"

    def __init__(self) -> None:
        super().__init__("Invalid Token: 'Invalid token'")


class InvalidLoggingConfiguration(DomainError):
    """A logging configuration that contradicts itself."""

    code = "InvalidLoggingConfiguration"

    def __init__(self, reason: str) -> None:
        super().__init__(f"Invalid Logging Configuration: {reason}")


class StateMachineAlreadyExists(DomainError):
    """The name is taken by a machine with another definition or configuration."""

    code = "StateMachineAlreadyExists"

    def __init__(self, arn: str) -> None:
        super().__init__(f"State Machine Already Exists: '{arn}'")


class StateMachineDoesNotExist(DomainError):
    """No such machine."""

    code = "StateMachineDoesNotExist"

    def __init__(self, arn: str) -> None:
        super().__init__(f"State Machine Does Not Exist: '{arn}'")


class StateMachineDeleting(DomainError):
    """The machine waits for its running executions to end, then it is gone."""

    code = "StateMachineDeleting"

    def __init__(self, arn: str) -> None:
        super().__init__(f"State Machine is being deleted: '{arn}'")


class StateMachineTypeNotSupported(DomainError):
    """A type of machine that this operation, or this house, does not serve."""

    code = "StateMachineTypeNotSupported"


class StateMachineLimitExceeded(DomainError):
    """As many machines as the quota allows (`quotas.state_machines`)."""

    code = "StateMachineLimitExceeded"


class ExecutionAlreadyExists(DomainError):
    """The name is taken by an execution that has ended, or that runs with another input."""

    code = "ExecutionAlreadyExists"

    def __init__(self, arn: str) -> None:
        super().__init__(f"Execution Already Exists: '{arn}'")


class ExecutionDoesNotExist(DomainError):
    """No such execution."""

    code = "ExecutionDoesNotExist"

    def __init__(self, arn: str) -> None:
        super().__init__(f"Execution Does Not Exist: '{arn}'")


class ExecutionLimitExceeded(DomainError):
    """As many open executions as the quota allows (`quotas.open_executions`)."""

    code = "ExecutionLimitExceeded"


class MissingRequiredParameter(DomainError):
    """UpdateStateMachine without anything to update."""

    code = "MissingRequiredParameter"


class ResourceNotFound(DomainError):
    """Tags of a machine that does not exist; an alias that does not, or that is to lead to no version."""

    code = "ResourceNotFound"

    def __init__(self, arn: str, message: str | None = None) -> None:
        super().__init__(message or f"Resource not found: '{arn}'", resourceName=arn)


class ConflictException(DomainError):
    """A version or alias that another one depends on, or that is otherwise by now."""

    code = "ConflictException"
    status = 409


class ServiceQuotaExceededException(DomainError):
    """As many versions or aliases as a machine may have."""

    code = "ServiceQuotaExceededException"
    status = 402


class ActivityDoesNotExist(DomainError):
    """No such activity."""

    code = "ActivityDoesNotExist"

    def __init__(self, arn: str) -> None:
        super().__init__(f"Activity Does Not Exist: '{arn}'")


class ActivityLimitExceeded(DomainError):
    """As many activities as the quota allows (`quotas.activities`)."""

    code = "ActivityLimitExceeded"


class ActivityWorkerLimitExceeded(DomainError):
    """As many workers ask for an activity's tasks as may."""

    code = "ActivityWorkerLimitExceeded"


class ExecutionNotRedrivable(DomainError):
    """An execution that runs, that succeeded, or that ended too long ago."""

    code = "ExecutionNotRedrivable"


class ThrottlingException(DomainError):
    """More starts in a second than the quota allows (`quotas.start_executions_per_second`)."""

    code = "ThrottlingException"


class TooManyTags(DomainError):
    """More than 50 tags on one machine."""

    code = "TooManyTags"

    def __init__(self, arn: str) -> None:
        super().__init__("Resource has too many tags", resourceName=arn)


class TaskDoesNotExist(DomainError):
    """The token's execution is not known (any more)."""

    code = "TaskDoesNotExist"

    def __init__(self) -> None:
        super().__init__("Task does not exist")


class TaskTimedOut(DomainError):
    """The token's task is no longer waited for: it timed out, was answered, or its execution ended."""

    code = "TaskTimedOut"

    def __init__(self) -> None:
        super().__init__("Task Timed Out: 'Provided task does not exist anymore'")


class ValidationException(DomainError):
    """An input that fits the model and still makes no sense."""

    code = "ValidationException"


class LabelledArn(ValidationException):
    """The ARN of a distributed Map state (`NAME/LABEL`), where a machine's is wanted."""

    def __init__(self, arn: str) -> None:
        super().__init__(
            f"This operation does not support the ARN of a labelled Map state: '{arn}'",
            reason="API_DOES_NOT_SUPPORT_LABELED_ARNS",
        )
