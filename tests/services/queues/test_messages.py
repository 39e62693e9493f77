"""What happens to a message: delays, receives, receipts, long polls, dead letters, expiry, purge."""

import hashlib
import json
from typing import Any

import pytest

from tasuki.services import queues
from tasuki.services.queues.errors import (
    InvalidParameterValue,
    MessageNotInflight,
    PurgeQueueInProgress,
    QueueDeletedRecently,
    QueueDoesNotExist,
)
from tasuki.store.sqlite import SqliteStore
from tasuki.testing import House
from tasuki.values.config import Config
from tasuki.values.operations import NotYet, Principal, Request
from tests.services.queues.conftest import ARN, Desk

ORIGIN = 1_767_225_600_000


def redrive(dlq: str, receives: int) -> str:
    return json.dumps({"deadLetterTargetArn": ARN + dlq, "maxReceiveCount": receives})


def look(desk: Desk, url: str, **given: Any) -> NotYet | None:
    """Look as the door does before it waits."""
    request = Request(
        "sqs", "ReceiveMessage", {"QueueUrl": url, **given}, "id", Principal("k"), "000000000000", "us-east-1", ""
    )
    operation = desk.house.rooms["queues"].operations["ReceiveMessage"]
    assert operation.look is not None
    found = operation.look
    return desk.house.unit(lambda tx: found(tx, request))


def test_messages_come_in_the_order_sent(desk: Desk) -> None:
    url = desk.create()
    ids = [desk.send(url, f"{i}") for i in range(25)]
    assert [m["MessageId"] for _ in range(3) for m in desk.receive(url, 10)] == ids


def test_a_consumer_that_dies_gives_its_message_back(desk: Desk) -> None:
    url = desk.create(VisibilityTimeout=10)
    sent = desk.send(url)
    (first,) = desk.receive(url)
    desk.house.advance(ms=9_999)
    assert desk.receive(url) == []
    desk.house.advance(ms=1)
    (second,) = desk.receive(url)
    assert second["MessageId"] == first["MessageId"] == sent
    assert second["ReceiptHandle"] != first["ReceiptHandle"]
    assert second["Attributes"]["ApproximateReceiveCount"] == "2"
    assert (
        second["Attributes"]["ApproximateFirstReceiveTimestamp"]
        == first["Attributes"]["ApproximateFirstReceiveTimestamp"]
    )
    assert second["Attributes"]["SentTimestamp"] == str(ORIGIN)


def test_an_old_receipt_never_deletes_the_redelivered_copy(desk: Desk) -> None:  # PF-34
    url = desk.create(VisibilityTimeout=10)
    desk.send(url)
    (old,) = desk.receive(url)
    desk.house.advance(seconds=10)
    (new,) = desk.receive(url)
    desk.delete(url, old)
    assert desk.counts(url) == (0, 1, 0)
    desk.delete(url, new)
    desk.delete(url, new)
    assert desk.counts(url) == (0, 0, 0)
    assert desk.conserved(url)


def test_an_expired_receipt_deletes_while_nobody_followed(desk: Desk) -> None:
    url = desk.create(VisibilityTimeout=10)
    desk.send(url)
    (message,) = desk.receive(url)
    desk.house.advance(seconds=20)
    desk.delete(url, message)
    assert desk.receive(url) == []


@pytest.mark.parametrize(
    ("attribute", "parameter", "hidden_s"), [(2, None, 2), (2, 7, 7), (None, None, 30), (2, 0, 0)]
)  # PF-35
def test_the_request_goes_before_the_queue_before_30_s(
    desk: Desk, attribute: int | None, parameter: int | None, hidden_s: int
) -> None:
    attributes: dict[str, Any] = {} if attribute is None else {"VisibilityTimeout": attribute}
    url = desk.create(**attributes)
    desk.send(url)
    desk.receive(url, **({} if parameter is None else {"VisibilityTimeout": parameter}))
    if hidden_s:
        desk.house.advance(ms=hidden_s * 1000 - 1)
        assert desk.receive(url) == []
        desk.house.advance(ms=1)
    assert len(desk.receive(url)) == 1


