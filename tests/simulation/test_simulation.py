"""The simulation itself: no violation on fixed seeds and a fresh one, the same run for the same seed, a failure that says how."""

import os
import re
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from tasuki.testing.simulation import command, grounds, simulate
from tasuki.testing.simulation.campaign import plan_of, play, report, shortest
from tasuki.testing.simulation.faults import Rates
from tasuki.testing.simulation.simulation import Plan
from tests.simulation.planted import skipped

FIXED = range(1, 17)
FRESH = int(os.environ.get("SIMULATE_SEED", "0")) or secrets.randbelow(1_000_000_000)


@pytest.mark.timeout(600)
def test_no_promise_breaks_in_thousands_of_steps() -> None:
    summary = play(plan_of(seed, grounds.memory) for seed in FIXED)
    assert not summary.failed, report(summary.failed[0], "memory")
    assert summary.steps >= 4_000
    assert summary.crashes >= 100
    missed = {"crash before commit", "crash after commit", "crash between units", "unit run again", "lost bell"}
    missed |= {"lost reply", "slow duty", "late timers", "timer fired twice", "database gone", "disk full"}
    missed |= {"call not answered", "call refused", "crash with a call in hand"}
    missed |= {"start failed", "start put off", "task lost by its host"}
    assert not missed - summary.faults.keys()
    sys.stdout.write(summary.line(0.0) + "\n")


@pytest.mark.timeout(600)
def test_no_promise_breaks_on_a_fresh_seed() -> None:
    """A failure prints the seed; SIMULATE_SEED plays it again here, `make simulate SEED=...` anywhere."""
    summary = play(plan_of(seed, grounds.memory) for seed in range(FRESH, FRESH + 5))
    assert not summary.failed, report(summary.failed[0], "memory")


@pytest.mark.timeout(600)
def test_no_promise_breaks_on_a_file(tmp_path: Path) -> None:
    """Its disk is really full now and then."""
    full = Rates(full=0.02)
    plans = (Plan(seed, 120, rates=full, ground=grounds.file(tmp_path / f"{seed}.db", fills=True)) for seed in (1, 2))
    summary = play(plans)
    assert not summary.failed, report(summary.failed[0], "file")
    assert summary.faults["disk full"]


def test_the_same_seed_is_the_same_run(tmp_path: Path) -> None:
    first, again, other, another = (simulate(plan_of(seed, grounds.memory, 120)) for seed in (8, 8, 9, 9))
    assert first == again
    assert other == another, "with nodes that alternate at each unit, too"
    assert first.trace != other.trace
    on_a_file = simulate(plan_of(8, grounds.file(tmp_path / "f.db"), 120))
    assert on_a_file.trace == first.trace


def test_the_same_seed_is_the_same_run_in_another_process() -> None:
    code = "from tasuki.testing.simulation import *; from tasuki.testing.simulation import grounds, campaign;"
    code += "print(simulate(campaign.plan_of(9, grounds.memory, 120)).trace)"
    traces = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(traces) == 1


def test_a_failure_says_how_to_play_it_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tasuki.services.queues.queries import COUNT_DELETED

    def bugged(seed: int, ground: grounds.GroundMaker, steps: int) -> Plan:
        return Plan(seed, steps, ground=ground, tamper=skipped(COUNT_DELETED))

    monkeypatch.setattr(command, "plan_of", bugged)
    assert command.main(["--seed", "4"]) == 1
    said = capsys.readouterr().out
    assert "conservation holds: the counters of" in said
    assert "violations 1;" in said
    found = re.search(r"make simulate SEED=4 STEPS=(\d+)\n", said)
    assert found, said
    assert f"seed 4, step {found[1]}: " in said
    assert command.main(["--seed", "4", "--steps", found[1]]) == 1
    assert command.main(["--seed", "4", "--steps", str(int(found[1]) - 1)]) == 0


def test_a_failure_is_played_shorter() -> None:
    from tasuki.services.queues.queries import DELETE_BODY

    plan = Plan(2, tamper=skipped(DELETE_BODY))
    failed = simulate(plan)
    assert failed.violation is not None
    short = shortest(plan, failed)
    assert short.violation is not None
    assert short.step < failed.step


def test_a_run_says_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--seed", "3", "--steps", "60", "--seconds", "0"]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    pattern = r"simulate: 1 seeds, 60 steps, \d+ units, \d+ crashes, faults: .+; \d+ invariants checked, violations 0; "
    assert re.match(pattern + r"\d+ simulated days in \d+\.\d s$", line), line


def test_a_store_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--seed", "1", "--store", "postgresql://nobody@127.0.0.1:1/nothing"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("simulate: ")
    assert "127.0.0.1:1" in said
    with pytest.raises(SystemExit, match="give memory, file or postgresql://"):
        command.main(["--seed", "1", "--store", "paper"])
