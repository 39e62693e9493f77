"""P4: a running task outlives the node, is adopted with the same pid, and is never run twice."""

import errno
import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tasuki.runners import facts
from tasuki.runners.process import ProcessRunner
from tasuki.values.attempts import Key, Launch
from tasuki.values.errors import ConfigError
from tests.runners.bench import Bench, alive

COUNTS = "import os,signal; f=open('{}','a'); f.write('ran '+str(os.getpid())+chr(10)); f.close(); print('up', flush=True); signal.pause()"


def test_a_running_task_is_adopted_with_its_pid(bench: Bench) -> None:
    record = bench.folder / "record"
    key = bench.start(bench.python(COUNTS.format(record)))
    bench.says(key, "up")
    before = bench.running(key)
    bench.again().watch(key)
    after = bench.running(key)
    assert after.containers[0].pid == before.containers[0].pid
    bench.runner.stop(key)
    assert bench.only(key).exit_code == 143
    assert record.read_text() == f"ran {before.containers[0].pid}\n"


def test_what_ended_while_nobody_looked_keeps_its_exit_code_and_output(bench: Bench) -> None:
    fifo = bench.folder / "fifo"
    os.mkfifo(fifo)
    key = bench.start(bench.container("sh", "-c", f"read x < {fifo}; echo got $x; exit 7"))
    bench.running(key)
    shim = os.pidfd_open(bench.shim_pid(key))
    bench.runner.close()
    fifo.write_text("word\n")
    assert select.select([shim], [], [], 20)[0], "the shim has ended while no node was there"
    os.close(shim)
    bench.runner = bench._open()
    bench.runner.watch(key)
    assert bench.only(key).exit_code == 7
    assert bench.log(key) == "got word\n"


def test_a_task_that_never_began_gets_a_tombstone_and_a_late_shim_exits(bench: Bench) -> None:
    key = bench.key()
    ran = bench.folder / "ran"
    bench.runner.watch(key)
    assert bench.ended(key).phase == "never"
    bench.runner.collect([key])
    bench.runner.start(Launch(key, (bench.container("touch", str(ran)),)))
    assert bench.ended(key).phase == "never"
    assert "tombstone" in (bench.place(key) / "shim.log").read_text()
    assert not ran.exists()


def test_the_fence_has_one_winner(tmp_path: Path) -> None:
    place = tmp_path / "tasks" / "task" / "1"
    place.mkdir(parents=True)
    assert facts.fence(str(place), {"pid": 1})
    assert not facts.fence(str(place), {"tombstone": True})
    assert facts.read(f"{place}/started") == {"pid": 1}


def test_the_fence_stands_where_there_are_no_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_given: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "no links here")

    monkeypatch.setattr(os, "link", no_links)
    place = tmp_path / "tasks" / "task" / "1"
    place.mkdir(parents=True)
    assert facts.fence(str(place), {"pid": 1})
    assert not facts.fence(str(place), {"tombstone": True})
    assert facts.read(f"{place}/started") == {"pid": 1}


def test_a_fence_half_written_counts_as_started(bench: Bench) -> None:
    key = bench.key()
    bench.place(key).mkdir(parents=True)
    (bench.place(key) / "started").write_text('{"pid')
    bench.runner.watch(key)
    assert bench.ended(key).stop_code == "InfrastructureHealth"


def test_a_full_disk_decides_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_given: object) -> bool:
        raise OSError(errno.ENOSPC, "full")

    key = bench.key()
    with monkeypatch.context() as patch:
        patch.setattr(facts, "fence", full)
        bench.runner.watch(key)
        assert bench.runner.collect() == []
        assert bench.runner.patience_s == 1.0
    assert bench.ended(key).phase == "never"