def test_extensions_end_twelve_hours_after_the_receive(desk: Desk) -> None:  # PF-38
    url = desk.create(VisibilityTimeout=3600)
    desk.send(url)
    (message,) = desk.receive(url)
    for _ in range(11):
        desk.house.advance(minutes=59)
        desk.hold(url, message, 3600)
    desk.house.advance(minutes=59)
    desk.house.advance(minutes=11)  # 11 h 59 min
    desk.hold(url, message, 60)
    with pytest.raises(
        InvalidParameterValue, match=r"Total VisibilityTimeout for the message is beyond the limit \[43200 seconds\]"
    ):
        desk.hold(url, message, 120)
    desk.house.advance(seconds=61)
    assert len(desk.receive(url)) == 1


def test_visibility_zero_gives_back_and_is_not_remembered(desk: Desk) -> None:
    url = desk.create(VisibilityTimeout=30)
    desk.send(url)
    (message,) = desk.receive(url)
    desk.hold(url, message, 0)
    (again,) = desk.receive(url)
    assert again["Attributes"]["ApproximateReceiveCount"] == "2"
    desk.house.advance(seconds=29)
    assert desk.receive(url) == []


def test_changing_what_is_gone_or_another_s(desk: Desk) -> None:
    url = desk.create(VisibilityTimeout=10)
    desk.send(url)
    (old,) = desk.receive(url)
    desk.house.advance(seconds=10)
    (new,) = desk.receive(url)
    desk.house.advance(seconds=10)
    with pytest.raises(MessageNotInflight):
        desk.hold(url, old, 5)
    desk.hold(url, new, 5)
    desk.delete(url, new)
    with pytest.raises(
        InvalidParameterValue, match="Message does not exist or is not available for visibility timeout change"
    ):
        desk.hold(url, new, 5)


def test_delays_of_the_queue_and_of_the_message(desk: Desk) -> None:
    url = desk.create(DelaySeconds=5)
    late, now, later = desk.send(url), desk.send(url, DelaySeconds=0), desk.send(url, DelaySeconds=9)
    assert desk.counts(url) == (1, 0, 2)
    assert [m["MessageId"] for m in desk.receive(url, 10)] == [now]
    desk.house.advance(seconds=5)
    assert [m["MessageId"] for m in desk.receive(url, 10)] == [late]
    desk.house.advance(seconds=4)
    assert [m["MessageId"] for m in desk.receive(url, 10)] == [later]


def test_a_long_poll_knows_when_to_look_again(desk: Desk) -> None:  # PF-36
    url = desk.create(ReceiveMessageWaitTimeSeconds=3, VisibilityTimeout=30)
    empty = look(desk, url)
    assert empty is not None
    assert (empty.topic, empty.until, empty.wake_at, empty.answer) == ("queue:1", ORIGIN + 3_000, None, {})
    desk.send(url, DelaySeconds=5)
    delayed = look(desk, url, WaitTimeSeconds=12)
    assert delayed is not None
    assert (delayed.until, delayed.wake_at) == (ORIGIN + 12_000, ORIGIN + 5_000)
    desk.house.advance(seconds=5)
    assert look(desk, url, WaitTimeSeconds=0) is None
    desk.receive(url)
    hidden = look(desk, url, WaitTimeSeconds=0)
    assert hidden is not None
    assert (hidden.until, hidden.wake_at) == (ORIGIN + 5_000, ORIGIN + 35_000)


@pytest.mark.sqlite_only(reason="counts what SQLite's writer changed")
def test_an_empty_receive_writes_nothing(desk: Desk) -> None:
    url = desk.create()
    desk.send(url)
    desk.receive(url)
    store = desk.house.store
    assert isinstance(store, SqliteStore)
    before = store._writer.total_changes()
    for _ in range(5):
        assert desk.receive(url) == []
    assert store._writer.total_changes() == before


