"""Images that a configuration scripts: nothing runs, and each container ends as it is said."""

from pathlib import Path
from typing import Any

from tasuki.runners.scripted import ScriptedRunner
from tasuki.runtime.clock import HandClock
from tasuki.values.attempts import Container, Key, Launch, Report
from tasuki.values.config import Script
from tasuki.values.instant import MINUTE

KEY = Key("task", 1)
SCRIPTS = {"job": Script(61 * MINUTE), "sidecar": Script(MINUTE, 3), "proxy": Script(120 * MINUTE)}


class NoReal:
    """A real runner that has nothing to tell."""

    def collect(self, _settled: Any) -> list[Report]:
        return []


def begun(folder: Path, clock: HandClock) -> ScriptedRunner:
    real: Any = NoReal()
    runner = ScriptedRunner(real, folder, clock, SCRIPTS)
    parts = (Container(name, (), {}, "/", image=name, essential=name == "job") for name in SCRIPTS)
    runner.start(Launch(KEY, tuple(parts)))
    return runner


def codes(report: Report) -> dict[str, int | None]:
    return {one.name: one.exit_code for one in report.containers}


def test_what_had_not_ended_by_itself_ends_with_the_task(tmp_path: Path) -> None:
    clock = HandClock()
    runner = begun(tmp_path, clock)
    assert runner.due == 61 * MINUTE
    [running] = runner.collect()
    assert running.phase == "running"
    assert runner.collect() == []
    clock.set(61 * MINUTE)
    [ended] = runner.collect()
    assert (ended.phase, ended.stop_code, codes(ended)) == (
        "ended",
        "EssentialContainerExited",
        {"job": 0, "sidecar": 3, "proxy": 143},
    )


def test_a_stop_leaves_alone_what_had_ended_by_itself(tmp_path: Path) -> None:
    clock = HandClock()
    runner = begun(tmp_path, clock)
    clock.set(2 * MINUTE)
    assert runner.stop(KEY)
    [ended] = runner.collect()
    assert (ended.stop_code, codes(ended)) == ("UserInitiated", {"job": 143, "sidecar": 3, "proxy": 143})


def test_a_stop_after_the_end_changes_nothing(tmp_path: Path) -> None:
    clock = HandClock()
    runner = begun(tmp_path, clock)
    clock.set(61 * MINUTE)
    assert runner.stop(KEY)
    [ended] = runner.collect()
    assert ended.stop_code == "EssentialContainerExited"


def test_another_life_of_the_node_goes_on_with_it(tmp_path: Path) -> None:
    clock = HandClock()
    begun(tmp_path, clock)
    clock.set(MINUTE)
    real: Any = NoReal()
    heir = ScriptedRunner(real, tmp_path, clock, {})
    heir.watch(KEY)
    assert heir.plays(KEY)
    assert heir.due == 61 * MINUTE
    clock.set(61 * MINUTE)
    [ended] = heir.collect()
    assert codes(ended)["job"] == 0
    assert heir.collect({KEY}) == []
    assert not heir.plays(KEY)
