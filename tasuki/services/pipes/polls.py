"""The pipes' rounds: one unit takes messages from a queue and hands them on.

Theory of operation. Receive, filter, transform, deliver, delete and record are ONE unit: either all of it is there
after a crash or none, so a message is handed over exactly once, and between units a pipe holds no message: stopping,
changing or deleting it, or the node's end, need no drain and no recovery::

    look ─► whose turn is it, and is there something (or is a window over)?
    run  ─► receive (counts as a receive) ─► batches ─► filter ─► template ─► deliver ─► delete, record

A machine is given arrays of events, everybody else one event at a time, each of which may fail by itself. What an enrichment or
a target is waited for settles its batch when it has ended: calls.py. Until then the messages stay hidden.

One round serves one pipe, the one that was served longest ago among those with work, with about `RECORDS` messages. It
holds the flow's row first, and then what it takes: so a pipe has one round at a time, and several nodes serve several pipes.

When the target refuses a delivery, the messages of it are *left as received*: their receive count stands, they
are invisible for the queue's visibility timeout as for any consumer that failed, and after maxReceiveCount the queue
itself moves them to its dead-letter queue. Nothing is lost, nothing spins: a round without any delivery makes the pipe
wait before its next one, twice as long each time up to `LONGEST_BACKOFF_MS`, and then try a single batch. DescribePipe
shows the last failure as StateReason until the next delivery. So are the messages of a batch at which two rounds *broke* (a fault
of ours, which undoes a round): else they would come first again and again, and nothing behind them would ever move.

When the source, the enrichment or the target is *gone*, the pipe stops before it receives, with a StateReason, as AWS's do.

An execution's input is at most 262,144 bytes: a batch whose array would be larger is closed earlier and goes on in a
second execution. (AWS fails such a batch again and again until it is in the dead-letter queue.) Only a single record that
is too large by itself fails.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from tasuki.services.pipes import queries
from tasuki.services.pipes.calls import HOLD_MS as CALL_MS
from tasuki.services.pipes.calls import Called, Start, begin_call, is_busy, watcher_of
from tasuki.services.pipes.flows import Flow, Flows
from tasuki.services.pipes.handing import Wish, arrays, as_text, encoded, hand_over, hand_over_all
from tasuki.services.pipes.model import Pipe, as_reason
from tasuki.services.pipes.records import Passenger
from tasuki.services.pipes.surroundings import missing
from tasuki.services.room import Poll
from tasuki.services.switchboard import Handover, Source, Switchboard
from tasuki.store.store import Tx
from tasuki.values.arns import parse_arn
from tasuki.values.errors import DomainError, MalformedDocument, StoreError
from tasuki.values.instant import MINUTE, SECOND, Instant, to_iso

log = logging.getLogger("tasuki.pipes")

RECORDS = 50
"""Messages per round, unless one batch is larger."""
MAX_BATCH_BYTES = 6 * 1024 * 1024
"""A batch closes at this payload (user guide, "Amazon EventBridge Pipes batching and concurrency")."""
FIRST_BACKOFF_MS, LONGEST_BACKOFF_MS = SECOND, 5 * MINUTE
BARREN_PAUSE_MS = SECOND
"""The pause after a round in which the queue gave nothing of so much that it must be clearing away dead ones."""
MANY = 1_000
"""What is in other consumers' hands just now is less: they hold a message for no longer than it takes to receive it."""
MOST_SIGHTS = 100
"""Sources that are looked at together."""
HOLD_MS = 10 * SECOND
"""How long a pipe is left alone whose round broke."""
WIDTH = 4
"""Rounds that may share a commit, or run beside each other, where there are as many pipes with work."""
BROKEN = "Tasuki broke down at this batch; the node's log says why"
OTHERS_MS = 50
"""When to look again at a pipe that another node serves: its round ends soon, and perhaps undone."""
NOTED, AT = "pipes", "pipes at"
"""Where a unit notes the turn that it serves, and the messages that it is at."""
GONE = frozenset({"StateMachineDoesNotExist", "StateMachineDeleting"})
"""Refusals after which there is nothing to try again."""
HELD = 2_000
"""Broken pipes, and messages at which they broke, that are remembered at most."""


Sights: TypeAlias = Mapping[str, Instant | None]
"""When the sources that exist have a message to give, by ARN."""


class Turn(NamedTuple):
    """A running flow as `queries.TURNS` answers it."""

    pipe: int
    revision: str
    source: str
    batch_size: int
    window_ms: int
    window_from: Instant | None
    retry_at: Instant
    failures: int
    reason: str
    served: int
    """Changes with every round."""


