"""`up`, `env`, `doctor` and `demo`: what a user sees when all is well, and when it is not."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from tasuki.cli.complaints import Code, Complaint
from tasuki.cli.own_node import OwnNode, free_port
from tests.cli.conftest import Command, decoded, run

pytestmark = pytest.mark.clients


def up(data: Path, *words: str, port: int | None = None) -> "subprocess.CompletedProcess[str]":
    """Run a node that is not expected to start."""
    return subprocess.run(
        [sys.executable, "-m", "tasuki.cli.main", "up", "--data", data, "--port", str(port or free_port()), *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_up_prints_one_ready_line_and_ends_with_sigterm(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tasuki.cli.main", "up", "--data", str(tmp_path / "d"), "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    ready = json.loads(process.stdout.readline())
    assert ready["ready"] is True
    assert ready["url"].startswith("http://127.0.0.1:")
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=20)[0] == ""
    assert process.returncode == 0


def test_without_dev_a_key_is_made_that_only_its_owner_can_read(tmp_path: Path) -> None:
    with OwnNode(tmp_path, dev=False) as node:
        credentials = tmp_path / "credentials"
        assert stat.S_IMODE(credentials.stat().st_mode) == 0o600
        assert "test" not in node.reach.environment.values()
        assert node.reach.client("sqs").list_queues()["ResponseMetadata"]["HTTPStatusCode"] == 200
        stranger = run(
            *("queue", "ls"),
            environment={"AWS_ENDPOINT_URL": node.url, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"},
            cwd=tmp_path,
        )
        assert stranger.returncode == 1


def test_commands_follow_the_variables_of_env(tasuki: Command, tmp_path: Path) -> None:
    variables = decoded(tasuki("env", "--json"))
    assert run("queue", "ls", environment=variables, cwd=tmp_path).returncode == 0


def test_without_a_node_there_is_a_sentence_and_a_next_step(tmp_path: Path) -> None:
    done = run("ps", cwd=tmp_path)
    assert done.returncode == 6
    assert "tasuki up" in done.stderr
    nobody = f"http://127.0.0.1:{free_port()}"
    gone = run("ps", environment={"AWS_ENDPOINT_URL": nobody}, cwd=tmp_path)
    assert gone.returncode == 6
    assert "Traceback" not in gone.stderr


def test_a_port_in_use_is_exit_code_three(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = up(tmp_path / "d", port=port)
    assert done.returncode == 3
    assert f"port {port} of 127.0.0.1 is in use" in done.stderr
    assert not (tmp_path / "d" / "tasuki.db").exists()


def test_a_data_directory_that_is_a_file_is_exit_code_four(tmp_path: Path) -> None:
    (tmp_path / "d").write_text("not a folder")
    done = up(tmp_path / "d")
    assert done.returncode == 4
    assert "cannot write" in done.stderr


def test_a_data_directory_that_cannot_be_made_is_exit_code_four() -> None:
    done = up(Path("/proc/x"))
    assert done.returncode == 4
    assert "Traceback" not in done.stderr
    assert "cannot write /proc/x" in done.stderr


def test_nobody_else_may_read_what_a_node_makes_in_a_folder_that_was_there(tmp_path: Path) -> None:
    data = tmp_path / "d"
    data.mkdir(mode=0o755)
    with OwnNode(data):
        made = [path for path in data.rglob("*") if path != data / "node.log"]  # that one is the test's
        open_ones = [path for path in made if stat.S_IMODE(path.stat().st_mode) & 0o077]
    assert data / "tasuki.db" in made
    assert open_ones == []


def test_a_node_that_did_not_start_tells_its_last_words(tmp_path: Path) -> None:
    (tmp_path / "tasuki.toml").write_text("[node]\nregon = 1\n")
    (tmp_path / "tasuki.toml").chmod(0o600)
    with pytest.raises(Complaint) as said:
        OwnNode(tmp_path).start()
    assert "unknown key node.regon" in said.value.hint
    assert str(tmp_path / "node.log") in said.value.hint


def test_an_image_whose_folder_is_missing_is_warned_of(tmp_path: Path) -> None:
    (tmp_path / "tasuki.toml").write_text('[images.late]\nfolder = "later"\ncommand = ["true"]\n')
    (tmp_path / "tasuki.toml").chmod(0o600)
    with OwnNode(tmp_path) as node:
        assert f'image "late": the folder {tmp_path / "later"} does not exist' in node.log.read_text()


def test_with_json_an_error_is_one_document_on_standard_error(tasuki: Command) -> None:
    done = tasuki("queue", "show", "nothing-here", "--json")
    assert (done.returncode, done.stdout) == (1, "")
    error = json.loads(done.stderr)["error"]
    assert (error["name"], error["exit"]) == ("AWS.SimpleQueueService.NonExistentQueue", 1)
    assert error["message"] == "The specified queue does not exist."
    usage = tasuki("ps", "--jsom", "--json")
    assert usage.returncode == 2
    assert "--jsom" in json.loads(usage.stderr)["error"]["message"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_data_directory_that_is_read_only_is_exit_code_four(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir(mode=0o500)
    assert up(tmp_path / "d").returncode == 4


def test_a_data_directory_of_a_newer_tasuki_is_exit_code_four(tmp_path: Path) -> None:
    with OwnNode(tmp_path):
        pass
    with apsw.Connection(str(tmp_path / "tasuki.db")) as file:
        file.execute("PRAGMA user_version = 9999")
    file.close()
    done = up(tmp_path)
    assert done.returncode == 4
    assert "newer" in done.stderr
    assert done.stderr.lower().count("upgrade") == 1


def test_a_second_node_on_the_same_data_is_exit_code_five(node: OwnNode) -> None:
    done = up(node.data)
    assert done.returncode == 5
    assert "another node holds" in done.stderr
    assert node.reach.client("sqs").list_queues()["ResponseMetadata"]["HTTPStatusCode"] == 200


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--dev", "--host", "0.0.0.0"), "loopback"),
        (("--config", "nowhere.toml"), "no such file"),
        (("--port", "70000"), "65535"),
    ],
)
def test_wrong_settings_are_exit_code_two(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = up(tmp_path / "d", *words)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_config_that_others_may_write_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tasuki.toml").write_text("")
    (tmp_path / "tasuki.toml").chmod(0o666)
    done = up(tmp_path)
    assert done.returncode == 2
    assert "chmod go-w" in done.stderr


def test_doctor_looks_at_everything(tmp_path: Path) -> None:
    found = {
        one["what"]: one
        for one in decoded(run("doctor", "--data", str(tmp_path), "--port", str(free_port()), "--json"))
    }
    assert {"python", "sqlite", "memory", "memory limits", "data directory", "disk flushes", "port"} <= found.keys()
    assert found["python"]["state"] == "ok"


def test_doctor_says_no_when_the_port_is_taken(node: OwnNode, tmp_path: Path) -> None:
    done = run("doctor", "--data", str(tmp_path), "--port", str(node.port))
    assert done.returncode == 1
    assert "in use" in done.stdout


def test_doctor_knows_the_node_that_holds_the_folder(node: OwnNode) -> None:
    done = run("doctor", "--data", str(node.data), "--port", str(node.port))
    assert done.returncode == 0, done.stdout
    assert f"held by the node on {node.data} (pid {node.pid})" in done.stdout


def test_an_unknown_story_lists_the_known_ones() -> None:
    done = run("demo", "nothing")
    assert done.returncode == 2
    assert "dispatch" in done.stderr


def test_the_version_is_printed() -> None:
    assert run("--version").stdout.startswith("tasuki ")


def test_the_exit_codes_are_documented() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "COMMANDS.md").read_text()
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", page, flags=re.MULTILINE)}
    assert {code.value for code in Code} <= documented
