"""Operations of the house's own service at the door: who may move its clock, and what reaches the operation."""

import asyncio
from pathlib import Path
from typing import Any

from tasuki.protocol.http import application
from tasuki.values.config import Config
from tasuki.values.documents import dumpb, loads
from tasuki.values.operations import Request, acting
from tests.protocol.knocking import PORT, TASK_KEY, Heard, Script, knocking, make_door, sign


def asked(operation: str, given: dict[str, Any], **signing: Any) -> tuple[Heard, list[dict[str, Any]]]:
    """Call a clock's operation; answer what was heard, and what reached it."""
    seen: list[dict[str, Any]] = []

    async def act(request: Request) -> dict[str, Any]:
        seen.append(dict(request.input))
        return {"Now": "2026-11-30T12:00:00.000Z", "Arrived": True, "Visited": 3, "Counts": {"MessagesSent": 2}}

    names = ("GetClock", "AdvanceClock", "RunClock")
    door = make_door(
        Script(),
        operations={"tasuki": {name: acting(act) for name in names}},
        config=Config(data=Path(), port=PORT, clock="manual"),
    )
    headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"Tasuki.{operation}"}
    knock = sign("tasuki", headers=headers, body=dumpb(given), **signing)
    parts = [{"type": "http.request", "body": knock.body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if not parts:
            await asyncio.Event().wait()  # it waits for its answer
        return parts.pop()

    return asyncio.run(knocking(application(door), knock, receive)), seen


def test_the_owner_moves_the_clock() -> None:
    heard, seen = asked("AdvanceClock", {"By": "36h", "PatienceSeconds": 1.5})
    assert (heard.status, seen) == (200, [{"By": "36h", "PatienceSeconds": 1.5}])
    said = loads(heard.body.decode())
    assert said == {"Now": "2026-11-30T12:00:00.000Z", "Arrived": True, "Visited": 3, "Counts": {"MessagesSent": 2}}


def test_a_task_does_not_even_look_at_it() -> None:
    for operation in ("GetClock", "AdvanceClock", "RunClock"):
        heard, seen = asked(operation, {}, key=TASK_KEY, secret="task-secret")
        assert (heard.status, seen) == (403, [])
        assert f"tasuki:{operation}" in heard.body.decode()


def test_a_number_that_is_none_is_refused_before_anything_moves() -> None:
    heard, seen = asked("RunClock", {"Speed": "fast"})
    assert (heard.status, seen) == (400, [])
    assert "can not be converted to a Double" in heard.body.decode()
