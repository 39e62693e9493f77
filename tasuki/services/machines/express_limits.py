"""What an Express machine may not hold. Pure (states.md section 12; recorded: sfn_api_express/*, sfn_api_validation/*)."""

from tasuki.language.definition import Machine, Map, Task
from tasuki.language.errors import Diagnosis


def not_for_express(machine: Machine) -> list[Diagnosis]:
    """Complain about what an Express machine may not do (recorded: sfn_api_express/test_illegal_*)."""
    found = []
    for block in machine.blocks.values():
        for name, state in block.states.items():
            place = f"{block.path}/States/{name.replace('~', '~0').replace('/', '~1')}"
            if isinstance(state, Task):
                if state.resource.kind == "activity":
                    message = "Express state machine does not support Activity ARN"
                elif state.resource.pattern:
                    message = f"Express state machine does not support '.{state.resource.pattern}' service integration "
                else:
                    continue
                found.append(Diagnosis("SCHEMA_VALIDATION_FAILED", message, f"{place}/Resource"))
            elif isinstance(state, Map) and state.distributed is not None:
                message = "Express state machine does not support Map in DISTRIBUTED mode"
                found.append(Diagnosis("SCHEMA_VALIDATION_FAILED", message, place))
    return found
