"""Pages of listings by name."""

from typing import Any

from tasuki.services.buses.errors import ValidationException
from tasuki.store.pages import page_tokens
from tasuki.store.store import Tx
from tasuki.values.documents import dumps
from tasuki.values.operations import Request
from tasuki.values.pages import BadPageToken


def after_token(tx: Tx, request: Request, operation: str, *asked: str | int) -> tuple[str, str]:
    """Answer the query's name for its tokens, and the name behind which its page begins. Raises `ValidationException`."""
    query = f"{operation}:" + dumps([request.account, request.region, *asked])
    token = request.input.get("NextToken")
    if token is None:
        return query, ""
    try:
        return query, str(page_tokens(tx).open(query, token))
    except BadPageToken:
        raise ValidationException("Parameter NextToken is not valid. Reason: this listing did not answer it.") from None


def with_token(tx: Tx, query: str, answer: dict[str, Any], last: str) -> dict[str, Any]:
    """Add the token of the page behind `last`, if there is one."""
    return {**answer, "NextToken": page_tokens(tx).seal(query, last)} if last else answer
