"""P1, P2, P3, P4 and P8 against `kill -9`: a real node under load, killed again and again at moments of chance.

Each round drives some jobs, kills the node in the middle, looks at what the files say about where each task was at that
moment, and starts the node again on what it left. At the end everything must have come to rest, and the witnesses
(see `relay`) are compared. `CRASH_KILLS` and `CRASH_SEED` set how often and from which seed; a failure prints both.
"""

import os
import sys
import time
from collections import Counter
from pathlib import Path

import apsw
import pytest

from tests.crash.relay import Relay

KILLS = int(os.environ.get("CRASH_KILLS", "50"))
SEED = int(os.environ.get("CRASH_SEED", "1"))
PHASES = ("waiting", "starting", "running", "ended, not recorded", "stopped")

pytestmark = pytest.mark.crash


@pytest.mark.timeout(KILLS * 6 + 240)
def test_a_node_killed_at_any_moment_loses_nothing_and_does_nothing_twice(tmp_path: Path) -> None:
    relay = Relay(tmp_path / "data", SEED)
    seen: Counter[str] = Counter()
    try:
        relay.build()
        for _ in range(KILLS):
            until = time.monotonic() + relay.chance.choice([0.0, 0.05, 0.15, 0.3, 0.5, 0.9])
            relay.send()
            while time.monotonic() < until:
                if relay.depth(relay.jobs) < 3 and len(relay.executions("RUNNING")) < 12:
                    relay.send()
            relay.node.kill()
            seen.update(phases(relay))
            relay.node.start()
        relay.until_quiet(within_s=180)
        check(relay)
    except BaseException:
        sys.stdout.write(f"replay with: CRASH_SEED={SEED} CRASH_KILLS={KILLS}\n")
        raise
    finally:
        relay.node.stop()
    sys.stdout.write(
        f"{KILLS} kills, {len(relay.acknowledged)} acknowledged jobs; tasks at the moment of a kill: {dict(seen)}\n"
    )
    if KILLS >= 50:
        missing = [phase for phase in PHASES if not seen[phase]]
        assert not missing, f"no kill met a task {missing}: {dict(seen)}"


def phases(relay: Relay) -> Counter[str]:
    """Say where each task stood when the node died: by the node's file, and by what the task itself wrote down."""
    seen: Counter[str] = Counter()
    file = apsw.Connection(str(relay.data / "tasuki.db"), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        messages = next(file.execute("SELECT count(*) FROM messages"))[0]
        open_executions = next(file.execute("SELECT count(*) FROM executions WHERE status = 'RUNNING'"))[0]
        stopped = next(file.execute("SELECT count(*) FROM tasks WHERE last_status = 'STOPPED'"))[0]
    finally:
        file.close()
    began = ended = 0
    for path in (relay.data / "marks").iterdir():
        lines = path.read_text().splitlines()
        began += sum(line.startswith("began") for line in lines)
        ended += sum(line.startswith("ended") for line in lines)
    seen["waiting"] += messages
    seen["running"] += began - ended
    seen["ended, not recorded"] += max(0, ended - stopped)
    seen["starting"] += max(0, open_executions - (began - ended) - max(0, ended - stopped))
    seen["stopped"] += stopped
    return seen


def check(relay: Relay) -> None:
    executions = relay.executions()
    by_job: Counter[str] = Counter()
    for execution in executions:
        events = relay.history(execution["executionArn"])
        by_job[check_history(events)] += 1
        assert execution["status"] == "SUCCEEDED", execution
    # P1 and P8: every acknowledged job went all the way; nothing is left anywhere.
    assert relay.depth(relay.jobs) == 0
    lost = [job for job in relay.acknowledged if not by_job[job]]
    assert not lost, f"acknowledged and lost: {lost}"
    # P3: one execution a message, one announcement an execution.
    assert [job for job, count in by_job.items() if count != 1] == []
    assert set(by_job) <= set(relay.acknowledged) | relay.uncertain
    announced = relay.announced()
    assert Counter(one["job"] for one in announced) == by_job
    assert len({one["by"] for one in announced}) == len(executions)
    # P4: each try of each job ran once, in one process, from its beginning to its end.
    for job in by_job:
        check_marks(job, relay.marks(job))


def check_history(events: list[dict[str, object]]) -> str:
    """P2: no gap, no repeat, one end. Answer the job's name."""
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))
    assert all(int(str(event["previousEventId"])) < int(str(event["id"])) for event in events)
    ends = [event for event in events if str(event["type"]) in {"ExecutionSucceeded", "ExecutionFailed"}]
    assert len(ends) == 1
    assert ends[0] is events[-1]
    entered = [str(event["type"]) for event in events if str(event["type"]).endswith("StateEntered")]
    assert entered == ["PassStateEntered", "ChoiceStateEntered", "TaskStateEntered", "TaskStateEntered"]
    import json

    started = events[0]["executionStartedEventDetails"]
    assert isinstance(started, dict)
    return str(json.loads(started["input"])[0]["body"]["job"])


def check_marks(job: str, marks: list[list[str]]) -> None:
    tries = 2 if job.endswith("-fail") else 1
    expected = [(word, str(number)) for number in range(tries) for word in ("began", "ended")]
    assert [(word, number) for word, _, number in marks] == expected, (job, marks)
    for number in range(tries):
        assert len({pid for _, pid, of in marks if of == str(number)}) == 1, (job, marks)
