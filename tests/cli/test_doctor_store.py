"""`doctor --store` as it is typed."""

import json
from pathlib import Path

from tasuki.cli.own_node import OwnNode
from tests.cli.conftest import Command, decoded, run
from tests.postgres import drop_schema, in_schema, new_schema, server


def test_the_store_of_a_node_that_runs(node: OwnNode, tasuki: Command) -> None:
    found = {one["what"]: one for one in decoded(tasuki("doctor", "--store", "--json"))}
    assert found["integrity"]["found"] == "ok"
    assert str(node.data) in found["store"]["found"]
    assert {one["state"] for one in found.values()} <= {"ok", "limited"}
    table = tasuki("doctor", "--store")
    assert table.returncode == 0
    assert "messages accounted for" in table.stdout


def test_a_store_that_is_named(tasuki: Command, tmp_path: Path) -> None:
    schema = new_schema()
    url = in_schema(server(), schema)
    try:
        assert tasuki("backup", str(tmp_path / "b")).returncode == 0
        assert run("restore", str(tmp_path / "b"), "--data", str(tmp_path), "--store", url).returncode == 0
        done = run("doctor", "--store", url, "--json", cwd=tmp_path)
        found = {one["what"]: one for one in json.loads(done.stdout)}
        bad = {what for what, one in found.items() if one["state"] == "no"}
        assert bad <= {"durability"}, "which the tests' own server does without"
        assert done.returncode == (1 if bad else 0)
        assert "PostgreSQL" in found["store"]["found"]
        assert found["messages accounted for"]["state"] == "ok"
    finally:
        drop_schema(server(), schema)


def test_where_there_is_none(tmp_path: Path) -> None:
    done = run("doctor", "--store", "--data", str(tmp_path))
    assert (done.returncode, done.stdout) == (4, "")
    assert "no node has run on this data directory" in done.stderr
