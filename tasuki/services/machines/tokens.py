"""SendTaskSuccess, SendTaskFailure, SendTaskHeartbeat.

A token is 64 hexadecimal digits that the engine draws for each attempt; it is looked up among the open frames, so it
is good until its task ends, and for nothing else.
"""

import re

from tasuki.engine.events import Event, Heartbeat, TaskFailed, TaskSucceeded
from tasuki.engine.execution import Frame, Phase
from tasuki.services.machines import queries as sql
from tasuki.services.machines.errors import InvalidOutput, InvalidToken, TaskTimedOut
from tasuki.services.machines.rows import SavedFrames
from tasuki.services.machines.running import Run, in_hand, load, proceed, send
from tasuki.services.machines.setting import Setting
from tasuki.store.store import Tx
from tasuki.values.documents import Doc
from tasuki.values.operations import Request
from tasuki.values.unreadable import json_complaint

_TOKEN = re.compile(r"[0-9a-f]{64}")


def send_task_success(tx: Tx, request: Request, setting: Setting) -> dict[str, object]:
    """Answer a task with its output. Raises InvalidToken, InvalidOutput, TaskTimedOut."""
    token, text = request.input["taskToken"], request.input["output"]
    _check(token)
    complaint = json_complaint(text)
    if complaint is not None:
        raise InvalidOutput(complaint)
    execution, run, frame = _waiting(tx, setting, token)
    _tell(tx, setting, execution, run, TaskSucceeded(frame.id, frame.attempt, Doc.of_text(text)))
    return {}


def send_task_failure(tx: Tx, request: Request, setting: Setting) -> dict[str, object]:
    """Answer a task with a failure; without an error it has none (recorded: scenarios/test_wait_for_callback#failure).

    Raises InvalidToken, TaskTimedOut.
    """
    token = request.input["taskToken"]
    _check(token)
    execution, run, frame = _waiting(tx, setting, token)
    error, cause = request.input.get("error"), request.input.get("cause")
    _tell(tx, setting, execution, run, TaskFailed(frame.id, frame.attempt, error, cause))
    return {}


def send_task_heartbeat(tx: Tx, request: Request, setting: Setting) -> dict[str, object]:
    """Give a sign of life: the heartbeat's deadline moves, its timer row stays. Raises InvalidToken, TaskTimedOut."""
    token = request.input["taskToken"]
    _check(token)
    execution, run, frame = _waiting(tx, setting, token)
    heartbeat = Heartbeat(frame.id, frame.attempt)
    if run is None:
        send(tx, execution, heartbeat)
    else:
        proceed(tx, setting, run, (heartbeat,))
    return {}


def _check(token: str) -> None:
    if not _TOKEN.fullmatch(token):
        raise InvalidToken


def _waiting(tx: Tx, setting: Setting, token: str) -> tuple[int, Run | None, Frame]:
    """Answer the execution and frame that wait for this token, and the execution in hand if it may be told at once.

    It may not where a Task of some execution asks: that one is in hand, and no other then is. Raises `TaskTimedOut` when
    nobody waits (any more).
    """
    held = in_hand(tx)
    for one in held:  # what its own tasks were given is in no row yet
        for waiting in one.state.frames.loaded():
            if waiting.token == token and waiting.phase is Phase.RUNNING:
                assert one.id is not None
                return one.id, None, waiting
    row = tx.one(sql.FRAME_OF_TOKEN, (token,))
    if row is None:
        raise TaskTimedOut
    run = None
    if held:
        frame = SavedFrames(tx, row[0]).frame(row[1])
    else:
        run = load(tx, setting, row[0])
        frame = run.state.frames.get(row[1]) if run is not None else None
    if frame is None or frame.phase is not Phase.RUNNING or frame.token != token:
        raise TaskTimedOut
    return row[0], run, frame


def _tell(tx: Tx, setting: Setting, execution: int, run: Run | None, event: Event) -> None:
    """Tell the execution now, unless it is not in hand or older news still waits in its inbox."""
    if run is None or tx.one(sql.ANY_IN_INBOX, (execution,)) is not None:
        send(tx, execution, event)
    else:
        proceed(tx, setting, run, (event,))
