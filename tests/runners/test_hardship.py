"""What the machine does to a runner: disks without room, descriptors without end, a forkserver that hangs."""

import errno
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tasuki.runners import facts, forks, home, process
from tasuki.runners.become import roll
from tasuki.runners.runner import StartLater
from tasuki.values.attempts import Launch, Report
from tests.runners.bench import Bench

ROOT = Path(__file__).resolve().parents[2]
WAITS = "import signal; print('up', flush=True); signal.pause()"


def test_a_forkserver_that_hangs_is_replaced_and_the_fence_decides(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forks, "SILENT_S", 0.0)
    hung = bench.runner._forks.process
    os.kill(hung.pid, signal.SIGSTOP)
    key = bench.start(bench.container("true"))
    assert bench.ended(key).phase == "never"
    assert hung.returncode == -signal.SIGKILL
    monkeypatch.undo()
    assert bench.only(bench.start(bench.container("true"))).exit_code == 0


def test_a_node_ends_although_its_forkserver_hangs(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "ENDS_WITHIN_S", 0.1)
    hung = bench.runner._forks.process
    os.kill(hung.pid, signal.SIGSTOP)
    bench.again()
    assert hung.returncode == -signal.SIGKILL


def test_a_forkserver_that_cannot_be_started_is_tried_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: object, **__: object) -> None:
        raise OSError(errno.ENOMEM, "no memory")

    dead = bench.runner._forks.process
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", no_memory)
        dead.kill()
        dead.wait()
        bench.runner.notice()
        key = bench.start(bench.container("true"))
        bench.runner.collect()
        assert bench.runner.patience_s == 1.0
    assert bench.only(key).exit_code == 0


def test_a_look_that_fails_is_taken_again_and_holds_up_no_other(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = []
    for _ in range(3):
        keys.append(bench.start(bench.python(WAITS)))
        bench.says(keys[-1], "up")
        bench.running(keys[-1])
    read = facts.read

    def fails(path: str) -> dict[str, Any] | None:
        if f"/{keys[0].task}/" in path:
            raise OSError(errno.EMFILE, "too many open files")
        return read(path)

    for key in keys:
        bench.runner.stop(key)
    with monkeypatch.context() as patch:
        patch.setattr(facts, "read", fails)
        assert [bench.only(key).exit_code for key in keys[1:]] == [143, 143]
        bench.runner.collect(keys[1:])
    assert bench.only(keys[0]).exit_code == 143


def test_a_disk_that_takes_half_of_a_fact_is_asked_for_the_other_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, content: write(fd, bytes(content)[:7]))
    facts.write(str(tmp_path / "fact"), {"phase": "ended", "reason": "x" * 100})
    assert facts.read(str(tmp_path / "fact")) == {"phase": "ended", "reason": "x" * 100}


def test_files_of_the_shim_that_a_power_cut_emptied_are_written_anew(tmp_path: Path) -> None:
    place = home.publish(tmp_path)
    (place / "tasuki" / "runners" / "shim.py").write_text("")
    assert home.publish(tmp_path) == place
    assert "subreaper" in (place / "tasuki" / "runners" / "shim.py").read_text()
    assert [one.name for one in tmp_path.iterdir()] == [place.name]


def test_an_owner_that_a_full_disk_left_empty_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / "house").write_text("")
    home.claim(tmp_path, "ours")
    assert (tmp_path / "house").read_text() == "ours"


def test_a_data_directory_that_moves_while_a_task_runs_keeps_it(bench: Bench, tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    first = bench.container("sh", "-c", f"read x < {go}", name="first", essential=False)
    then = bench.container("sh", "-c", "echo after the move", name="then", depends_on=(("first", "SUCCESS"),))
    key = bench.start(first, then)
    pid = bench.until(key, lambda report: report.containers[0].pid is not None).containers[0].pid
    bench.runner.close()
    shutil.move(bench.folder, tmp_path / "moved")
    (tmp_path / "tasks").mkdir()  # the containers' working folder, which does not move
    bench.folder = tmp_path / "moved"
    bench.runner = bench._open()
    bench.runner.watch(key)
    assert bench.until(key, lambda report: bool(report.containers)).containers[0].pid == pid
    go.write_text("go\n")

    def both(report: Report) -> bool:
        return report.phase == "ended"

    assert [one.exit_code for one in bench.until(key, both).containers] == [0, 0]
    assert bench.log(key, "then") == "after the move\n"


def test_a_log_that_grows_while_it_is_rolled_holds_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "main.log"
    log.write_bytes(b"x" * 5000)
    send = os.sendfile

    def grows(target: int, source: int, offset: int, count: int) -> int:
        with log.open("ab") as writer:
            writer.write(b"y" * 1000)
        return send(target, source, offset, min(count, 1000))

    monkeypatch.setattr(os, "sendfile", grows)
    roll(str(log), 1000)
    assert (tmp_path / "main.log.1").stat().st_size <= 3000


def test_a_forkserver_whose_node_was_killed_with_answers_unread_ends_without_a_word(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    theirs.send(b"an answer that nobody reads")
    code = "from tasuki.runners.forkserver import serve; serve(int(__import__('sys').argv[1]))"
    command = [sys.executable, "-c", code, str(theirs.fileno())]
    with (
        theirs,
        subprocess.Popen(
            command, pass_fds=(theirs.fileno(),), cwd=tmp_path, stderr=subprocess.PIPE, env={"PYTHONPATH": str(ROOT)}
        ) as server,
    ):
        ours.close()
        assert not server.communicate(timeout=20)[1]
        assert server.returncode == 0


def test_a_runner_without_descriptors_calls_nobody_dead_and_kills_nobody(bench: Bench) -> None:
    keys = []
    for _ in range(2):
        keys.append(bench.start(bench.python(WAITS)))
        bench.says(keys[-1], "up")
        bench.running(keys[-1])
    bench.again()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for key in keys:
        bench.runner._attempts[key] = process._Attempt()  # as after `watch`, without its pidfd
        bench.runner._look.add(key)
    highest = os.open(os.devnull, os.O_RDONLY)
    try:
        for left in range(8):  # with none at all, with one, with two ...: whichever look is the one that fails
            resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1 + left, hard))
            assert not [one for one in bench.runner.collect() if one.phase != "running"]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        os.close(highest)
    for key in keys:
        bench.runner.stop(key)
        assert bench.only(key).exit_code == 143


def test_a_start_without_a_descriptor_is_not_a_start_that_failed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    launch = Launch(bench.key(), (bench.container("true"),))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", none_left)
        with pytest.raises(StartLater):
            bench.runner.start(launch)
    bench.runner.start(launch)
    assert bench.only(launch.key).exit_code == 0
