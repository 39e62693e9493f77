"""Each invariant finds the bug that is planted for it; and whole runs find the bugs that matter most, from a seed."""

from collections.abc import Callable
from typing import Any

import pytest

from tasuki.engine.history import HistoryEvent
from tasuki.services.machines import queries as machines
from tasuki.services.queues import queries as queues
from tasuki.services.tasks import queries as tasks
from tasuki.store import timers
from tasuki.store.store import Params, Tx
from tasuki.testing.simulation import Plan, simulate
from tasuki.testing.simulation import invariants_executions as executions
from tasuki.testing.simulation import invariants_messages as messages
from tasuki.testing.simulation import invariants_tasks as of_tasks
from tasuki.testing.simulation.invariants import Invariant, no_fault_of_ours_was_logged
from tasuki.testing.simulation.invariants_executions import trouble_in
from tasuki.testing.simulation.shapes import URL
from tasuki.testing.simulation.world import World
from tests.simulation.planted import bug, finds, skipped, sql


def send(world: World, queue: str = "notes", pad: str = "") -> None:
    body = f'{{"key":"m1","pad":"{pad}"}}'
    given = {"QueueUrl": f"{URL}/{queue}", "MessageBody": body}
    world.ask(
        "sqs",
        "SendMessage",
        given,
        lambda said: world.told.note_send("m1", queue, said["MessageId"], world.clock.now()),
    )


def start(world: World, machine: str, text: str) -> str:
    given = {"stateMachineArn": world.told.machines[machine], "input": text}
    said = world.ask("stepfunctions", "StartExecution", given).said
    assert said is not None
    world.rest()
    return str(said["executionArn"])


def run_task(world: World, image: str) -> None:
    world.ask("ecs", "RunTask", {"taskDefinition": image, "clientToken": "t", "startedBy": "t", "count": 1})
    world.rest()


WAIT = '{"s":60,"n":0}'
COPY = "SELECT sent_at, seq + 1000, visible_at, bytes, body_id, content, shelf FROM messages"


def lose_a_message(world: World) -> None:
    send(world)
    sql(world, "DELETE FROM messages")


def double_a_message(world: World) -> None:
    send(world)
    sql(world, f"INSERT INTO messages (sent_at, seq, visible_at, bytes, body_id, content, shelf) {COPY}")


def bring_a_message_back(world: World) -> None:
    send(world)
    world.told.buried.update(world.told.ids)


def delete_uncounted(world: World) -> None:
    lose_a_message(world)


def lose_a_body(world: World) -> None:
    send(world, pad="x" * 100_000)
    sql(world, "DELETE FROM message_bodies")


HANDOVER = (
    "INSERT INTO handovers (at, source, source_id, via, target, target_id, trace, outcome) "
    "VALUES (1, '', 'm', 'p', '', ?, '', 'DELIVERED')"
)


def hand_over_twice(world: World) -> None:
    execution = start(world, "wait", WAIT)
    sql(world, HANDOVER, execution)
    messages.no_message_is_handed_over_twice(world)
    sql(world, HANDOVER, execution)


def hand_over_to_nobody(world: World) -> None:
    sql(world, HANDOVER, start(world, "wait", WAIT) + "x")


def write_a_chunk_twice(world: World) -> None:
    start(world, "wait", WAIT)
    sql(
        world,
        "INSERT INTO history (execution, first, count, body) SELECT execution, first + count, count, body FROM history",
    )


def drop_a_timer(world: World) -> None:
    start(world, "wait", WAIT)
    sql(world, "DELETE FROM timers WHERE room = 'machines' AND key LIKE '1:%'")


def break_a_round(world: World) -> None:
    world.complaints.append("a round broke")


def begin_a_task_twice(world: World) -> None:
    run_task(world, "endless")
    world.hosts[0].runner.started.append(world.started[0])


def answer_a_token_twice(world: World) -> None:
    world.told.started["RunTask", "t"].update({"one", "another"})


def start_more_than_was_asked(world: World) -> None:
    run_task(world, "endless")
    world.told.requests.append(("RunTask", {"clientToken": "t", "count": 0}, world.clock.now()))


def forget_the_bell(world: World) -> None:
    start(world, "wait", WAIT)
    sql(world, "INSERT INTO ready (execution, goes_on) VALUES (1, 0)")


def wait_for_nothing(world: World) -> None:
    start(world, "ask_forever", WAIT)
    sql(world, "UPDATE frames SET token = NULL")


