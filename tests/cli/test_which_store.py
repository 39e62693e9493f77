"""Which store a command means: one rule for all, and no stale house is backed up, looked at or started by mistake."""

import subprocess
import sys
from contextlib import closing
from pathlib import Path
from stat import S_IMODE

import apsw
import pytest

from tasuki.cli import reach
from tasuki.cli.own_node import OwnNode, free_port
from tests.cli.conftest import decoded, run

pytestmark = pytest.mark.clients


def up(data: Path, *words: str) -> str:
    """Start a node that is refused; answer why."""
    command = [sys.executable, "-m", "tasuki.cli.main", "up", "--dev", "--data", str(data), "--port", str(free_port())]
    done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2, done.stderr
    return done.stderr


def origin(file: Path) -> str:
    with closing(apsw.Connection(str(file))) as reader:
        return str(reader.execute("SELECT value FROM house WHERE name = 'backup'").fetchall()[0][0])


def test_option_then_variable_then_file_of_settings_then_file_of_data(tmp_path: Path, postgres_url: str) -> None:
    data = tmp_path / "d"
    with OwnNode(data):
        pass
    kept = tmp_path / "kept"
    assert run("backup", str(kept), "--data", str(data)).returncode == 0
    assert '"sqlite"' in origin(kept)
    assert run("restore", str(kept), "--data", str(data), environment={"TASUKI_STORE": postgres_url}).returncode == 0
    assert S_IMODE((data / "store").stat().st_mode) == 0o600
    for number, (words, variables, settings) in enumerate(
        [
            (("--store", postgres_url), {"TASUKI_STORE": "postgresql://nobody@127.0.0.1:1/none"}, ""),
            ((), {"TASUKI_STORE": postgres_url}, "postgresql://nobody@127.0.0.1:1/none"),
            ((), {}, postgres_url),
        ]
    ):
        (data / "tasuki.toml").write_text(f'[node]\nstore = "{settings}"\n' if settings else "")
        (data / "tasuki.toml").chmod(0o600)
        file = tmp_path / f"b{number}"
        done = run("backup", str(file), "--data", str(data), *words, environment=variables)
        assert done.returncode == 0, done.stderr
        assert '"postgresql"' in origin(file)
        looked = run("doctor", "--store", *words[1:], "--data", str(data), "--json", environment=variables)
        assert "PostgreSQL" in next(one["found"] for one in decoded(looked) if one["what"] == "store")


def test_the_file_of_a_directory_that_served_a_database_is_refused_by_all(tmp_path: Path, postgres_url: str) -> None:
    data = tmp_path / "d"
    with OwnNode(data, options=("--store", postgres_url)):
        pass
    names = {one.name for one in data.iterdir()}
    shown = postgres_url.partition("?")[0].rpartition("@")[2]
    for done in (
        run("backup", str(tmp_path / "b"), "--data", str(data)),
        run("doctor", "--store", "--data", str(data)),
    ):
        assert (done.returncode, done.stdout) == (2, "")
        assert "This data directory's node uses postgresql://" in done.stderr
        assert shown in done.stderr
    assert "name it with --store or TASUKI_STORE" in up(data)
    assert {one.name for one in data.iterdir()} == names
    assert "and --store names" in up(data, "--store", "postgresql://root@127.0.0.1:5432/another")
    assert "is not there: put it back" in _without_mark(data)
    assert {one.name for one in data.iterdir()} == names - {"store"}


def _without_mark(data: Path) -> str:
    (data / "store").unlink()
    return up(data)


def test_the_same_place_may_be_spelled_otherwise(tmp_path: Path, postgres_url: str) -> None:
    with OwnNode(tmp_path / "d", options=("--store", postgres_url)):
        before = (tmp_path / "d" / "store").read_text()
    assert "password" not in before
    with OwnNode(tmp_path / "d", options=("--store", f"{postgres_url}&synchronous_commit=off")) as node:
        assert node.reach.is_there()


def test_a_mark_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("by hand\n")
    done = run("backup", str(tmp_path / "b"), "--data", str(tmp_path))
    assert done.returncode == 2
    assert "is not what a node writes; remove it" in done.stderr


def test_a_restore_marks_the_directory_that_it_is_for_and_no_other(tmp_path: Path, postgres_url: str) -> None:
    with OwnNode(tmp_path / "other" / ".tasuki"), OwnNode(tmp_path / "d") as node:
        kept = tmp_path / "kept"
        assert run("backup", str(kept), "--data", str(node.data)).returncode == 0
    away = tmp_path / "away"
    away.mkdir()
    assert run("restore", str(kept), "--store", postgres_url, cwd=away).returncode == 0
    assert not list(away.iterdir())
    here = tmp_path / "other"
    assert run("restore", str(kept), "--store", postgres_url, "--force", cwd=here).returncode == 0
    assert not (here / ".tasuki" / "store").exists(), "another house lives there"
    fresh = tmp_path / "fresh"
    assert run("restore", str(kept), "--store", postgres_url, "--force", "--data", str(fresh)).returncode == 0
    assert (fresh / "store").exists()


def test_env_says_how_the_node_of_a_directory_was_started(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reach, "SIGN_WITHIN_S", 0)
    with OwnNode(tmp_path / "n 1", dev=False, options=("--store", postgres_url)) as node:
        node.kill()
    for said in (run("env", "--data", str(node.data)).stderr, _gone(node.data)):
        assert (
            f"start it again with: tasuki up --data '{node.data}' --store '{(node.data / 'store').read_text().strip()}'"
            in said
        )
        assert "--dev" not in said
    with OwnNode(tmp_path / "n2") as other:
        other.kill()
    said = run("env", "--data", str(other.data)).stderr
    assert f"start it again with: tasuki up --data {other.data} --dev\n" in said
    assert "add --port N" in said


def _gone(data: Path) -> str:
    (data / "node.json").unlink()
    said = run("env", "--data", str(data)).stderr
    assert "no node runs on" in said
    return said
