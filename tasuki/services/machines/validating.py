"""ValidateStateMachineDefinition: the parser's complaints as diagnostics."""

from typing import Any

from tasuki.language.cautions import cautions
from tasuki.language.errors import Diagnosis, InvalidDefinition
from tasuki.language.parse import parse, read_object
from tasuki.services.machines.express_limits import not_for_express
from tasuki.store.store import Tx
from tasuki.values.operations import Request

DIAGNOSTICS_MAX = 100


def validate_state_machine_definition(_tx: Tx, request: Request) -> dict[str, Any]:
    """Answer what is wrong with a definition, with `severity` WARNING also what looks wrong. Nothing is stored."""
    limit = request.input.get("maxResults") or DIAGNOSTICS_MAX
    definition = request.input["definition"]
    diagnoses: list[Diagnosis] = []
    try:
        machine = parse(definition)
    except InvalidDefinition as bad:
        diagnoses = bad.diagnoses
    else:
        if request.input.get("type") == "EXPRESS":
            diagnoses = not_for_express(machine)
        if request.input.get("severity") == "WARNING":
            diagnoses = [*diagnoses, *cautions(read_object(definition))]
    return {
        "result": "FAIL" if any(one.severity == "ERROR" for one in diagnoses) else "OK",
        "diagnostics": [_shown(one) for one in diagnoses[:limit]],
        "truncated": len(diagnoses) > limit,
    }


def _shown(one: Diagnosis) -> dict[str, str]:
    shown = {"severity": one.severity, "code": one.code, "message": one.message}
    return {**shown, "location": one.location} if one.location else shown
