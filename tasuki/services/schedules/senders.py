"""What a tick's delivery says, at each try and in the dead-letter queue (switchboard `Sender`).

Attributes are replaced in the Input as it is stored, as plain text, once: what stands there is no JSON to us, nothing is
unescaped, and words we don't know stay (user guide, "Adding context attributes"; PITFALLS PF-43, PF-44).

=======================================  ===========================================================================
`<aws.scheduler.schedule-arn>`           the schedule
`<aws.scheduler.scheduled-time>`         the planned time, the same at each try
`<aws.scheduler.execution-id>`           this try's own
`<aws.scheduler.attempt-number>`         counts from 1
=======================================  ===========================================================================

A dead letter is what was tried last, with the attributes of the user guide's example ("Configuring a schedule's dead-letter
queue"): ERROR_CODE, ERROR_MESSAGE, EXECUTION_ID, EXHAUSTED_RETRY_CONDITION, IS_PAYLOAD_TRUNCATED, RETRY_ATTEMPTS,
SCHEDULED_TIME, SCHEDULE_ARN, TARGET_ARN.
"""

import re
from collections.abc import Mapping
from typing import Any

from tasuki.services.schedules.model import NAME, seconds_iso
from tasuki.services.schedules.targets import notification, parameters
from tasuki.services.sdk import is_universal
from tasuki.services.switchboard import Delivery, Refusal
from tasuki.store.store import Tx
from tasuki.values.instant import SECOND, Instant, to_iso

_ATTRIBUTE = re.compile(r"<aws\.scheduler\.(schedule-arn|scheduled-time|execution-id|attempt-number)>")
_TIME, _NOTICE = "time", "notice"


def deliver_to(
    target: Mapping[str, Any],
    *,
    arn: str,
    account: str,
    region: str,
    tick: Instant,
    due: Instant,
    trace: str,
    notice: str,
    watcher: str | None,
) -> Delivery:
    """Answer the delivery of one tick. Its age counts from `due`: in a flexible window, from the moment that was drawn.

    `notice` is the id of the notification that a target without Input gets, the same at each try.
    """
    retry = target["RetryPolicy"]
    return Delivery(
        sender=NAME,
        source=arn,
        source_id=to_iso(tick),
        target=target["Arn"],
        payload=target.get("Input", ""),
        account=account,
        region=region,
        trace=trace,
        since=due,
        max_age_ms=retry["MaximumEventAgeInSeconds"] * SECOND,
        max_retries=retry["MaximumRetryAttempts"],
        parameters=parameters(target),
        dead_letter=(target.get("DeadLetterConfig") or {}).get("Arn"),
        context={_TIME: seconds_iso(tick), _NOTICE: notice},
        watcher=watcher,
    )


class ScheduleSender:
    """Says what ticks say."""

    def payload(self, tx: Tx, delivery: Delivery, attempt: int, try_id: str) -> str:  # noqa: ARG002 - all is in the delivery
        """Answer the Input with its attributes replaced; without Input the notification, or nothing where that can't be read."""
        if not delivery.payload:
            if is_universal(delivery.target) or ":ecs:" in delivery.target:
                return "{}"
            notice = delivery.context[_NOTICE]
            return notification(delivery.source, delivery.account, delivery.region, delivery.context[_TIME], notice)
        if "<aws.scheduler." not in delivery.payload:
            return delivery.payload
        values = {
            "schedule-arn": delivery.source,
            "scheduled-time": delivery.context[_TIME],
            "execution-id": try_id,
            "attempt-number": str(attempt),
        }
        return _ATTRIBUTE.sub(lambda found: values[found[1]], delivery.payload)

    def is_final(self, refusal: Refusal) -> bool:  # noqa: ARG002 - Scheduler tries whatever it was (PITFALLS PF-48)
        """Answer no: a target that is not there may come."""
        return False

    def dead_letter(
        self, delivery: Delivery, attempt: int, try_id: str, refusal: Refusal, exhausted: str
    ) -> dict[str, str]:
        """Answer the attributes of a dead letter."""
        return {
            "ERROR_CODE": refusal.code,
            "ERROR_MESSAGE": refusal.message,
            "EXECUTION_ID": try_id,
            "EXHAUSTED_RETRY_CONDITION": exhausted,
            "IS_PAYLOAD_TRUNCATED": "false",
            "RETRY_ATTEMPTS": str(max(attempt - 1, 0)),
            "SCHEDULED_TIME": delivery.context[_TIME],
            "SCHEDULE_ARN": delivery.source,
            "TARGET_ARN": delivery.target,
        }
