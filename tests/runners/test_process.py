"""Exit codes, signals, stops, dependencies, output and the whole tree, with real processes."""

import os
import signal
import sys
from pathlib import Path

import pytest

from tasuki.runners.runner import StartFailed
from tasuki.values.attempts import ESSENTIAL_EXITED, Container, Key, Launch
from tests.runners.bench import Bench, alive

FOREVER = "import signal,os; print('up', os.getpid(), flush=True); signal.pause()"
DEAF = (
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True)\nwhile True: signal.pause()"
)


def test_exit_codes_are_the_commands_own(bench: Bench) -> None:
    keys = {code: bench.start(bench.container("sh", "-c", f"exit {code}")) for code in (0, 1, 42)}
    for code, key in keys.items():
        report = bench.ended(key)
        assert (report.stop_code, report.reason) == ("EssentialContainerExited", ESSENTIAL_EXITED)
        assert [one.exit_code for one in report.containers] == [code]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGSEGV, 139), (signal.SIGKILL, 137), (signal.SIGTERM, 143)])
def test_a_signal_is_128_and_its_number(bench: Bench, number: int, code: int) -> None:
    key = bench.start(bench.container("sh", "-c", f"kill -{int(number)} $$"))
    assert bench.only(key).exit_code == code


def test_a_command_that_is_not_there_is_127_and_one_that_cannot_run_126(bench: Bench, tmp_path: Path) -> None:
    blunt = tmp_path / "blunt"
    blunt.write_text("not a program")
    missing, forbidden = bench.start(bench.container("no-such-command")), bench.start(bench.container(str(blunt)))
    assert bench.only(missing).exit_code == 127
    assert bench.only(forbidden).exit_code == 126
    assert "no-such-command: command not found" in bench.log(missing)
    path = bench.container("no-such-command").environment["PATH"]
    assert bench.only(missing).reason == (
        f"CannotStartContainerError: exec no-such-command: executable file not found in PATH, which is {path}; "
        "give the image a venv, or name the program by its absolute path"
    )
    by_path = bench.start(bench.container("./no-such-file"))
    assert str(bench.only(by_path).reason).startswith(
        "CannotStartContainerError: exec ./no-such-file: no such file in /"
    )
    assert str(bench.only(forbidden).reason).startswith("CannotStartContainerError: exec ")


def test_a_missing_folder_fails_the_start_without_an_exit_code(bench: Bench) -> None:
    report = bench.ended(bench.start(bench.container("true", folder="/nowhere", requires=("/nowhere",))))
    assert report.stop_code == "TaskFailedToStart"
    assert report.reason == "CannotStartContainerError: the folder /nowhere does not exist"
    assert report.containers[0].exit_code is None


def test_output_goes_to_the_containers_log(bench: Bench) -> None:
    key = bench.start(bench.container("sh", "-c", "echo out; echo err >&2"))
    bench.ended(key)
    assert sorted(bench.log(key).split()) == ["err", "out"]


