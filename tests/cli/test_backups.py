"""`backup` and `restore` as they are typed: one sentence for what was done, and for each thing that is wrong."""

import json
from pathlib import Path

import pytest

from tasuki.cli.own_node import OwnNode
from tests.cli.conftest import Command, decoded, run
from tests.postgres import drop_schema, in_schema, new_schema, server


@pytest.fixture
def kept(tasuki: Command, tmp_path: Path) -> Path:
    """A backup of the node that runs."""
    file = tmp_path / "kept"
    assert tasuki("backup", str(file)).returncode == 0
    return file


def test_a_node_that_runs_is_backed_up(node: OwnNode, tasuki: Command, tmp_path: Path) -> None:
    said = decoded(tasuki("backup", str(tmp_path / "b"), "--json"))
    assert (said["origin"], said["credentials"], said["bytes"]) == (
        "sqlite",
        False,
        (tmp_path / "b").stat().st_size,
    )
    done = run("restore", str(tmp_path / "b"), "--data", str(tmp_path / "new"))
    assert done.stdout.startswith("Restored what sqlite held at "), done.stderr
    with OwnNode(tmp_path / "new") as again:
        names = {one["name"] for one in again.reach.client("stepfunctions").list_state_machines()["stateMachines"]}
    assert {"hello", "fails"} <= names
    assert node.reach.is_there()


def test_moved_to_postgresql_and_back(kept: Path, tmp_path: Path) -> None:
    schema = new_schema()
    url = in_schema(server(), schema)
    try:
        assert run("restore", str(kept), "--data", str(tmp_path / "d"), "--store", url).returncode == 0
        again = run("restore", str(kept), "--data", str(tmp_path / "d"), "--store", url)
        assert again.returncode == 1
        assert "is not empty: " in again.stderr
        said = decoded(run("backup", str(tmp_path / "b"), "--data", str(tmp_path / "d"), "--store", url, "--json"))
        assert said["origin"] == "postgresql"
        assert run("restore", str(tmp_path / "b"), "--data", str(tmp_path / "e")).returncode == 0
    finally:
        drop_schema(server(), schema)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("restore", "{kept}", "--data", "{running}"), (5, "Another node is running on ")),
        (("restore", "{nowhere}", "--data", "{new}"), (4, "nowhere is not there")),
        (("backup", "{kept}", "--data", "{running}"), (1, "exists; name another file, or replace it with --force")),
        (("backup", "{new}", "--data", "{nowhere}"), (4, "no node has run on this data directory")),
        (("backup", "{nowhere}/b", "--data", "{running}"), (4, "nowhere/b.part: No such file or directory")),
        (("backup", "{new}", "--data", "{running}", "--with-credentials"), (2, "a node that runs with --dev has none")),
        (("backup", "{new}", "--store", "mysql://h/d"), (2, "only PostgreSQL can be named here")),
        (("backup", "{new}", "--store", "postgresql://x@127.0.0.1:1/d"), (4, "No database server answers at")),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    node: OwnNode, kept: Path, tmp_path: Path, words: tuple[str, ...], expected: tuple[int, str]
) -> None:
    code, says = expected
    places = {"kept": kept, "running": node.data, "nowhere": tmp_path / "nowhere", "new": tmp_path / "new"}
    typed = [word.format(**places) for word in words]
    before = kept.read_bytes()
    done = run(*typed, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith("tasuki: ")
    assert says in done.stderr
    said = json.loads(run(*typed, "--json", cwd=tmp_path).stderr)["error"]
    assert says in said["message"]
    assert kept.read_bytes() == before
    assert not (tmp_path / "new").exists()
