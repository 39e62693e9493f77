"""loggingConfiguration: what it may be, and what its levels ask for. Pure.

Facts: states.md section 13; recorded: sfn_api_logs/*, logs/*.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from tasuki.services.machines.errors import InvalidLoggingConfiguration
from tasuki.values.arns import parse_arn
from tasuki.values.documents import loads

_FATAL = frozenset({"ExecutionAborted", "ExecutionFailed", "ExecutionTimedOut"})
_ERROR_ENDINGS = ("Failed", "Aborted", "TimedOut")


class Logging(NamedTuple):
    """What a revision's executions log."""

    level: str
    with_data: bool
    group: str
    """The ARN of the destination, without the `:*` at its end."""

    def asks_for(self, kind: str) -> bool:
        """Tell whether events of a type are logged (developer guide, "Log levels for Step Functions execution events")."""
        if self.level == "ALL" or kind in _FATAL:
            return True
        return self.level == "ERROR" and (kind == "FailStateEntered" or kind.endswith(_ERROR_ENDINGS))


@lru_cache(maxsize=1_024)
def logging_of(text: str) -> Logging | None:
    """Read a stored configuration; None when it asks for nothing."""
    stored = loads(text)
    if stored["level"] == "OFF" or not stored.get("destinations"):
        return None
    group = stored["destinations"][0]["cloudWatchLogsLogGroup"]["logGroupArn"]
    return Logging(stored["level"], bool(stored["includeExecutionData"]), group.removesuffix(":*"))


def check_logging(given: Mapping[str, Any] | None) -> None:
    """A level needs one destination (recorded: sfn_api_logs). Raises `InvalidLoggingConfiguration`.

    Whether the log group exists is not asked: there are no log groups yet.
    """
    if not given or given.get("level", "OFF") == "OFF":
        return
    destinations = given.get("destinations") or []
    if len(destinations) != 1:
        raise InvalidLoggingConfiguration("Must specify exactly one Log Destination.")
    arn = parse_arn((destinations[0].get("cloudWatchLogsLogGroup") or {}).get("logGroupArn") or "")
    if arn is None or arn.service != "logs" or not arn.resource.startswith("log-group:"):
        raise InvalidLoggingConfiguration("Log Destination not found.")
