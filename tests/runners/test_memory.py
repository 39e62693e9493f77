"""P9: a task over its limit is stopped whole, with exit code 137 and the reason."""

import select
from pathlib import Path
from typing import Any

import pytest

from tasuki.runners.memory import Memory, find_memory
from tasuki.runners.tree import Cgroups
from tasuki.values.attempts import OUT_OF_MEMORY
from tests.runners.bench import Bench

EATS = "b = bytearray(200 << 20); b[::4096] = b'x' * len(b[::4096]); import signal; signal.pause()"
CHILD_EATS = f"""
import os, signal, sys, subprocess
pid = os.fork()
if pid == 0:
    exec({EATS!r})
os.waitpid(pid, 0)
print('the child is gone', flush=True)
signal.pause()
"""
EXITS_AFTER = CHILD_EATS.replace("signal.pause()\n", "sys.exit(0)\n")

cgroups_here = pytest.mark.skipif(find_memory().kind == "rss", reason="this machine lets us make no memory cgroup")
both = pytest.mark.parametrize("which", [pytest.param("bench", marks=cgroups_here), "rss_bench"])


@both
def test_over_the_tasks_limit(which: str, request: pytest.FixtureRequest) -> None:
    bench: Bench = request.getfixturevalue(which)
    report = bench.ended(bench.start(bench.python(EATS), memory_mib=64))
    assert report.stop_code == "EssentialContainerExited"
    assert (report.containers[0].exit_code, report.containers[0].reason) == (137, OUT_OF_MEMORY)


@both
def test_over_the_containers_limit(which: str, request: pytest.FixtureRequest) -> None:
    bench: Bench = request.getfixturevalue(which)
    only = bench.only(bench.start(bench.python(EATS, memory_mib=64), memory_mib=512))
    assert (only.exit_code, only.reason) == (137, OUT_OF_MEMORY)


@both
@pytest.mark.parametrize("code", [CHILD_EATS, EXITS_AFTER], ids=["parent waits on", "parent exits 0"])
def test_pf53_a_child_over_the_limit_ends_the_whole_task(which: str, code: str, request: pytest.FixtureRequest) -> None:
    bench: Bench = request.getfixturevalue(which)
    only = bench.only(bench.start(bench.python(code, memory_mib=64)))
    assert (only.exit_code, only.reason) == (137, OUT_OF_MEMORY)


@both
def test_the_tasks_limit_counts_all_containers_and_ends_them_all(which: str, request: pytest.FixtureRequest) -> None:
    bench: Bench = request.getfixturevalue(which)
    half = "b = bytearray(60 << 20); b[::4096] = b'x' * len(b[::4096]); print('up', flush=True); import signal; signal.pause()"
    key = bench.start(bench.python(half), bench.python(half, name="other", essential=False), memory_mib=100)
    report = bench.ended(key)
    assert {one.exit_code for one in report.containers} == {137}
    assert OUT_OF_MEMORY in {one.reason for one in report.containers}


