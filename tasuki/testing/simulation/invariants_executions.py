"""Promises about executions (P2, P3, P10): contiguous history, nothing stuck, nothing left behind, once is once."""

from collections.abc import Sequence
from typing import Any, Protocol

from tasuki.services.machines.chunks import unpack_history
from tasuki.store.store import Row, Tx
from tasuki.testing.simulation import queries
from tasuki.testing.simulation.world import Violation, World

STATUS = {
    "ExecutionSucceeded": "SUCCEEDED",
    "ExecutionFailed": "FAILED",
    "ExecutionTimedOut": "TIMED_OUT",
    "ExecutionAborted": "ABORTED",
}
_BEGAN = ("TaskScheduled", "ActivityScheduled")
_UNDER_WAY = ("TaskStarted", "TaskSubmitted", "ActivityStarted")
_OVER = (
    "TaskSucceeded",
    "TaskFailed",
    "TaskTimedOut",
    "TaskSubmitFailed",
    "TaskStartFailed",
    "ActivitySucceeded",
    "ActivityFailed",
    "ActivityTimedOut",
    "ActivityScheduleFailed",
)


class Happened(Protocol):
    """An event of a history."""

    @property
    def id(self) -> int:
        """From 1 on."""

    @property
    def previous(self) -> int:
        """The id of the one that it follows."""

    @property
    def at(self) -> int:
        """When it happened."""

    @property
    def type(self) -> str:
        """AWS's name for what happened."""


def histories_are_contiguous(world: World) -> None:
    """Of every execution that moved: ids from 1 on, each after the one it follows, one end, each task told once."""

    def unit(tx: Tx) -> list[tuple[Row, Sequence[Happened]]]:
        found: list[tuple[Row, Sequence[Happened]]] = []
        for row in tx.all(queries.EXECUTIONS):
            if world.checked.get(row[0]) == row[4:] or "/ItemsExpress" in row[1]:
                continue  # nothing happened to it; or it is an Express child, which has no history
            chunks = tx.all(queries.HISTORY, (row[0],))
            events = [event for first, _, body in chunks for event in unpack_history(first, body)]
            found.append((row, events))
        return found

    for row, events in world.look(unit):
        execution, machine, _, name, status, last_event, redrives = row
        trouble = trouble_in(events, status, last_event, redrives)
        if trouble:
            raise Violation(
                "histories are contiguous", f"execution {execution} ({machine}:{name}, {status}): {trouble}"
            )
        before = world.ended.get(execution)
        if before is not None and (before[0] != status or before[1] != last_event) and not redrives:
            raise Violation("histories are contiguous", f"execution {execution} was {before[0]} and is {status}")
        if status != "RUNNING":
            world.ended[execution] = (status, last_event)
        world.checked[execution] = row[4:]


def trouble_in(events: Sequence[Happened], status: str, last_event: int, redrives: int) -> str:
    """Answer what is wrong with a history, or an empty text."""
    if [event.id for event in events] != list(range(1, last_event + 1)):
        return f"the ids are not 1 to {last_event}: {[event.id for event in events][:40]}"
    back = [event.id for event in events if event.previous >= event.id]
    if back:
        return f"events {back} do not follow an earlier one"
    times = [event.at for event in events]
    if times != sorted(times):
        return "time goes back"
    ends = [event for event in events if event.type in STATUS]
    again = [event for event in events if event.type == "ExecutionRedriven"]
    if len(again) > redrives:
        return f"{len(again)} redrives are told and {redrives} counted"
    if status == "RUNNING":
        if len(ends) > redrives or (ends and len(ends) > len(again) and events[-1].type in STATUS and not redrives):
            return "it runs and has ended"
    elif not ends or ends[-1] is not events[-1] or STATUS[ends[-1].type] != status:
        return f"its last event is {events[-1].type if events else 'missing'}"
    elif len(ends) != len(again) + 1:
        return f"{len(ends)} ends and {len(again)} redrives"
    return told_twice(events)


def told_twice(events: Sequence[Happened]) -> str:
    """Answer which task was told its end twice, or an empty text: whoever waits with `.sync` hears once."""
    began: dict[int, int] = {}
    over: set[int] = set()
    for event in events:
        if event.type in _BEGAN:
            began[event.id] = event.id
        elif event.type in _UNDER_WAY and event.previous in began:
            began[event.id] = began[event.previous]
        elif event.type in _OVER and event.previous in began:
            task = began[event.previous]
            if task in over:
                return f"the task of event {task} ended twice (event {event.id})"
            over.add(task)
    return ""


