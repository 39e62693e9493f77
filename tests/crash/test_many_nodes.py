"""P1 to P4 and P8 with several nodes on one PostgreSQL: nodes, the database and shims are killed at moments of chance.

As `test_kill_nine`, from outside: real nodes, real tasks, boto3. The database is a server of the test's own, as durable as any, and
it is killed too. Ticks, events and letters are promised meanwhile, as there. `CRASH_FAULTS` and `CRASH_SEED` set how many faults and from which seed; a failure prints both.
"""

import contextlib
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Literal

import pytest

from tests.crash.appointments import Appointments, now_ms
from tests.crash.auditor import audit
from tests.crash.relay import Relay
from tests.crash.timely_auditor import audit_times
from tests.own_postgres import NoServer, OwnServer
from tests.postgres import own_server

FAULTS = int(os.environ.get("CRASH_FAULTS", "16"))
SEED = int(os.environ.get("CRASH_SEED", "1"))
NODES = 3
KINDS = ("a node", "a node, for a while", "all nodes", "a shim", "the database, at once", "the database, by SIGKILL")

pytestmark = pytest.mark.crash


@pytest.mark.timeout(FAULTS * 15 + 240)
def test_nodes_and_their_database_killed_at_any_moment_lose_nothing_and_do_nothing_twice(tmp_path: Path) -> None:
    try:
        database = own_server()
    except NoServer as bad:
        pytest.skip(f"no PostgreSQL of the test's own: {bad}")
    relay = Relay(tmp_path / "data", SEED, store=database.url, count=NODES)
    appointments = Appointments(relay)
    seen: Counter[str] = Counter()
    try:
        relay.build()
        appointments.build()
        for number in range(FAULTS):
            work(relay, appointments, relay.chance.choice([0.05, 0.2, 0.5, 1.0]))
            if number % 3 == 0:
                appointments.burst()
            kind = KINDS[number] if number < len(KINDS) else relay.chance.choice(KINDS)
            if fault(relay, appointments, database, kind):
                seen[kind] += 1
            if kind == "all nodes":
                killed = now_ms()
                relay.start_all()
                appointments.note_down(killed)
        relay.start_all()
        relay.until_quiet(within_s=180)
        found = audit(relay, shims_killed=seen["a shim"])
        assert not found.violations, found
        timely = audit_times(appointments.promises, appointments.gather())
        assert not timely.violations, timely
    except BaseException:
        sys.stdout.write(f"replay with: CRASH_SEED={SEED} CRASH_FAULTS={FAULTS}\n")
        raise
    finally:
        relay.stop_all()
        database.remove()
    sys.stdout.write(f"killed: {dict(seen)}; {found}\n{timely}\n")
    assert found.acknowledged > FAULTS
    if len(KINDS) <= FAULTS:
        assert set(seen) >= {kind for kind in KINDS if kind != "a shim"}, seen


def work(relay: Relay, appointments: Appointments, seconds: float) -> None:
    """Send jobs for a while, some at a time."""
    relay.start_all()
    relay.send()
    appointments.go_on()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if relay.depth(relay.jobs) < 3 and len(relay.executions("RUNNING")) < 12:
            relay.send()


def fault(relay: Relay, appointments: Appointments, database: OwnServer, kind: str) -> bool:
    """Kill something; answer whether there was anything to kill."""
    victim = relay.chance.choice(relay.nodes)
    if kind == "a node":
        appointments.while_asked(victim.kill)
        relay.send()
        victim.start()
    elif kind == "a node, for a while":
        appointments.while_asked(victim.kill)
        for _ in range(5):
            relay.send()  # to the others, while it is away; it comes back before the next fault
    elif kind == "all nodes":
        relay.kill_all()
    elif kind == "a shim":
        shims = relay.shims()
        if not shims:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(relay.chance.choice(shims), signal.SIGKILL)
    else:
        how: Literal["immediate", "kill"] = "immediate" if kind == "the database, at once" else "kill"
        appointments.while_asked(lambda: database.restart(how))
        relay.send()  # answered late, or refused: both are honest
    return True
