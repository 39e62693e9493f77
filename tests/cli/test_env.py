"""`tasuki env` as a shell reads it, and how commands find their node from there."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tasuki.cli import presence, reach
from tasuki.cli.own_node import OwnNode, free_port
from tests.cli.conftest import Command, Done, decoded, run

pytestmark = pytest.mark.clients

TASUKI = f"{shlex.quote(sys.executable)} -m tasuki.cli.main"


def shell(script: str, folder: Path, **environment: str) -> Done:
    """Run lines in sh, as pasted: a background node among them is ended at their end, by its pid."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "TASUKI_"))}
    return subprocess.run(
        ["sh", "-c", script],
        cwd=folder,
        env=clean | environment,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def test_env_waits_for_the_node_that_the_line_before_started(tmp_path: Path) -> None:
    script = f"""
    {TASUKI} up --dev --port {free_port()} & node=$!
    eval $({TASUKI} env) || exit 9
    cd /
    {TASUKI} ps
    echo "data $TASUKI_DATA"
    kill $node
    wait $node
    """
    done = shell(script, tmp_path)
    assert "no task runs" in done.stdout, done.stderr
    assert f"data {tmp_path.resolve()}/.tasuki" in done.stdout
    assert done.returncode == 0
    assert sorted(path.name for path in (tmp_path / ".tasuki").iterdir()) == ["tasks", "tasuki.db", "tasuki.lock"]


def test_without_a_node_the_eval_fails_where_the_shell_sees_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "SIGN_WITHIN_S", 0)
    done = run("env", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (6, "false;\n")
    assert "no node has run on .tasuki yet" in done.stderr
    assert run("env", "--json", cwd=tmp_path).stdout == ""
    assert shell(f"eval {shlex.quote(done.stdout)} || echo noticed", tmp_path).stdout == "noticed\n"


def test_env_of_a_node_that_was_killed_is_no_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "SIGN_WITHIN_S", 0)
    with OwnNode(tmp_path / "d") as node:
        node.kill()
        assert (tmp_path / "d" / "node.json").exists()
        killed = run("env", "--data", str(node.data))
        assert (killed.returncode, killed.stdout) == (6, "false;\n")
        assert "no node answers" in killed.stderr
        node.start()
    stopped = run("env", "--data", str(tmp_path / "d"))
    assert "no node runs on" in stopped.stderr, "it has run, so 'yet' would be untrue"


def test_commands_wait_for_a_node_whose_sign_is_up_and_no_longer(tmp_path: Path) -> None:
    @contextmanager
    def a_process() -> Iterator[int]:
        with subprocess.Popen(["sleep", "60"]) as process:
            yield process.pid
            process.send_signal(signal.SIGKILL)

    with a_process() as pid:
        (tmp_path / "starting").write_text(str(pid))
        assert presence.is_starting(tmp_path)
    assert not presence.is_starting(tmp_path), "it came to nothing"
    assert run("ps", "--data", str(tmp_path)).returncode == 6


def test_env_is_words_that_any_shell_takes_and_nothing_else(tasuki: Command, node: OwnNode) -> None:
    said = tasuki("env").stdout
    assert "#" not in said, "zsh takes no comments in an interactive line"
    assert all(line.endswith(";") for line in said.splitlines())
    joined = " ".join(said.split())  # what an unquoted $(...) makes of it
    mine = {
        "AWS_PROFILE": "work",
        "AWS_SESSION_TOKEN": "old",
        "AWS_ENDPOINT_URL_SQS": "http://elsewhere",
    }
    assert "AWS_ENDPOINT_URL_SQS" in tasuki("env", environment=mine).stdout.splitlines()[0]
    done = shell(f"set -eu\n{joined}\nenv", Path("/"), **mine)
    seen = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    assert (seen["AWS_ENDPOINT_URL"], seen["AWS_DEFAULT_REGION"]) == (node.url, "us-east-1")
    assert seen["TASUKI_DATA"] == str(node.data.absolute())
    assert not {"AWS_PROFILE", "AWS_SESSION_TOKEN"} & seen.keys()


def test_logs_and_pids_are_found_from_anywhere_after_env(tasuki: Command, tmp_path: Path) -> None:
    variables = decoded(tasuki("env", "--json"))
    arn = tasuki("start", "talks").stdout.strip()
    assert tasuki("watch", arn).returncode == 0
    [row] = [row for row in decoded(tasuki("ps", "--all", "--json")) if row["execution"] == arn]
    assert run("logs", row["task"], environment=variables, cwd=tmp_path).stdout == "one\ntwo\n"


def test_data_comes_before_the_variables(tasuki: Command, tmp_path: Path) -> None:
    variables = decoded(tasuki("env", "--json"))
    done = run("ps", "--data", "elsewhere", environment=variables, cwd=tmp_path)
    assert done.returncode == 6
    assert "elsewhere" in done.stderr


def test_an_empty_data_directory_is_refused_and_an_empty_variable_is_none(tmp_path: Path) -> None:
    for command in ("up", "ps", "doctor"):
        done = run(command, "--data", "", cwd=tmp_path)
        assert done.returncode == 2
        assert "it is empty" in done.stderr
    assert ".tasuki" in run("ps", environment={"TASUKI_DATA": ""}, cwd=tmp_path).stderr
    assert not list(tmp_path.iterdir())