@pytest.mark.sqlite_only(reason="replaces the bell of SQLite's store")
def test_the_bell_rings_for_as_many_as_can_be_served(desk: Desk) -> None:
    rings: list[tuple[str, int]] = []
    store = desk.house.store
    assert isinstance(store, SqliteStore)
    store._on_ring = lambda topic, times: rings.append((topic, times))
    url = desk.create(VisibilityTimeout=30)
    rings.clear()
    entries = [{"Id": str(i), "MessageBody": "x"} for i in range(3)]
    desk.house.call("sqs", "SendMessageBatch", {"QueueUrl": url, "Entries": entries})
    assert rings == [("queue:1", 3), ("queues", 1), ("queues.sweep", 1)]
    desk.house.advance(ms=1)
    rings.clear()
    desk.send(url, DelaySeconds=30)
    assert rings == [("queues", 1)]  # later than any long poll of now can wait for
    rings.clear()
    message, _ = desk.receive(url, 2)
    assert rings == []
    desk.hold(url, message, 0)
    assert rings == [("queue:1", 1), ("queues", 1)]
    rings.clear()
    desk.receive(url, VisibilityTimeout=4)
    assert rings == [("queue:1", 1)]  # whoever waits on must look again in 4 s


def test_dead_letters_keep_their_identity(desk: Desk) -> None:
    dlq = desk.create("dlq")
    url = desk.create("q", VisibilityTimeout=0, RedrivePolicy=redrive("dlq", 2))
    sent = desk.send(url, MessageAttributes={"a": {"DataType": "String", "StringValue": "b"}})
    desk.house.advance(seconds=7)
    assert [len(desk.receive(url)) for _ in range(3)] == [1, 1, 0]
    (dead,) = desk.receive(dlq, MessageAttributeNames=["All"])
    assert dead["MessageId"] == sent
    assert dead["MessageAttributes"]["a"]["StringValue"] == "b"
    assert dead["Attributes"]["ApproximateReceiveCount"] == "3"
    assert dead["Attributes"]["SentTimestamp"] == str(ORIGIN)
    assert dead["Attributes"]["DeadLetterQueueSourceArn"] == ARN + "q"
    assert desk.conserved(url)
    assert desk.conserved(dlq)


def test_dead_letters_give_way_to_the_living(desk: Desk) -> None:
    desk.create("dlq")
    url = desk.create("q", VisibilityTimeout=0, RedrivePolicy=redrive("dlq", 1))
    for _ in range(10):
        desk.send(url, "dead")
    desk.receive(url, 10)
    fresh = [desk.send(url, "fresh") for _ in range(10)]
    assert [m["MessageId"] for m in desk.receive(url, 10)] == fresh


def test_dead_letter_queues_chain_and_count_afresh(desk: Desk) -> None:
    last = desk.create("last")
    middle = desk.create("middle", VisibilityTimeout=0, RedrivePolicy=redrive("last", 1))
    url = desk.create("q", VisibilityTimeout=0, RedrivePolicy=redrive("middle", 1))
    desk.send(url)
    assert [len(desk.receive(u)) for u in (url, url, middle, middle, last)] == [1, 0, 1, 0, 1]
    assert all(desk.conserved(u) for u in (url, middle, last))


def test_without_its_dead_letter_queue_a_message_stays(desk: Desk) -> None:
    dlq = desk.create("dlq")
    url = desk.create("q", VisibilityTimeout=0, RedrivePolicy=redrive("dlq", 1))
    desk.send(url)
    desk.house.call("sqs", "DeleteQueue", {"QueueUrl": dlq})
    assert [len(desk.receive(url)) for _ in range(3)] == [1, 1, 1]


