"""Crashes and changes while batches are on their way: each message is deleted exactly when it was delivered or came to nothing."""

import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tasuki.services.queues import conservation, find_queue
from tasuki.services.switchboard import Caller
from tasuki.store.store import Tx
from tasuki.values.instant import MINUTE
from tests.services.pipes.workshop import BUS, DESTINATION, SINK, Workshop


def wait(seconds: int) -> dict[str, Any]:
    return {"W": {"Type": "Wait", "Seconds": seconds, "Next": "S"}, "S": {"Type": "Succeed"}}


def reopened(shop: Workshop, path: Path, away_ms: int = 0) -> Workshop:
    """End a house without a word, and open what it left, some time later."""
    now = shop.house.now + away_ms
    shop.house.close()
    return Workshop(seed=shop.seed + 1, path=path, now=now)


def test_a_crash_while_the_enrichment_works(tmp_path: Path) -> None:
    shop = Workshop(path=tmp_path / "tasuki.db")
    shop.pipe(SINK, Enrichment=shop.machine(wait(60)))
    (sent,) = shop.send("a")
    shop = reopened(shop, tmp_path / "tasuki.db")
    with shop.house:
        shop.house.advance(seconds=59)
        assert (shop.counts(), shop.outcomes()) == ((0, 1), [])
        shop.house.advance(seconds=1)
        assert [record["messageId"] for record in shop.bodies()] == [sent]
        assert shop.counts() == (0, 0)


