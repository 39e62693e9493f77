"""ValidateStateMachineDefinition: the parser's complaints as diagnostics."""

from typing import Any

from tasuki.language.errors import Diagnosis, InvalidDefinition
from tasuki.language.parse import parse
from tasuki.services.machines.express_limits import not_for_express
from tasuki.store.store import Tx
from tasuki.values.operations import Request

DIAGNOSTICS_MAX = 100


def validate_state_machine_definition(_tx: Tx, request: Request) -> dict[str, Any]:
    """Answer what is wrong with a definition. Nothing is stored.

    Only errors: there are no warnings yet, so `severity` changes nothing.
    """
    limit = request.input.get("maxResults") or DIAGNOSTICS_MAX
    diagnoses: list[Diagnosis] = []
    try:
        machine = parse(request.input["definition"])
    except InvalidDefinition as bad:
        diagnoses = bad.diagnoses
    else:
        if request.input.get("type") == "EXPRESS":
            diagnoses = not_for_express(machine)
    return {
        "result": "FAIL" if any(one.severity == "ERROR" for one in diagnoses) else "OK",
        "diagnostics": [_shown(one) for one in diagnoses[:limit]],
        "truncated": len(diagnoses) > limit,
    }


def _shown(one: Diagnosis) -> dict[str, str]:
    shown = {"severity": one.severity, "code": one.code, "message": one.message}
    return {**shown, "location": one.location} if one.location else shown
