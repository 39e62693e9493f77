"""A message that a worker takes is hidden, not gone: workers stop, nodes restart, and it is worked (mission S0-38 to S0-47)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stories.town import Town

VISIBILITY_S = 120


class Shop:
    """A queue, and workers that come and go."""

    def __init__(self, folder: Path) -> None:
        self.town = Town(folder, {})
        self.jobs = self.town.queue("jobs", VisibilityTimeout=VISIBILITY_S)

    def take(self, **more: Any) -> dict[str, Any] | None:
        """What a worker gets who asks now."""
        found = self.town.sqs(
            "ReceiveMessage", QueueUrl=self.jobs, MessageSystemAttributeNames=["ApproximateReceiveCount"], **more
        ).get("Messages", [])
        return found[0] if found else None

    def done(self, message: dict[str, Any]) -> None:
        self.town.sqs("DeleteMessage", QueueUrl=self.jobs, ReceiptHandle=message["ReceiptHandle"])


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path)
    with made.town:
        yield made


def test_in_process_is_counted_and_seen_by_nobody_else(shop: Shop) -> None:  # S0-38, S0-39
    town = shop.town
    town.send(shop.jobs, "a", "b")
    first, second = shop.take(), shop.take()
    assert first is not None
    assert second is not None
    assert {first["Body"], second["Body"]} == {'"a"', '"b"'}
    assert town.counts(shop.jobs) == (0, 2)
    shop.done(first)
    assert town.counts(shop.jobs) == (0, 1)
    town.house.advance(ms=VISIBILITY_S * 1000 - 1)
    assert shop.take() is None


@pytest.mark.parametrize(
    ("asked", "changed", "hidden_s"), [(None, None, VISIBILITY_S), (30, None, 30), (None, 600, 600), (30, 5, 5)]
)
def test_how_long_is_the_queues_the_receives_or_the_workers_word(
    shop: Shop, asked: int | None, changed: int | None, hidden_s: int
) -> None:  # S0-40
    shop.town.send(shop.jobs, "a")
    message = shop.take(**({} if asked is None else {"VisibilityTimeout": asked}))
    assert message is not None
    if changed is not None:
        handle = message["ReceiptHandle"]
        shop.town.sqs("ChangeMessageVisibility", QueueUrl=shop.jobs, ReceiptHandle=handle, VisibilityTimeout=changed)
    shop.town.house.advance(ms=hidden_s * 1000 - 1)
    assert shop.take() is None
    shop.town.house.advance(ms=1)
    assert shop.take() is not None


@pytest.mark.parametrize("away_s", [1, VISIBILITY_S // 2, 3 * VISIBILITY_S])
def test_waiting_messages_outlive_workers_and_nodes(shop: Shop, away_s: int) -> None:  # S0-41, S0-45, S0-47
    town = shop.town
    town.send(shop.jobs, *range(25))
    for _ in range(3):
        assert town.counts(shop.jobs) == (25, 0), "no worker is there, and none is needed"
        town.restart(seconds=away_s)
    assert town.counts(shop.jobs) == (25, 0)
    assert sorted(town.take(shop.jobs)) == list(range(25))


def test_a_node_that_restarts_keeps_every_deadline_and_count(shop: Shop) -> None:  # S0-47
    town = shop.town
    town.send(shop.jobs, "held", "waits")
    town.sqs("SendMessage", QueueUrl=shop.jobs, MessageBody='"delayed"', DelaySeconds=300)
    held = shop.take()
    assert held is not None
    town.restart(seconds=VISIBILITY_S - 1)
    assert town.counts(shop.jobs) == (1, 1)
    waits = shop.take()
    assert waits is not None
    assert waits["Body"] == '"waits"'
    assert shop.take() is None, "what was held is still held, to the second"
    town.house.advance(seconds=1)
    again = shop.take()
    assert again is not None
    assert (again["Body"], again["Attributes"]["ApproximateReceiveCount"]) == ('"held"', "2")
    shop.done(again)
    shop.done(waits)
    town.restart(seconds=300 - VISIBILITY_S - 1)
    assert shop.take() is None
    town.house.advance(seconds=1)
    assert town.take(shop.jobs) == ["delayed"]


@pytest.mark.parametrize("node_restarts", [False, True])
def test_a_worker_that_dies_gives_its_messages_back(shop: Shop, *, node_restarts: bool) -> None:  # S0-42, S0-43
    town = shop.town
    town.send(shop.jobs, *range(5))
    for _ in range(3):
        assert shop.take() is not None, "it is never heard of again"
    if node_restarts:
        town.restart(seconds=10)
    assert sum(town.counts(shop.jobs)) == 5, "hidden for a while, never gone"
    assert sorted(town.take(shop.jobs)) == [3, 4]
    town.house.advance(seconds=VISIBILITY_S)
    assert sorted(town.take(shop.jobs)) == [0, 1, 2]


def test_what_waits_longer_than_its_retention_goes_and_nothing_sooner(tmp_path: Path) -> None:  # S0-41
    with Town(tmp_path, {}) as town:
        jobs = town.queue("short", MessageRetentionPeriod=3600)
        town.send(jobs, "a")
        town.restart(minutes=30)
        town.house.advance(ms=30 * 60_000 - 1)
        assert town.counts(jobs) == (1, 0)
        town.house.advance(ms=1)
        assert town.counts(jobs) == (0, 0)