def test_without_a_descriptor_for_it_a_task_is_not_called_dead(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(_pid: int) -> int:
        raise OSError(errno.EMFILE, "too many open files")

    key = bench.start(bench.python("import signal; print('up', flush=True); signal.pause()"))
    bench.says(key, "up")
    pid = bench.running(key).containers[0].pid
    bench.again()
    with monkeypatch.context() as patch:
        patch.setattr(os, "pidfd_open", none_left)
        with pytest.raises(OSError, match="too many"):
            bench.runner.watch(key)
    bench.runner.watch(key)
    assert bench.running(key).containers[0].pid == pid
    bench.runner.stop(key)
    assert bench.only(key).exit_code == 143


def test_a_shim_whose_descriptor_got_lost_on_the_way_is_held_by_its_facts(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = bench.runner._forked

    def loses(name: str, handle: int | None, refused: bool) -> None:
        assert handle is not None
        os.close(handle)
        real(name, None, refused)

    monkeypatch.setattr(bench.runner._forks, "_answered", loses)
    key = bench.start(bench.python("import signal; print('up', flush=True); signal.pause()"))
    bench.running(key)
    bench.runner.stop(key)
    assert bench.ended(key).stop_code == "UserInitiated"


def test_a_shim_that_begins_between_two_looks_is_adopted(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    key = bench.start(bench.python("import signal; print('up', flush=True); signal.pause()"))
    bench.says(key, "up")
    bench.again()
    with monkeypatch.context() as patch:
        patch.setattr(facts, "read", lambda _path: None)
        bench.runner.watch(key)  # sees no `started` yet
    assert bench.runner._attempts[key].dead
    assert bench.running(key).containers[0].exit_code is None
    bench.runner.stop(key)
    assert bench.only(key).exit_code == 143


def test_started_and_gone_is_never_run_again(bench: Bench) -> None:
    key = bench.key()
    bench.place(key).mkdir(parents=True)
    facts.fence(str(bench.place(key)), {**facts.identity(), "pid": 2**22 + 1, "ticks": 5})
    bench.runner.watch(key)
    report = bench.ended(key)
    assert (report.phase, report.stop_code) == ("ended", "InfrastructureHealth")


def test_a_pid_used_again_is_not_taken_for_the_shim(bench: Bench) -> None:
    key = bench.key()
    bench.place(key).mkdir(parents=True)
    stranger = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, cwd=bench.place(key))
    facts.fence(str(bench.place(key)), {**facts.identity(), "pid": stranger.pid, "ticks": 1})
    bench.runner.watch(key)
    assert bench.ended(key).stop_code == "InfrastructureHealth"
    assert alive(stranger.pid)
    stranger.communicate(b"\n")


def test_after_a_reboot_nothing_is_taken_for_alive(bench: Bench) -> None:
    key = bench.key()
    bench.place(key).mkdir(parents=True)
    stranger = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, cwd=bench.place(key))
    who = {**facts.identity(), "pid": stranger.pid, "ticks": facts.start_ticks(stranger.pid)}
    facts.fence(str(bench.place(key)), {**who, "boot": "another boot"})
    bench.runner.watch(key)
    assert bench.ended(key).stop_code == "InfrastructureHealth"
    stranger.communicate(b"\n")


def test_a_copied_data_directory_leaves_the_originals_tasks_alone(bench: Bench, tmp_path: Path) -> None:
    key = bench.start(bench.python("import signal; print('up', flush=True); signal.pause()"))
    bench.says(key, "up")
    pid = bench.running(key).containers[0].pid
    copy = tmp_path / "copy"
    shutil.copytree(bench.folder, copy, ignore=shutil.ignore_patterns("bell"))
    other = ProcessRunner(copy, "house")
    other.watch(key)
    (report,) = other.collect()
    assert report.stop_code == "InfrastructureHealth"
    other.close()
    assert pid is not None
    assert alive(pid)
    bench.runner.stop(key)
    assert bench.only(key).exit_code == 143


def test_the_directory_of_another_store_is_refused(bench: Bench) -> None:
    with pytest.raises(ConfigError, match="another store"):
        ProcessRunner(bench.folder, "another house")


def test_a_stop_asked_before_a_crash_is_asked_again(bench: Bench) -> None:
    key = bench.start(bench.python("import signal; print('up', flush=True); signal.pause()"))
    bench.says(key, "up")
    bench.again().watch(key)
    bench.running(key)
    bench.runner.stop(key)
    report = bench.ended(key)
    assert (report.stop_code, report.containers[0].exit_code) == ("UserInitiated", 128 + signal.SIGTERM)


NODE = """
import sys, select
from pathlib import Path
from tasuki.runners.process import ProcessRunner
from tasuki.values.attempts import Container, Key, Launch
runner = ProcessRunner(Path(sys.argv[1]), "house")
runner.start(Launch(Key(sys.argv[2], 1), (Container("main", ("sh", "-c", sys.argv[3]), {"PATH": "/usr/bin:/bin"}, "/"),)))
print("asked", flush=True)
select.select([], [], [])
"""


@pytest.mark.parametrize("moment", ["asked", "running"])
def test_kill_minus_nine_of_a_whole_node(bench: Bench, moment: str) -> None:
    record = bench.folder / "record"
    key = bench.key()
    script = f"echo $$ >> {record}; echo up; while [ ! -e {bench.folder}/go ]; do read x < /dev/null; done; exit 5"
    node = subprocess.Popen([sys.executable, "-c", NODE, str(bench.folder), key.task, script], stdout=subprocess.PIPE)
    assert node.stdout is not None
    assert node.stdout.readline() == b"asked\n"
    if moment == "running":
        bench.says(key, "up")
    node.kill()
    node.communicate()
    bench.runner.watch(key)
    (bench.folder / "go").touch()
    report = bench.ended(key)
    if report.phase == "never":
        assert moment == "asked"
        assert not record.exists()
    else:
        assert [one.exit_code for one in report.containers] == [5]
        assert len(record.read_text().splitlines()) == 1


def test_many_nodes_in_a_row_run_each_attempt_once(bench: Bench) -> None:
    record = bench.folder / "record"
    keys = []
    for _ in range(8):
        keys.append(bench.start(bench.container("sh", "-c", f"echo $$ >> {record}")))
        bench.again()
    for key in keys:
        bench.runner.watch(key)
    ended = [bench.ended(key) for key in keys]
    ran = sum(report.phase == "ended" and report.stop_code == "EssentialContainerExited" for report in ended)
    assert ran == (len(record.read_text().splitlines()) if record.exists() else 0)
    assert ran + sum(report.phase == "never" for report in ended) == 8
    assert Key(keys[0].task, 1) == keys[0]
