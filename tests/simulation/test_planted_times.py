"""As `test_planted.py`, for schedules, rules, deliveries and what pipes pass on: each invariant finds its bug, whole runs theirs."""

from collections.abc import Callable
from typing import Any

import pytest

from tasuki.services.buses import calls_queries as calls
from tasuki.services.buses import queries as buses
from tasuki.services.pipes import queries as pipes
from tasuki.services.queues import queries as queues
from tasuki.services.schedules import queries as schedules
from tasuki.store import timers
from tasuki.store.store import Params, Tx
from tasuki.testing.simulation import Plan, simulate
from tasuki.testing.simulation import invariants_buses as of_buses
from tasuki.testing.simulation import invariants_deliveries as of_deliveries
from tasuki.testing.simulation import invariants_messages as of_messages
from tasuki.testing.simulation import invariants_pipes as of_pipes
from tasuki.testing.simulation import invariants_schedules as of_schedules
from tasuki.testing.simulation.actions_buses import POLICIES as OF_RULES
from tasuki.testing.simulation.actions_schedules import LETTERS, POLICIES
from tasuki.testing.simulation.invariants import CHEAP, LAST, QUIET, Invariant
from tasuki.testing.simulation.shapes import TICKS
from tasuki.testing.simulation.told_rules import PATTERNS, Event, rule_arn
from tasuki.testing.simulation.world import World
from tasuki.values.instant import MINUTE, Instant, to_iso
from tests.simulation.planted import bug, finds, skipped, sql

QUEUE = "arn:aws:sqs:us-east-1:000000000000:"
SAID = (
    '{"key":"t:<aws.scheduler.schedule-arn>@<aws.scheduler.scheduled-time>","attempt":"<aws.scheduler.attempt-number>"}'
)
ARN = "arn:aws:scheduler:us-east-1:000000000000:schedule/default/s1"
HANDOVER = "INSERT INTO handovers (at, source, source_id, via, target, target_id, trace, outcome) VALUES (?, ?, ?, ?, ?, ?, 't', ?)"


def schedule(world: World, target: str = TICKS, minutes: int = 1, name: str = "s1", **more: Any) -> None:
    retries, age = POLICIES[name]
    given = {
        "Name": name,
        "ScheduleExpression": f"at({to_iso(world.clock.now() + minutes * MINUTE)[:19]})",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": {
            "Arn": QUEUE + target,
            "RoleArn": "r",
            "Input": SAID,
            "RetryPolicy": {"MaximumRetryAttempts": retries, "MaximumEventAgeInSeconds": age},
            "DeadLetterConfig": {"Arn": QUEUE + LETTERS},
        },
        **more,
    }
    world.ask("scheduler", "CreateSchedule", given, lambda _: world.told.schedules.created(given, world.clock.now()))


def tick(world: World) -> None:
    """A schedule fires into the queue."""
    schedule(world)
    world.advance(2 * MINUTE)
    of_messages.no_message_is_doubled(world)


def rule(world: World, name: str = "r2", pattern: str = "", plan: str = "") -> str:
    arn = rule_arn("default", name)
    retries, age = OF_RULES[name]
    what = {"EventPattern": PATTERNS[pattern][0]} if pattern else {"ScheduleExpression": plan}
    key = "r:<aws.events.rule-arn>@<time>:q" if plan else "ev:<id>"
    target = {
        "Id": "queue",
        "Arn": QUEUE + TICKS,
        "RetryPolicy": {"MaximumRetryAttempts": retries, "MaximumEventAgeInSeconds": age},
        "InputTransformer": {
            "InputPathsMap": {"id": "$.id", "time": "$.time"},
            "InputTemplate": f'{{"key":"{key}"}}',
        },
    }
    world.ask("events", "PutRule", {"Name": name, **what})
    world.ask("events", "PutTargets", {"Rule": name, "Targets": [target]})
    told = {"queue": QUEUE + TICKS}
    world.told.rules.change(arn, world.clock.now(), pattern=pattern, schedule=plan, targets=told)
    world.clock.set(world.clock.now() + 1)
    return arn


