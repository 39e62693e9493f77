"""A pipe that has nothing to do does nothing: it waits for the bell (S1-33: fewer queue calls)."""

from collections.abc import Callable
from typing import Any

import pytest

from tasuki.services import queues
from tasuki.store.store import Tx
from tests.services.pipes.workshop import SINK, SOURCE, Workshop


class Counting:
    """A transaction that counts its statements."""

    def __init__(self, tx: Tx, count: Callable[[], None]) -> None:
        self._tx, self._count = tx, count

    def __getattr__(self, name: str) -> Any:
        if name in {"all", "one", "run", "many"}:
            self._count()
        return getattr(self._tx, name)


def statements(shop: Workshop, monkeypatch: pytest.MonkeyPatch, work: Callable[[], Any]) -> int:
    """Answer how many statements all rooms run while something is done."""
    seen = 0

    def count() -> None:
        nonlocal seen
        seen += 1

    with monkeypatch.context() as patch:
        for name in ("write", "look", "read"):
            really = getattr(shop.house.store, name)
            patch.setattr(
                shop.house.store, name, lambda unit, really=really: really(lambda tx: unit(Counting(tx, count)))
            )
        work()
    return seen


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"source": {"SqsQueueParameters": {"BatchSize": 10, "MaximumBatchingWindowInSeconds": 30}}},
        {"Enrichment": "EXPRESS"},
    ],
)
def test_an_idle_hour_of_a_pipe_costs_what_a_minute_costs(
    monkeypatch: pytest.MonkeyPatch, members: dict[str, Any]
) -> None:
    shop = Workshop()
    with shop.house:
        if "Enrichment" in members:
            members = {"Enrichment": shop.answering()}
        shop.pipe(SINK, **members)
        shop.send("a")
        shop.house.advance(minutes=10)
        assert len(shop.sink()) == 1
        shop.house.advance(minutes=10)
        (poll,) = shop.house.rooms["pipes"].polls
        assert shop.house.look(poll.look) is None  # not before the bell rings
        minute = statements(shop, monkeypatch, lambda: shop.house.advance(minutes=1))
        hour = statements(shop, monkeypatch, lambda: shop.house.advance(hours=1))
        assert minute == hour
        assert hour <= 40  # each duty looks once or twice, as at every start

        def received(tx: Tx) -> int:
            config = shop.house.config
            return queues.counters(tx, queues.find_queue(tx, config.account, config.region, "q")).received

        assert shop.house.unit(received) == 1  # of that one message
        shop.send("b")
        shop.house.advance(seconds=30)
        assert len(shop.sink()) == 1
        assert shop.house.unit(received) == 2


def test_a_message_costs_one_receive_and_one_delete_whatever_the_pipe_does_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shop = Workshop()
    with shop.house:
        source = shop.house.switchboard.sources["sqs"]
        called: list[str] = []
        for name in ("receive", "delete", "release", "leave"):
            really = getattr(source, name)

            def noted(*given: Any, name: str = name, really: Callable[..., Any] = really) -> Any:
                assert given[1] == SOURCE
                called.append(name)
                return really(*given)

            monkeypatch.setattr(source, name, noted)
        shop.pipe(SINK, Enrichment=shop.answering())
        shop.send(*"abcdefghij", drain=False)
        shop.house.advance(hours=1)
        assert called == ["receive", "delete"]
