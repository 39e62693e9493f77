"""Batches that are on their way longer than one unit (pipes.md sections 4, 5 and 8).

A call is waited for: an Express machine or an API destination, as the target or as the enrichment before it. Between the unit
that hands a batch over and the one that hears of its end, the messages are *in flight* in their queue, hidden for as long as
a pass may take, and the call is a row that knows their receipts. So after a crash the end arrives all the same::

    a round ─► row 'Enrichment' ─► it ends: `finished` keeps the answer ─► timer: the target ┬► delete, record
       │                                                                                     └► row 'Target' ┐
       └─────► row 'Target' ─► it ends: `finished` ─► delete what succeeded, leave the rest, record ◄────────┘

What an enrichment answers is handed on in a unit of its own, together with the deletion of the messages: exactly once. It is all
or nothing, since nobody can tell which event came of which message; so is a failure.

One pass takes up to five minutes (pipes.md section 2): then the timer of its call gives it up, and its messages are left as
they were received. A call ends as it began, by the definition that it carries, whatever becomes of its pipe meanwhile.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from tasuki.services.holding import held
from tasuki.services.pipes import queries
from tasuki.services.pipes.answers import answer_text, enriched_events, failed_items, failure
from tasuki.services.pipes.errors import BadAnswer
from tasuki.services.pipes.flows import Flow, Flows, Stage
from tasuki.services.pipes.handing import Wish, array, as_text, encoded, hand_over
from tasuki.services.pipes.model import Pipe, as_reason
from tasuki.services.pipes.records import Enriched
from tasuki.services.switchboard import Ending, Handover, Source, Switchboard
from tasuki.store.store import Tx
from tasuki.store.timers import clear_timer, set_timer
from tasuki.values.arns import parse_arn
from tasuki.values.documents import dumps, loads
from tasuki.values.errors import DomainError, MalformedDocument
from tasuki.values.instant import MINUTE, SECOND, Instant, to_iso

CALLS_AT_ONCE = 100
"""Open calls of a pipe above which it takes nothing more."""
FIRST_BACKOFF_MS, LONGEST_BACKOFF_MS = SECOND, 5 * MINUTE
PASS_MS = 5 * MINUTE
"""How long a batch may be on its way, enrichment and target together."""
HOLD_MS = PASS_MS + 10 * SECOND
"""How long its messages are hidden at least: a little longer, so that the end comes first."""
ROOM = "pipes"


class Called(NamedTuple):
    """A message in a call, as the row holds it."""

    id: str
    receipt: str
    trace: str


class Start(NamedTuple):
    """What is new of a call that begins."""

    pipe: int
    key: str
    execution: str
    """What the batch became there."""
    called: Sequence[Called]
    name: str | None
    """Of the execution that the target is to start."""
    began: Instant
    """When the messages were received."""


@dataclass(frozen=True, slots=True)
class Call:
    """A row of `pipe_calls`."""

    pipe: int
    via: str
    source: str
    target: str
    execution: str
    called: list[Called]
    stage: str
    began: Instant
    name: str | None
    revision: str
    definition: str
    answer: str | None = None

    @classmethod
    def find(cls, tx: Tx, key: str) -> "Call | None":
        """Read a call; None when it is over."""
        row = tx.one(queries.CALL, (key,))
        if row is None:
            return None
        columns: list[Any] = list(row)
        columns[5] = [Called(*one) for one in loads(columns[5])]
        return cls(*columns)


@dataclass(slots=True)
class Outcome:
    """What became of a call's messages."""

    failed: set[str]
    """Their ids; the others are done with."""
    problem: str = ""
    execution: str = ""
    """What they became, and where: the call's own, unless the batch went on."""
    target: str = ""
    said: str = "DELIVERED"
    """Of those that are done with: also `DUPLICATE`, `FILTERED`."""


def watcher_of(call: str) -> str:
    """Answer what the machine hands back at the end of a call."""
    return f"{ROOM}:{call}"


