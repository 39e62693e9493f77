"""How large variables may become, and what counts."""

from typing import Any

import pytest

from tasuki.engine.variables import MAX_ASSIGN_BYTES, MAX_VARIABLES_BYTES
from tests.engine.machines import ALL, TOKEN, machine, map_, parallel, pass_, task, wait
from tests.engine.player import Play

FITS = "é" * ((MAX_ASSIGN_BYTES - 2) // 2)
"""Its JSON text is as large as one variable may be, in UTF-8."""
HALF = "x" * (MAX_ASSIGN_BYTES // 2)


def assigned(value: dict[str, Any], **input_: Any) -> Play:
    """Play a machine that assigns and is done."""
    return Play(machine(A=pass_(Assign=value, OutputPath="$.none")), {**input_, "none": 0}).start()


def test_a_variable_may_have_a_quarter_of_a_mebibyte() -> None:
    assert assigned({"v.$": "States.Format('{}', $.x)"}, x=FITS).status == "SUCCEEDED"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"v": FITS + "x"}, f"The value of the variable 'v' has {MAX_ASSIGN_BYTES + 1} bytes"),
        ({"v": HALF, "w": HALF}, f"The variables of the field 'Assign' have {MAX_ASSIGN_BYTES + 4} bytes together"),
    ],
)
def test_a_larger_one_fails_the_state(value: dict[str, Any], words: str) -> None:
    play = assigned(value)
    assert play.finish is not None
    assert play.finish.error == "States.DataLimitExceeded"
    assert play.finish.cause == (
        f"An error occurred while executing the state 'A' (entered at the event id #2). {words}, "
        f"which exceeds the service limit of {MAX_ASSIGN_BYTES} bytes."
    )
    assert play.types[-1] == "ExecutionFailed"
    assert play.execution.frames.variable_bytes == 0


def test_a_task_that_assigns_too_much_can_be_caught() -> None:
    catch = [{"ErrorEquals": ["States.DataLimitExceeded"], "Next": "B"}]
    first = task(TOKEN, Assign={"v.$": "$.a", "w.$": "$.a"}, ResultPath=None, Catch=catch)
    play = Play(machine(A=first, B=pass_())).start().succeed({"a": HALF})
    assert play.output["Error"] == "States.DataLimitExceeded"


def hoarding(most: int) -> dict[str, Any]:
    """Answer a machine that assigns one large variable after the other, with a wait in between."""
    states: dict[str, Any] = {
        f"S{place}": wait(1, Assign={f"v{place}.$": "$.x"}, Next=f"S{place + 1}") for place in range(most)
    }
    return {"StartAt": "S0", "States": {**states, f"S{most}": pass_(OutputPath="$.n")}}


def test_all_variables_of_an_execution_count_together() -> None:
    fits = MAX_VARIABLES_BYTES // MAX_ASSIGN_BYTES
    given = {"x": "x" * (MAX_ASSIGN_BYTES - 2 - 64), "n": 0}
    assert Play(hoarding(fits), given).run().status == "SUCCEEDED"
    play = Play(hoarding(fits + 1), given).run()
    assert play.finish is not None
    assert play.finish.error == "States.DataLimitExceeded"
    assert f"'S{fits}'" in (play.finish.cause or "")
    assert "The variables of the execution have" in (play.finish.cause or "")
    assert play.execution.frames.variable_bytes == 0


def test_what_is_assigned_anew_or_out_of_scope_counts_no_more() -> None:
    leaf = {"StartAt": "I", "States": {"I": wait(1, Assign={"mine.$": "$"}, Next="J"), "J": wait(1)}}
    definition = machine(
        A=pass_(Assign={"outer": [1, 2]}, Next="B"),
        B=pass_(Assign={"outer": [1]}, Next="M"),
        M=map_(leaf, ItemsPath="$.xs", Next="W"),
        W=wait(1),
    )
    play = Play(definition, {"xs": ["a", "bc"]}).start()
    assert play.execution.frames.variable_bytes == len("[1]")
    play.fire()
    play.fire()
    assert play.execution.frames.variable_bytes == len('[1]"a""bc"')
    while "MapStateExited" not in play.types:
        play.fire()
    assert play.execution.frames.variable_bytes == len("[1]")
    assert play.run().execution.frames.variable_bytes == 0


def test_what_is_assigned_counts_as_history() -> None:
    play = Play(machine(A=pass_(Assign={"v": "xyz"})), 1).start()
    assert play.execution.history_bytes == len('"xyz"') + len("1")


@pytest.mark.parametrize("kind", ["parallel", "map"])
def test_a_catcher_of_children_assigns_in_the_scope_around_them(kind: str) -> None:
    leaf = {"StartAt": "I", "States": {"I": pass_(Assign={"mine": 1}, Next="F"), "F": {"Type": "Fail", "Error": "E"}}}
    catch = [{"ErrorEquals": ALL, "Assign": {"why.$": "$.Error"}, "Next": "Z"}]
    first = parallel(leaf, Catch=catch) if kind == "parallel" else map_(leaf, Catch=catch)
    play = Play(machine(A=first, Z=pass_(Parameters={"why.$": "$why"})), [1]).start()
    assert play.output == {"why": "E"}
