"""`ListDeliveries`, an operation of our own (service `tasuki`): what is on its way, or stuck there.

Input: `SourceArn`, `TargetArn` (only those of one schedule or rule, or to one target), `MaxResults` (1 to 1,000, default 100),
`NextToken`. Output: `Deliveries`, oldest first, each with `Id`, `SourceArn`, `SourceId`, `TargetArn`, `Trace`, `State`
(`WAITING` for its next try, or `CALLING`: the target was asked and has not answered), `Since` (from when its age counts),
`NextTryAt`, `TurnAt` (`CALLING`, and the call's turn under its API destination's rate comes then), `GivenUpAt` (when it is
too old), `Attempts`, `MaxAttempts`, `Error` and `Message` (the last refusal), `DeadLetterArn`; empty members are left out. And
`NextToken` if there is more. Instants in ISO 8601.
"""

from typing import Any

from tasuki.services.deliveries import queries
from tasuki.services.deliveries.errors import ValidationException
from tasuki.services.deliveries.model import CALLING, Kept, caller_of, described, kept_of, watcher_of
from tasuki.services.switchboard import Switchboard
from tasuki.store.pages import page_tokens
from tasuki.store.store import Tx
from tasuki.values.documents import dumps
from tasuki.values.operations import Request
from tasuki.values.pages import BadPageToken

PAGE_SIZE, MAX_PAGE_SIZE = 100, 1_000
_MEMBERS = frozenset({"SourceArn", "TargetArn", "MaxResults", "NextToken"})


def list_deliveries(tx: Tx, request: Request, switchboard: Switchboard) -> dict[str, Any]:
    """List deliveries. Raises `ValidationException`."""
    given = request.input
    unknown = sorted(set(given) - _MEMBERS)
    if unknown:
        raise ValidationException(f"ListDeliveries doesn't know {unknown[0]}; it takes {', '.join(sorted(_MEMBERS))}.")
    limit = given.get("MaxResults", PAGE_SIZE)
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MAX_PAGE_SIZE:
        raise ValidationException(f"MaxResults must be between 1 and {MAX_PAGE_SIZE}.")
    source, target = (given.get(name) or "" for name in ("SourceArn", "TargetArn"))
    for name, value in (("SourceArn", source), ("TargetArn", target)):
        if not isinstance(value, str) or "\0" in value:
            raise ValidationException(f"{name} must be an ARN.")
    query = "ListDeliveries:" + dumps([request.account, request.region, source, target])
    tokens, after = page_tokens(tx), 0
    if (token := given.get("NextToken")) is not None:
        try:
            after = int(tokens.open(query, token))
        except (BadPageToken, TypeError, AttributeError):
            raise ValidationException("NextToken is not one that this listing answered.") from None
    asked = (request.account, request.region, after, source, source, target, target, limit + 1)
    rows = tx.all(queries.PAGE, asked)
    answer: dict[str, Any] = {"Deliveries": [_shown(tx, kept_of(row), switchboard) for row in rows[:limit]]}
    if len(rows) > limit:
        answer["NextToken"] = tokens.seal(query, rows[limit - 1][0])
    return answer


def _shown(tx: Tx, kept: Kept, switchboard: Switchboard) -> dict[str, Any]:
    turn = None
    if kept.state == CALLING:
        caller = caller_of(kept.delivery, kept.try_id, watcher_of(kept.id, kept.attempt))
        turn = switchboard.turn(tx, kept.delivery.target, caller)
    return described(kept, turn)
