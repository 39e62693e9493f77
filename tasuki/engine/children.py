"""Frames below a frame: opening them, and closing them when nobody waits for them any more.

What AWS writes for children that are aborted (recorded: timeouts/test_service_lambda_map_timeout): the iteration, then
the state it was in, child by child, all with the previousEventId of the failure. States that cannot wait have no such
event.
"""

from tasuki.engine.commands import CancelMapRun, CancelTask
from tasuki.engine.execution import Frame, Phase
from tasuki.engine.redrive import keep
from tasuki.engine.turn import MAX_PAYLOAD_BYTES, DataLimitExceeded, Turn
from tasuki.language.definition import Block, Map, Parallel, State, Task, Wait
from tasuki.values.documents import Doc

_ABORTED: dict[type[State], str] = {
    Task: "TaskStateAborted",
    Wait: "WaitStateAborted",
    Parallel: "ParallelStateAborted",
    Map: "MapStateAborted",
}


def open_child(turn: Turn, parent: Frame, index: int, block: Block, *, document: Doc, item: Doc | None = None) -> Frame:
    """Open a frame below `parent` that will run `block` from its first state on `document`."""
    execution = turn.execution
    execution.last_frame += 1
    frame = Frame(
        execution.last_frame,
        parent.id,
        index,
        block.path,
        block.start_at,
        Phase.READY,
        document,
        parent.last_event,
        item=item,
    )
    turn.frames.open(frame)
    turn.queue.append(frame)
    return frame


def gather(turn: Turn, frame: Frame, state: State) -> Doc:
    """Answer the outputs of all children in their order, which are then forgotten. Raises `DataLimitExceeded`."""
    results = turn.frames.results(frame.id)
    turn.frames.drop_results(frame.id)
    outputs = [results[index] for index in range(frame.total)]
    # Looked at first: there may be thousands, each as large as a payload may be.
    if sum(len(output.text) for output in outputs) > MAX_PAYLOAD_BYTES:
        raise DataLimitExceeded(state.name)
    result = Doc.array(outputs)
    turn.weigh(result, state.name)
    return result


def abort_children(turn: Turn, parent: Frame, state: State, previous: int, cause: str) -> None:
    """Close everything below a frame. `previous` is the event that was the reason; `cause` is told to cancelled tasks."""
    of_map = isinstance(state, Map)
    keep(turn, parent)
    for child in turn.frames.children(parent.id):
        if of_map:
            turn.note(previous, "MapIterationAborted", {"name": state.name, "index": child.index})
        abort_frame(turn, child, previous, cause)
    turn.frames.drop_results(parent.id)


def abort_frame(turn: Turn, frame: Frame, previous: int, cause: str) -> None:
    """Close a frame and everything below it."""
    keep(turn, frame)
    if frame.phase is not Phase.READY:
        state = turn.state(frame)
        kind = _ABORTED.get(type(state))
        if frame.phase is Phase.RUNNING and isinstance(state, Map):
            turn.note(previous, "MapRunAborted", None)
        # A Wait of the root says nothing when the execution stops (recorded: sfn_api/test_stop_execution).
        if kind is not None and not (frame.parent is None and kind == "WaitStateAborted"):
            turn.note(previous, kind, None)
        if frame.phase is Phase.RUNNING:
            cancel(turn, frame, state, cause)
        elif frame.phase is Phase.JOINING:
            abort_children(turn, frame, state, previous, cause)
    turn.close(frame)


def cancel(turn: Turn, frame: Frame, state: State, cause: str) -> None:
    """Have the running work of a Task or a distributed Map stopped."""
    if isinstance(state, Map):
        turn.commands.append(CancelMapRun(frame.id, frame.attempt))
        return
    assert isinstance(state, Task), "nothing else runs"
    turn.commands.append(CancelTask(frame.id, frame.attempt, state.resource, frame.handle, cause))