def test_the_environment_is_what_was_given_and_nothing_else(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_NODE", "1")
    key = bench.start(bench.container("env", environment={"PATH": os.defpath, "EMPTY": ""}))
    bench.ended(key)
    names = {line.split("=")[0] for line in bench.log(key).splitlines()}
    assert names == {"PATH", "EMPTY", "TASUKI_CONTAINER"}


def test_no_descriptor_of_ours_reaches_a_task(bench: Bench) -> None:
    key = bench.start(bench.python("import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1])"))
    bench.ended(key)
    assert bench.log(key).strip() == "[0, 1, 2]"


def test_a_task_has_the_file_limit_that_the_node_was_started_with(bench: Bench) -> None:
    from tasuki.runners import process

    key = bench.start(bench.container("sh", "-c", "ulimit -Sn"))
    bench.ended(key)
    assert bench.log(key).strip() == str(process._FILES)


def test_stop_gives_the_signal_first(bench: Bench) -> None:
    key = bench.start(bench.python(FOREVER))
    bench.says(key, "up")
    bench.runner.stop(key)
    report = bench.ended(key)
    assert (report.stop_code, report.containers[0].exit_code) == ("UserInitiated", 143)


def test_stop_uses_the_images_signal(bench: Bench) -> None:
    key = bench.start(bench.python(FOREVER, stop_signal=int(signal.SIGINT)))
    bench.says(key, "up")
    bench.runner.stop(key)
    assert bench.only(key).exit_code == 130


def test_whoever_drains_and_exits_is_reported_so(bench: Bench) -> None:
    code = "import signal,sys; signal.signal(15, lambda *_: sys.exit(0)); print('up', flush=True); signal.pause()"
    key = bench.start(bench.python(code))
    bench.says(key, "up")
    bench.runner.stop(key)
    assert bench.only(key).exit_code == 0


def test_whoever_ignores_the_signal_is_killed_when_the_time_is_up(bench: Bench) -> None:
    key = bench.start(bench.python(DEAF, stop_timeout_s=1))
    bench.says(key, "up")
    bench.runner.stop(key)
    bench.runner.stop(key)
    assert bench.only(key).exit_code == 137


def test_a_stop_before_the_start_runs_nothing(bench: Bench) -> None:
    key = bench.key()
    bench.place(key).mkdir(parents=True)
    (bench.place(key) / "stop").touch()
    bench.runner.start(Launch(key, (bench.container("touch", str(bench.folder / "ran")),)))
    report = bench.ended(key)
    assert (report.stop_code, report.containers[0].exit_code) == ("UserInitiated", None)
    assert not (bench.folder / "ran").exists()


def test_an_essential_end_stops_the_others_and_a_nonessential_end_nothing(bench: Bench) -> None:
    side = bench.container("true", name="side", essential=False)
    key = bench.start(bench.python(FOREVER), side)
    report = bench.until(key, lambda report: any(one.ended for one in report.containers))
    assert report.phase == "running"
    assert [(one.name, one.ended, one.exit_code) for one in report.containers] == [
        ("main", False, None),
        ("side", True, 0),
    ]
    bench.runner.stop(key)
    bench.ended(key)

    key = bench.start(bench.container("sh", "-c", "exit 3"), bench.python(FOREVER, name="other"))
    report = bench.ended(key)
    assert report.stop_code == "EssentialContainerExited"
    assert report.containers[0].exit_code == 3
    assert report.containers[1].exit_code in {143, None}


def test_dependencies_order_the_start_and_reverse_the_stop(bench: Bench) -> None:
    record = bench.folder / "record"
    script = f"trap 'echo -$0 >> {record}; exit' TERM; echo +$0 >> {record}; while :; do read x < /dev/null; done"
    first = bench.container("sh", "-c", f"echo +prepare >> {record}", name="prepare", essential=False)
    slow = bench.container("sh", "-c", script.replace("$0", "db"), name="db")
    app = bench.container(
        "sh", "-c", script.replace("$0", "app"), name="app", depends_on=(("db", "START"), ("prepare", "SUCCESS"))
    )
    key = bench.start(app, slow, first)
    bench.until(key, lambda report: all(one.pid for one in report.containers))
    while record.read_text().count("+") < 3:
        os.sched_yield()
    bench.runner.stop(key)
    bench.ended(key)
    lines = record.read_text().split()
    assert lines.index("+prepare") < lines.index("+app")
    assert lines[-2:] == ["-app", "-db"]


def test_an_unmet_dependency_fails_the_start(bench: Bench) -> None:
    first = bench.container("false", name="first", essential=False)
    key = bench.start(first, bench.container("true", depends_on=(("first", "SUCCESS"),)))
    assert bench.ended(key).stop_code == "TaskFailedToStart"


DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.environ.clear()
        print('daemon', os.getpid(), flush=True)
        time.sleep(600)
    os._exit(0)
os.wait()
while 'daemon' not in open(sys.argv[1]).read():
    pass
"""


@pytest.mark.parametrize("which", ["bench", "rss_bench"])
def test_the_whole_tree_is_gone_afterwards(which: str, request: pytest.FixtureRequest) -> None:
    bench: Bench = request.getfixturevalue(which)
    key = bench.key()
    log = bench.folder / key.task / "main.log"
    container = bench.container(sys.executable, "-I", "-S", "-c", DAEMON, str(log))
    bench.runner.start(Launch(key, (container,)))
    assert bench.only(key).exit_code == 0
    daemon = int(bench.log(key).split()[1])
    assert not alive(daemon)
    assert not list(bench.folder.glob(f"{key.task}/*/.facts*"))


def test_a_killed_shim_is_the_hosts_fault_and_its_tree_is_killed(bench: Bench) -> None:
    code = "import os,signal\npid=os.fork()\nif pid==0: os.setsid()\nelse: print('up', pid, flush=True)\nsignal.pause()"
    key = bench.start(bench.python(code))
    orphan = int(bench.says(key, "up").split()[1])
    main = bench.running(key).containers[0].pid
    os.kill(bench.shim_pid(key), signal.SIGKILL)
    report = bench.ended(key)
    assert (report.stop_code, report.containers[0].exit_code) == ("InfrastructureHealth", None)
    assert main is not None
    assert not alive(main)
    assert not alive(orphan)


def test_a_host_that_goes_down_stops_the_task_and_says_so(bench: Bench) -> None:
    key = bench.start(bench.python(FOREVER))
    bench.says(key, "up")
    os.kill(bench.shim_pid(key), signal.SIGTERM)
    report = bench.ended(key)
    assert (report.stop_code, report.containers[0].exit_code) == ("InfrastructureHealth", 143)


def test_a_forkserver_that_dies_takes_nobody_along_and_is_replaced(bench: Bench) -> None:
    key = bench.start(bench.python(FOREVER))
    bench.says(key, "up")
    bench.running(key)
    bench.runner._forks.process.kill()
    later = bench.start(bench.container("true"))
    report = bench.ended(later)
    assert report.phase == "never" or report.containers[0].exit_code == 0
    assert bench.only(bench.start(bench.container("true"))).exit_code == 0
    bench.runner.stop(key)
    assert bench.only(key).exit_code == 143


def test_a_log_at_its_cap_is_rolled_and_the_task_goes_on(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "tasks", log_bytes=1000)
    try:
        code = "import sys\nfor i in range(3000): print('line', i)\nsys.stdout.flush()\nprint('up', flush=True)\nsys.stdin = open(sys.argv[1]); sys.stdin.read(); print('end', flush=True)"
        fifo = tmp_path / "fifo"
        os.mkfifo(fifo)
        container = bench.container(sys.executable, "-I", "-S", "-c", code, str(fifo))
        key = bench.start(container)
        assert "the log passed 1000 bytes" in bench.says(key, "the log passed")
        fifo.write_text("go")
        assert bench.only(key).exit_code == 0
        assert bench.log(key).endswith("end\n")
        assert "line 2999" in (bench.folder / key.task / "main.log.1").read_text()
    finally:
        bench.close()


def test_a_start_that_cannot_be_written_says_why(bench: Bench) -> None:
    key = Key("taken", 1)
    (bench.folder / "taken").write_text("a file where the folder should be")
    with pytest.raises(StartFailed, match="could not be written"):
        bench.runner.start(Launch(key, (Container("main", ("true",), {}, "/"),)))


def test_what_is_settled_is_not_told_again(bench: Bench) -> None:
    key = bench.start(bench.container("true"))
    bench.ended(key)
    assert [report.key for report in bench.runner.collect()] == [key]
    assert bench.runner.collect([key]) == []
    assert bench.runner.patience_s is None
