"""P1, P2, P3, P4 and P8 against `kill -9`: a real node under load, killed again and again at moments of chance.

Each round drives some jobs, kills the node in the middle, looks at what the files say about where each task was at that
moment, and starts the node again on what it left. At the end everything must have come to rest, and the witnesses
(see `relay`) are compared; so are the ticks, events and letters that were promised meanwhile (see `appointments`). `CRASH_KILLS` and `CRASH_SEED` set how often and from which seed; a failure prints both.
"""

import os
import sys
import time
from collections import Counter
from pathlib import Path

import apsw
import pytest

from tests.crash.appointments import Appointments, now_ms
from tests.crash.auditor import audit
from tests.crash.relay import Relay
from tests.crash.timely_auditor import audit_times

KILLS = int(os.environ.get("CRASH_KILLS", "50"))
SEED = int(os.environ.get("CRASH_SEED", "1"))
PHASES = ("waiting", "starting", "running", "ended, not recorded", "stopped", "an enrichment")

pytestmark = pytest.mark.crash


@pytest.mark.timeout(KILLS * 6 + 240)
def test_a_node_killed_at_any_moment_loses_nothing_and_does_nothing_twice(tmp_path: Path) -> None:
    relay = Relay(tmp_path / "data", SEED)
    appointments = Appointments(relay)
    seen: Counter[str] = Counter()
    try:
        relay.build()
        appointments.build()
        for number in range(KILLS):
            until = time.monotonic() + relay.chance.choice([0.0, 0.05, 0.15, 0.3, 0.5, 0.9])
            appointments.go_on()
            if number % 5 == 4:
                appointments.burst()
            while time.monotonic() < until:
                if relay.depth(relay.jobs) < 3 and len(relay.executions("RUNNING")) < 12:
                    relay.send()
            if number % 3 == 1:
                appointments.while_asked(relay.node.kill)
            else:
                relay.send()
                relay.node.kill()
            killed = now_ms()
            seen.update(phases(relay))
            relay.node.start()
            appointments.note_down(killed)
        relay.until_quiet(within_s=180)
        found = audit(relay)
        assert not found.violations, found
        timely = audit_times(appointments.promises, appointments.gather())
        assert not timely.violations, timely
    except BaseException:
        sys.stdout.write(f"replay with: CRASH_SEED={SEED} CRASH_KILLS={KILLS}\n")
        raise
    finally:
        relay.node.stop()
    sys.stdout.write(
        f"{KILLS} kills, {len(relay.acknowledged)} acknowledged jobs; tasks at the moment of a kill: {dict(seen)}\n{timely}\n"
    )
    if KILLS >= 50:
        missing = [phase for phase in PHASES if not seen[phase]]
        assert not missing, f"no kill met a task {missing}: {dict(seen)}"
        assert timely.missed, "no tick was due while the node was dead"


def phases(relay: Relay) -> Counter[str]:
    """Say where each task stood when the node died, and what else was under way: by the node's file, and by what the task itself wrote down."""
    seen: Counter[str] = Counter()
    file = apsw.Connection(str(relay.node.data / "tasuki.db"), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        messages = next(
            file.execute("SELECT count(*) FROM messages JOIN queues USING (shelf) WHERE queues.name = 'jobs'")
        )[0]
        open_executions = next(file.execute("SELECT count(*) FROM executions WHERE status = 'RUNNING'"))[0]
        stopped = next(file.execute("SELECT count(*) FROM tasks WHERE last_status = 'STOPPED'"))[0]
        ticks = next(file.execute("SELECT count(*) FROM timers WHERE room = 'schedules' AND due <= ?", (now_ms(),)))[0]
        calls = next(file.execute("SELECT count(*) FROM pipe_calls"))[0]
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
    seen["a tick due"] += ticks
    seen["an enrichment"] += calls
    return seen