def test_redrive_allow_policy(desk: Desk) -> None:
    desk.create("closed", RedriveAllowPolicy='{"redrivePermission":"denyAll"}')
    desk.create(
        "chosen", RedriveAllowPolicy=json.dumps({"redrivePermission": "byQueue", "sourceQueueArns": [ARN + "q"]})
    )
    url = desk.create("q", RedrivePolicy=redrive("chosen", 3))
    sources = desk.house.call("sqs", "ListDeadLetterSourceQueues", {"QueueUrl": "chosen"})
    assert sources == {"queueUrls": [url]}
    with pytest.raises(InvalidParameterValue):
        desk.create("other", RedrivePolicy=redrive("chosen", 3))
    with pytest.raises(InvalidParameterValue):
        desk.create("other", RedrivePolicy=redrive("closed", 3))


def test_expiry_counts_from_the_first_sending_and_reaches_those_in_flight(desk: Desk) -> None:
    url = desk.create(MessageRetentionPeriod=60, VisibilityTimeout=50)
    for _ in range(3):
        desk.send(url)
    desk.house.advance(seconds=59)
    assert len(desk.receive(url)) == 1
    desk.house.clock.set(desk.house.now + 1_000)  # time passes, and no sweep comes by
    assert desk.counts(url) == (0, 0, 0)
    assert desk.receive(url, 10) == []
    assert desk.conserved(url)
    desk.house.drain()
    assert desk.conserved(url)
    assert counters(desk, url)["expired"] == 3


def test_a_shorter_retention_applies_to_what_is_there(desk: Desk) -> None:
    url = desk.create()
    for _ in range(1_200):
        desk.send(url)
    desk.house.advance(minutes=5)
    desk.send(url)
    desk.house.call("sqs", "SetQueueAttributes", {"QueueUrl": url, "Attributes": {"MessageRetentionPeriod": "60"}})
    desk.house.drain()
    assert counters(desk, url)["expired"] == 1_200
    assert desk.counts(url) == (1, 0, 0)
    assert desk.conserved(url)


def counters(desk: Desk, url: str) -> dict[str, int]:
    name = url.rpartition("/")[2]
    find = queues.find_queue
    return desk.house.unit(lambda tx: queues.counters(tx, find(tx, "000000000000", "us-east-1", name)))._asdict()


def test_counters_tell_what_became_of_all(desk: Desk) -> None:
    desk.create("dlq")
    url = desk.create("q", VisibilityTimeout=0, RedrivePolicy=redrive("dlq", 1))
    for _ in range(4):
        desk.send(url)
    first, *_ = desk.receive(url, 3)
    desk.delete(url, first)
    desk.receive(url, 10)
    assert counters(desk, url) == {
        "sent": 4,
        "moved_in": 0,
        "received": 4,
        "deleted": 1,
        "expired": 0,
        "purged": 0,
        "moved_to_dlq": 2,
        "redriven": 0,
    }
    assert counters(desk, "dlq")["moved_in"] == 2


def rows(desk: Desk, table: str) -> int:
    row = desk.house.unit(lambda tx: tx.one(f"SELECT COUNT(*) FROM {table}"))
    assert row is not None
    return int(row[0])


def test_purge_takes_all_at_once_and_counts_it(desk: Desk) -> None:
    url = desk.create()
    for _ in range(1_100):
        desk.send(url, "x" * 800)
    (held,) = desk.receive(url)
    desk.send(url, DelaySeconds=100)
    desk.house.call("sqs", "PurgeQueue", {"QueueUrl": url})
    kept = desk.send(url)
    assert desk.counts(url) == (1, 0, 0)
    desk.delete(url, held)
    assert [m["MessageId"] for m in desk.receive(url, 10)] == [kept]
    assert counters(desk, url)["purged"] == 1_101
    assert desk.conserved(url)
    desk.house.drain()
    assert (rows(desk, "messages"), rows(desk, "message_bodies"), rows(desk, "shelves")) == (1, 0, 1)
    with pytest.raises(PurgeQueueInProgress, match=r"Only one PurgeQueue operation on q is allowed every 60 seconds\."):
        desk.house.call("sqs", "PurgeQueue", {"QueueUrl": url})
    desk.house.advance(seconds=60)
    desk.house.call("sqs", "PurgeQueue", {"QueueUrl": url})
    assert counters(desk, url)["purged"] == 1_102


