"""A task's life under the manual clock, and every crash in it (ecs.md sections 3, 4, 10; P4)."""

from typing import Any

import pytest

from tasuki.runtime.attendant import Attendant
from tasuki.services.tasks import queries as sql
from tasuki.services.tasks.attending import MOST_ATTEMPTS
from tasuki.services.tasks.stopping import stop
from tasuki.values.attempts import Launch
from tests.services.tasks.stage import Died, Stage


def test_it_is_accepted_then_runs_then_stops(stage: Stage) -> None:
    began = stage.house.now
    arn = stage.run("hour", drain=False)
    accepted = stage.task(arn)
    assert (accepted["lastStatus"], accepted["desiredStatus"], accepted["version"]) == ("PROVISIONING", "RUNNING", 1)
    assert accepted["containers"][0]["lastStatus"] == "PENDING"
    stage.house.drain()
    running = stage.task(arn)
    assert (running["lastStatus"], running["startedAt"], running["version"]) == ("RUNNING", began, 3)
    assert running["containers"][0]["lastStatus"] == "RUNNING"
    stage.house.advance(minutes=60)
    assert stage.task(arn)["lastStatus"] == "RUNNING", "no default timeout below an hour (S1-08)"
    stage.house.advance(minutes=2)
    stopped = stage.task(arn)
    assert (stopped["lastStatus"], stopped["stopCode"], stopped["version"]) == (
        "STOPPED",
        "EssentialContainerExited",
        5,
    )
    assert stopped["stoppedReason"] == "Essential container in task exited"
    assert stopped["containers"][0]["exitCode"] == 0
    assert stopped["stoppedAt"] == stopped["executionStoppedAt"] == began + 61 * 60_000


@pytest.mark.parametrize(
    ("image", "code", "reason"),
    [("broken", 3, None), ("hungry", 137, "OutOfMemoryError: Container killed due to memory usage")],
)
def test_bad_ends(stage: Stage, image: str, code: int, reason: str | None) -> None:
    arn = stage.run(image)
    stage.house.advance(seconds=2)
    container = stage.task(arn)["containers"][0]
    assert (container["exitCode"], container.get("reason")) == (code, reason)


def test_pf55_a_stop_is_wanted_at_once_and_done_when_it_is_done(stage: Stage) -> None:
    arn = stage.run("forever")
    answer = stage.call("StopTask", task=arn, reason="enough")["task"]
    assert (answer["desiredStatus"], answer["lastStatus"]) == ("STOPPED", "RUNNING")
    stage.house.advance(seconds=4)
    assert stage.task(arn)["lastStatus"] == "RUNNING"
    stage.house.advance(seconds=1)
    stopped = stage.task(arn)
    assert (stopped["lastStatus"], stopped["stopCode"], stopped["stoppedReason"]) == (
        "STOPPED",
        "UserInitiated",
        "enough",
    )
    assert stopped["containers"][0]["exitCode"] == 143
    assert stage.call("StopTask", task=arn)["task"]["stoppedReason"] == "enough", "again is harmless"


def test_a_stubborn_one_is_killed_after_its_time(stage: Stage) -> None:
    arn = stage.run("stubborn")
    stage.call("StopTask", task=arn)
    stage.house.advance(seconds=29)
    assert stage.task(arn)["lastStatus"] == "RUNNING"
    stage.house.advance(seconds=1)
    assert stage.task(arn)["containers"][0]["exitCode"] == 137


def test_a_stop_before_the_claim_runs_nothing(stage: Stage) -> None:
    arn = stage.run("quick", drain=False)
    stopped = stage.call("StopTask", task=arn)["task"]
    assert (stopped["lastStatus"], stopped["stopCode"]) == ("STOPPED", "UserInitiated")
    assert "exitCode" not in stopped["containers"][0]
    stage.house.drain()
    assert stage.runner.started == []