def put_event(world: World) -> None:
    entry = {"Source": "shop", "DetailType": "Order", "Detail": '{"kind":"a","n":1}'}

    def kept(said: dict[str, Any]) -> None:
        event = said["Entries"][0]["EventId"]
        world.told.rules.take(Event("default", event, "shop", "a", 1, world.clock.now()))

    world.ask("events", "PutEvents", {"Entries": [entry]}, kept)


def write_down(  # noqa: PLR0917
    world: World, source: str, source_id: str, target: str, outcome: str, via: str = "", became: str = ""
) -> None:
    sql(world, HANDOVER, world.clock.now(), source, source_id, via, target, became, outcome)


def send(world: World) -> str:
    """A message that stands in a queue; answer its id."""
    given = {"QueueUrl": "http://127.0.0.1:4566/000000000000/notes", "MessageBody": '{"key":"m1","n":1}'}
    world.ask(
        "sqs",
        "SendMessage",
        given,
        lambda said: world.told.note_send("m1", "notes", said["MessageId"], world.clock.now()),
    )
    return next(iter(world.told.ids))


# -- plants -----------------------------------------------------------------------------------------------------------


def end_twice(world: World) -> None:
    tick(world)
    columns = "at, source, source_id, via, target, target_id, trace, outcome"
    sql(world, f"INSERT INTO handovers ({columns}) SELECT {columns} FROM handovers")


def try_more_often_than_allowed(world: World) -> None:
    for number in (1, 2):
        write_down(world, ARN, to_iso(world.clock.now()), "arn:aws:sqs:::x", f"FAILED: No: no (attempt {number})")


def leave_out_a_try(world: World) -> None:
    write_down(world, ARN, to_iso(world.clock.now()), "arn:aws:sqs:::x", "FAILED: No: no (attempt 2)")


def try_when_it_is_too_old(world: World) -> None:
    long_ago: Instant = world.clock.now() - 3 * 24 * 60 * MINUTE
    write_down(world, ARN, to_iso(long_ago), "arn:aws:sqs:::x", "DELIVERED")


def lose_a_retry(world: World) -> None:
    schedule(world, "no-such-queue", name="s3")
    world.advance(MINUTE)
    of_deliveries.deliveries_are_never_stuck(world)
    sql(world, "DELETE FROM timers WHERE room = 'deliveries'")


def lose_a_delivery(world: World) -> None:
    schedule(world, "no-such-queue", name="s3")
    world.advance(MINUTE)
    sql(world, "DELETE FROM deliveries")


def call_for_nobody(world: World) -> None:
    sql(
        world,
        "INSERT INTO http_calls (key, destination, payload, parameters, watcher, trace, due) "
        "VALUES ('k', 1, '{}', '{}', 'deliveries:9:1', '', 0)",
    )


def call_without_a_timer(world: World) -> None:
    sql(
        world,
        "INSERT INTO pipe_calls (id, pipe, via, source, target, execution, called) VALUES ('c', 1, '', '', '', '', '[]')",
    )


def change_the_planned_time(world: World) -> None:
    tick(world)
    sql(world, "UPDATE handovers SET source_id = '2026-01-01T00:00:59.000Z'")


def miscount_the_try(world: World) -> None:
    tick(world)
    world.told.attempts = dict.fromkeys(world.told.attempts, "2")


def fire_what_nobody_planned(world: World) -> None:
    write_down(world, ARN, to_iso(world.clock.now()), "arn:aws:sqs:::x", "DELIVERED")


def fire_too_soon(world: World) -> None:
    schedule(world)
    write_down(world, ARN, to_iso(world.clock.now() + MINUTE), QUEUE + TICKS, "DELIVERED")


def fire_what_is_disabled(world: World) -> None:
    schedule(world, State="DISABLED")
    world.advance(MINUTE)
    write_down(world, ARN, to_iso(world.clock.now()), QUEUE + TICKS, "DELIVERED")


