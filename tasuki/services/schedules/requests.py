"""Client tokens: a request that is repeated under its token is known again. Pure."""

import hashlib
from collections.abc import Mapping
from typing import Any

from tasuki.services.schedules.errors import used_before
from tasuki.values import documents


def made_by(given: Mapping[str, Any]) -> str:
    """Answer `TOKEN DIGEST` of a request, or nothing without a token."""
    token = given.get("ClientToken")
    if not token:
        return ""
    rest = {name: value for name, value in given.items() if name != "ClientToken"}
    return f"{token} {hashlib.sha256(documents.dumpb(_in_order(rest))).hexdigest()[:32]}"


def is_repeat(now: str, before: str) -> bool:
    """Tell whether a request is the one that was granted. Raises `ConflictException` for another one under its token."""
    if not now or not before:
        return False
    token = now.partition(" ")[0]
    if token != before.partition(" ")[0]:
        return False
    if now != before:
        raise used_before(token)
    return True


def _in_order(value: Any) -> Any:
    """Answer a value whose members stand in one order, however the client wrote them."""
    if isinstance(value, Mapping):
        return {name: _in_order(value[name]) for name in sorted(value)}
    return [_in_order(inner) for inner in value] if isinstance(value, list) else value
