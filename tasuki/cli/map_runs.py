"""`watch` on Distributed Maps: how far a Map Run is, and which child failed first."""

from collections.abc import Mapping
from typing import Any

from tasuki.cli import screen
from tasuki.cli.causes import put_into_words
from tasuki.cli.complaints import Code
from tasuki.cli.events import ENDS, details_of, short
from tasuki.cli.pace import pause
from tasuki.cli.pages import every
from tasuki.cli.reach import Reach
from tasuki.cli.steady import Steady

_BEGIN = ("MapRunStarted", "MapRunRedriven")
_END = ("MapRunSucceeded", "MapRunFailed", "MapRunAborted")
_COUNTED = {
    "running": "running",
    "failed": "failed",
    "timedOut": "timed out",
    "aborted": "aborted",
    "pendingRedrive": "to be redriven",
}
_PAGE = 1000


class MapRuns:
    """The Map Runs of a watched execution: a line whenever one's counts change, and the first failure at its end."""

    def __init__(self, steady: Steady) -> None:
        self._steady = steady
        self._open: dict[int, str] = {}
        """By the event that began them, which the one that ends them follows."""
        self._told: dict[str, str] = {}

    def note(self, event: Mapping[str, Any]) -> None:
        """Remember the Map Run that an event began; tell the end of one that it ended."""
        kind = str(event["type"])
        if kind in _BEGIN:
            self._open[int(event["id"])] = str(details_of(event)["mapRunArn"])
        elif kind in _END or kind in ENDS:
            before = int(event.get("previousEventId", 0))
            ended = {before} if before in self._open else set(self._open)
            for begun in ended:
                self._tell(self._open.pop(begun), over=True)

    def show(self) -> None:
        """Print what changed since the last look."""
        for arn in self._open.values():
            self._tell(arn, over=False)

    def _tell(self, arn: str, *, over: bool) -> None:
        run = described(self._steady, arn)
        now = counts(run)
        if now != self._told.get(arn):
            screen.line(f"{'':>9} |   map run {now}")
            self._told[arn] = now
        if over:
            _tell_failure(self._steady, run)


def watch(reach: Reach, arn: str, *, as_json: bool) -> Code:
    """Follow one Map Run by its ARN until it ends. Answers `Code.NO` when it did not succeed."""
    steady = Steady(reach)
    if not as_json:
        screen.line(arn)
    told: object = None
    while True:
        run = described(steady, arn)
        now = run if as_json else f"{run['status']}  {counts(run)}"
        if now != told:
            if as_json:
                screen.show_json(run)
            else:
                screen.line(f"map run {now}")
            told = now
        if run["status"] != "RUNNING":
            break
        pause()
    if not as_json:
        _tell_failure(steady, run)
    return Code.DONE if run["status"] == "SUCCEEDED" else Code.NO


def described(steady: Steady, arn: str) -> dict[str, Any]:
    """Answer what DescribeMapRun says."""
    run = steady.ask(lambda reach: dict(reach.client("stepfunctions").describe_map_run(mapRunArn=arn)))
    run.pop("ResponseMetadata", None)
    return run


def counts(run: Mapping[str, Any]) -> str:
    """Put a Map Run's counts of items into words."""
    items = run["itemCounts"]
    rest = [f"{items[name]} {words}" for name, words in _COUNTED.items() if items.get(name)]
    return ", ".join([f"{items['succeeded']} of {items['total']} items succeeded", *rest])


def _tell_failure(steady: Steady, run: Mapping[str, Any]) -> None:
    """Say which child of a Map Run failed first, and why, if one did."""
    for status, count in (("FAILED", "failed"), ("TIMED_OUT", "timedOut")):
        if not run["executionCounts"][count]:
            continue
        child = steady.ask(lambda reach, status=status: _first(reach, str(run["mapRunArn"]), status))  # type: ignore[misc]
        if child is not None:
            reason = ": ".join(part for part in (child.get("error"), put_into_words(child.get("cause"))) if part)
            screen.line(f"{'':>9} x   first to fail: {short(reason or status, 600)}")
            screen.line(f"{'':>9}     {child['executionArn']}")
            return


def _first(reach: Reach, arn: str, status: str) -> dict[str, Any] | None:
    """Describe the child that ended first with a status. They are listed newest first, and may be forgotten by now."""
    states = reach.client("stepfunctions")
    ended = every(
        *(reach, "stepfunctions", "list_executions", "executions"),
        mapRunArn=arn,
        statusFilter=status,
        PaginationConfig={"PageSize": _PAGE},
    )
    first = min(ended, key=lambda child: (child.get("stopDate", child["startDate"]), child["startDate"]), default=None)
    if first is None:
        return None
    try:
        return dict(states.describe_execution(executionArn=first["executionArn"]))
    except states.exceptions.ExecutionDoesNotExist:
        return None