def leave_an_inbox_row(world: World) -> None:
    start(world, "choose", '{"s":0,"n":1}')
    sql(world, "INSERT INTO inbox (execution, body) VALUES (1, ?)", b"x")


def lose_a_running_task(world: World) -> None:
    run_task(world, "endless")
    sql(world, "UPDATE tasks SET stopped_at = 1")


def miscount_children(world: World) -> None:
    start(world, "items", '{"items":[{"n":0,"s":0}],"n":0,"s":0}')
    sql(world, "UPDATE map_runs SET succeeded = succeeded + 1")


def lose_an_execution(world: World) -> None:
    world.told.executions[start(world, "wait", WAIT)] = "wait"
    sql(world, "DELETE FROM executions")


def leave_a_task(world: World) -> None:
    run_task(world, "endless")


PLANTED: list[tuple[Invariant, Callable[[World], None]]] = [
    (no_fault_of_ours_was_logged, break_a_round),
    (messages.conservation_holds, delete_uncounted),
    (messages.no_message_is_lost, lose_a_message),
    (messages.no_message_is_doubled, double_a_message),
    (messages.deleted_messages_stay_away, bring_a_message_back),
    (messages.no_message_is_handed_over_twice, hand_over_twice),
    (messages.no_message_is_handed_over_twice, hand_over_to_nobody),
    (messages.bodies_lie_beside_messages, lose_a_body),
    (executions.histories_are_contiguous, write_a_chunk_twice),
    (executions.timers_have_owners, drop_a_timer),
    (of_tasks.no_task_runs_twice, begin_a_task_twice),
    (executions.idempotent_starts_exist_once, answer_a_token_twice),
    (executions.idempotent_starts_exist_once, start_more_than_was_asked),
    (executions.nothing_waits_for_a_bell, forget_the_bell),
    (executions.nothing_is_stuck, wait_for_nothing),
    (executions.nothing_is_left_of_what_ended, leave_an_inbox_row),
    (of_tasks.running_tasks_are_known, lose_a_running_task),
    (executions.map_runs_add_up, miscount_children),
    (executions.executions_that_were_started_are_there, lose_an_execution),
    (of_tasks.every_task_that_began_ended, leave_a_task),
]


@pytest.mark.parametrize(("invariant", "plant"), PLANTED, ids=lambda one: one.__name__)
def test_an_invariant_finds_its_bug(invariant: Invariant, plant: Callable[[World], None]) -> None:
    finds(invariant, plant)


# -- bugs in whole runs -----------------------------------------------------------------------------------------------


def skip_every_third(statement: str) -> Callable[[Tx], Tx]:
    count = 0

    def deed(_tx: Tx, said: str, _params: Params) -> int | None:
        nonlocal count
        count += said == statement
        return 1 if said == statement and count % 3 == 0 else None

    return bug(deed)


def lose_sends(tx: Tx, said: str, params: Params) -> int | None:
    if said == queues.INSERT_MESSAGE:
        tx.run(queues.COUNT_DELETED, (*params[-2:], 1))  # so that the room's own count holds
        return 1
    return None


def delete_not_done() -> Callable[[Tx], Tx]:
    skips = False

    def deed(_tx: Tx, said: str, _params: Params) -> int | None:
        nonlocal skips
        if said == queues.DELETE_MESSAGE or (skips and said == queues.COUNT_DELETED):
            skips = said == queues.DELETE_MESSAGE
            return 1
        return None

    return bug(deed)


def claim_twice(tx: Tx, said: str, params: Params) -> int | None:
    if said == tasks.CLAIM and params[0] == 1:  # its first attempt
        changed = tx.run(said, params)
        tx.run(tasks.UNCLAIM, (params[-1],))
        return changed
    return None


def chunk_twice(tx: Tx, said: str, params: Params) -> int | None:
    if said == machines.ADD_CHUNK:
        tx.run(said, params)
        return tx.run(said, (params[0], params[1] + params[2], *params[2:]))
    return None


def break_a_round_of_timers(_tx: Tx, said: str, _params: Params) -> int | None:
    if said == timers.CLAIM:
        raise RuntimeError("planted")
    return None


