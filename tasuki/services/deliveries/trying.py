"""One delivery: tried, taken, kept for later, given up.

::

    post ─► a try ─► taken ───────────────────────────────► DELIVERED
             │  └──► called: the target tells of the end ─► finished ─► DELIVERED, or as refused
             ▼
          refused ─► sender.is_final, or no more tries ───► DEAD_LETTERED, or DROPPED
             │
             └─► a row and a timer ─► a try ...

A try is undone as a whole when it is refused, so that each delivery is taken once. One that is taken at its first try costs
the savepoint, what the target writes and one handover.

A fault of ours in a first try (no `DomainError`) must not roll back whoever posts, again and again: the delivery is kept, due
at once. Then it fails on its own timer, which is put off alone and logged, until its age gives it up.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from tasuki.services.deliveries import queries
from tasuki.services.deliveries.errors import Fault, NoSuchService
from tasuki.services.deliveries.model import (
    CALLING,
    NAME,
    WAITING,
    Exhausted,
    Kept,
    caller_of,
    is_too_old,
    kept_of,
    pause_ms,
    row_of,
    shortened,
    too_old,
    watcher_of,
    why_over,
)
from tasuki.services.holding import held
from tasuki.services.sdk import call_universal, is_universal
from tasuki.services.switchboard import Delivery, Ending, Handover, Refusal, Switchboard, Target
from tasuki.store.store import Tx
from tasuki.store.timers import set_timer
from tasuki.values.arns import parse_arn
from tasuki.values.errors import DomainError, MalformedDocument
from tasuki.values.instant import Instant

log = logging.getLogger("tasuki.deliveries")

FAULTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MalformedDocument,
    RecursionError,
    TypeError,
    ValueError,
)
"""What a slip of ours raises. The store's own exceptions are none of these: with them the whole unit ends."""
STARTED = frozenset({"states"})
"""Targets whose end a schedule or a rule never waits for, though a pipe may: AWS calls StartExecution, also of Express machines."""
NOT_TRIED = Refusal("", "")


@dataclass(slots=True)
class Try:
    """A try under way. `text` is what is handed over, once the sender has made it. `kept` is the row's id, if there is one."""

    delivery: Delivery
    attempt: int
    id: str
    kept: int | None
    text: str = ""


