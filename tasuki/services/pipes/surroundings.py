"""Whether a pipe's source, enrichment and target are there and take what it would give them."""

from collections.abc import Mapping
from typing import Any

from tasuki.services.pipes.errors import invalid_field
from tasuki.services.pipes.flows import Flow, Stage, arn_in
from tasuki.services.pipes.model import Pipe
from tasuki.services.switchboard import Switchboard
from tasuki.store.store import Tx


def check_surroundings(tx: Tx, switchboard: Switchboard, pipe: Pipe, flow: Flow) -> None:
    """Refuse what this house doesn't offer, and what isn't there. Raises `ValidationException`."""
    _offered("Source", pipe.source, switchboard.sources)
    if flow.enrichment is not None:
        _offered("Enrichment", pipe.enrichment, switchboard.targets)
        _refuse_standard_enrichment(tx, switchboard, flow.enrichment)
    _offered("Target", pipe.target, switchboard.targets)
    _refuse_standard_target(tx, switchboard, pipe, flow.target)
    problem = missing(tx, switchboard, flow)
    if problem is not None:
        raise invalid_field(*problem)


def missing(tx: Tx, switchboard: Switchboard, flow: Flow) -> tuple[str, str] | None:
    """Answer None, or (field, why) when the source, the enrichment or the target isn't there or takes no deliveries."""
    why = switchboard.sources[flow.source_service].check(tx, flow.source)
    if why is not None:
        return "Source", why
    for stage in (flow.enrichment, flow.target):
        if stage is not None and stage.parameters.fixed is not None:
            why = switchboard.targets[stage.service].check(tx, stage.arn, stage.parameters.fixed)
            if why is not None:
                return stage.field, why
    return None


def _offered(field: str, arn: str, offers: Mapping[str, Any]) -> None:
    service = arn_in(field, arn).service
    if service not in offers:
        offered = ", ".join(sorted(offers)) or "none"
        raise invalid_field(
            field, f"{arn} is a {service} {field.lower()}, which this Tasuki doesn't offer; it offers {offered}."
        )


def _refuse_standard_enrichment(tx: Tx, switchboard: Switchboard, stage: Stage) -> None:
    """AWS accepts a STANDARD one and stops the pipe later (user guide, "Event enrichment in Amazon EventBridge Pipes")."""
    if stage.kind.key == "states" and switchboard.targets[stage.service].waits(tx, stage.arn) is False:
        raise invalid_field(
            "Enrichment",
            f"{stage.arn} is a state machine of type STANDARD, which can't be called synchronously; an enrichment must be of "
            "type EXPRESS.",
        )


def _refuse_standard_target(tx: Tx, switchboard: Switchboard, pipe: Pipe, stage: Stage) -> None:
    if (
        stage.kind.key != "states"
        or not stage.waits
        or switchboard.targets[stage.service].waits(tx, stage.arn) is not False
    ):
        return
    invocation = (pipe.target_parameters.get(stage.kind.member) or {}).get("InvocationType")
    given = "it is absent, which means REQUEST_RESPONSE" if invocation is None else f"it is {invocation}"
    raise invalid_field(
        f"TargetParameters.{stage.kind.member}.InvocationType",
        f"InvocationType must be FIRE_AND_FORGET for a state machine of type STANDARD; {given}, and a standard workflow "
        "can't be called synchronously.",
    )
