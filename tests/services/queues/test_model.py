"""A queue against a simple model of one, under any order of calls and any passing of time (promise P8)."""

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tasuki.services import queues
from tasuki.services.queues.errors import MessageNotInflight, PurgeQueueInProgress
from tasuki.testing import House
from tests.services.queues.conftest import ARN, Desk

VISIBILITY_MS, RETENTION_MS, RECEIVES = 5_000, 90_000, 2


@dataclass
class Standing:
    """A message, as the model knows it."""

    id: str
    sent_at: int
    visible_at: int
    received: int = 0
    handle: str | None = None
    old_handles: set[str] = field(default_factory=set)


class Queues(RuleBasedStateMachine):
    """A queue with a dead-letter queue."""

    def __init__(self) -> None:
        super().__init__()
        self.house = House(queues.room)
        self.desk = Desk(self.house)
        self.dead: dict[str, Standing] = {}
        self.live: dict[str, Standing] = {}
        self.handles: list[tuple[str, str]] = []
        self.sent = 0

    def teardown(self) -> None:
        self.house.close()

    @initialize()
    def create(self) -> None:
        self.dlq = self.desk.create("dlq", MessageRetentionPeriod=RETENTION_MS // 1000)
        policy = json.dumps({"deadLetterTargetArn": ARN + "dlq", "maxReceiveCount": RECEIVES})
        self.url = self.desk.create(
            "q", VisibilityTimeout=5, RedrivePolicy=policy, MessageRetentionPeriod=RETENTION_MS // 1000
        )

    # -- the model ----------------------------------------------------------------------------------------

    def _forget_expired(self) -> None:
        oldest = self.house.now - RETENTION_MS
        for shelf in (self.live, self.dead):
            for gone in [m.id for m in shelf.values() if m.sent_at <= oldest]:
                del shelf[gone]

    def _received(self, url: str, found: list[dict[str, Any]], limit: int, hidden_ms: int) -> None:
        now, shelf = self.house.now, self.live if url == self.url else self.dead
        expected: list[Standing] = []
        due = [m for m in shelf.values() if m.visible_at <= now]
        for m in sorted(due, key=lambda m: (m.visible_at, m.received, m.sent_at)):
            if len(expected) == limit:
                break
            if url == self.url and m.received >= RECEIVES:
                self._bury(m)
            else:
                expected.append(m)
        assert {message["MessageId"] for message in found} == {m.id for m in expected}
        for message in found:
            m = shelf[message["MessageId"]]
            m.received += 1
            assert message["Attributes"]["ApproximateReceiveCount"] == str(m.received)
            if m.handle is not None:
                m.old_handles.add(m.handle)
            m.handle = message["ReceiptHandle"]
            m.visible_at = now + hidden_ms
            self.handles.append((url, m.handle))

    def _bury(self, m: Standing) -> None:
        del self.live[m.id]
        self.dead[m.id] = Standing(m.id, m.sent_at, self.house.now, m.received)

    # -- what may happen ----------------------------------------------------------------------------------

    @rule(delay=st.sampled_from([0, 0, 1, 7]))
    def send(self, delay: int) -> None:
        message_id = self.desk.send(self.url, "x" * (self.sent * 97 % 1_500 + 1), DelaySeconds=delay)
        self.live[message_id] = Standing(message_id, self.house.now, self.house.now + delay * 1_000)
        self.sent += 1
        self.house.advance(ms=1)

    @rule(limit=st.sampled_from([1, 3, 10]), hidden=st.sampled_from([None, 0, 2]))
    def receive(self, limit: int, hidden: int | None) -> None:
        self._forget_expired()
        more = {} if hidden is None else {"VisibilityTimeout": hidden}
        found = self.desk.receive(self.url, limit, **more)
        self._received(self.url, found, limit, VISIBILITY_MS if hidden is None else hidden * 1_000)
        self.house.advance(ms=1)

    @rule()
    def receive_dead(self) -> None:
        self._forget_expired()
        self._received(self.dlq, self.desk.receive(self.dlq, 10), 10, 30_000)
        self.house.advance(ms=1)

    @precondition(lambda self: self.handles)
    @rule(choice=st.integers(0, 1_000))
    def delete(self, choice: int) -> None:
        url, handle = self.handles[choice % len(self.handles)]
        self._delete(url, handle)

    @precondition(lambda self: any(m.old_handles for m in self.live.values()))
    @rule(choice=st.integers(0, 1_000))
    def delete_with_an_old_handle(self, choice: int) -> None:
        old = self._old_handles()
        self._delete(self.url, old[choice % len(old)][1])

    def _delete(self, url: str, handle: str) -> None:
        self.house.call("sqs", "DeleteMessage", {"QueueUrl": url, "ReceiptHandle": handle})
        shelf = self.live if url == self.url else self.dead
        for gone in [m.id for m in shelf.values() if m.handle == handle]:
            del shelf[gone]

    def _old_handles(self) -> list[tuple[Standing, str]]:
        return [(m, handle) for m in self.live.values() for handle in sorted(m.old_handles)]

    @precondition(lambda self: any(m.handle for m in self.live.values()))
    @rule(choice=st.integers(0, 1_000), seconds=st.sampled_from([0, 3, 20]))
    def hold(self, choice: int, seconds: int) -> None:
        self._forget_expired()
        held = [m for m in self.live.values() if m.handle is not None]
        if not held:
            return
        m = held[choice % len(held)]
        given = {"QueueUrl": self.url, "ReceiptHandle": m.handle, "VisibilityTimeout": seconds}
        self.house.call("sqs", "ChangeMessageVisibility", given)
        m.visible_at = self.house.now + seconds * 1_000

    @precondition(lambda self: any(m.old_handles for m in self.live.values()))
    @rule(choice=st.integers(0, 1_000))
    def hold_with_an_old_handle(self, choice: int) -> None:
        self._forget_expired()
        old = self._old_handles()
        if not old:
            return
        m, handle = old[choice % len(old)]
        given = {"QueueUrl": self.url, "ReceiptHandle": handle, "VisibilityTimeout": 9}
        try:
            self.house.call("sqs", "ChangeMessageVisibility", given)
        except MessageNotInflight:
            assert m.visible_at <= self.house.now
        else:
            m.visible_at = self.house.now + 9_000

    @rule()
    def purge(self) -> None:
        try:
            self.house.call("sqs", "PurgeQueue", {"QueueUrl": self.url})
        except PurgeQueueInProgress:
            return
        self.live.clear()

    @rule(ms=st.sampled_from([1, 999, 2_000, 5_000, 31_000, 120_000]), swept=st.booleans())
    def wait(self, ms: int, swept: bool) -> None:
        if swept:
            self.house.advance(ms=ms)
        else:
            self.house.clock.set(self.house.now + ms)

    # -- what must hold -----------------------------------------------------------------------------------

    @invariant()
    def nothing_is_lost(self) -> None:
        if not hasattr(self, "url"):
            return
        self._forget_expired()
        now = self.house.now
        for url, shelf in ((self.url, self.live), (self.dlq, self.dead)):
            visible = sum(m.visible_at <= now for m in shelf.values())
            in_flight = sum(m.visible_at > now and m.received > 0 for m in shelf.values())
            assert self.desk.counts(url) == (visible, in_flight, len(shelf) - visible - in_flight)
            assert self.desk.conserved(url)


Queues.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestQueues = Queues.TestCase