class Trying:
    """Tries deliveries, in their callers' units."""

    def __init__(self, switchboard: Switchboard) -> None:
        self._switchboard = switchboard

    # -- what others call -----------------------------------------------------------------------------------

    def post(self, tx: Tx, delivery: Delivery) -> None:
        """Try a delivery (`switchboard.post`). Never raises for a refusal, nor for a fault of ours in the try."""
        if is_too_old(delivery, tx.now):
            self._give_up_unasked(tx, Kept(0, delivery, 0, WAITING, None, "", NOT_TRIED))
            return
        try:
            self._try(tx, Try(delivery, 1, tx.chance.hex(16), None), careful=True)
        except Fault:
            log.exception("%s to %s: a fault of ours; tried again on its own", delivery.source, delivery.target)
            self._wait(tx, Try(delivery, 0, "", None), tx.now, NOT_TRIED)

    def fire(self, tx: Tx, key: str) -> None:
        """Try a delivery again: its timer `ID` was taken."""
        row = tx.one(queries.KEPT, (int(key),))
        if row is None:
            return
        kept = kept_of(row)
        if kept.state == CALLING:
            return  # a timer that came twice: the target was asked, and its answer counts
        if is_too_old(kept.delivery, tx.now):
            self._give_up_unasked(tx, kept)
        else:
            self._try(tx, Try(kept.delivery, kept.attempt + 1, tx.chance.hex(16), kept.id))

    def finished(self, tx: Tx, key: str, ending: Ending) -> None:
        """Hear of the end of a try that was waited for (switchboard `Watcher`). `key`: `ID:ATTEMPT`."""
        number, _, attempt = key.partition(":")
        row = tx.one(queries.KEPT, (int(number),))
        if row is None:
            return
        kept = kept_of(row)
        if kept.state != CALLING or kept.attempt != int(attempt):
            return
        tried = Try(kept.delivery, kept.attempt, kept.try_id, kept.id)
        if ending.succeeded:
            self._taken(tx, tried, str(ending.output.get("ExecutionArn") or ending.output.get("Id") or ""))
            return
        tried.text = self._text(tx, tried)
        cause = ending.cause if ending.cause is not None else str(ending.output.get("Cause") or "")
        self._refused(tx, tried, shortened(ending.error, cause), int(ending.output.get("RetryAfterMs") or 0))

    # -- a try ----------------------------------------------------------------------------------------------

    def _try(self, tx: Tx, tried: Try, *, careful: bool = False) -> None:
        """Do one try. `careful`: a fault of ours is undone and raised as a `Fault`."""
        work: Callable[[], str | None] = lambda: self._hand_over(tx, tried)  # noqa: E731
        try:
            target_id = held(tx, (lambda: _mended(work)) if careful else work)
        except Fault:
            raise
        except DomainError as no:
            self._refused(tx, tried, shortened(no.query_code or no.code, no.message))
            return
        if target_id is not None:
            self._taken(tx, tried, target_id)

    def _hand_over(self, tx: Tx, tried: Try) -> str | None:
        """Give it to its target; answer what it became there, or None if the target will tell of the end."""
        delivery = tried.delivery
        tried.text = delivery.payload
        tried.text = self._switchboard.senders[delivery.sender].payload(tx, delivery, tried.attempt, tried.id)
        caller = caller_of(delivery, tried.id)
        if is_universal(delivery.target):
            return call_universal(self._switchboard, tx, delivery.target, tried.text, caller)
        service, target = self._target(delivery.target)
        if service in STARTED or not target.waits(tx, delivery.target):
            return target.deliver(tx, delivery.target, tried.text, None, caller, parameters=delivery.parameters)
        number = self._calling(tx, tried)
        caller = caller_of(delivery, tried.id, watcher_of(number, tried.attempt))
        target.deliver(tx, delivery.target, tried.text, None, caller, parameters=delivery.parameters)
        return None

    def _target(self, arn: str) -> tuple[str, Target]:
        """Answer who takes deliveries to this ARN, by name. Raises `NoSuchService`."""
        parts = parse_arn(arn)
        target = self._switchboard.targets.get(parts.service) if parts is not None else None
        if parts is None or target is None:
            raise NoSuchService(arn, sorted(self._switchboard.targets))
        return parts.service, target

    def _text(self, tx: Tx, tried: Try) -> str:
        """Answer the text of a try once more."""
        try:
            return self._switchboard.senders[tried.delivery.sender].payload(tx, tried.delivery, tried.attempt, tried.id)
        except DomainError:
            return tried.delivery.payload

    # -- what becomes of it -----------------------------------------------------------------------------------

    def _calling(self, tx: Tx, tried: Try) -> int:
        if tried.kept is not None:
            tx.run(queries.CALLING, (tried.attempt, tried.id, tried.kept))
            return tried.kept
        return _add(tx, tried, CALLING, None, NOT_TRIED)

    def _taken(self, tx: Tx, tried: Try, target_id: str) -> None:
        if tried.kept is not None:
            tx.run(queries.DROP, (tried.kept,))
        self._record(tx, tried.delivery, target_id, "DELIVERED")
        self._tell(tx, tried.delivery, Ending(succeeded=True, output={"TargetId": target_id}))

    def _refused(self, tx: Tx, tried: Try, refusal: Refusal, after_ms: int = 0) -> None:
        """Try again later, or give up. `after_ms`: the target asked not to be tried before (the later of the two counts)."""
        delivery = tried.delivery
        said = f"{refusal.code}: {refusal.message}"
        self._record(tx, delivery, "", f"FAILED: {said} (attempt {tried.attempt})")
        if self._switchboard.senders[delivery.sender].is_final(refusal):
            self._give_up(tx, tried, refusal, "")
            return
        next_at = tx.now + max(pause_ms(tried.attempt, tx.chance.fraction()), after_ms)
        exhausted = why_over(delivery, tried.attempt, next_at)
        if exhausted:
            self._give_up(tx, tried, refusal, exhausted)
        else:
            self._wait(tx, tried, next_at, refusal)

    def _wait(self, tx: Tx, tried: Try, next_at: Instant, refusal: Refusal) -> None:
        if tried.kept is None:
            number = _add(tx, tried, WAITING, next_at, refusal)
        else:
            number = tried.kept
            tx.run(queries.TRIED, (tried.attempt, WAITING, next_at, tried.id, refusal.code, refusal.message, number))
        set_timer(tx, NAME, str(number), next_at)

    def _give_up_unasked(self, tx: Tx, kept: Kept) -> None:
        """Give up what has become too old without a try: the node was away, or a fault of ours stood in its way."""
        tried = Try(kept.delivery, kept.attempt, kept.try_id or tx.chance.hex(16), kept.id or None)
        tried.text = self._text(tx, Try(kept.delivery, max(1, kept.attempt), tried.id, None))
        refusal = kept.refusal if kept.refusal.code else too_old(kept.delivery, tx.now)
        self._give_up(tx, tried, refusal, "MaximumEventAgeInSeconds")

    def _give_up(self, tx: Tx, tried: Try, refusal: Refusal, exhausted: Exhausted) -> None:
        """Put it into its dead-letter queue, if it has one that takes it. Never raises for a queue that doesn't."""
        delivery = tried.delivery
        if tried.kept is not None:
            tx.run(queries.DROP, (tried.kept,))
        said = ": ".join(dict.fromkeys(text for text in (exhausted, refusal.code, refusal.message) if text))
        letter, outcome = "", f"DROPPED: {said}"
        if delivery.dead_letter is None:
            log.warning(
                "%s: a delivery to %s was dropped, for it has no dead-letter queue: %s",
                delivery.source,
                delivery.target,
                " ".join(said.split()),
            )
        else:
            sender = self._switchboard.senders[delivery.sender]
            attributes = sender.dead_letter(delivery, tried.attempt, tried.id, refusal, exhausted)
            queue, body = delivery.dead_letter, tried.text if delivery.letter is None else delivery.letter
            try:
                letter = held(tx, lambda: self._switchboard.bury(tx, queue, body, attributes, delivery.trace))
                outcome = f"DEAD_LETTERED: {said}"
            except DomainError as no:
                outcome = f"DROPPED: the dead-letter queue {queue} did not take it ({no.code}: {no.message}): {said}"
                log.warning(
                    "%s: a delivery to %s was given up (%s) and lost, since the dead-letter queue %s did not take it: %s",
                    delivery.source,
                    delivery.target,
                    said,
                    queue,
                    no.message,
                )
        self._record(tx, delivery, letter, outcome)
        self._tell(tx, delivery, Ending(succeeded=False, output={}, error=refusal.code, cause=refusal.message))

    def _record(self, tx: Tx, delivery: Delivery, target_id: str, outcome: str) -> None:
        self._switchboard.record(
            tx, Handover(delivery.source, delivery.source_id, "", delivery.target, target_id, delivery.trace, outcome)
        )

    def _tell(self, tx: Tx, delivery: Delivery, ending: Ending) -> None:
        if delivery.watcher is not None:
            self._switchboard.finished(tx, delivery.watcher, ending)


def _add(tx: Tx, tried: Try, state: str, next_at: Instant | None, refusal: Refusal) -> int:
    now = (tried.attempt, state, next_at, tried.id, refusal.code, refusal.message)
    row = tx.one(queries.ADD, (*row_of(tried.delivery), *now))
    assert row is not None, "an insert answers its id"
    number: int = row[0]
    return number


def _mended(work: Callable[[], str | None]) -> str | None:
    """Do some work; a fault of ours becomes one that can be undone."""
    try:
        return work()
    except FAULTS as fault:
        raise Fault(str(fault)) from fault