def nothing_is_stuck(world: World) -> None:
    """Every execution that goes on waits for something that is there: a timer, a token, a task, a child, a worker."""
    stuck = world.look(lambda tx: tx.all(queries.STUCK))
    if stuck:
        raise Violation("nothing is stuck", f"these wait for nothing: {[f'{row[0]}:{row[1]}' for row in stuck[:3]]}")


def nothing_waits_for_a_bell(world: World) -> None:
    """At rest nobody has a turn to take, a message to be told, or a timer that is due: each work rings somebody."""
    ready, map_ready, inbox = world.look(lambda tx: tx.all(queries.UNDONE))[0]
    now = world.clock.now()
    due = [f"{row[0]}:{row[1]}" for row in world.look(lambda tx: tx.all(queries.TIMERS)) if row[2] <= now]
    if ready or map_ready or inbox or due:
        raise Violation(
            "nothing waits for a bell",
            f"{ready} executions and {map_ready} Map Runs have a turn, {inbox} inbox rows and timers {due[:3]} are left",
        )


def nothing_is_left_of_what_ended(world: World) -> None:
    """An execution that ended has no frame, result, inbox row, turn, activity task or waiter."""
    counts = world.look(lambda tx: {table: tx.all(sql)[0][0] for table, sql in queries.LEFT_OVER.items()})
    left = {table: count for table, count in counts.items() if count}
    if left:
        raise Violation("nothing is left of what ended", f"rows of executions that are over: {left}")


def timers_have_owners(world: World) -> None:
    """Every timer belongs to something that is there; every frame that says it has a timer has one."""

    def unit(tx: Tx) -> tuple[list[str], list[Row]]:
        wrong = [f"{room}:{key}" for room, key, _ in tx.all(queries.TIMERS) if not _owned(tx, room, key)]
        return wrong, tx.all(queries.UNTIMED)

    wrong, untimed = world.look(unit)
    spurious = {f"{room}:{key}" for room, key in world.fired}  # one that was fired again may have no owner any more
    wrong = [one for one in wrong if one not in spurious]
    if wrong or untimed:
        raise Violation(
            "timers have owners", f"timers of nobody: {wrong[:3]}; frames without their timer: {untimed[:3]}"
        )


def _owned(tx: Tx, room: str, key: str) -> bool:
    if room != "machines":
        there = queries.OWNERS.get(room)
        return there is None or tx.one(there, (key,)) is not None
    owner, *place = key.split(":")
    if owner == "express":
        return tx.one(queries.EXPRESS_THERE, place) is not None
    if owner == "activity":
        return tx.one(queries.WAITER_THERE, [int(one) for one in place]) is not None
    if not owner.isdigit():
        return True  # the room's own, as retention
    if place == ["0"]:
        return tx.one(queries.EXECUTION_OPEN, (int(owner),)) is not None
    return tx.one(queries.FRAME_THERE, (int(owner), int(place[0]))) is not None


def map_runs_add_up(world: World) -> None:
    """Children of a Map Run that is over have each ended once."""
    for row in world.look(lambda tx: tx.all(queries.MAP_RUNS)):
        name, _, phase, children, *ended = row
        if phase == "over" and children != sum(ended):
            raise Violation("map runs add up", f"Map Run {name} had {children} children, and counted {ended}")


def executions_that_were_started_are_there(world: World) -> None:
    """An acknowledged start is an execution."""
    known = {f"{row[1]}:{row[3]}" for row in world.look(lambda tx: tx.all(queries.EXECUTIONS))}
    lost = [arn for arn in world.told.executions if ":".join(arn.rsplit(":", 2)[1:]) not in known]
    if lost:
        raise Violation("executions that were started are there", f"acknowledged and lost: {lost[:3]}")


def idempotent_starts_exist_once(world: World) -> None:
    """Whoever repeats a request with its name or client token is told of the same thing."""
    several: dict[Any, set[str]] = {what: said for what, said in world.told.started.items() if len(said) > 1}
    if several:
        what, said = next(iter(several.items()))
        raise Violation("idempotent starts exist once", f"{what} was answered with {sorted(said)}")
    counts = world.look(lambda tx: tx.all(queries.STARTED_BY))
    asked = {given["clientToken"]: given["count"] for kind, given, _ in world.told.requests if kind == "RunTask"}
    many = [token for token, count in counts if token in asked and count > asked[token]]
    if many:
        raise Violation(
            "idempotent starts exist once", f"client tokens {many[:3]} started more tasks than were asked for"
        )
