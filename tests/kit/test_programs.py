"""Real programs in a test's house: where they are looked for, which python is meant, what is refused."""

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest

from tasuki.testing import Kit
from tests.kit.test_plugin import project, pytest_in
from tests.kit.town import ROLE, job, machine, start, task_definition

TELLS = "import sys, boto3; print(sys.executable, sys.prefix)\n"


def ran(house: Kit, name: str) -> Any:
    """Run an image's program; answer its task."""
    task_definition(name)
    boto3.client("ecs").run_task(taskDefinition=name)
    house.settle()
    return house.tasks(name)[-1]


@pytest.mark.tasuki(real_tasks=True)
@pytest.mark.parametrize("command", [["python", "etl.py"], ["sh", "-c", "python etl.py"]], ids=" ".join)
def test_python_is_the_one_that_runs_the_test_with_all_that_is_installed(
    house: Kit, tmp_path: Path, command: list[str]
) -> None:
    (tmp_path / "etl.py").write_text(TELLS)
    house.image("etl", command=command, folder=tmp_path)
    task = ran(house, "etl")
    assert task.exit_code == 0, task.reason
    assert task.output.split() == [sys.executable, sys.prefix]


@pytest.mark.tasuki(real_tasks=True)
def test_a_venv_comes_first_and_its_python_is_meant(house: Kit, tmp_path: Path) -> None:
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "the other one, in $VIRTUAL_ENV"\n')
    python.chmod(0o755)
    house.image("etl", command=["python"], folder=tmp_path, venv=tmp_path / "venv")
    assert ran(house, "etl").output == f"the other one, in {tmp_path / 'venv'}\n"


def test_a_relative_folder_starts_at_the_tests_file(tmp_path: Path) -> None:
    """As the documentation shows it: `folder="jobs"`, wherever pytest was started."""
    (tmp_path / "tests" / "jobs").mkdir(parents=True)
    (tmp_path / "tests" / "jobs" / "etl.py").write_text("print('here')")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    project(
        tmp_path / "tests",
        """
        @pytest.mark.tasuki(real_tasks=True)
        def test_it(house):
            check(house)

        def test_another(house_factory, monkeypatch):
            house = house_factory(real_tasks=True)
            for name, value in house.environment.items():
                monkeypatch.setenv(name, value)
            check(house)

        def check(house):
            house.image("etl", command=["python", "etl.py"], folder="jobs")
            ecs = boto3.client("ecs")
            one = {"name": "main", "image": "etl", "memory": 512}
            ecs.register_task_definition(family="etl", containerDefinitions=[one])
            ecs.run_task(taskDefinition="etl")
            house.settle()
            assert house.tasks()[0].output == "here\\n"
            with pytest.raises(ValueError, match="a relative folder starts at .*/tests, the folder of the test's file"):
                house.image("etl", command=["python", "etl.py"], folder="job")
        """,
    )
    code, said = pytest_in(tmp_path, "-q")
    assert code == 0, said


@pytest.mark.tasuki(real_tasks=True)
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"minutes": 3}, "a program has no minutes=; there is command, folder, venv, environment, stop_signal"),
        ({"venv": "nowhere"}, "there is no venv .*nowhere"),
        ({"folder": "/nowhere"}, "there is no folder /nowhere$"),
        ({"command": "python etl.py"}, "command is a list of words"),
        ({"stop_signal": "TERM"}, "no signal is called TERM"),
        ({"command": None, "folder": "."}, "folder= is for a program; say its command="),
        ({"command": None, "comand": ["true"]}, "no comand=; there is .*or command= for a program"),
        ({"times": 2}, "leave out the script and times="),
    ],
)
def test_what_a_program_is_not_given(house: Kit, given: dict[str, Any], says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=says):
        house.image("etl", **{"command": ["true"], **given})


def test_a_word_that_is_no_duration_is_refused_and_nothing_moves(house: Kit) -> None:
    before = house.now
    with pytest.raises(TypeError, match=r"^advance takes days, hours, minutes, seconds, ms; there is no day=$"):
        house.advance(day=3)
    with pytest.raises(TypeError, match=r"crash .* takes days, hours.*no day="):
        house.crash(day=3)
    assert (house.now, house.lives) == (before, 1)


# -- a crash in the middle ----------------------------------------------------------------------------------------

SLOW = ["sh", "-c", "echo begun; while [ ! -e go ]; do sleep 0.02; done; echo went"]


def until(seen: Callable[[], bool]) -> None:
    """Look until something is seen: a program takes real time."""
    end = time.monotonic() + 20
    while not seen():
        assert time.monotonic() < end
        time.sleep(0)


@pytest.mark.tasuki(real_tasks=True)
def test_a_crash_in_the_middle_of_a_program_that_a_client_started(house: Kit, tmp_path: Path) -> None:
    house.image("slow", command=SLOW, folder=tmp_path)
    task_definition("slow")
    arn = start(machine("m", Run=job("slow")))
    until(lambda: house.tasks("slow")[0].output == "begun\n")
    house.crash()
    until(lambda: house.tasks("slow")[0].status == "RUNNING")  # the node that died may not have heard yet that it began
    (tmp_path / "go").touch()
    house.settle()
    house.execution(arn).assert_succeeded()
    assert ([task.output for task in house.tasks()], house.lives) == (["begun\nwent\n"], 2)


@pytest.mark.tasuki(real_tasks=True)
def test_a_crash_in_the_middle_of_a_program_beside_advance(house: Kit, tmp_path: Path) -> None:
    house.image("slow", command=SLOW, folder=tmp_path)
    task_definition("slow")
    target = {"Arn": machine("m", Run=job("slow")), "RoleArn": ROLE, "Input": "{}"}
    boto3.client("scheduler").create_schedule(
        Name="nightly", ScheduleExpression="cron(0 1 * * ? *)", FlexibleTimeWindow={"Mode": "OFF"}, Target=target
    )

    def crash() -> None:
        until(lambda: "begun" in "".join(task.output for task in house.tasks()))
        house.crash()

    def go() -> None:
        until(lambda: house.lives == 2)
        (tmp_path / "go").touch()

    threads = [threading.Thread(target=one) for one in (crash, go)]
    for one in threads:
        one.start()
    house.advance(hours=3)
    for one in threads:
        one.join()
    [night] = house.executions("m")
    night.assert_succeeded()
    assert ([task.output for task in house.tasks()], house.lives) == (["begun\nwent\n"], 2)