def test_a_crash_between_the_answer_and_the_target(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shop = Workshop(path=tmp_path / "tasuki.db")
    shop.pipe(SINK, Enrichment=shop.answering())
    target = shop.house.switchboard.targets["sqs"]

    class Dying:
        takes_arrays, takes_text, check = False, True, target.check

        @staticmethod
        def deliver(tx: Tx, arn: str, payload: str, name: str | None, caller: Caller, **parameters: Any) -> str:
            target.deliver(tx, arn, payload, name, caller, **parameters)
            raise RuntimeError("the node dies here")

    shop.house.switchboard.targets["sqs"] = Dying  # type: ignore[assignment]
    sent = shop.send("a", "b")
    assert "the node dies here" in caplog.text
    shop = reopened(shop, tmp_path / "tasuki.db")
    with shop.house:
        assert (shop.rows("pipe_calls"), shop.counts(), shop.sink()) == (1, (0, 2), [])
        shop.house.advance(seconds=10)
        assert sorted(record["messageId"] for record in shop.bodies()) == sorted(sent)
        assert shop.outcomes() == ["DELIVERED"] * 2
        assert shop.counts() == (0, 0)


def test_an_answer_that_is_handed_on_too_late_is_not_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The node dies between the answer and the target, and for longer than the messages are hidden: nothing arrives twice."""
    shop = Workshop(path=tmp_path / "tasuki.db")
    shop.pipe(SINK, Enrichment=shop.answering())
    room = shop.house.rooms["pipes"]

    def die(_tx: Tx, _key: str) -> None:
        raise RuntimeError("the node dies here")

    monkeypatch.setitem(shop.house.rooms, "pipes", replace(room, on_timer=die))
    (sent,) = shop.send("a")
    assert (shop.rows("pipe_calls"), shop.sink()) == (1, [])
    shop = reopened(shop, tmp_path / "tasuki.db", 6 * MINUTE)
    with shop.house:
        shop.house.advance(minutes=10)
        assert [record["messageId"] for record in shop.bodies()] == [sent]
        assert [outcome.partition(":")[0] for outcome in shop.outcomes()] == ["DELIVERED", "FAILED"]
        assert shop.counts() == (0, 0)


def test_a_crash_while_the_target_works(tmp_path: Path) -> None:
    shop = Workshop(path=tmp_path / "tasuki.db")
    shop.pipe(DESTINATION, 1, Enrichment=shop.answering())
    shop.send("a")
    shop = reopened(shop, tmp_path / "tasuki.db")
    with shop.house:
        (given,) = shop.given()
        shop.finish(given.watcher, {"Status": 200, "Body": ""})
        assert shop.outcomes() == ["DELIVERED"]
        assert shop.counts() == (0, 0)


def choosing() -> dict[str, Any]:
    """Answer states that do as the first record's body says: pass it on, slowly, drop it, or fail."""
    kinds = ("slow", "none", "fail", "many")
    choices = [{"Variable": "$[0].body", "StringMatches": f"{kind}*", "Next": kind} for kind in kinds]
    return {
        "Choose": {"Type": "Choice", "Choices": choices, "Default": "pass"},
        "pass": {"Type": "Succeed"},
        "slow": {"Type": "Wait", "Seconds": 45, "Next": "pass"},
        "none": {"Type": "Pass", "Result": [], "End": True},
        "fail": {"Type": "Fail"},
        "many": {"Type": "Pass", "Result": list(range(11)), "End": True},
    }


class EnrichedPlay(RuleBasedStateMachine):
    """Every message is in exactly one place, whatever the enrichment does, and whoever stops, changes or kills what meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.shop = Workshop(path=self.folder / "tasuki.db")
        self.enrichment = self.shop.machine(choosing())
        redrive = json.dumps({"deadLetterTargetArn": SINK.replace("sink", "dead"), "maxReceiveCount": 3})
        self.dead = self.shop.house.call("sqs", "CreateQueue", QueueName="dead")["QueueUrl"]
        self.shop.house.call("sqs", "SetQueueAttributes", QueueUrl=self.shop.url, Attributes={"RedrivePolicy": redrive})
        self.shop.pipe(SINK, 3, Enrichment=self.enrichment)
        self.sent: list[str] = []
        self.arrived: list[str] = []

    def teardown(self) -> None:
        self.shop.house.close()
        shutil.rmtree(self.folder)

    @rule(
        bodies=st.lists(st.sampled_from(["pass", "slow", "none", "fail", "many"]), min_size=1, max_size=5),
        drain=st.booleans(),
    )
    def send(self, bodies: list[str], drain: bool) -> None:
        self.sent += self.shop.send(*bodies, drain=drain)

    @rule(seconds=st.sampled_from([1, 45, 100, 400]))
    def wait(self, seconds: int) -> None:
        self.shop.house.advance(seconds=seconds)

    @rule(batch=st.sampled_from([1, 3, 10]), enriched=st.booleans(), to=st.sampled_from([SINK, BUS]))
    def update(self, batch: int, enriched: bool, to: str) -> None:
        self.shop.update(
            Enrichment=self.enrichment if enriched else "",
            Target=to,
            SourceParameters={"SqsQueueParameters": {"BatchSize": batch}},
        )

    @rule(operation=st.sampled_from(["StopPipe", "StartPipe"]))
    def command(self, operation: str) -> None:
        self.shop.house.call("pipes", operation, Name="p")

    @rule()
    def replace(self) -> None:
        self.shop.house.call("pipes", "DeletePipe", Name="p")
        self.shop.pipe(SINK, 10, Enrichment=self.enrichment)

    @rule(away=st.sampled_from([0, 0, 20]))
    def crash(self, away: int) -> None:
        self.shop = reopened(self.shop, self.folder / "tasuki.db", away * MINUTE)

    @invariant()
    def every_message_is_in_exactly_one_place(self) -> None:
        self.arrived += [record["messageId"] for record in self.shop.bodies()]
        events = [json.loads(given.payload)["messageId"] for given in self.shop.given()]
        entries = self.shop.house.call("tasuki", "ListHandovers", MaxResults=1000)["Handovers"]
        delivered = [entry["MessageId"] for entry in entries if entry["Outcome"] == "DELIVERED"]
        nothing = [entry["MessageId"] for entry in entries if entry["Outcome"] == "FILTERED"]
        assert sorted(self.arrived + events) == sorted(delivered)
        gone = delivered + nothing
        assert len(set(gone)) == len(gone)
        assert set(gone) <= set(self.sent)
        left = sum(self.shop.counts()) + sum(self.shop.counts(self.dead))
        assert len(gone) + left == len(self.sent)
        assert self.conserved()

    def conserved(self) -> bool:
        config = self.shop.house.config

        def unit(tx: Tx) -> bool:
            return all(
                conservation(tx, find_queue(tx, config.account, config.region, name)) for name in ("q", "sink", "dead")
            )

        return self.shop.house.unit(unit)


EnrichedPlay.TestCase.settings = settings(max_examples=30, stateful_step_count=15, deadline=None)
TestEnrichedPlay = EnrichedPlay.TestCase