BUGS: dict[str, tuple[Callable[[Tx], Tx], str | tuple[str, ...]]] = {
    "a message is deleted and not counted": (skipped(queues.COUNT_DELETED), "conservation holds"),
    "a delete is acknowledged and not done": (
        delete_not_done(),
        # a pipe deletes, too, and passes on again what is not gone
        (
            "deleted messages stay away",
            "no message is handed over twice",
            "no message is doubled",
            "what a pipe is done with is gone",
        ),
    ),
    "a send is acknowledged and not kept": (
        bug(lose_sends),
        ("no message is lost", "what was delivered is there"),  # rooms send, too
    ),
    "a history chunk is written twice": (bug(chunk_twice), "histories are contiguous"),
    "a history chunk is lost": (skip_every_third(machines.ADD_CHUNK), "histories are contiguous"),
    "an inbox row is lost": (skip_every_third(machines.ADD_TO_INBOX), "nothing is stuck"),
    "a turn is never given": (skip_every_third(machines.ADD_READY), "nothing"),
    "a bell is forgotten": (bug(mute=("machines",)), "nothing waits for a bell"),
    "a task is claimed twice": (bug(claim_twice), "no task runs twice"),
    "a client token is forgotten": (skipped(tasks.ADD_TOKEN), "idempotent starts exist once"),
    "a timer outlives its frame": (skipped(timers.CLEAR, timers.CLEAR_BELOW), "timers have owners"),
    "results are left behind": (skipped(machines.DROP_RESULTS, machines.DROP_RESULTS_OF), "nothing is left"),
    "a large body is left behind": (skipped(queues.DELETE_BODY), "bodies lie beside messages"),
    "a round breaks": (bug(break_a_round_of_timers), "no fault of ours was logged"),
}


@pytest.mark.parametrize("name", BUGS)
def test_a_run_finds_a_bug(name: str) -> None:
    tamper, expected = BUGS[name]
    for seed in range(1, 40):
        found = simulate(Plan(seed, tamper=tamper)).violation
        if found is not None:
            assert found.startswith(expected), found
            return
    pytest.fail(f"no run found it: {name}")


# -- histories --------------------------------------------------------------------------------------------------------

WHOLE = ["ExecutionStarted 0", "TaskStateEntered 0", "TaskScheduled 2", "TaskStarted 3", "TaskSucceeded 4"]
END = ["TaskStateExited 5", "ExecutionSucceeded 6"]


def history(*lines: str) -> list[HistoryEvent]:
    made: list[Any] = []
    for number, line in enumerate(lines, 1):
        kind, previous = line.split()
        made.append(HistoryEvent(number, int(previous), number, kind, {}))
    return made


@pytest.mark.parametrize(
    ("lines", "status", "redrives", "found"),
    [
        ([*WHOLE, *END], "SUCCEEDED", 0, ""),
        (WHOLE, "RUNNING", 0, ""),
        ([*WHOLE, *END], "FAILED", 0, "its last event is"),
        (WHOLE, "SUCCEEDED", 0, "its last event is"),
        ([*WHOLE, *END], "RUNNING", 0, "it runs and has ended"),
        ([*WHOLE, *END, "ExecutionFailed 7"], "FAILED", 0, "2 ends and 0 redrives"),
        ([*WHOLE, *END, "TaskStateExited 5"], "SUCCEEDED", 0, "its last event is"),
        ([*WHOLE, "TaskFailed 4"], "RUNNING", 0, "the task of event 3 ended twice"),
        ([*WHOLE, "TaskStateExited 6"], "RUNNING", 0, "do not follow an earlier one"),
        ([*WHOLE[:2], "ExecutionFailed 2", "ExecutionRedriven 3"], "RUNNING", 1, ""),
        ([*WHOLE[:2], "ExecutionFailed 2", "ExecutionRedriven 3"], "RUNNING", 0, "1 redrives are told and 0 counted"),
    ],
)
def test_a_history_is_read(lines: list[str], status: str, redrives: int, found: str) -> None:
    trouble = trouble_in(history(*lines), status, len(lines), redrives)
    assert trouble == found or (found and found in trouble), trouble


def test_a_history_with_a_gap_or_a_step_back_in_time() -> None:
    events = history(*WHOLE)
    assert "the ids are not" in trouble_in(events, "RUNNING", 6, 0)
    assert "the ids are not" in trouble_in(events[1:], "RUNNING", 5, 0)
    late = HistoryEvent(6, 5, 1, "TaskStateExited", {})
    assert trouble_in([*events, late], "RUNNING", 6, 0) == "time goes back"
