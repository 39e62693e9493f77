"""Every recorded SQS call on standard queues, played against the room. FIFO traces come with FIFO queues."""

from typing import Any

import pytest

from tests.services.queues.recorded import FOLDER, is_fifo, play, read, read_traces

TRACES = {trace["id"]: trace for trace in read_traces()}
FACTS = read("facts.jsonl")
ABSENT = pytest.mark.skipif(not FOLDER.exists(), reason=f"the recorded answers are not here: {FOLDER}")

# Where we knowingly answer otherwise than the recording, and why.
MISSES = {
    "test_aws_trace_header_propagation": "the test sent a trace header that the recording does not hold",
    "test_dead_letter_queue_message_attributes": "the recording dropped SenderId",
    "test_move_task_cancel#25": "AWS's cancel came seconds late; ours stops at once",
    "test_move_task_delete_destination_queue_while_running#20": "AWS noticed seconds late that the queue was gone",
    "test_message_system_attribute_names_with_attribute_names[sqs_query]#3": "the query protocol's door drops the newer member",
}
RETENTION = "asks for a retention of 2 s, which AWS refuses: the test was validated on AWS in another form"
NOT_OURS = {"test_message_retention": RETENTION, "test_message_retention_with_inflight": RETENTION}


def _short(record_id: str) -> str:
    return record_id.removeprefix("sqs/").partition("/")[2]


def _miss(name: str) -> str | None:
    return next((why for known, why in MISSES.items() if name.startswith(known) or known.startswith(name + "#")), None)


def _fact_place(fact: dict[str, Any]) -> tuple[str, int, str | None]:
    trace_id, _, place = fact["id"].partition("#")
    n, _, key = place.partition(":")
    return trace_id, int(n), key or None


def _marked(name: str, *values: Any, fifo: bool) -> Any:
    marks = [ABSENT]
    if fifo:
        marks.append(pytest.mark.skip(reason="FIFO queues come with a later release"))
    elif name in NOT_OURS:
        marks.append(pytest.mark.skip(reason=NOT_OURS[name]))
    elif (why := _miss(name)) is not None:
        marks.append(pytest.mark.xfail(reason=why, strict=True))
    return pytest.param(*values, id=name, marks=marks)


def trace_difference(trace_id: str) -> str | None:
    """Answer where our answers first differ: from AWS's, or (accepted or refused) from a test that passes on AWS."""
    trace, played = TRACES[trace_id], play(trace_id)
    for verdict in played.verdicts:
        if verdict.why is not None:
            return f"step {verdict.n}, {verdict.key}: {verdict.why}"
    if trace["source"].get("localstack") != "passed":
        return None
    for step in trace["steps"]:
        observed = step.get("localstack_observed") or {}
        refused = played.refusals.get(step["n"])
        unknown_handle = refused is not None and refused.code == "ReceiptHandleIsInvalid" and len(refused.message) > 100
        if step.get("expect") or unknown_handle or not ("error" in observed or "ok" in observed):
            continue  # a handle of the recording that no reference replaces is not one of ours
        if ("error" in observed) != (refused is not None):
            return f"step {step['n']}, {step['op']}: want {observed}, got {refused!r}"
    return None


def fact_difference(fact: dict[str, Any]) -> str | None:
    """Answer where our answer differs from AWS's one."""
    trace_id, n, key = _fact_place(fact)
    played = play(trace_id)
    verdict = next((v for v in played.verdicts if v.n == n and (key is None or v.key == key)), None)
    if verdict is not None:
        return verdict.why
    refused = played.refusals.get(n)
    code = fact["expected"]["code"]
    if refused is None:
        return f"want {code}, got an answer"
    return None if code == (refused.query_code or refused.code) else f"want {code}, got {refused.query_code}"


@pytest.mark.parametrize(
    "trace_id", [_marked(_short(trace_id), trace_id, fifo=is_fifo(trace)) for trace_id, trace in TRACES.items()]
)
def test_trace(trace_id: str) -> None:
    assert trace_difference(trace_id) is None


@pytest.mark.parametrize(
    "fact", [_marked(_short(fact["id"]), fact, fifo=is_fifo(TRACES[_fact_place(fact)[0]])) for fact in FACTS]
)
def test_fact(fact: dict[str, Any]) -> None:
    assert fact_difference(fact) is None


@ABSENT
def test_how_many_are_met(capsys: pytest.CaptureFixture[str]) -> None:
    traces = [trace_id for trace_id, trace in TRACES.items() if not is_fifo(trace) and _short(trace_id) not in NOT_OURS]
    facts = [fact for fact in FACTS if not is_fifo(TRACES[_fact_place(fact)[0]])]
    good_traces = sum(trace_difference(trace_id) is None for trace_id in traces)
    good_facts = sum(fact_difference(fact) is None for fact in facts)
    with capsys.disabled():
        print(  # noqa: T201 - the count is what the test is for
            f"\nSQS, standard queues: {good_traces} of {len(traces)} traces, {good_facts} of {len(facts)} facts"
        )
    assert good_traces >= len(traces) - 6
    assert good_facts >= len(facts) - 9
