"""Plays: messages through pipes, with a queue and a machine that fail when told to."""

from itertools import pairwise

import pytest

from tasuki.services.pipes import counters, polls
from tasuki.services.pipes.naming import TAG
from tasuki.services.switchboard import Received
from tasuki.store.store import Tx
from tasuki.values import documents
from tasuki.values.errors import DomainError
from tests.services.pipes.stubs import MACHINE, QUEUE, Bench, ExecutionLimitExceeded
from tests.stores import shelf


def throttled(_payload: str) -> DomainError | None:
    return ExecutionLimitExceeded("too many")


def willing(_payload: str) -> DomainError | None:
    return None


# -- handing over -------------------------------------------------------------------------------------------


def test_a_message_becomes_an_execution_whose_input_is_an_array(bench: Bench) -> None:
    bench.pipe()
    bench.send('{"jobId": 1}')
    [[record]] = bench.inputs
    assert record["messageId"] == "m00001"
    assert record["body"] == '{"jobId": 1}'
    assert record["eventSourceARN"] == QUEUE
    assert bench.waiting == []
    [handover] = bench.handovers(MessageId="m00001")
    assert handover["Outcome"] == "DELIVERED"
    assert handover["PipeArn"] == "arn:aws:pipes:us-east-1:000000000000:pipe/p"
    assert handover["ExecutionArn"].startswith(MACHINE.replace("stateMachine", "execution"))
    assert bench.handovers(ExecutionArn=handover["ExecutionArn"]) == [handover]
    assert bench.handovers(Trace="Root=1-m00001") == [handover]


def test_what_waits_before_the_pipe_is_made_is_handed_over_too(bench: Bench) -> None:
    bench.send("a", "b")
    bench.pipe()
    bench.house.drain()
    assert bench.bodies == [["a", "b"]]


