"""`clock`: what time it is in a house whose clock is moved by hand, and moving it."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from math import isfinite
from typing import Any

from tasuki.cli import screen
from tasuki.cli.complaints import Code, Complaint
from tasuki.cli.reach import Reach, how_to_start
from tasuki.values.durations import parse_duration, parse_instant
from tasuki.values.instant import Instant, to_iso

WAIT_S = 5
"""After how long a long way is reported on."""
ANSWER_WITHIN_S = 70
FIRST_S = 1
_ONE = {
    "ticks": "tick",
    "executions": "execution",
    "tasks": "task",
    "messages": "message",
    "letters": "letter",
    "deliveries": "delivery",
    "tries": "try",
}


def show(reach: Reach, *, as_json: bool) -> None:
    """Print where the clock stands, what is due next, and what is at work."""
    _show(_call(reach, "GetClock", {}), as_json=as_json)


def run(reach: Reach, speed: float, *, as_json: bool) -> None:
    """Let the clock run, or stand still (0)."""
    _refuse_endless("--speed", speed)
    _show(_call(reach, "RunClock", {"Speed": speed}), as_json=as_json)


def advance(find: Callable[[], Reach], by: str, patience_s: float, *, as_json: bool) -> None:
    """Move the clock on by a duration, however many requests it takes."""
    try:
        parse_duration(by)
    except ValueError as bad:
        raise Complaint(str(bad), Code.USAGE) from None
    _move(find(), {"By": by}, patience_s, as_json=as_json)


def set_to(find: Callable[[], Reach], to: str, patience_s: float, *, as_json: bool) -> None:
    """Move the clock on to an instant."""
    try:
        target: Instant = parse_instant(to)
    except ValueError as bad:
        raise Complaint(str(bad), Code.USAGE) from None
    _move(find(), {"To": to_iso(target)}, patience_s, as_json=as_json)


def _move(reach: Reach, target: dict[str, Any], patience_s: float, *, as_json: bool) -> None:
    _refuse_endless("--patience", patience_s)
    visited, counts, wait_s = 0, Counter[str](), FIRST_S
    to = target.get("To") or _arrival(reach, target["By"])
    while True:
        asked = {**target, "PatienceSeconds": patience_s, "WaitSeconds": wait_s}
        with _on_the_way(reach, to):
            said = _call(reach, "AdvanceClock", asked)
        visited += said["Visited"]
        counts.update(said["Counts"])
        if said["Arrived"]:
            break
        busy = ", ".join(said["Busy"])
        screen.line(f"at {said['Now']}, {visited} instants visited{f'; at work: {busy}' if busy else ''}", sys.stderr)
        target, wait_s = {"To": said["To"]}, WAIT_S
    if as_json:
        screen.show_json({"now": said["Now"], "visited": visited, "counts": dict(counts)})
        return
    screen.line(f"It is {said['Now']} in the house, after {visited} {'instant' if visited == 1 else 'instants'}.")
    happened = [f"{count} {_words(name, count)}" for name, count in counts.items() if count]
    if happened:
        screen.line(f"Meanwhile: {', '.join(happened)}.")


def _arrival(reach: Reach, by: str) -> str:
    """Answer where a duration leads to from now, or nothing if it leads beyond the calendar."""
    with suppress(ValueError, OverflowError):
        target: Instant = parse_instant(_call(reach, "GetClock", {})["Now"]) + parse_duration(by)
        return to_iso(target)
    return ""


@contextmanager
def _on_the_way(reach: Reach, to: str) -> Iterator[None]:
    """Tell, when the node goes away meanwhile, how to go on."""
    from botocore import exceptions as aws

    try:
        yield
    except (aws.EndpointConnectionError, aws.ConnectTimeoutError, aws.ConnectionClosedError) as gone:
        start = how_to_start(reach.folder) if reach.folder is not None else "start it again with: tasuki up"
        raise Complaint(
            f"the node went away on the way to {to}: {gone}",
            Code.UNREACHABLE,
            hint=f"{start} --clock manual\nthen go on: tasuki clock set {to}",
        ) from None


def _show(said: dict[str, Any], *, as_json: bool) -> None:
    following = said.get("Next")
    if as_json:
        screen.show_json(
            {
                "now": said["Now"],
                "kind": said["Kind"],
                "speed": said["Speed"],
                "next": {"at": following["At"], "what": following["What"]} if following else None,
                "busy": said["Busy"],
            }
        )
        return
    how = "by the machine's clock" if said["Kind"] == "real" else "it stands still"
    if said["Kind"] == "manual" and said["Speed"]:
        how = f"it runs at speed {said['Speed']:g}"
    screen.line(f"It is {said['Now']} in the house; {how}.")
    if following:
        screen.line(f"Due next: {following['At']}  {following['What']}")
    if said["Busy"]:
        screen.line(f"At work: {', '.join(said['Busy'])}")


def _refuse_endless(option: str, value: float) -> None:
    """Refuse what floats can say and JSON cannot."""
    if not isfinite(value):
        raise Complaint(f"{option} {value}: give a number", Code.USAGE)


def _words(name: str, count: int) -> str:
    """Write `ExecutionsStarted` as people do."""
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).split()
    return " ".join(_ONE.get(word, word) for word in words) if count == 1 else " ".join(words)


def _call(reach: Reach, operation: str, request: dict[str, Any]) -> dict[str, Any]:
    from tasuki.cli.trace import call_house  # which imports much of what other commands need

    answer: dict[str, Any] = call_house(reach, operation, request, answer_within_s=ANSWER_WITHIN_S)
    return answer
