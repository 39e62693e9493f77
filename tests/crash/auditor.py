"""Compares what the clients of a relay were told, and what its tasks wrote down themselves, with what is there at the end."""

import itertools
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.crash.relay import Relay

ENTERED = ["PassStateEntered", "ChoiceStateEntered", "TaskStateEntered", "TaskStateEntered"]


@dataclass
class Audit:
    """What was found. `violations` names each promise that was broken, and by what."""

    acknowledged: int = 0
    unanswered: int = 0
    arrived: int = 0
    """Of those sends that were not answered, how many had arrived all the same."""
    executions: int = 0
    events: int = 0
    tries: int = 0
    lost_tries: int = 0
    """Tries that began and did not end: their shim was killed."""
    refused_tries: int = 0
    """Tries that RunTask refused, since no node had memory for them."""
    violations: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        broken = "".join(f"\n  {one}" for one in self.violations[:20])
        return (
            f"auditor: {self.acknowledged} acknowledged sends, {self.unanswered} unanswered ({self.arrived} of them arrived), "
            f"{self.executions} executions, {self.events} history events, {self.tries} tries of tasks ({self.lost_tries} lost "
            f"with their shim; {self.refused_tries} more found no memory): {len(self.violations)} violations{broken}"
        )


def audit(relay: Relay, *, shims_killed: int = 0) -> Audit:
    """Look at everything, through the API, when the relay has come to rest."""
    found = Audit(acknowledged=len(relay.acknowledged), unanswered=len(relay.uncertain))
    say = found.violations.append
    by_job: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    executions = relay.executions()
    found.executions = len(executions)
    for execution in executions:
        events = relay.history(execution["executionArn"])
        found.events += len(events)
        job = read_history(events, found.violations)
        by_job[job] += 1
        refused[job] += sum(event["type"] == "TaskSubmitFailed" for event in events)
        if execution["status"] != "SUCCEEDED":
            say(f"P2: execution of {job} ended as {execution['status']}")
    left = relay.depth(relay.jobs)
    if left:
        say(f"P8: {left} messages are still in the queue of jobs")
    for job in relay.acknowledged:
        if not by_job[job]:
            say(f"P1: {job} was acknowledged and is lost")
    found.arrived = len(set(by_job) - set(relay.acknowledged))
    for job, count in by_job.items():
        if count != 1:
            say(f"P3: {job} was handed over {count} times")
        if job not in relay.acknowledged and job not in relay.uncertain:
            say(f"P3: {job} was never sent")
    announced = relay.announced()
    if Counter(one["job"] for one in announced) != by_job:
        say(f"P3: {len(announced)} announcements of {len(by_job)} jobs")
    if len({one["by"] for one in announced}) != len(executions):
        say("P3: an execution announced twice")
    for job in by_job:
        check_marks(job, relay.marks(job), refused[job], found)
    if found.lost_tries > shims_killed:
        say(f"P4: {found.lost_tries} tries began and did not end, but only {shims_killed} shims were killed")
    return found


def read_history(events: list[dict[str, Any]], violations: list[str]) -> str:
    """P2: no gap, no repeat, one end, in the order of time. Answer the job's name."""
    job = str(json.loads(events[0]["executionStartedEventDetails"]["input"])[0]["body"]["job"])
    if [event["id"] for event in events] != list(range(1, len(events) + 1)):
        violations.append(f"P2: the history of {job} has a gap or a repeat")
    if not all(event["previousEventId"] < event["id"] for event in events):
        violations.append(f"P2: the history of {job} names a previous event that comes later")
    if any(one["timestamp"] > two["timestamp"] for one, two in itertools.pairwise(events)):
        violations.append(f"P2: time goes back in the history of {job}")
    ends = [event for event in events if event["type"] in {"ExecutionSucceeded", "ExecutionFailed"}]
    if len(ends) != 1 or ends[0] is not events[-1]:
        violations.append(f"P2: the history of {job} has {len(ends)} ends")
    entered = [event["type"] for event in events if event["type"].endswith("StateEntered")]
    if entered != ENTERED:
        violations.append(f"P2: {job} went through {entered}")
    return job


def check_marks(job: str, marks: list[list[str]], refused: int, found: Audit) -> None:
    """P4: each try of each job ran once, in one process, from its beginning to its end (unless its shim was killed).

    `refused` tries never began, since RunTask found no memory for them: which ones, only the history knows.
    """
    tries = sorted({int(number) for _, _, number in marks})
    found.tries += len(tries)
    found.refused_tries += refused
    made = len(tries) + refused
    if not set(tries) <= set(range(made)):
        found.violations.append(f"P4: {job} ran the tries {tries}")
    ended = 0
    for number in tries:
        words = [(word, pid) for word, pid, of in marks if of == str(number)]
        began = [pid for word, pid in words if word == "began"]
        over = [pid for word, pid in words if word == "ended"]
        if len(began) != 1 or over not in ([], began):
            found.violations.append(f"P4: try {number} of {job} ran as {words}")
        ended += bool(over)
    found.lost_tries += len(tries) - ended
    first_ended = ["ended", "0"] in [[word, of] for word, _, of in marks]
    # a `-fail` job fails at the end of its first try: one that was lost before that has only to end in the next
    least = 2 if job.endswith("-fail") and first_ended else 1
    if ended < least and made < 3:  # three are all that the machine tries
        found.violations.append(f"P4: {job} ended {ended} of its {len(tries)} tries, and should have had {least}")
