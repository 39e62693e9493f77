"""`queue ls`, `show`, `send`, `receive` and `purge` against a real node."""

from pathlib import Path

import pytest

from tasuki.cli.own_node import OwnNode
from tests.cli.conftest import Command, decoded

pytestmark = pytest.mark.clients


@pytest.fixture
def shelf(node: OwnNode, request: pytest.FixtureRequest) -> str:
    """A queue of the test's own."""
    name = request.node.name.replace("[", "-").replace("]", "")[:80]
    node.reach.client("sqs").create_queue(QueueName=name)
    return str(name)


def row(tasuki: Command, shelf: str) -> dict[str, object]:
    [found] = [one for one in decoded(tasuki("queue", "ls", "--json")) if one["queue"] == shelf]
    assert isinstance(found, dict)
    return found


def test_messages_are_sent_counted_shown_and_purged(tasuki: Command, shelf: str, tmp_path: Path) -> None:
    assert tasuki("queue", "send", shelf, "first").returncode == 0
    (tmp_path / "body").write_text("second")
    decoded(tasuki("queue", "send", shelf, f"@{tmp_path / 'body'}", "--json"))
    assert row(tasuki, shelf)["waiting"] == 2
    assert shelf in tasuki("queue", "ls").stdout
    seen = tasuki("queue", "receive", shelf)
    assert "first" in seen.stdout
    assert "second" in seen.stdout
    assert row(tasuki, shelf) | {"waiting": 2, "in_flight": 0} == row(tasuki, shelf), "shown, and given back"
    assert tasuki("queue", "purge", shelf, "--yes").returncode == 0
    assert row(tasuki, shelf)["waiting"] == 0


def test_receive_can_delete_or_hide(tasuki: Command, shelf: str) -> None:
    tasuki("queue", "send", shelf, "a")
    tasuki("queue", "send", shelf, "b")
    [taken] = decoded(tasuki("queue", "receive", shelf, "--max", "1", "--delete", "--json"))
    [hidden] = decoded(tasuki("queue", "receive", shelf, "--hide", "600", "--json"))
    assert {taken["Body"], hidden["Body"]} == {"a", "b"}
    assert row(tasuki, shelf) | {"waiting": 0, "in_flight": 1} == row(tasuki, shelf)
    assert tasuki("queue", "receive", shelf).stdout == "nothing to receive\n"


def test_a_delayed_message_waits(tasuki: Command, shelf: str) -> None:
    tasuki("queue", "send", shelf, "later", "--delay", "900")
    assert row(tasuki, shelf) | {"waiting": 0, "delayed": 1} == row(tasuki, shelf)


def test_show_names_every_attribute(tasuki: Command, shelf: str) -> None:
    shown = decoded(tasuki("queue", "show", shelf, "--json"))
    assert shown["VisibilityTimeout"] == "30"
    assert "VisibilityTimeout" in tasuki("queue", "show", shown["QueueUrl"]).stdout
    assert "VisibilityTimeout" in tasuki("queue", "show", shown["QueueArn"]).stdout


def test_purge_asks_first(tasuki: Command, shelf: str) -> None:
    tasuki("queue", "send", shelf, "kept")
    assert tasuki("queue", "purge", shelf, stdin="n\n").returncode == 1
    nobody = tasuki("queue", "purge", shelf)
    assert nobody.returncode == 2
    assert "Aborted" not in nobody.stderr
    assert "--yes" in nobody.stderr
    assert row(tasuki, shelf)["waiting"] == 1


def test_an_unknown_queue_is_awss_error_on_one_line(tasuki: Command) -> None:
    done = tasuki("queue", "show", "nothing-here")
    assert done.returncode == 1
    assert done.stderr.startswith("tasuki: ")
    assert "NonExistentQueue" in done.stderr
    assert "Traceback" not in done.stderr
