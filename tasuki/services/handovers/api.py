"""`ListHandovers`, an operation of our own (service `tasuki`): AWS has nothing like it.

Input: at most one of `Trace`, `MessageId`, `ExecutionArn`, `SourceArn` (of a schedule or rule: all that it posted; a pipe's
hand-overs are found by message); `MaxResults` (1 to 1,000, default 100), `NextToken`.
Output: `Handovers`, oldest first, each with `At`, `SourceArn`, `MessageId`, `PipeArn`, `TargetArn`, `ExecutionArn`,
`Trace`, `Outcome`; empty members are left out; and `NextToken` if there is more. `Outcome` is `DELIVERED`, `DUPLICATE` or
`FILTERED`, `FAILED: reason` of one try, and `DEAD_LETTERED: reason` or `DROPPED: reason` of a delivery that was given up.

Oldest first means: by their numbers, which they get while their units run. Where units run beside each other (PostgreSQL), one
with a smaller number may be committed a little later; whoever follows the listing by its tokens can miss it, and finds it by
asking again from the beginning, or by trace, message or execution.
"""

from typing import Any

from tasuki.services.handovers import model
from tasuki.services.handovers.errors import ValidationException
from tasuki.store.pages import page_tokens
from tasuki.store.store import Row, Tx
from tasuki.values import documents
from tasuki.values.operations import Operation, Operations, Request
from tasuki.values.pages import BadPageToken

PAGE_SIZE, MAX_PAGE_SIZE = 100, 1_000
_LISTINGS = {
    "Trace": model.by_trace,
    "MessageId": model.by_message,
    "ExecutionArn": model.by_execution,
    "SourceArn": model.by_source,
}
_MEMBERS = frozenset({*_LISTINGS, "MaxResults", "NextToken"})


def list_handovers(tx: Tx, request: Request) -> dict[str, Any]:
    """List handovers. Raises `ValidationException`."""
    given = request.input
    unknown = sorted(set(given) - _MEMBERS)
    if unknown:
        raise ValidationException(f"ListHandovers doesn't know {unknown[0]}; it takes {', '.join(sorted(_MEMBERS))}.")
    asked = [name for name in _LISTINGS if given.get(name) is not None]
    if len(asked) > 1:
        raise ValidationException(f"Give one of {', '.join(_LISTINGS)}, not several.")
    if asked and not isinstance(given[asked[0]], str):
        raise ValidationException(f"{asked[0]} must be a string.")
    limit = given.get("MaxResults", PAGE_SIZE)
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MAX_PAGE_SIZE:
        raise ValidationException(f"MaxResults must be between 1 and {MAX_PAGE_SIZE}.")
    query = "ListHandovers:" + documents.dumps([(name, given[name]) for name in asked])
    tokens = page_tokens(tx)
    after = 0
    if (token := given.get("NextToken")) is not None:
        try:
            after = int(tokens.open(query, token))
        except (BadPageToken, TypeError, AttributeError):
            raise ValidationException("NextToken is not one that this listing answered.") from None
    rows = _rows(tx, given, asked, after, limit + 1)
    answer: dict[str, Any] = {"Handovers": [model.described(row) for row in rows[:limit]]}
    if len(rows) > limit:
        answer["NextToken"] = tokens.seal(query, rows[limit - 1][0])
    return answer


def _rows(tx: Tx, given: Any, asked: list[str], after: int, limit: int) -> list[Row]:
    if asked:
        return _LISTINGS[asked[0]](tx, given[asked[0]], after, limit)
    return model.everything(tx, after, limit)


OPERATIONS: Operations = {"ListHandovers": Operation("read", list_handovers)}
