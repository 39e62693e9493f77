"""Tapes: runs of our own, recorded once, that every later version must replay byte for byte.

A tape holds a definition, an input, the events that the engine was told with their instants, and all that it answered;
and, from the middle of the run, the saved rows as bytes, from which the second half must play alike. A change that
makes a tape differ changes the history of executions that run while a user upgrades: that is never right by accident.

To write a new one: add it to `RUNS` and run `python -m tests.engine.tapes NAME`. Existing tapes are not written again.
(`history_bytes` of two was put right by hand when the values that states assign began to count: it is no history.)
"""

import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tasuki.engine import events as event_module
from tasuki.engine.events import Event, Heartbeat, TaskStarted
from tasuki.engine.execution import Execution, Frames
from tasuki.values.documents import Doc
from tests.engine.machines import ALL, SYNC, TOKEN, machine, map_, parallel, pass_, task, wait
from tests.engine.player import Play

FOLDER = Path(__file__).resolve().parents[1] / "tapes"


def _retried_and_caught() -> Play:
    retry = [{"ErrorEquals": ["Busy"], "IntervalSeconds": 3, "MaxAttempts": 2, "JitterStrategy": "FULL"}]
    catch = [{"ErrorEquals": ALL, "ResultPath": "$.error", "Next": "C", "Assign": {"why.$": "$.Error"}}]
    definition = machine(
        A=pass_(Parameters={"id.$": "States.UUID()", "big": 2**70}, Assign={"n": 1}, Next="B"),
        B=task(SYNC, Parameters={"try.$": "$$.State.RetryCount", "id.$": "$.id"}, Retry=retry, Catch=catch, Next="C"),
        C=pass_(Parameters={"all.$": "$", "n.$": "$n", "why.$": "$why"}),
    )
    play = Play(definition, {"é": "ü"}).start().submit({"t": 1}, "one").fail("Busy", "first")
    play.fire()
    play.submit({"t": 2}, "two").fail("Busy", "second")
    play.fire()
    return play.submit({"t": 3}, "three").fail("Broken", "for good")


def _map_with_places() -> Play:
    inner = {
        "StartAt": "T",
        "States": {
            "T": task(TOKEN, Parameters={"token.$": "$$.Task.Token", "item.$": "$"}, TimeoutSeconds=30, Next="W"),
            "W": wait(2, Assign={"seen.$": "$"}, Next="P"),
            "P": pass_(Parameters={"seen.$": "$seen", "at.$": "$$.Map.Item.Index"}),
        },
    }
    again = [{"ErrorEquals": ["States.Timeout"], "MaxAttempts": 1}]
    selector = {"v.$": "$$.Map.Item.Value", "u.$": "States.UUID()"}
    state = map_(inner, ItemsPath="$.xs", ItemSelector=selector, MaxConcurrency=2, Retry=again, ResultPath="$.out")
    play = Play(machine(A=state), {"xs": ["a", "b", "c"]}).start()
    play.succeed("A", place=0)
    for _ in range(3):  # the Wait of a, the timeout of b, the retry of all
        play.fire()
    for place in (4, 3):
        play.succeed(f"again {place}", place=place).fire()
    play.succeed("last")
    return play.run()


def _nested_and_stopped() -> Play:
    deep = {"StartAt": "M", "States": {"M": map_({"StartAt": "D", "States": {"D": task(SYNC)}}, ItemsPath="$.xs")}}
    branches = [
        deep,
        {"StartAt": "W", "States": {"W": wait(100)}},
        {"StartAt": "Q", "States": {"Q": pass_(Result=[1])}},
    ]
    play = Play(machine(A=parallel(*branches)), {"xs": [1, 2]}).start()
    play.submit({}, "one", place=0).submit({}, "two", place=1).succeed({"done": 1}, place=1)
    return play.stop("Operator", "no more")


def _silent_and_timed_out() -> Play:
    again = [{"ErrorEquals": ["States.HeartbeatTimeout"], "IntervalSeconds": 1, "MaxAttempts": 5, "BackoffRate": 1.5}]
    play = Play(machine(A=task(TOKEN, HeartbeatSeconds=4, TimeoutSeconds=60, Retry=again), timeout=20)).start()
    play.submit({"m": 1})
    play.now += 3_000
    play.tell(Heartbeat(1, 1))
    return play.run()


