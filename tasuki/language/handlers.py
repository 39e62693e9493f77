"""Reading Retry and Catch."""

from tasuki.language.definition import Catcher, Retrier
from tasuki.language.fields import Fields
from tasuki.language.schema import LARGEST, Node

LONGEST_MAX_DELAY_SECONDS = 31_622_400


def read_retry(fields: Fields) -> tuple[Retrier, ...]:
    """Read Retry."""
    nodes = fields.objects("Retry")
    made = []
    for place, node in enumerate(nodes):
        node.only(
            {
                "ErrorEquals",
                "IntervalSeconds",
                "MaxAttempts",
                "BackoffRate",
                "MaxDelaySeconds",
                "JitterStrategy",
                "Comment",
            }
        )
        names = _error_equals(node, last=place == len(nodes) - 1)
        interval = node.integer("IntervalSeconds", 1)
        attempts = node.integer("MaxAttempts", 0)
        rate = node.number("BackoffRate", 1.0, float(LARGEST))
        longest = node.integer("MaxDelaySeconds", 1, LONGEST_MAX_DELAY_SECONDS)
        jitter = node.text("JitterStrategy")
        if jitter not in {None, "FULL", "NONE"}:
            node.complain("JitterStrategy", "The field 'JitterStrategy' should have one of these values: [FULL, NONE]")
        made.append(
            Retrier(
                error_equals=names,
                interval_seconds=1 if interval is None else interval,
                max_attempts=3 if attempts is None else attempts,
                backoff_rate=2.0 if rate is None else rate,
                max_delay_seconds=longest,
                full_jitter=jitter == "FULL",
            )
        )
    return tuple(made)


def read_catch(fields: Fields) -> tuple[Catcher, ...]:
    """Read Catch."""
    nodes = fields.objects("Catch")
    own = {"Output"} if fields.language == "JSONata" else {"ResultPath"}
    made = []
    for place, node in enumerate(nodes):
        catcher = fields.of(node)
        catcher.only({"ErrorEquals", "Next", "Assign", "Comment", *own})
        names = _error_equals(catcher, last=place == len(nodes) - 1)
        catcher.require("Next")
        made.append(
            Catcher(
                error_equals=names,
                next=catcher.text("Next") or "",
                result_path=catcher.result_path(),
                output=catcher.template("Output") if fields.language == "JSONata" else None,
                assign=catcher.assign(),
            )
        )
    return tuple(made)


def _error_equals(node: Node, *, last: bool) -> tuple[str, ...]:
    if not node.require("ErrorEquals"):
        return ()
    names = node.array("ErrorEquals", filled=True) or ()
    if not all(isinstance(name, str) for name in names):
        node.complain("ErrorEquals", "Expected value of type String")
        return ()
    if "States.ALL" in names and (len(names) > 1 or not last):
        node.complain("ErrorEquals", "States.ALL must appear alone and at the end of the list")
    return tuple(map(str, names))
