"""What can go wrong in a definition, and what can go wrong when a state runs."""

from dataclasses import dataclass

from tasuki.values.errors import TasukiError


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One complaint about a definition, in the words of ValidateStateMachineDefinition.

    `code` is AWS's (`SCHEMA_VALIDATION_FAILED`, `MISSING_TRANSITION_TARGET`, ...), `location` a JSON pointer like
    `/States/X/Next`; "" when there is no place to name.
    """

    code: str
    message: str
    location: str
    severity: str = "ERROR"

    def __str__(self) -> str:
        place = f" at {self.location}" if self.location else ""
        return f"{self.code}: {self.message}{place}"


class InvalidDefinition(TasukiError):
    """A definition that cannot be created. `diagnoses` is never empty."""

    def __init__(self, diagnoses: list[Diagnosis]) -> None:
        super().__init__(", ".join(map(str, diagnoses)))
        self.diagnoses = diagnoses


class StatesError(TasukiError):
    """A failure while a state runs: AWS's error name and cause, as Retry and Catch see them.

    The cause has no prefix here; the engine adds "An error occurred while executing the state ..." to errors of its own.
    """

    def __init__(self, error: str, cause: str) -> None:
        super().__init__(f"{error}: {cause}")
        self.error = error
        self.cause = cause
