"""A JSONata expression in a field of a state, and how it fails: in AWS's words (recorded, and reported from AWS).

How it is evaluated, and within which bounds: `jsonata_compile`.
"""

from typing import TYPE_CHECKING, Any, TypeVar

import jlens

from tasuki.language.definition import Scope
from tasuki.language.errors import StatesError
from tasuki.language.jsonata_compile import Compiled, Fuel, compile_query
from tasuki.language.jsonata_functions import Refused, TooMuch
from tasuki.values.documents import Doc, dumps, loads
from tasuki.values.errors import MalformedDocument

if TYPE_CHECKING:
    from collections.abc import Callable

QUERY_ERROR = "States.QueryEvaluationError"
_MEMORY = "Expression evaluation memory limit exceeded: Check for excessive memory usage"
_STACK = "Stack overflow error: Check for non-terminating recursive function.  Consider rewriting as tail-recursive"
_TIME = "Expression evaluation timeout: Check for infinite loop"
_WITHIN_LIMITS = {"D1011": _STACK, "D1012": _TIME, "U1001": _MEMORY, "U1006": _TIME}


class QueryFailed(StatesError):
    """An expression failed: written to history as EvaluationFailed.

    `location` is the field, below the state (`Output/total`, `Choices[0]/Condition`). `entered` is true when the state had
    been entered for AWS already: its value was found wrong, not its expression (recorded: test_wait_timestamp_jsonata).
    """

    def __init__(self, cause: str, location: str, *, entered: bool = False) -> None:
        super().__init__(QUERY_ERROR, cause)
        self.location = location
        self.entered = entered


def kind_of(value: Any) -> str:
    """Answer JSONata's name of a value's type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


class Query:
    """An expression in a field. Evaluates to text, a document or a value, never to nothing; raises `QueryFailed`."""

    __slots__ = ("_compiled", "_direct", "location", "source")

    def __init__(self, source: str, location: str, compiled: Compiled | None = None) -> None:
        self.source = source
        self.location = location
        self._compiled = compiled or compile_query(source)
        self._direct = _DIRECT.get(source)

    @property
    def variables(self) -> frozenset[str]:
        """The variables that it reads."""
        return self._compiled.variables

    @property
    def of_states(self) -> tuple[str, ...]:
        """Which members of `$states` it names."""
        return self._compiled.of_states

    def doc(self, scope: Scope) -> Doc:
        """Answer the result as a document; `$states.input` and its like without a look inside."""
        if self._direct is not None:
            whole: Doc | None = getattr(scope, self._direct)
            if whole is not None:
                return whole if _is_compact(whole.text) else Doc(whole.value)
        return Doc.of_text(self.text(scope))

    def __call__(self, scope: Scope) -> Any:
        """Answer the result as a value."""
        if self._direct is not None:
            whole: Doc | None = getattr(scope, self._direct)
            if whole is not None:
                return whole.value
        return loads(self.text(scope))

    def text(self, scope: Scope) -> str:
        """Answer the result as JSON text."""
        text = self._attempt(self._compiled.evaluate, scope)
        if text is None:
            raise self._failed(
                "returned an unsupported result type."
                if self._attempt(self._compiled.is_function, scope)
                else "returned nothing (undefined)."
            )
        return text

    def over(self, document: str | None, scope: Scope) -> str | None:
        """Answer the result over an input document, or None for nothing: as the official suite evaluates."""
        return self._attempt(lambda scope, fuel: self._compiled.evaluate_over(document, scope, fuel), scope)

    def _attempt(self, evaluate: "Callable[[Scope, Fuel], _Answer]", scope: Scope) -> "_Answer":
        """Evaluate; whatever goes wrong fails this state and nothing else."""
        try:
            return evaluate(scope, scope.fuel or Fuel())
        except jlens.JlensError as failed:
            raise self._threw(failed) from None
        except (TooMuch, MemoryError):
            raise self._failed(f"threw an error during evaluation: {_MEMORY}") from None
        except (Refused, ValueError, TypeError, OverflowError, MalformedDocument) as bad:
            raise self._failed(f"threw an error during evaluation. {bad}") from None
        except BaseException as panic:
            # The library's own fault is this state's failure, not the node's.
            if type(panic).__name__ != "PanicException":
                raise
            raise self._failed("threw an internal error during evaluation.") from None

    def expect(self, kind: str, value: Any) -> QueryFailed:
        """Word the error of a value of the wrong type."""
        return self._failed(
            f"returned an unexpected result type. Expected '{kind}', but was '{kind_of(value)}' for value: {dumps(value)}"
        )

    def _threw(self, failed: jlens.JlensError) -> QueryFailed:
        limit = _WITHIN_LIMITS.get(failed.code)
        if limit is not None:
            return self._failed(f"threw an error during evaluation: {limit}")
        return self._failed(f"threw an error during evaluation. {failed.code}: {failed}")

    def _failed(self, what: str) -> QueryFailed:
        return QueryFailed(
            f"The JSONata expression '{self.source}' specified for the field '{self.location}' {what}", self.location
        )


def _is_compact(text: str) -> bool:
    """Tell whether JSON text has no spaces between its tokens; what looks so inside a string counts, too."""
    return '": ' not in text and ", " not in text and "\n" not in text


_Answer = TypeVar("_Answer")
_DIRECT = {"$states.input": "input", "$states.result": "result", "$states.errorOutput": "error_output"}
