"""`tasuki lint`: what it prints, and its exit codes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tasuki.cli import lint
from tasuki.cli.complaints import Code, Complaint

CLEAN = {"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}}
WAITS = {
    "StartAt": "A",
    "States": {"A": {"Type": "Task", "Resource": "arn:aws:states:::ecs:runTask.sync", "End": True}},
}


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    clean, waits = tmp_path / "clean.json", tmp_path / "waits.json"
    clean.write_text(json.dumps(CLEAN))
    waits.write_text(json.dumps(WAITS))
    return str(clean), str(waits)


def test_for_people(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert lint.check(files[:1], pipe_target=False, as_json=False) is Code.DONE
    assert capsys.readouterr().out == f"{files[0]}: clean\n"
    assert lint.check(files, pipe_target=True, as_json=False) is Code.NO
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == f"{files[1]} /States/A warning NO_TIMEOUT"
    assert lines[4] == f"{files[1]} /States/A warning NO_FAILURE_NOTICE"


def test_a_refused_definition_says_that_more_may_come(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "yaml.json"
    file.write_text("StartAt: A\nStates: {}\n")
    assert lint.check([str(file)], pipe_target=False, as_json=False) is Code.NO
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("    This is not JSON: it looks like YAML")
    assert lines[-1] == f"{file}: fix these first; more checks run after"
    assert lint.check([str(file)], pipe_target=False, as_json=True) is Code.NO
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_for_programs(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert lint.check(files, pipe_target=False, as_json=True) is Code.NO
    (one,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (one["file"], one["code"], one["severity"], one["location"]) == (
        files[1],
        "NO_TIMEOUT",
        "WARNING",
        "/States/A",
    )
    assert one["message"]
    assert one["fix"]


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(Complaint) as said:
        lint.check([str(tmp_path / "none.json")], pipe_target=False, as_json=False)
    assert said.value.code is Code.USAGE
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
    with pytest.raises(Complaint):
        lint.check([str(tmp_path / "bytes.json")], pipe_target=False, as_json=False)


def test_the_command_itself(files: tuple[str, str]) -> None:
    def run(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tasuki.cli.main", "lint", *arguments]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=False)

    assert run(files[0]).returncode == 0
    assert run(*files, "--json").returncode == 1
    assert run("-", text=json.dumps(CLEAN)).stdout == "-: clean\n"
    assert run("nowhere.json").returncode == 2