def test_a_deleted_queue_is_gone_with_all_it_held(desk: Desk) -> None:
    url = desk.create()
    for _ in range(30):
        desk.send(url, "x" * 800)
    desk.house.call("sqs", "DeleteQueue", {"QueueUrl": url})
    with pytest.raises(QueueDoesNotExist):
        desk.send(url)
    desk.house.drain()
    assert (rows(desk, "messages"), rows(desk, "message_bodies"), rows(desk, "shelves")) == (0, 0, 0)
    with pytest.raises(QueueDeletedRecently):
        desk.create()
    desk.house.advance(seconds=60)
    assert desk.counts(desk.create()) == (0, 0, 0)


def test_a_name_may_be_free_at_once(desk: Desk) -> None:
    with House(queues.room, config=Config(data=desk.house.config.data, quotas={"sqs_recreate_wait_s": 0})) as house:
        free = Desk(house)
        free.house.call("sqs", "DeleteQueue", {"QueueUrl": free.create()})
        assert free.create().endswith("/q")


@pytest.mark.parametrize("size", [1, 500, 700, 5_000, 300_000])
def test_bodies_of_all_sizes_come_back_whole_and_leave_nothing(desk: Desk, size: int) -> None:
    url = desk.create()
    body = "ü" * size
    sent = desk.house.call("sqs", "SendMessage", {"QueueUrl": url, "MessageBody": body})
    (message,) = desk.receive(url)
    assert message["Body"] == body
    assert message["MD5OfBody"] == sent["MD5OfMessageBody"]
    desk.delete(url, message)
    assert (rows(desk, "messages"), rows(desk, "message_bodies")) == (0, 0)


def test_md5s_cover_every_kind_of_attribute(desk: Desk) -> None:
    url = desk.create()
    attributes = {
        "zip": {"DataType": "Binary.gzip", "BinaryValue": b"\x00\xff"},
        "n": {"DataType": "Number.int", "StringValue": "7"},
        "s": {"DataType": "String", "StringValue": "ü"},
    }
    sent = desk.house.call("sqs", "SendMessage", {"QueueUrl": url, "MessageBody": "x", "MessageAttributes": attributes})
    (message,) = desk.receive(url, MessageAttributeNames=["All"], VisibilityTimeout=0)
    assert message["MessageAttributes"] == attributes
    parts = (
        b"\0\0\0\1n"
        b"\0\0\0\nNumber.int"
        b"\1"
        b"\0\0\0\0017"
        b"\0\0\0\1s"
        b"\0\0\0\6String"
        b"\1"
        b"\0\0\0\2\xc3\xbc"
        b"\0\0\0\3zip"
        b"\0\0\0\x0bBinary.gzip"
        b"\2"
        b"\0\0\0\2\0\xff"
    )
    whole = hashlib.md5(parts).hexdigest()
    assert message["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"] == whole
    (message,) = desk.receive(url, MessageAttributeNames=["n"])
    assert message["MD5OfMessageAttributes"] == hashlib.md5(parts[:25]).hexdigest()


def test_trace_headers(desk: Desk) -> None:
    url = desk.create()
    desk.send(url)
    desk.house.call("sqs", "SendMessage", {"QueueUrl": url, "MessageBody": "x"}, trace="Root=1-a-b;Sampled=1")
    own = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-c-d;Parent=e"}}
    desk.send(url, MessageSystemAttributes=own)
    messages = desk.receive(url, 10)
    headers = [m["Attributes"].get("AWSTraceHeader") for m in messages]
    assert headers == [None, "Root=1-a-b;Sampled=1", "Root=1-c-d;Parent=e"]
