"""`FilterCriteria`: which messages a pipe passes on. Pure.

At most five patterns of at most 4,096 characters, one of them must match. What none matches is deleted.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tasuki.rules.patterns import Matcher, PatternError, compile_pattern, pattern_paths
from tasuki.services.pipes.errors import invalid_field

MAX_FILTERS = 5
MAX_PATTERN_LENGTH = 4_096
UNUSABLE = frozenset(
    {
        "awsRegion",
        "eventSource",
        "eventSourceARN",
        "eventVersion",
        "eventID",
        "eventName",
        "invokeIdentityArn",
        "eventSourceKey",
    }
)
"""Fields that can't be used in a pipe's patterns (user guide, "Event filtering in Amazon EventBridge Pipes")."""

Filter: TypeAlias = Callable[[dict[str, Any]], bool]
"""Takes a record with its body parsed."""


def compile_filters(criteria: dict[str, Any], where: str = "SourceParameters.FilterCriteria") -> Filter | None:
    """Check and compile `FilterCriteria`; None when everything passes. Raises `ValidationException`."""
    filters = criteria.get("Filters") or []
    if len(filters) > MAX_FILTERS:
        raise invalid_field(
            f"{where}.Filters", f"A pipe has at most {MAX_FILTERS} filters; this one has {len(filters)}."
        )
    compiled = [
        _compile(entry["Pattern"], f"{where}.Filters[{index}].Pattern")
        for index, entry in enumerate(filters)
        if entry.get("Pattern")
    ]
    if not compiled:
        return None
    if len(compiled) == 1:
        return compiled[0]
    return lambda event: _any(compiled, event)


def _any(filters: Sequence[Matcher], event: dict[str, Any]) -> bool:
    return any(matches(event) for matches in filters)


def _compile(pattern: str, where: str) -> Filter:
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise invalid_field(where, f"Member must have length less than or equal to {MAX_PATTERN_LENGTH}")
    try:
        matches = compile_pattern(pattern)
        paths = pattern_paths(pattern)
    except PatternError as bad:
        raise invalid_field(where, f"Event pattern is not valid. Reason: {bad}") from None
    unusable = sorted(UNUSABLE & {path.split(".", 1)[0] for path in paths})
    if unusable:
        raise invalid_field(
            where, f"Event pattern is not valid. The field {unusable[0]} can't be used in a pipe's filter."
        )
    # Plain and JSON bodies never meet (user guide, "Properly filtering Amazon SQS messages"): without this a pattern
    # made of `exists: false` alone would let the other kind through.
    asks_text = "body" in paths
    asks_json = any(path.startswith("body.") for path in paths)
    if asks_json and not asks_text:
        return lambda event: isinstance(event.get("body"), dict | list) and matches(event)
    if asks_text and not asks_json:
        return lambda event: not isinstance(event.get("body"), dict | list) and matches(event)
    return matches