@dataclass(slots=True)
class Round:
    """What became of one round's messages."""

    receipts: list[str] = field(default_factory=list)
    """What is deleted at the end: handed over or filtered out."""
    left: list[str] = field(default_factory=list)
    """What is left as received."""
    delivered: int = 0
    duplicates: int = 0
    filtered: int = 0
    failed: int = 0
    handovers: list[Handover] = field(default_factory=list)
    started: set[str] = field(default_factory=set)
    """The executions of this round that have names."""
    barren_ms: int = 0
    """How long to pause since the queue showed messages and gave none."""
    problem: str = ""
    gone: tuple[str, str] | None = None
    """Who takes nothing any more, and why."""


class Pump:
    """All pipes' rounds."""

    def __init__(self, switchboard: Switchboard, flows: Flows) -> None:
        self._switchboard = switchboard
        self._flows = flows
        self._held: dict[str, Instant] = {}
        """Pipes whose round broke (a fault of ours, undone whole): the others' turn comes before theirs again."""
        self._broken: dict[str, Instant] = {}
        """Messages at which a round broke, and until when, after another one did, they are not tried but left as received."""

    def poll(self) -> Poll:
        """Answer the room's poll."""
        return Poll("pipes", ("queues", "pipes"), self.look, self.run, WIDTH, self.failed)

    def look(self, tx: Tx) -> Instant | None:
        """Answer when there is work; reads only."""
        nearest: Instant | None = None
        for turn, sights in self._turns(tx):
            due, _ = self._due(tx, turn, sights)
            if due is not None and (nearest is None or due < nearest):
                nearest = due
                if due <= tx.now:
                    break
        return nearest

    def run(self, tx: Tx) -> Instant | None:
        """Serve the pipe whose turn it is and that no other node serves; answer when there is work next."""
        nearest: Instant | None = None
        for seen, sights in self._turns(tx):
            due, count = self._due(tx, seen, sights)
            if due is not None and due <= tx.now:
                taken = tx.one(queries.TAKE_TURN, (seen.pipe,))
                turn = Turn(*taken) if taken is not None else None
                if turn is not None and turn != seen:  # another node served it since
                    due, count = self._due(tx, turn, self._sights(tx, (turn,)))
                if turn is None:
                    due = tx.now + OTHERS_MS
                elif due is not None and due <= tx.now:
                    tx.notes[NOTED] = turn
                    self._serve(tx, turn, count)
                    return tx.now
            if due is not None and (nearest is None or due < nearest):
                nearest = due
        return nearest

    def failed(self, notes: Mapping[str, Any], now: Instant, why: Exception) -> bool:
        """Leave a pipe alone for a while whose round broke: the others' turn comes first. Not when the store can't be had."""
        turn: Turn | None = notes.get(NOTED)
        if turn is None or isinstance(why, StoreError):
            return False
        for remembered in (self._held, self._broken):
            if len(remembered) >= HELD:
                remembered.clear()
        self._held[turn.revision] = now + HOLD_MS
        self._broken |= {one: now + 2 * HOLD_MS if one in self._broken else 0 for one in notes.get(AT, ())}
        log.error("the round of pipe %s broke; tried again in %s s", turn.pipe, HOLD_MS // SECOND, exc_info=why)
        return True

    # -- whose turn it is -----------------------------------------------------------------------------------

    def _source(self, arn: str) -> Source:
        parsed = parse_arn(arn)
        assert parsed is not None, "a source was an ARN when its pipe was made"
        return self._switchboard.sources[parsed.service]

    def _turns(self, tx: Tx) -> Iterator[tuple[Turn, Sights]]:
        """Answer the running flows, who was served longest ago first, and what their sources show.

        Sources are looked at some at a time, more each time: the first pipe often has work, and a thousand may be idle.
        """
        turns = [Turn(*row) for row in tx.all(queries.TURNS)]
        at, width = 0, 1
        while at < len(turns):
            some = turns[at : at + width]
            sights = self._sights(tx, some)
            for turn in some:
                yield turn, sights
            at, width = at + width, min(width * 10, MOST_SIGHTS)

    def _sights(self, tx: Tx, turns: Sequence[Turn]) -> Sights:
        """Answer when the sources of these flows, but of those that pause, have a message; those that are gone are left out."""
        arns: dict[Source, dict[str, None]] = {}
        for turn in turns:
            if self._retry_at(turn) <= tx.now:
                arns.setdefault(self._source(turn.source), {})[turn.source] = None
        sights: dict[str, Instant | None] = {}
        for source, wanted in arns.items():
            sights.update(source.nearest(tx, list(wanted)))
        return sights

    def _retry_at(self, turn: Turn) -> Instant:
        return max(turn.retry_at, self._held.get(turn.revision, 0))

    def _due(self, tx: Tx, turn: Turn, sights: Sights) -> tuple[Instant | None, int]:
        """Answer (when this pipe has something to do, how many messages could be received now).

        A source counts some thousands at most, so a larger batch is never seen full and goes when its window ends.
        """
        retry_at = self._retry_at(turn)
        if retry_at > tx.now:
            return retry_at, 0
        is_gone = turn.source not in sights
        next_at = sights.get(turn.source)
        count = self._source(turn.source).count(tx, turn.source) if next_at is not None and next_at <= tx.now else 0
        if count == 0:
            return (tx.now if is_gone or turn.window_from is not None else next_at), 0
        flow = self._flow(tx, turn)
        if flow is None:
            return None, 0
        if flow.waits and is_busy(tx, flow):
            return None, 0
        if turn.window_ms == 0 or count >= turn.batch_size or turn.window_from is None:
            return tx.now, count
        return turn.window_from + turn.window_ms, count

    # -- a round --------------------------------------------------------------------------------------------

    def _serve(self, tx: Tx, turn: Turn, count: int) -> None:
        flow = self._flow(tx, turn)
        assert flow is not None, "who is held has a pipe"
        problem = missing(tx, self._switchboard, flow)
        if problem is not None:
            self._stop(tx, turn, problem)
            return
        if count == 0:
            tx.run(queries.OPEN_WINDOW, (None, turn.pipe))
            return
        if turn.window_ms and turn.window_from is None and count < turn.batch_size:
            tx.run(queries.OPEN_WINDOW, (tx.now, turn.pipe))
            return
        done = Round()
        source = self._source(turn.source)
        try:
            limit = self._limit(turn, flow, count)
            messages = source.receive(tx, flow.source, limit, MAX_BATCH_BYTES, CALL_MS if flow.waits else 0)
        except DomainError as bad:
            done.problem = f"{bad.code}: {bad.message}"
            self._settle(tx, turn, done)
            return
        passengers = [Passenger(message) for message in messages]
        for start in range(0, len(passengers), flow.batch_size):
            self._pass_on(tx, flow, passengers[start : start + flow.batch_size], done)
        if done.receipts:
            source.delete(tx, flow.source, done.receipts)
        if done.left and flow.waits:
            source.leave(tx, flow.source, done.left, tx.now)
        self._switchboard.record_all(tx, done.handovers)
        if not messages and (left := source.count(tx, flow.source)) >= count:
            done.barren_ms = BARREN_PAUSE_MS if left >= MANY else OTHERS_MS
        self._settle(tx, turn, done)
        if done.gone:
            self._stop(tx, turn, done.gone)

    def _flow(self, tx: Tx, turn: Turn) -> Flow | None:
        """Answer the compiled pipe; None when it was deleted since the turn was seen (a look is no snapshot everywhere)."""

        def find() -> Pipe | None:
            row = tx.one(queries.BY_ID, (turn.pipe,))
            return Pipe.of_row(row) if row is not None else None

        return self._flows.get(turn.revision, find)

    def _limit(self, turn: Turn, flow: Flow, count: int) -> int:
        """Answer how many messages to take: whole batches, one after a failure or from an ordered queue."""
        if turn.failures or flow.source.endswith(".fifo"):
            return flow.batch_size
        batches = max(1, RECORDS // flow.batch_size)
        if turn.window_ms:
            batches = max(1, min(batches, count // flow.batch_size))
        return batches * flow.batch_size

    def _stop(self, tx: Tx, turn: Turn, problem: tuple[str, str]) -> None:
        tx.run(queries.SET_CURRENT, ("STOPPED", turn.pipe))
        reason = as_reason(f"{problem[0]}: {problem[1]}")
        tx.run(queries.RUN_FLOW, (0, reason, turn.pipe))
        row = tx.one(queries.BY_ID, (turn.pipe,))
        assert row is not None, "a flow has a pipe"
        log.warning(
            "pipe %s stopped: %s; once that is mended, start it again: StartPipe", Pipe.of_row(row).name, reason
        )

    def _settle(self, tx: Tx, turn: Turn, done: Round) -> None:
        failures, retry_at, reason = 0, 0, ""
        if done.problem:
            moved = done.delivered or done.duplicates
            failures = 0 if moved else turn.failures + 1
            times = f"{failures} times in a row, " if failures > 1 else ""
            reason = as_reason(f"Failed {times}lately at {to_iso(tx.now)}: {done.problem}")
            if failures:
                retry_at = tx.now + min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS << min(failures - 1, 20))
        elif not done.delivered and not done.duplicates:
            failures, reason = turn.failures, turn.reason  # nothing was tried: the last failure stands
            retry_at = tx.now + done.barren_ms if done.barren_ms else 0
        tx.run(
            queries.SETTLE,
            (retry_at, failures, reason, done.delivered, done.duplicates, done.filtered, done.failed, turn.pipe),
        )

    # -- a batch --------------------------------------------------------------------------------------------

    def _pass_on(self, tx: Tx, flow: Flow, batch: list[Passenger], done: Round) -> None:
        """Filter a batch, reshape it, and hand over what is left."""
        if broken := [one for one in batch if self._broken.get(one.message.id, 0) > tx.now]:
            self._fail(flow, broken, BROKEN, done)
            batch = [one for one in batch if self._broken.get(one.message.id, 0) <= tx.now]
        tx.notes[AT] = [one.message.id for one in batch]
        stage = flow.first
        target = self._switchboard.targets[stage.service]
        kept: list[Passenger] = []
        texts: list[bytes] = []
        ingested = to_iso(tx.now) if stage.render is not None else ""
        for passenger in batch:
            try:
                if flow.passes is None or flow.passes(passenger.event):
                    texts.append(encoded(stage, passenger, ingested))
                    kept.append(passenger)
                    continue
            except (MalformedDocument, RecursionError) as bad:
                self._fail(flow, [passenger], f"the message can't be passed on as JSON: {bad}", done)
                continue
            done.filtered += 1
            done.receipts.append(passenger.receipt)
            _note(flow, passenger, "", "FILTERED", done)
        if target.takes_arrays:
            for part, payload in arrays(kept, texts):
                self._deliver(tx, flow, part, payload, done)
            return
        payloads = [as_text(text) if target.takes_text else text.decode() for text in texts]
        if len(kept) > 1 and not stage.waits:
            wishes = [_wish(flow, one, payload) for one, payload in zip(kept, payloads, strict=True)]
            given = hand_over_all(tx, self._switchboard, flow, stage, wishes)
            if given is not None:
                for passenger, one in zip(kept, given, strict=True):
                    _done_with(flow, [passenger], one, "DELIVERED", done)
                return
        for passenger, payload in zip(kept, payloads, strict=True):
            self._deliver(tx, flow, [passenger], payload, done)

    def _fail(self, flow: Flow, part: Sequence[Passenger], problem: str, done: Round) -> None:
        """Leave messages as received: they come back, or go to the queue's dead-letter queue."""
        done.problem = problem
        done.failed += len(part)
        for passenger in part:
            done.left.append(passenger.receipt)
            _note(flow, passenger, "", f"FAILED: {problem}", done)

    def _deliver(self, tx: Tx, flow: Flow, part: Sequence[Passenger], payload: str, done: Round) -> None:
        first, stage = part[0], flow.first
        name = flow.name(first) if flow.name is not None else None
        call = tx.chance.uuid() if stage.waits else ""
        wish = _wish(flow, first, payload, name, watcher_of(call) if call else None)
        try:
            given = hand_over(tx, self._switchboard, flow, stage, wish)
        except DomainError as bad:
            self._fail(flow, part, f"{bad.code}: {bad.message}", done)
            if bad.code in GONE:
                done.gone = stage.field, done.problem
            return
        if call:
            called = [Called(one.message.id, one.receipt, one.message.trace) for one in part]
            begin_call(tx, flow, stage, Start(flow.pipe, call, given, called, name, tx.now))
            return
        outcome = "DELIVERED"
        if name is not None:
            if given in done.started or self._switchboard.handed_over(tx, given):
                outcome = "DUPLICATE"
            done.started.add(given)
        _done_with(flow, part, given, outcome, done)


def _wish(flow: Flow, first: Passenger, payload: str, name: str | None = None, watcher: str | None = None) -> Wish:
    """Ask for a delivery to the first stage. The name is for the target."""
    is_last = flow.enrichment is None
    return Wish(
        seen=first,
        payload=payload,
        idempotency=f"{flow.arn}#{first.receipt}" if is_last else f"{flow.arn}#{first.receipt}#enrichment",
        trace=first.message.trace,
        name=name if is_last else None,
        watcher=watcher,
    )


def _done_with(flow: Flow, part: Sequence[Passenger], given: str, outcome: str, done: Round) -> None:
    if outcome == "DUPLICATE":
        done.duplicates += len(part)
    else:
        done.delivered += len(part)
    for passenger in part:
        done.receipts.append(passenger.receipt)
        _note(flow, passenger, given, outcome, done)


def _note(flow: Flow, passenger: Passenger, given: str, outcome: str, done: Round) -> None:
    message = passenger.message
    done.handovers.append(Handover(flow.source, message.id, flow.arn, flow.first.arn, given, message.trace, outcome))
