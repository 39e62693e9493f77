"""The values and rules of the room: a delivery as it is kept, and when it is tried again. Pure."""

from typing import Any, Literal, NamedTuple

from tasuki.services.switchboard import Caller, Delivery, Refusal
from tasuki.store.store import Row
from tasuki.values.documents import dumpb, loads
from tasuki.values.instant import MINUTE, SECOND, Instant, to_iso

NAME = "deliveries"
WAITING, CALLING = "waiting", "calling"
Exhausted = Literal["MaximumRetryAttempts", "MaximumEventAgeInSeconds", ""]

FIRST_PAUSE_MS, LONGEST_PAUSE_MS = SECOND, 8 * MINUTE
"""AWS documents "exponential back off and jitter", 185 tries and 24 hours, and no more: from one second, doubling up to
eight minutes, 185 pauses are 23.6 hours."""
LONGEST_WORDS = 1_000
"""Characters of a refusal that are kept."""


class Kept(NamedTuple):
    """A delivery on its way. `attempt` counts the tries begun; `refusal` and `try_id` are the last one's."""

    id: int
    delivery: Delivery
    attempt: int
    state: str
    next_at: Instant | None
    try_id: str
    refusal: Refusal


def pause_ms(attempt: int, fraction: float) -> int:
    """Answer how long to wait after try `attempt` (from 1): doubling, a quarter more or less by chance (0 <= fraction < 1)."""
    base = min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS << min(attempt - 1, 20))
    return base * 3 // 4 + int(fraction * base / 2)


def is_too_old(delivery: Delivery, now: Instant) -> bool:
    """Tell whether a delivery may not be tried at this instant any more."""
    return now - delivery.since > delivery.max_age_ms


def why_over(delivery: Delivery, attempt: int, next_at: Instant) -> Exhausted:
    """Answer why a delivery is not tried again after `attempt` tries, the next at `next_at`; nothing if it is."""
    if attempt > delivery.max_retries:
        return "MaximumRetryAttempts"
    return "MaximumEventAgeInSeconds" if is_too_old(delivery, next_at) else ""


def too_old(delivery: Delivery, now: Instant) -> Refusal:
    """Say that a delivery is given up without a try."""
    age, most = (now - delivery.since) // SECOND, delivery.max_age_ms // SECOND
    return Refusal(
        "MaximumEventAgeInSeconds",
        f"Due at {to_iso(delivery.since)}, {age} s ago: more than its maximum age of {most} s. It was not tried.",
    )


def caller_of(delivery: Delivery, try_id: str, watcher: str | None = None) -> Caller:
    """Answer as whom a try calls its target."""
    return Caller(
        account=delivery.account,
        region=delivery.region,
        idempotency=f"{delivery.source}#{try_id}",
        trace=delivery.trace,
        origin=delivery.source,
        watcher=watcher,
    )


def watcher_of(number: int, attempt: int) -> str:
    """Answer who hears of the end of a try that is waited for."""
    return f"{NAME}:{number}:{attempt}"


def row_of(delivery: Delivery) -> Row:
    """Answer what never changes of a row."""
    rest = {
        "payload": delivery.payload,
        "parameters": dict(delivery.parameters),
        "context": dict(delivery.context),
        "dead_letter": delivery.dead_letter,
        "watcher": delivery.watcher,
        "letter": delivery.letter,
    }
    return (
        delivery.account,
        delivery.region,
        delivery.sender,
        delivery.source,
        delivery.source_id,
        delivery.target,
        delivery.trace,
        delivery.since,
        delivery.max_age_ms,
        delivery.max_retries,
        dumpb(rest),
    )


def kept_of(row: Row) -> Kept:
    """Read a row."""
    number, account, region, sender, source, source_id, target, trace, since, max_age_ms, max_retries, rest, *now = row
    attempt, state, next_at, try_id, code, message = now
    delivery = Delivery(
        sender=sender,
        source=source,
        source_id=source_id,
        target=target,
        account=account,
        region=region,
        trace=trace,
        since=since,
        max_age_ms=max_age_ms,
        max_retries=max_retries,
        **loads(bytes(rest)),
    )
    return Kept(number, delivery, attempt, state, next_at, try_id, Refusal(code, message))


def shortened(code: str, message: str) -> Refusal:
    """Answer a refusal as it is kept, no longer than anybody reads."""
    return Refusal(
        *(text if len(text) <= LONGEST_WORDS else text[: LONGEST_WORDS - 1] + "…" for text in (code, message))
    )


def described(kept: Kept, turn: Instant | None) -> dict[str, Any]:
    """Answer a delivery as ListDeliveries shows it. `turn`: when the target lets it through that it waits for."""
    delivery, refusal = kept.delivery, kept.refusal
    shown = {
        "Id": str(kept.id),
        "SourceArn": delivery.source,
        "SourceId": delivery.source_id,
        "TargetArn": delivery.target,
        "Trace": delivery.trace,
        "State": kept.state.upper(),
        "Since": to_iso(delivery.since),
        "NextTryAt": to_iso(kept.next_at) if kept.next_at is not None else "",
        "TurnAt": to_iso(turn) if turn is not None else "",
        "GivenUpAt": to_iso(delivery.since + delivery.max_age_ms),
        "Attempts": kept.attempt,
        "MaxAttempts": delivery.max_retries + 1,
        "Error": refusal.code,
        "Message": refusal.message,
        "DeadLetterArn": delivery.dead_letter or "",
    }
    return {name: value for name, value in shown.items() if value != ""}