def test_a_stop_between_claim_and_start_is_carried_out(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Attendant._start

    async def slowly(self: Attendant, launch: Launch) -> None:
        row = await stage.house.store.write(lambda tx: tx.one(sql.TASK_BY_NAME, (launch.key.task,)))
        assert row is not None
        await stage.house.store.write(lambda tx: stop(tx, stage.attendant._setting, row, "too soon"))
        await self._stop()
        await real(self, launch)

    monkeypatch.setattr(Attendant, "_start", slowly)
    arn = stage.run("forever", drain=False)
    stage.house.advance(minutes=1)
    stopped = stage.task(arn)
    assert (stopped["lastStatus"], stopped["stoppedReason"]) == ("STOPPED", "too soon")


def test_a_node_that_comes_back_adopts_what_runs(stage: Stage) -> None:
    arn = stage.run("hour")
    stage.house.advance(minutes=5)
    stage.crash()
    stage.house.advance(minutes=57)
    assert stage.task(arn)["containers"][0]["exitCode"] == 0
    assert len(stage.runner.started) == 1


def test_what_ended_while_the_node_was_away_is_settled_with_its_true_exit_code(stage: Stage) -> None:
    began = stage.house.now
    arn = stage.run("hour")
    stage.house.clock.set(began + 2 * 3_600_000)
    stage.crash()
    stage.house.drain()
    task = stage.task(arn)
    assert task["containers"][0]["exitCode"] == 0
    assert (task["startedAt"], task["executionStoppedAt"]) == (began, began + 61 * 60_000), "when it truly was"
    assert task["stoppedAt"] == began + 2 * 3_600_000, "when the house learned of it"
    assert len(stage.runner.started) == 1


def test_killed_between_claim_and_start_it_is_started_once_as_another_attempt(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def dies(_self: Attendant, _launch: Launch) -> None:
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(Attendant, "_start", dies)
        arn = stage.run("quick", drain=False)
        with pytest.raises(Died):
            stage.house.drain()
    assert stage.task(arn)["lastStatus"] == "PENDING"
    stage.crash()
    stage.house.drain()
    assert stage.task(arn)["containers"][0]["exitCode"] == 0
    assert [(launch.key.attempt) for launch in stage.runner.started] == [2]


def test_killed_between_start_and_the_note_of_it_it_is_adopted(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Attendant._start

    async def starts_and_dies(self: Attendant, launch: Launch) -> None:
        await real(self, launch)
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(Attendant, "_start", starts_and_dies)
        arn = stage.run("hour", drain=False)
        with pytest.raises(Died):
            stage.house.drain()
    began = stage.house.now
    stage.house.clock.set(began + 600_000)
    stage.crash()
    stage.house.drain()
    assert stage.task(arn)["lastStatus"] == "RUNNING"
    assert stage.task(arn)["startedAt"] == began
    assert len(stage.runner.started) == 1


def test_killed_before_the_end_is_settled_it_is_settled_by_the_next(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def dies(_self: Attendant) -> bool:
        raise Died

    arn = stage.run("hour")
    with monkeypatch.context() as patch:
        patch.setattr(Attendant, "_settle", dies)
        stage.house.clock.set(stage.house.now + 62 * 60_000)
        with pytest.raises(Died):
            stage.house.drain()
    assert stage.task(arn)["lastStatus"] == "RUNNING"
    stage.crash()
    stage.house.drain()
    assert stage.task(arn)["containers"][0]["exitCode"] == 0


def test_lost_with_its_host_it_is_never_run_again(stage: Stage) -> None:
    arn = stage.run("hour")
    stage.runner.lose(stage.runner.started[0].key)
    stage.crash()
    stage.house.drain()
    stopped = stage.task(arn)
    assert (stopped["lastStatus"], stopped["stopCode"]) == ("STOPPED", "InfrastructureHealth")
    assert "exitCode" not in stopped["containers"][0]
    assert len(stage.runner.started) == 1


def test_seen_running_it_is_never_run_again_even_if_its_folder_is_gone(stage: Stage) -> None:
    arn = stage.run("hour")
    stage.runner._plays.clear()
    stage.crash()
    stage.house.drain()
    assert stage.task(arn)["stopCode"] == "InfrastructureHealth"
    assert len(stage.runner.started) == 1


def test_a_stop_asked_before_a_crash_is_carried_out_after_it(stage: Stage) -> None:
    arn = stage.run("forever")
    stage.call("StopTask", task=arn)
    stage.crash()
    stage.house.advance(seconds=5)
    assert stage.task(arn)["containers"][0]["exitCode"] == 143


def test_the_same_report_twice_changes_nothing(stage: Stage) -> None:
    arn = stage.run("quick")
    before = stage.task(arn)
    for _ in range(3):
        stage.crash()
        stage.house.drain()
    assert stage.task(arn) == before


def test_a_machine_that_cannot_start_it_gives_up(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(stage.runner), "start", lambda self, launch: self._never.add(launch.key))
    stopped = stage.task(stage.run("quick"))
    assert stopped["stopCode"] == "TaskFailedToStart"
    assert f"could not be started in {MOST_ATTEMPTS} attempts" in stopped["stoppedReason"]


def test_a_node_killed_again_and_again_before_a_start_costs_the_task_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each node claims it and dies before it can ask for the start: the fourth one runs it, with its own exit code."""
    start, starts = type(stage.runner).start, 0

    def dies_first(self: Any, launch: Any) -> None:
        nonlocal starts
        starts += 1
        if starts <= 3:
            self._never.add(launch.key)
        else:
            start(self, launch)

    monkeypatch.setattr(type(stage.runner), "start", dies_first)
    stopped = stage.task(stage.run("quick"))
    assert starts == 4
    assert stopped["stopCode"] == "EssentialContainerExited"
    assert stopped["containers"][0]["exitCode"] == 0


def test_stopped_tasks_are_shown_for_days_and_then_forgotten(stage: Stage) -> None:
    first, second = stage.run("quick"), None
    stage.house.advance(days=1)
    second = stage.run("quick")
    stage.house.advance(days=6)
    assert stage.call("DescribeTasks", tasks=[first])["failures"][0]["reason"] == "MISSING"
    assert stage.task(second)["lastStatus"] == "STOPPED"
    stage.house.advance(days=1)
    assert stage.call("DescribeTasks", tasks=[second])["failures"][0]["reason"] == "MISSING"
