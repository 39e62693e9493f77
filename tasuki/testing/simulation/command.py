"""`make simulate`: seeds until the time is over, one summary line; a failure says how to play it again.

::

    make simulate                       60 seconds, from a fresh seed on
    make simulate SECONDS=600 SEED=1    ten minutes, from seed 1 on
    make simulate SEED=7 STEPS=120      that one run
"""

import argparse
import itertools
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tasuki.testing.clock import ManualClock
from tasuki.testing.simulation import grounds
from tasuki.testing.simulation.campaign import plan_of, play, report
from tasuki.testing.simulation.grounds import Ground, GroundMaker
from tasuki.testing.simulation.simulation import STEPS, Plan
from tasuki.values.errors import StoreError

SECONDS = 60.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Play; answer 1 when an invariant did not hold, 2 when there is no store to play on."""
    given = _parser().parse_args(arguments)
    first = given.seed if given.seed is not None else secrets.randbelow(1_000_000_000)
    only = given.seed is not None and given.seconds is None
    seconds = given.seconds if given.seconds is not None else SECONDS
    sys.stdout.write(f"simulate: from seed {first}, store {given.store}\n")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tasuki-simulate-") as folder:
        ground = _ground(given.store, Path(folder))
        plans: Iterator[Plan] = (plan_of(seed, ground, given.steps) for seed in itertools.count(first))
        if only:
            plans = itertools.islice(plans, 1)
        try:
            summary = play(plans, lambda: time.monotonic() - began < seconds)
        except StoreError as bad:
            sys.stderr.write(f"simulate: {bad}\n")
            return 2
    for failed in summary.failed:
        sys.stdout.write(report(failed, given.store) + "\n")
    sys.stdout.write(summary.line(time.monotonic() - began) + "\n")
    return 1 if summary.failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="simulate", description="Attack the house's promises under simulated faults.")
    parser.add_argument("--seconds", type=float, help=f"play seeds for so long (default {SECONDS:g})")
    parser.add_argument("--seed", type=int, help="the first seed; without --seconds the only one")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"steps of each run (default {STEPS})")
    parser.add_argument("--store", default="memory", help="where the house stands: memory, file or postgresql://...")
    return parser


def _ground(store: str, folder: Path) -> GroundMaker:
    if store == "memory":
        return grounds.memory
    if store.startswith(("postgresql://", "postgres://")):
        from tasuki.testing.simulation.grounds_postgres import postgresql

        return postgresql(store)
    if store != "file":
        raise SystemExit(f"simulate: --store {store} is none; give memory, file or postgresql://USER@HOST/DATABASE")
    numbers = itertools.count()

    def fresh(clock: ManualClock) -> Ground:
        return grounds.SqliteGround(clock, folder / f"run{next(numbers)}.db", fills=True)

    return fresh


if __name__ == "__main__":
    sys.exit(main())