@both
def test_the_processes_of_a_container_count_together_and_all_end(
    which: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Three workers of 40 MiB: none of them is near the limit, the container is over it (S0-25, S0-33)."""
    worker = "b = bytearray(40 << 20); b[::4096] = b'x' * len(b[::4096]); import signal; signal.pause()"
    code = f"""
import os, pathlib, signal
gate, go = os.pipe()
pids = []
for _ in range(3):
    pids.append(os.fork())
    if pids[-1] == 0:
        os.read(gate, 1)
        exec({worker!r})
pathlib.Path({str(tmp_path / "pids")!r}).write_text(" ".join(map(str, [os.getpid(), *pids])))
os.write(go, b"all")
signal.pause()
"""
    bench: Bench = request.getfixturevalue(which)
    only = bench.only(bench.start(bench.python(code, memory_mib=100)))
    assert (only.exit_code, only.reason) == (137, OUT_OF_MEMORY)
    pids = (tmp_path / "pids").read_text().split()
    assert len(pids) == 4
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


@both
def test_a_nonessential_container_over_its_own_limit_ends_alone(which: str, request: pytest.FixtureRequest) -> None:
    bench: Bench = request.getfixturevalue(which)
    wait = bench.python("import signal; signal.pause()")
    key = bench.start(wait, bench.python(EATS, name="side", essential=False, memory_mib=64), memory_mib=1024)
    report = bench.until(key, lambda report: any(one.ended for one in report.containers))
    assert report.phase == "running"
    assert [(one.exit_code, one.reason) for one in report.containers] == [(None, None), (137, OUT_OF_MEMORY)]
    bench.runner.stop(key)
    assert [one.exit_code for one in bench.ended(key).containers] == [143, 137]


@cgroups_here
def test_the_cgroups_are_gone_afterwards(bench: Bench) -> None:
    key = bench.start(bench.container("true", memory_mib=32), memory_mib=64)
    bench.ended(key)
    place = bench.runner._cgroup(key)
    assert place is not None
    while not bench.runner._attempts[key].dead:  # its last act, after the last fact
        assert select.select([bench.runner], [], [], 20)[0]
        bench.runner.notice()
    assert not place.exists()


class Stub:
    def __init__(self, name: str, memory: int | None) -> None:
        self.name = name
        self.pid: int | None = None
        self.out_of_memory = False
        self.spec: dict[str, Any] = {"memory_bytes": memory, "reservation_bytes": 5}


def test_v2_writes_its_limits_where_v2_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: dict[str, str] = {}
    monkeypatch.setattr(
        Cgroups, "_set", lambda _self, folder, name, value: written.update({f"{Path(folder).name}/{name}": value})
    )
    groups = Cgroups({"kind": "v2", "folder": str(tmp_path / "t"), "task_bytes": 100}, [Stub("main", 50)])
    groups.make()
    assert written == {
        "t/cgroup.subtree_control": "+memory",
        "t/memory.oom.group": "1",
        "t/memory.swap.max": "0",
        "t/memory.max": "100",
        "c-main/memory.oom.group": "1",
        "c-main/memory.swap.max": "0",
        "c-main/memory.low": "5",
        "c-main/memory.max": "50",
    }


def test_v2_reads_the_kernels_counts(tmp_path: Path) -> None:
    stub = Stub("main", 50)
    groups = Cgroups({"kind": "v2", "folder": str(tmp_path), "task_bytes": 100}, [stub])
    inner = tmp_path / "c-main"
    inner.mkdir()
    (inner / "memory.events").write_text("low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\n")
    (tmp_path / "memory.events.local").write_text("low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n")
    assert groups.killed(stub)
    assert not groups.task_over()
    (tmp_path / "memory.events.local").write_text("low 0\nhigh 0\nmax 3\noom 2\noom_kill 0\n")
    assert groups.task_over()


def test_what_the_machine_offers_is_found_by_trying(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("0::/ours\n")
    mount = tmp_path / "cgroup"
    assert find_memory(mount, own) == Memory("rss")
    (mount / "memory").mkdir(parents=True)
    (mount / "memory" / "memory.limit_in_bytes").touch()
    assert find_memory(mount, own).kind == "rss", "a plain folder is no cgroup"


def v2_tree(folder: Path, *, handed_down: bool) -> None:
    """A folder that looks like a v2 cgroup in which `tasuki` has been made."""
    (folder / "tasuki").mkdir(parents=True)
    (folder / "cgroup.controllers").write_text("cpu memory pids")
    (folder / "cgroup.subtree_control").write_text("memory" if handed_down else "")
    (folder / "tasuki" / "cgroup.procs").touch()


def test_v2_at_the_top_needs_no_move(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("0::/\n")
    v2_tree(tmp_path / "cgroup", handed_down=False)
    assert find_memory(tmp_path / "cgroup", own) == Memory("v2", tmp_path / "cgroup" / "tasuki")
    assert (tmp_path / "cgroup" / "cgroup.subtree_control").read_text() == "+memory"
    assert not (tmp_path / "cgroup" / "tasuki-node").exists()


def test_v2_in_a_delegated_cgroup_moves_the_node_into_a_leaf(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("0::/system.slice/tasuki.service\n")
    mount = tmp_path / "cgroup"
    ours = mount / "system.slice" / "tasuki.service"
    v2_tree(mount, handed_down=True)
    v2_tree(ours, handed_down=False)
    (ours / "cgroup.type").write_text("domain")
    assert find_memory(mount, own) == Memory("v2", ours / "tasuki")
    assert (ours / "tasuki-node" / "cgroup.procs").read_text() == "0"
