"""Deliveries that are waited for: REQUEST_RESPONSE to an Express machine (pipes.md sections 4 and 8).

Between the unit that hands a batch over and the one that hears of its end, the messages are *in flight* in their queue, as
they are for any consumer that works on them, and the call is a row that knows their receipts. So after a crash the end
arrives all the same; and an execution that takes longer than the queue's visibility timeout has its messages delivered
again, as on AWS.

::

    _deliver ─► a row in pipe_calls ─► the execution ends ─► finished ─► delete what succeeded, leave the rest, record
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from tasuki.services.pipes import queries
from tasuki.services.pipes.model import Flow, as_reason
from tasuki.services.pipes.records import Passenger
from tasuki.services.switchboard import Ending, Handover, Switchboard
from tasuki.store.store import Tx
from tasuki.values.arns import parse_arn
from tasuki.values.documents import dumps, loads
from tasuki.values.errors import DomainError
from tasuki.values.instant import MINUTE, SECOND, to_iso

CALLS_AT_ONCE = 100
"""Open calls of a pipe above which it takes nothing more."""
FIRST_BACKOFF_MS, LONGEST_BACKOFF_MS = SECOND, 5 * MINUTE
ROOM = "pipes"


class _Called(NamedTuple):
    """A message in a call, as the row holds it."""

    id: str
    receipt: str
    trace: str


def watcher_of(call: str) -> str:
    """Answer what the machine hands back at the end of a call."""
    return f"{ROOM}:{call}"


def note_call(tx: Tx, flow: Flow, call: str, execution: str, part: Sequence[Passenger]) -> None:
    """Remember what was handed over to an execution that is waited for."""
    called = [(one.message.id, one.receipt, one.message.trace) for one in part]
    tx.run(queries.ADD_CALL, (call, flow.pipe, flow.arn, flow.source, flow.target, execution, dumps(called)))


def is_busy(tx: Tx, flow: Flow) -> bool:
    """Tell whether a pipe has as many open calls as it may have."""
    row = tx.one(queries.CALLS, (flow.pipe,))
    return row is not None and row[0] >= CALLS_AT_ONCE


class CallWatcher:
    """Hears of the ends of executions that pipes wait for."""

    def __init__(self, switchboard: Switchboard) -> None:
        self._switchboard = switchboard

    def finished(self, tx: Tx, key: str, ending: Ending) -> None:
        """Delete the messages that were worked off, leave the others as received, and say so."""
        row = tx.one(queries.CALL, (key,))
        if row is None:
            return
        pipe, via, source, target, execution, text = row
        flow = tx.one(queries.FAILURES, (pipe,))
        tx.run(queries.DROP_CALL, (key,))
        called = [_Called(*one) for one in loads(text)]
        failed, problem = _failed(ending, {one.id for one in called})
        done = [one.receipt for one in called if one.id not in failed]
        if done:
            arn = parse_arn(source)
            assert arn is not None, "a source was an ARN when its pipe was made"
            with suppress(DomainError):  # the queue is gone, and the messages with it
                self._switchboard.sources[arn.service].delete(tx, source, done)
        outcome = f"FAILED: {problem}"
        self._switchboard.record_all(
            tx,
            [
                Handover(
                    source, one.id, via, target, execution, one.trace, outcome if one.id in failed else "DELIVERED"
                )
                for one in called
            ],
        )
        if flow is not None:
            before: int = flow[0]
            _settle(tx, pipe, 0 if done else before + 1, (len(done), len(failed)), problem)
        tx.ring(ROOM)


def _settle(tx: Tx, pipe: int, failures: int, counts: tuple[int, int], problem: str) -> None:
    """Count (delivered, failed); a call of which nothing succeeded makes the pipe wait, twice as long each time."""
    delivered, failed = counts
    reason, retry_at = "", 0
    if failed:
        reason = as_reason(f"Failed lately at {to_iso(tx.now)}: {problem}")
    if failures:
        retry_at = tx.now + min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS << min(failures - 1, 20))
    tx.run(queries.SETTLE_CALL, (retry_at, retry_at, failures, reason, delivered, failed, pipe))


def _failed(ending: Ending, ids: set[str]) -> tuple[set[str], str]:
    """Answer the messages that were not worked off, and why."""
    if not ending.succeeded:
        said = [str(ending.output[name]) for name in ("Status", "Error", "Cause") if ending.output.get(name)]
        return ids, f"the execution ended with {': '.join(said)}"
    answer = loads(ending.output["Output"])
    items = answer.get("batchItemFailures") if isinstance(answer, dict) else None
    if not items:
        return set(), ""
    named = (
        [one.get("itemIdentifier") if isinstance(one, dict) else None for one in items]
        if isinstance(items, list)
        else []
    )
    known = {one for one in named if isinstance(one, str)} & ids
    if len(known) < len(named) or not named:
        return ids, "batchItemFailures names what was not in the batch"
    return known, "the execution named the message in batchItemFailures"