def begin_call(tx: Tx, flow: Flow, stage: Stage, start: Start) -> None:
    """Remember what was handed over, and for how long it is waited for."""
    is_asked = stage.field == "Enrichment"
    tx.run(
        queries.ADD_CALL,
        (
            start.key,
            start.pipe,
            flow.arn,
            flow.source,
            stage.arn,
            start.execution,
            dumps(start.called),
            stage.field,
            start.began,
            start.name,
            flow.revision if is_asked else "",
            flow.definition if is_asked else "",
        ),
    )
    set_timer(tx, ROOM, start.key, start.began + PASS_MS)


def is_busy(tx: Tx, flow: Flow) -> bool:
    """Tell whether a pipe has as many open calls as it may have."""
    row = tx.one(queries.CALLS, (flow.pipe,))
    return row is not None and row[0] >= CALLS_AT_ONCE


def hold_call(tx: Tx, key: str) -> None:
    """Take a call's pipe in hand, and then the call, before its timer is claimed."""
    tx.lock(queries.HOLD_CALLER, (key,))
    tx.lock(queries.HOLD_CALL, (key,))


class CallWatcher:
    """Hears of the ends of what pipes wait for, and takes batches on to their targets."""

    def __init__(self, switchboard: Switchboard, flows: Flows) -> None:
        self._switchboard = switchboard
        self._flows = flows

    def finished(self, tx: Tx, key: str, ending: Ending) -> None:
        """Settle a batch whose target has ended; keep an enrichment's answer for the next unit. Nothing, if nobody waits."""
        call = Call.find(tx, key)
        if call is None:
            return
        everything = {one.id for one in call.called}
        failed, problem = everything, failure(ending)
        if not problem:
            try:
                answer = answer_text(ending)
                if call.stage == "Enrichment":
                    if tx.run(queries.KEEP_ANSWER, (answer, key)):
                        set_timer(tx, ROOM, key, tx.now)
                    return
                failed, problem = failed_items(answer, everything)
            except BadAnswer as bad:
                problem = bad.message
        self._close(tx, key, call, Outcome(failed, problem))

    def on_timer(self, tx: Tx, key: str) -> None:
        """Take an enriched batch to its target; give up one that took too long."""
        call = Call.find(tx, key)
        if call is None:
            return
        everything = {one.id for one in call.called}
        if call.answer is None or tx.now > call.began + PASS_MS:  # its messages may be in other hands by now
            minutes = PASS_MS // MINUTE
            problem = f"{call.stage} {call.target} was not done within the {minutes} minutes that a batch may take"
            self._switchboard.withdraw(tx, call.execution)  # else it takes the turn of the next try
            self._close(tx, key, call, Outcome(everything, problem))
            return
        answer = call.answer
        try:
            went_on, outcome = held(tx, lambda: self._go_on(tx, call, answer))
        except DomainError as bad:
            went_on, outcome = False, Outcome(everything, f"{bad.code}: {bad.message}")
        if went_on:
            tx.run(queries.DROP_CALL, (key,))
        else:
            self._close(tx, key, call, outcome)

    # -- an enriched batch ----------------------------------------------------------------------------------

    def _go_on(self, tx: Tx, call: Call, answer: str) -> tuple[bool, Outcome]:
        """Give the target what the enrichment made; answer (whether it is waited for now, what became of the messages)."""
        events = [Enriched(value) for value in enriched_events(answer)]
        if not events:
            return False, Outcome(set(), said="FILTERED")
        flow = self._flows.get(call.revision, lambda: Pipe.unpacked(call.definition))
        assert flow is not None, "a call carries its pipe"
        stage = flow.target
        if stage.kind.most is not None and len(events) > stage.kind.most:
            raise BadAnswer(
                f"the enrichment answered {len(events)} events, and {stage.kind.name} takes {stage.kind.most} at a time"
            )
        key = tx.chance.uuid() if stage.waits else ""
        execution, is_first = "", True
        for at, (seen, payload) in enumerate(self._payloads(tx, stage, events)):
            wish = Wish(
                seen=seen,
                payload=payload,
                idempotency=f"{flow.arn}#{call.called[0].receipt}#{at}",
                trace=call.called[0].trace,
                name=call.name,
                watcher=watcher_of(key) if key else None,
            )
            execution = hand_over(tx, self._switchboard, flow, stage, wish)
            is_first = call.name is None or not self._switchboard.handed_over(tx, execution)
        if key:
            begin_call(tx, flow, stage, Start(call.pipe, key, execution, call.called, call.name, call.began))
            return True, Outcome(set())
        said = "DELIVERED" if is_first else "DUPLICATE"
        return False, Outcome(set(), execution=execution, target=stage.arn, said=said)

    def _payloads(self, tx: Tx, stage: Stage, events: Sequence[Enriched]) -> Iterator[tuple[Enriched, str]]:
        target = self._switchboard.targets[stage.service]
        try:
            texts = [encoded(stage, seen, to_iso(tx.now)) for seen in events]
        except (MalformedDocument, RecursionError) as bad:
            raise BadAnswer(f"the enrichment's answer can't be passed on as JSON: {bad}") from None
        if target.takes_arrays:
            yield events[0], array(texts)
            return
        for seen, text in zip(events, texts, strict=True):
            yield seen, as_text(text) if target.takes_text else text.decode()

    # -- the end --------------------------------------------------------------------------------------------

    def _close(self, tx: Tx, key: str, call: Call, outcome: Outcome) -> None:
        """Delete the messages that are done with, leave the others as received, and say so."""
        flow = tx.one(queries.FAILURES, (call.pipe,))
        if not tx.run(queries.DROP_CALL, (key,)):
            return  # another unit was first
        clear_timer(tx, ROOM, key)
        done = [one.receipt for one in call.called if one.id not in outcome.failed]
        left = [one.receipt for one in call.called if one.id in outcome.failed]
        with suppress(DomainError):  # the queue is gone, and the messages with it
            source = self._source(call)
            if done:
                source.delete(tx, call.source, done)
            if left and call.began:
                source.leave(tx, call.source, left, call.began)
        target, execution = outcome.target or call.target, outcome.execution or call.execution
        self._switchboard.record_all(
            tx,
            [
                Handover(
                    call.source,
                    one.id,
                    call.via,
                    target,
                    execution,
                    one.trace,
                    f"FAILED: {outcome.problem}" if one.id in outcome.failed else outcome.said,
                )
                for one in call.called
            ],
        )
        if flow is not None:
            before: int = flow[0]
            _settle(tx, call.pipe, before, outcome, (len(done), len(left)))
        tx.ring(ROOM)

    def _source(self, call: Call) -> Source:
        arn = parse_arn(call.source)
        assert arn is not None, "a source was an ARN when its pipe was made"
        return self._switchboard.sources[arn.service]


def _settle(tx: Tx, pipe: int, failures: int, outcome: Outcome, counts: tuple[int, int]) -> None:
    """Count messages (done, left); a call of which nothing succeeded makes the pipe wait, twice as long each time."""
    done, left = counts
    failures = 0 if done else failures + 1
    reason, retry_at = "", 0
    if left:
        reason = as_reason(f"Failed lately at {to_iso(tx.now)}: {outcome.problem}")
    if failures:
        retry_at = tx.now + min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS << min(failures - 1, 20))
    delivered, duplicates, filtered = (
        done if outcome.said == said else 0 for said in ("DELIVERED", "DUPLICATE", "FILTERED")
    )
    tx.run(
        queries.SETTLE_CALL,
        (retry_at, retry_at, failures, reason, delivered, duplicates, filtered, left, pipe),
    )
