"""SendTaskSuccess, SendTaskFailure, SendTaskHeartbeat.

A token is 64 hexadecimal digits that the engine draws for each attempt; it is looked up among the open frames, so it
is good until its task ends, and for nothing else.
"""

import re

from tasuki.engine.events import Event, Heartbeat, TaskFailed, TaskSucceeded
from tasuki.engine.execution import Frame, Phase
from tasuki.services.machines import queries as sql
from tasuki.services.machines.errors import InvalidOutput, InvalidToken, TaskTimedOut
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
    run, frame = _waiting(tx, setting, token)
    _tell(tx, setting, run, TaskSucceeded(frame.id, frame.attempt, Doc.of_text(text)))
    return {}


def send_task_failure(tx: Tx, request: Request, setting: Setting) -> dict[str, object]:
    """Answer a task with a failure; without an error it has none (recorded: scenarios/test_wait_for_callback#failure).

    Raises InvalidToken, TaskTimedOut.
    """
    token = request.input["taskToken"]
    _check(token)
    run, frame = _waiting(tx, setting, token)
    error, cause = request.input.get("error"), request.input.get("cause")
    _tell(tx, setting, run, TaskFailed(frame.id, frame.attempt, error, cause))
    return {}


def send_task_heartbeat(tx: Tx, request: Request, setting: Setting) -> dict[str, object]:
    """Give a sign of life: the heartbeat's deadline moves, its timer row stays. Raises InvalidToken, TaskTimedOut."""
    token = request.input["taskToken"]
    _check(token)
    run, frame = _waiting(tx, setting, token)
    heartbeat = Heartbeat(frame.id, frame.attempt)
    if in_hand(tx):
        assert run.id is not None
        send(tx, run.id, heartbeat)
    else:
        proceed(tx, setting, run, (heartbeat,))
    return {}


def _check(token: str) -> None:
    if not _TOKEN.fullmatch(token):
        raise InvalidToken


def _waiting(tx: Tx, setting: Setting, token: str) -> tuple[Run, Frame]:
    """Answer the execution and frame that wait for this token. Raises `TaskTimedOut` when none does (any more)."""
    for held in in_hand(tx):  # what its own tasks were given is in no row yet
        for waiting in held.state.frames.loaded():
            if waiting.token == token and waiting.phase is Phase.RUNNING:
                return held, waiting
    row = tx.one(sql.FRAME_OF_TOKEN, (token,))
    run = load(tx, setting, row[0]) if row is not None else None
    frame = run.state.frames.get(row[1]) if row is not None and run is not None else None
    if run is None or frame is None or frame.phase is not Phase.RUNNING or frame.token != token:
        raise TaskTimedOut
    return run, frame


def _tell(tx: Tx, setting: Setting, run: Run, event: Event) -> None:
    """Tell the execution now, unless older news still waits in its inbox, or a Task of some execution does the telling."""
    assert run.id is not None
    if in_hand(tx) or tx.one(sql.ANY_IN_INBOX, (run.id,)) is not None:
        send(tx, run.id, event)
    else:
        proceed(tx, setting, run, (event,))