def _other_families() -> Play:
    definition = machine(
        A=task("arn:aws:lambda:us-east-1:111111111111:function:f", Next="B"),
        B=task("arn:aws:states:us-east-1:111111111111:activity:a", TimeoutSeconds=9),
    )
    play = Play(definition, {"x": 1}).start().tell(TaskStarted(1, 1)).succeed({"y": 2})
    play.now += 1_000
    return play.tell(TaskStarted(1, 2, "worker")).run()


RUNS: dict[str, Callable[[], Play]] = {
    "retried_and_caught": _retried_and_caught,
    "map_with_places": _map_with_places,
    "nested_and_stopped": _nested_and_stopped,
    "silent_and_timed_out": _silent_and_timed_out,
    "other_families": _other_families,
}


def event_to_json(event: Event) -> dict[str, Any]:
    """Write an event down."""
    made: dict[str, Any] = {"event": type(event).__name__}
    for field in dataclasses.fields(event):
        value = getattr(event, field.name)
        made[field.name] = value.text if isinstance(value, Doc) else value
    return made


def event_from_json(made: dict[str, Any]) -> Event:
    """Read an event."""
    kind = getattr(event_module, made["event"])
    members = {
        name: Doc.of_text(value) if name == "output" else value for name, value in made.items() if name != "event"
    }
    event: Event = kind(**members)
    return event


def answered(play: Play) -> dict[str, Any]:
    """Answer all that the engine has said so far."""
    return {
        "history": play.wire(),
        "scheduled": [_plain(command) for command in play.scheduled],
        "cancelled": [_plain(command) for command in play.cancelled],
        "finish": _plain(play.finish) if play.finish else None,
    }


def _plain(command: Any) -> dict[str, Any]:
    made = {}
    for field in dataclasses.fields(command):
        if field.name == "remains":
            continue  # tapes are older
        value = getattr(command, field.name)
        if isinstance(value, Doc):
            made[field.name] = value.text
        else:
            made[field.name] = value.arn if field.name == "resource" else value
    return made


def rows_of(play: Play) -> dict[str, Any]:
    """Answer the rows of a run that has been saved, and what an execution's own row holds."""
    state: Execution = play.execution
    names = ("last_event", "last_frame", "last_attempt", "deadline", "status", "history_bytes")
    return {
        "execution": {name: getattr(state, name) for name in names},
        "bodies": {str(number): body.hex() for number, body in sorted(play.rows.bodies.items())},
        "counts": {str(number): counts.hex() for number, counts in sorted(play.rows.counts.items())},
        "outputs": {str(number): {str(i): text for i, text in of.items()} for number, of in play.rows.outputs.items()},
    }


def restore(play: Play, rows: dict[str, Any]) -> None:
    """Put a run where rows say."""
    for name, value in rows["execution"].items():
        setattr(play.execution, name, value)
    play.rows.bodies = {int(number): bytes.fromhex(body) for number, body in rows["bodies"].items()}
    play.rows.counts = {int(number): bytes.fromhex(counts) for number, counts in rows["counts"].items()}
    play.rows.outputs = {int(n): {int(i): text for i, text in of.items()} for n, of in rows["outputs"].items()}
    play.execution.frames = Frames(play.rows)


def replay(play: Play, told: list[Any]) -> None:
    """Tell a run what a tape says, and perform nothing but note what it wants."""
    for at, made in told:
        play.now = at
        commands, _ = play.step(event_from_json(made))
        for command in commands:
            play.perform(command)


def text_of(value: Any) -> str:
    """Answer the bytes that a tape is made of, as text."""
    return json.dumps(value, indent=1, ensure_ascii=False)


def write(name: str, definition: str) -> None:
    """Record a run."""
    path = FOLDER / f"{name}.json"
    if path.exists():
        raise SystemExit(f"{path} is there: a tape is recorded once")
    play = RUNS[name]()
    told = [[at, event_to_json(event)] for at, event in play.told]
    middle = Play(json.loads(definition), input_text=play.execution.input.text)
    replay(middle, told[: len(told) // 2])
    tape = {
        "definition": json.loads(definition),
        "input": play.execution.input.text,
        "told": told,
        "answered": answered(play),
        "middle": rows_of(middle),
    }
    path.write_text(text_of(tape) + "\n")


if __name__ == "__main__":
    for one in sys.argv[1:]:
        write(one, RUNS[one]().definition)