@pytest.mark.parametrize("batch", [1, 3, 10])
def test_a_hundred_at_once_all_go_in_batches_and_few_rounds(
    bench: Bench, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[polls.Turn] = []
    serve = polls.Pump._serve

    def counted(pump: polls.Pump, tx: Tx, turn: polls.Turn, count: int) -> None:
        rounds.append(turn)
        serve(pump, tx, turn, count)

    monkeypatch.setattr(polls.Pump, "_serve", counted)
    bench.pipe(batch=batch)
    bench.send(*map(str, range(100)))
    assert [body for bodies in bench.bodies for body in bodies] == [str(n) for n in range(100)]
    assert max(map(len, bench.bodies)) == batch
    assert len(bench.inputs) == -(-100 // batch)
    assert len(rounds) <= 4
    assert bench.waiting == []


def test_pipes_on_one_queue_take_turns(bench: Bench) -> None:
    for name in ("a", "b", "c"):
        bench.pipe(name, batch=10)
    bench.send(*map(str, range(600)))
    shares = {via: sum(h["PipeArn"].endswith(via) for h in bench.handovers()) for via in ("/a", "/b", "/c")}
    assert sum(shares.values()) == 600
    # Even where units come one after the other; side by side, who is a little faster has a turn or two more.
    assert max(shares.values()) - min(shares.values()) <= (0 if shelf is None else 150), shares


def test_the_trace_is_passed_on(bench: Bench) -> None:
    bench.pipe()
    bench.send("x")
    assert bench._ids("SELECT trace FROM stub_executions") == ["Root=1-m00001"]


def test_a_batch_larger_than_an_execution_takes_goes_on_in_a_second_one(bench: Bench) -> None:
    bench.pipe(batch=10)
    bench.send(*[str(n) * 100_000 for n in range(5)])
    assert [len(records) for records in bench.inputs] == [2, 2, 1]
    assert bench.waiting == []


def test_a_single_message_that_is_too_large_comes_back_and_goes_to_the_dead_letter_queue(bench: Bench) -> None:
    bench.queue.max_receives = 3
    bench.pipe(batch=1)
    bench.send("x" * 300_000, "fine")
    assert bench.bodies == [["fine"]]
    assert bench.waiting == ["m00001"]
    bench.house.advance(minutes=10)
    assert bench.dead == ["m00001"]
    assert bench.outcomes() == {"DELIVERED": 1, "FAILED": 3}


# -- filters ------------------------------------------------------------------------------------------------


def test_what_no_filter_passes_is_deleted_and_recorded(bench: Bench) -> None:  # PF-41
    bench.pipe(patterns=['{"body":{"version":[{"prefix":"v2"}]}}'])
    bench.send('{"version":"v2.1"}', '{"version":"v1"}', '{"note":"v2"}')
    assert bench.bodies == [['{"version":"v2.1"}']]
    assert bench.waiting == []
    assert [h["Outcome"] for h in bench.handovers()] == ["FILTERED", "FILTERED", "DELIVERED"]
    assert "ExecutionArn" not in bench.handovers(MessageId="m00002")[0]


@pytest.mark.parametrize(
    ("pattern", "body", "passes"),
    [
        ('{"body":["hello"]}', "hello", True),
        ('{"body":["hello"]}', "bye", False),
        ('{"body":{"a":[1]}}', "hello", False),
        ('{"body":{"a":[{"exists":false}]}}', "hello", False),
        ('{"body":["{\\"a\\":1}"]}', '{"a":1}', False),
        ('{"body":[{"exists":false}]}', '{"a":1}', False),
        ('{"body":{"a":[1]}}', '{"a":1}', True),
        ('{"body":{"a":[1]}}', '{"a":2}', False),
        ('{"body":{"a":[{"exists":false}]}}', '{"b":1}', True),
        ('{"attributes":{"SenderId":["AIDA"]}}', "hello", True),
        ('{"attributes":{"SenderId":["AIDA"]}}', '{"a":1}', True),
        ('{"attributes":{"SenderId":["other"]}}', '{"a":1}', False),
    ],
)
def test_kinds_of_bodies_and_patterns(bench: Bench, pattern: str, body: str, passes: bool) -> None:
    bench.pipe(patterns=[pattern])
    bench.send(body)
    assert bench.bodies == ([[body]] if passes else [])
    assert bench.waiting == []


def test_counters_tell_what_became_of_the_messages(bench: Bench) -> None:
    bench.pipe(batch=1, patterns=['{"body":{"v":[1]}}'], Tags={TAG: "$.body.id"})
    bench.machine.refuse = lambda payload: ExecutionLimitExceeded("no") if "bad" in payload else None
    bench.send('{"v":1,"id":"a"}', '{"v":1,"id":"a"}', '{"v":2}', '{"v":1,"id":"bad"}')
    found = bench.house.unit(lambda tx: counters(tx, "000000000000", "us-east-1", "p"))
    assert found == {"delivered": 1, "duplicates": 1, "filtered": 1, "failed": 1}
    assert bench.house.unit(lambda tx: counters(tx, "000000000000", "us-east-1", "absent")) is None


@pytest.mark.parametrize(("many", "pause_ms"), [(1, 1_000), (2, 50)])
def test_a_queue_that_gives_nothing_of_what_it_shows_is_given_time(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, many: int, pause_ms: int
) -> None:
    """It may show more dead messages than one receive clears away; few are in other consumers' hands, and soon are not."""
    receive = bench.queue.receive
    looked: list[int] = []

    def barren(_tx: Tx, _arn: str, _limit: int, _max_bytes: int, _hold_ms: int = 0) -> list[Received]:
        looked.append(bench.house.now)
        return []

    bench.pipe()
    monkeypatch.setattr(bench.queue, "receive", barren)
    monkeypatch.setattr(polls, "MANY", many)
    bench.send("a")
    bench.house.advance(ms=5 * pause_ms)
    assert [at - looked[0] for at in looked] == [at * pause_ms for at in range(6)]
    monkeypatch.setattr(bench.queue, "receive", receive)
    bench.house.advance(ms=pause_ms)
    assert bench.bodies == [["a"]]
    assert "StateReason" not in bench.describe()


def test_one_of_several_filters_is_enough(bench: Bench) -> None:
    bench.pipe(patterns=['{"body":{"v":["v1"]}}', '{"body":{"v":["v2"]}}'])
    bench.send('{"v":"v1"}', '{"v":"v2"}', '{"v":"v3"}')
    assert bench.bodies == [['{"v":"v1"}', '{"v":"v2"}']]


# -- templates ----------------------------------------------------------------------------------------------


def test_the_template_reshapes_each_record(bench: Bench) -> None:
    bench.pipe(template='{"job": <$.body.jobId>, "pipe": "<aws.pipes.pipe-name>"}', batch=2)
    bench.send('{"jobId": "a"}', '{"jobId": 2}', "plain")
    assert bench.inputs == [
        [{"job": "a", "pipe": "p"}, {"job": 2, "pipe": "p"}],
        [{"job": "", "pipe": "p"}],
    ]


# -- windows ------------------------------------------------------------------------------------------------


def test_a_window_waits_for_the_batch_or_its_end_and_holds_nothing(bench: Bench) -> None:
    bench.pipe(batch=100, window=60)
    bench.send("a")
    bench.house.advance(seconds=30)
    bench.send("b")
    assert bench.inputs == []
    assert bench.house.unit(
        lambda tx: tx.one("SELECT count(*) FROM stub_messages WHERE visible_at <= ?", (tx.now,))
    ) == (2,)
    bench.house.advance(seconds=29)
    assert bench.inputs == []
    bench.house.advance(seconds=1)
    assert bench.bodies == [["a", "b"]]
    bench.send("c")
    bench.house.advance(seconds=59)
    assert len(bench.inputs) == 1
    bench.house.advance(seconds=1)
    assert bench.bodies[1:] == [["c"]]


def test_a_full_batch_goes_before_the_window_ends_and_the_rest_waits(bench: Bench) -> None:
    bench.pipe(batch=20, window=60)
    bench.send(*map(str, range(50)))
    assert [len(records) for records in bench.inputs] == [20, 20]
    bench.house.advance(seconds=60)
    assert [len(records) for records in bench.inputs] == [20, 20, 10]


def test_a_window_whose_messages_have_gone_is_forgotten(bench: Bench) -> None:
    bench.pipe(batch=100, window=60)
    bench.send("a")
    bench.house.unit(lambda tx: tx.run("DELETE FROM stub_messages"))
    bench.house.drain()
    bench.house.advance(seconds=50)
    bench.send("b")
    bench.house.advance(seconds=59)
    assert bench.inputs == []
    bench.house.advance(seconds=1)
    assert bench.bodies == [["b"]]


# -- failing targets ----------------------------------------------------------------------------------------


def test_a_target_that_refuses_and_recovers_loses_nothing(bench: Bench) -> None:
    bench.pipe(batch=10)
    bench.machine.refuse = throttled
    bench.send(*map(str, range(30)))
    assert bench.inputs == []
    assert len(bench.waiting) == 30
    described = bench.describe()
    assert described["CurrentState"] == "RUNNING"
    assert "ExecutionLimitExceeded: too many" in described["StateReason"]
    bench.house.advance(minutes=20)
    assert len(bench.waiting) == 30
    assert "times in a row" in bench.describe()["StateReason"]
    bench.machine.refuse = willing
    bench.house.advance(minutes=10)
    assert sorted(int(body) for bodies in bench.bodies for body in bodies) == list(range(30))
    assert bench.waiting == []
    assert "StateReason" not in bench.describe()
    assert bench.outcomes()["DELIVERED"] == 30


def test_a_refusing_target_is_asked_less_and_less_often(bench: Bench) -> None:
    asked: list[int] = []
    bench.queue.visibility_ms = 0
    bench.pipe(batch=1)

    def refuse(_payload: str) -> DomainError:
        asked.append(bench.house.now)
        return ExecutionLimitExceeded("too many")

    bench.machine.refuse = refuse
    bench.send("x")
    bench.house.advance(hours=1)
    pauses = [(after - before) // 1000 for before, after in pairwise(asked)]
    assert pauses[:10] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]
    assert len(asked) < 25
    assert bench.waiting == ["m00001"]


def test_after_the_queue_s_max_receive_count_messages_are_dead_letters(bench: Bench) -> None:  # PF-40
    bench.queue.max_receives = 3
    bench.pipe(batch=10)
    bench.machine.refuse = throttled
    bench.send("a", "b")
    bench.house.advance(seconds=29)
    assert bench.waiting == ["m00001", "m00002"]
    bench.house.advance(minutes=5)
    assert bench.dead == ["m00001", "m00002"]
    assert bench.waiting == []
    assert bench.outcomes() == {"FAILED": 6}
    bench.machine.refuse = willing
    bench.house.advance(minutes=5)
    bench.send("c")
    assert bench.bodies == [["c"]]


def test_one_refused_batch_does_not_undo_the_others(bench: Bench) -> None:
    bench.pipe(batch=1)
    bench.machine.refuse = lambda payload: ExecutionLimitExceeded("no") if "bad" in payload else None
    bench.send("a", "bad", "b")
    assert bench.bodies == [["a"], ["b"]]
    assert bench.waiting == ["m00002"]
    assert "StateReason" in bench.describe()


def test_a_missing_target_stops_the_pipe_before_it_receives(bench: Bench) -> None:
    bench.pipe()
    bench.machine.gone = "State machine does not exist"
    bench.send("x")
    described = bench.describe()
    assert (described["DesiredState"], described["CurrentState"]) == ("RUNNING", "STOPPED")
    assert described["StateReason"] == "Target: State machine does not exist"
    assert bench.house.unit(lambda tx: tx.one("SELECT receives FROM stub_messages")) == (0,)
    assert bench.call("StartPipe", {"Name": "p"})["CurrentState"] == "STARTING"
    assert bench.describe()["CurrentState"] == "START_FAILED"
    bench.machine.gone = None
    bench.call("StartPipe", {"Name": "p"})
    bench.house.drain()
    assert bench.describe()["CurrentState"] == "RUNNING"
    assert bench.bodies == [["x"]]


def test_a_missing_queue_stops_the_pipe(bench: Bench) -> None:
    bench.pipe()
    bench.queue.gone = "Queue does not exist"
    bench.house.unit(lambda tx: tx.ring("queues"))
    bench.house.drain()
    assert bench.describe()["CurrentState"] == "STOPPED"
    assert bench.describe()["StateReason"] == "Source: Queue does not exist"


def test_a_message_nested_beyond_reason_is_a_failure_of_its_own(bench: Bench) -> None:
    bench.queue.max_receives = 2
    bench.pipe(batch=2, patterns=['{"body":{"a":[1]}}'], template='{"x": <$.body.a>}')
    bench.send('{"a":' + "[" * 900 + "1" + "]" * 900 + "}", '{"a":1}')
    bench.house.advance(minutes=10)
    assert bench.inputs[-1][-1] == {"x": 1}
    assert bench.waiting == []


# -- stop, start, update, delete ----------------------------------------------------------------------------


def test_stop_and_start_in_midstream(bench: Bench) -> None:
    bench.pipe()
    bench.send("a")
    assert bench.call("StopPipe", {"Name": "p"})["CurrentState"] == "STOPPING"
    bench.send("b")
    bench.house.advance(hours=1)
    assert bench.bodies == [["a"]]
    assert bench.call("StartPipe", {"Name": "p"})["CurrentState"] == "STARTING"
    bench.house.drain()
    assert bench.bodies == [["a"], ["b"]]


def test_an_update_holds_from_the_next_round_on(bench: Bench) -> None:
    bench.pipe(template='{"v": 1}')
    bench.send("a")
    bench.send("b", drain=False)
    parameters = {"InputTemplate": '{"v": 2}'}
    bench.call(
        "UpdatePipe", {"Name": "p", "RoleArn": "arn:aws:iam::000000000000:role/p", "TargetParameters": parameters}
    )
    bench.house.drain()
    assert bench.inputs == [[{"v": 1}], [{"v": 2}]]
    bench.call("UpdatePipe", {"Name": "p", "RoleArn": "r", "TargetParameters": {"InputTemplate": ""}})
    bench.send("c")
    assert bench.inputs[2][0]["body"] == "c"
    assert "InputTemplate" not in bench.describe()["TargetParameters"]


def test_a_deleted_pipe_leaves_the_queue_alone(bench: Bench) -> None:
    bench.pipe()
    bench.send("a", drain=False)
    assert bench.call("DeletePipe", {"Name": "p"})["DesiredState"] == "DELETED"
    bench.house.advance(hours=1)
    assert bench.waiting == ["m00001"]
    bench.pipe()
    bench.house.drain()
    assert bench.bodies == [["a"]]


# -- names --------------------------------------------------------------------------------------------------


def test_a_job_sent_twice_runs_once_when_the_pipe_names_executions(bench: Bench) -> None:
    bench.pipe(batch=1, Tags={TAG: "$.body.jobId"})
    bench.send('{"jobId":"j 1"}', '{"jobId":"j2"}', '{"jobId":"j 1"}', '{"other":1}')
    assert len(bench.inputs) == 3
    assert bench.waiting == []
    outcomes = [(h["MessageId"], h["Outcome"]) for h in bench.handovers()]
    assert outcomes == [
        ("m00001", "DELIVERED"),
        ("m00002", "DELIVERED"),
        ("m00003", "DUPLICATE"),
        ("m00004", "DELIVERED"),
    ]
    first, second = bench.handovers(MessageId="m00001")[0], bench.handovers(MessageId="m00003")[0]
    assert first["ExecutionArn"] == second["ExecutionArn"]
    assert bench.handovers(MessageId="m00002")[0]["ExecutionArn"].endswith(":j2")
    assert bench.handovers(MessageId="m00004")[0]["ExecutionArn"].endswith(":m00004")


def test_naming_by_message_id_can_be_tagged_on_and_off(bench: Bench) -> None:
    arn = bench.pipe(batch=1)["Arn"]
    bench.call("TagResource", {"resourceArn": arn, "tags": {TAG: "message-id"}})
    bench.send("a")
    assert bench.handovers()[0]["ExecutionArn"].endswith(":m00001")
    bench.call("UntagResource", {"resourceArn": arn, "tagKeys": [TAG, "absent"]})
    bench.send("b")
    assert not bench.handovers()[1]["ExecutionArn"].endswith(":m00002")
    assert documents.dumps(bench.call("ListTagsForResource", {"resourceArn": arn})) == '{"tags":{}}'