def fire_twice(world: World) -> None:
    tick(world)
    of_schedules.no_tick_comes_unasked(world)
    sql(
        world,
        "INSERT INTO handovers (at, source, source_id, via, target, target_id, trace, outcome) "
        "SELECT at, source, source_id, via, target, target_id, 'another', outcome FROM handovers",
    )


def forget_a_timer(world: World) -> None:
    schedule(world)
    sql(world, "DELETE FROM timers WHERE room = 'schedules'")


def leave_the_window(world: World) -> None:
    schedule(world, FlexibleTimeWindow={"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 1})
    sql(world, "UPDATE schedule_ticks SET moment = tick + 60000")
    sql(world, "UPDATE timers SET due = (SELECT moment FROM schedule_ticks) WHERE room = 'schedules'")


def forget_a_rules_timer(world: World) -> None:
    rule(world, "k1", plan="rate(1 hour)")
    sql(world, "DELETE FROM timers WHERE room = 'buses'")


def lose_a_tick(world: World) -> None:
    schedule(world)
    sql(world, "DELETE FROM timers WHERE room = 'schedules'")
    world.advance(2 * MINUTE)


def lose_a_schedule(world: World) -> None:
    schedule(world)
    sql(world, "DELETE FROM schedules")


def keep_a_schedule_that_was_to_go(world: World) -> None:
    schedule(world)
    world.told.schedules.lives[ARN][-1].dying = True


def lose_a_dead_letter(world: World) -> None:
    schedule(world, "no-such-queue")
    world.advance(2 * MINUTE)
    sql(world, "DELETE FROM messages")


def bury_what_is_not_dead(world: World) -> None:
    schedule(world, LETTERS)
    world.advance(2 * MINUTE)
    of_messages.no_message_is_doubled(world)


def match_what_is_not_meant(world: World) -> None:
    put_event(world)
    event = world.told.rules.waiting[0]
    write_down(world, rule(world, pattern="clock"), event.id, QUEUE + TICKS, "DELIVERED")


def match_what_nobody_put(world: World) -> None:
    write_down(world, rule(world, pattern="shop"), "1-2-3", QUEUE + TICKS, "DELIVERED")


def lose_an_event(world: World) -> None:
    rule(world, pattern="shop")
    put_event(world)
    sql(world, "DELETE FROM bus_events")


def lose_a_rules_time(world: World) -> None:
    rule(world, "k1", plan="rate(1 hour)")
    sql(world, "DELETE FROM timers WHERE room = 'buses'")
    world.advance(100 * MINUTE)


def end_without_a_word(world: World) -> None:
    rule(world, "h", pattern="states")
    sql(world, "DELETE FROM event_rules")
    sql(world, "UPDATE event_buses SET sources = '[]'")
    given = {"stateMachineArn": world.told.machines["choose"], "input": '{"s":0,"n":2}'}
    world.ask("stepfunctions", "StartExecution", given)
    world.rest()


def make_a_rules_time_up(world: World) -> None:
    arn = rule(world, "k1", plan="rate(1 hour)")
    world.told.note_send(f"r:{arn}@2026-01-01T00:01:00Z:q", TICKS, "x", 0)


def deliver_what_stays(world: World) -> None:
    write_down(world, QUEUE + "notes", send(world), QUEUE + TICKS, "DELIVERED", via="p", became="x")


def deliver_again(world: World) -> None:
    message = send(world)
    sql(world, "DELETE FROM messages")
    for _ in range(2):
        write_down(world, QUEUE + "notes", message, QUEUE + TICKS, "DELIVERED", via="p", became="x")


def deliver_nothing(world: World) -> None:
    write_down(world, QUEUE + "notes", send(world), QUEUE + TICKS, "DELIVERED", via="p", became="x")


def deliver_something_else(world: World) -> None:
    message = send(world)
    world.told.ids["x"] = "m2"
    write_down(world, QUEUE + "notes", message, QUEUE + TICKS, "DELIVERED", via="p", became="x")


def enrich_and_lose(world: World) -> None:
    message = send(world)
    world.told.ids["x"] = "en:another"
    write_down(world, QUEUE + "notes", message, QUEUE + TICKS, "DELIVERED", via="p", became="x")


def pass_over_what_failed(world: World) -> None:
    message = send(world)
    world.told.numbers["m1"] = 1
    write_down(world, QUEUE + "notes", message, "arn:stateMachine:partial", "DELIVERED", via="p", became="x")


def leave_an_event(world: World) -> None:
    sql(world, "INSERT INTO bus_events (bus, lane, ingested, trace, body) VALUES (0, 0, 0, '', '{}')")


PLANTED: list[tuple[Invariant, Callable[[World], None]]] = [
    (of_deliveries.deliveries_end_once, end_twice),
    (of_deliveries.deliveries_end_once, try_more_often_than_allowed),
    (of_deliveries.deliveries_end_once, leave_out_a_try),
    (of_deliveries.deliveries_end_once, try_when_it_is_too_old),
    (of_deliveries.deliveries_are_never_stuck, lose_a_retry),
    (of_deliveries.deliveries_are_never_stuck, lose_a_delivery),
    (of_deliveries.calls_have_owners, call_for_nobody),
    (of_deliveries.calls_have_owners, call_without_a_timer),
    (of_deliveries.what_was_delivered_is_there, change_the_planned_time),
    (of_deliveries.what_was_delivered_is_there, miscount_the_try),
    (of_deliveries.dead_letters_are_there, lose_a_dead_letter),
    (of_deliveries.dead_letters_are_there, bury_what_is_not_dead),
    (of_deliveries.nothing_is_under_way, leave_an_event),
    (of_schedules.no_tick_comes_unasked, fire_what_nobody_planned),
    (of_schedules.no_tick_comes_unasked, fire_too_soon),
    (of_schedules.no_tick_comes_unasked, fire_what_is_disabled),
    (of_schedules.no_tick_comes_unasked, fire_twice),
    (of_schedules.planned_times_have_timers, forget_a_timer),
    (of_schedules.planned_times_have_timers, leave_the_window),
    (of_schedules.planned_times_have_timers, forget_a_rules_timer),
    (of_schedules.no_tick_is_lost, lose_a_tick),
    (of_schedules.schedules_come_and_go_as_told, lose_a_schedule),
    (of_schedules.schedules_come_and_go_as_told, keep_a_schedule_that_was_to_go),
    (of_buses.events_reach_nobody_else, match_what_is_not_meant),
    (of_buses.events_reach_nobody_else, match_what_nobody_put),
    (of_buses.events_reach_who_wants_them, lose_an_event),
    (of_buses.the_house_tells_of_its_executions, end_without_a_word),
    (of_buses.planned_times_of_rules_fire_once, lose_a_rules_time),
    (of_buses.planned_times_of_rules_fire_once, make_a_rules_time_up),
    (of_pipes.what_a_pipe_is_done_with_is_gone, deliver_what_stays),
    (of_pipes.what_a_pipe_is_done_with_is_gone, deliver_again),
    (of_pipes.what_a_pipe_delivers_comes_out, deliver_nothing),
    (of_pipes.what_a_pipe_delivers_comes_out, deliver_something_else),
    (of_pipes.what_a_pipe_delivers_comes_out, enrich_and_lose),
    (of_pipes.what_a_target_names_has_failed, pass_over_what_failed),
]


@pytest.mark.parametrize(("invariant", "plant"), PLANTED, ids=lambda one: one.__name__)
def test_an_invariant_finds_its_bug(invariant: Invariant, plant: Callable[[World], None]) -> None:
    finds(invariant, plant)


def an_event_arrives(world: World) -> None:
    rule(world, pattern="shop")
    put_event(world)
    world.rest()


@pytest.mark.parametrize("plant", [tick, an_event_arrives])
def test_nothing_is_found_where_all_is_well(plant: Callable[[World], None]) -> None:
    finds(None, plant)


def test_every_invariant_is_tested() -> None:
    from tests.simulation.test_planted import PLANTED as OTHERS

    assert {invariant for invariant, _ in (*PLANTED, *OTHERS)} == {*CHEAP, *QUIET, *LAST}


# -- bugs in whole runs -----------------------------------------------------------------------------------------------


def every_third(
    matches: Callable[[Tx, str, Params], bool], instead: Callable[[Tx, str, Params], int]
) -> Callable[[Tx], Tx]:
    count = 0

    def deed(tx: Tx, said: str, params: Params) -> int | None:
        nonlocal count
        if not matches(tx, said, params):
            return None
        count += 1
        return instead(tx, said, params) if count % 3 == 0 else None

    return bug(deed)


def nothing(_tx: Tx, _said: str, _params: Params) -> int:
    return 1


def timer_of(room: str) -> Callable[[Tx, str, Params], bool]:
    return lambda _tx, said, params: said == timers.SET and params[0] == room


def into(name: str) -> Callable[[Tx, str, Params], bool]:
    def matches(tx: Tx, said: str, params: Params) -> bool:
        if said != queues.INSERT_MESSAGE:
            return False
        return tx.one("SELECT 1 FROM queues WHERE name = ? AND shelf = ?", (name, params[-2])) is not None

    return matches


def not_kept(tx: Tx, _said: str, params: Params) -> int:
    tx.run(queues.COUNT_DELETED, (*params[-2:], 1))  # so that the room's own count holds
    return 1


def moves_on(_tx: Tx, said: str, params: Params) -> bool:
    return said == schedules.MOVE_ON and params[0] is not None


def from_the_present(tx: Tx, said: str, params: Params) -> int:
    tick_at, _, last, number = params
    late = tick_at + tx.now - last
    changed = tx.run(said, (late, late, last, number))
    tx.run(timers.SET, ("schedules", str(number), late))
    return changed


def skip_one(tx: Tx, said: str, params: Params) -> int:
    tick_at, _, last, number = params
    return tx.run(said, (tick_at + (tick_at - last), tick_at + (tick_at - last), last, number))


BUGS: dict[str, tuple[Callable[[Tx], Tx], tuple[str, ...]]] = {
    "a tick's timer is lost": (every_third(timer_of("schedules"), nothing), ("planned times have timers",)),
    "the next tick counts from the present": (
        every_third(moves_on, from_the_present),
        ("no tick", "planned times have timers"),
    ),
    "a tick is left out": (every_third(moves_on, skip_one), ("no tick", "planned times have timers")),
    "a retry is lost": (every_third(timer_of("deliveries"), nothing), ("deliveries are never stuck",)),
    "a dead letter is lost": (every_third(into(LETTERS), not_kept), ("dead letters are there", "no message is lost")),
    "a tick is delivered nowhere": (
        every_third(into(TICKS), not_kept),
        ("what ", "no message is lost", "planned times of rules"),
    ),
    "an event is matched twice": (
        every_third(lambda _tx, said, _params: said == buses.DROP_EVENT, nothing),
        ("deliveries end once", "no message is doubled", "the house comes to rest"),
    ),
    "an event is lost": (
        every_third(lambda _tx, said, _params: said == buses.ADD_EVENT, nothing),
        ("events reach who wants them",),
    ),
    "a call is forgotten": (
        every_third(lambda _tx, said, _params: said == calls.ADD, nothing),
        ("deliveries are never stuck",),
    ),
    "a call is made again though it was settled": (
        skipped(calls.DROP),
        ("calls have owners", "nothing is under way", "the house"),
    ),
    "a batch's end is not written down": (skipped(pipes.DROP_CALL), ("calls have owners", "nothing is stuck")),
    "a schedule outlives its group": (skipped(schedules.DELETE), ("schedules", "timers", "planned", "the house")),
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", BUGS)
def test_a_run_finds_a_bug(name: str) -> None:
    tamper, expected = BUGS[name]
    for seed in range(1, 40):
        found = simulate(Plan(seed, tamper=tamper)).violation
        if found is not None:
            assert found.startswith(expected), found
            return
    pytest.fail(f"no run found it: {name}")
