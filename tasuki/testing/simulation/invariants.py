"""What must hold: a named function each, which raises `Violation`. Tests plant a bug for every one of them.

`CHEAP` are checked after each step, `QUIET` whenever the house is at rest and nothing is going wrong, `LAST` at the end, when all
that can end has ended. A new room adds its promises here, and its rows to `queries.py`.
"""

from collections.abc import Callable
from typing import TypeAlias

from tasuki.testing.simulation.invariants_buses import (
    events_reach_nobody_else,
    events_reach_who_wants_them,
    planned_times_of_rules_fire_once,
    the_house_tells_of_its_executions,
)
from tasuki.testing.simulation.invariants_deliveries import (
    calls_have_owners,
    dead_letters_are_there,
    deliveries_are_never_stuck,
    deliveries_end_once,
    nothing_is_under_way,
    what_was_delivered_is_there,
)
from tasuki.testing.simulation.invariants_executions import (
    executions_that_were_started_are_there,
    histories_are_contiguous,
    idempotent_starts_exist_once,
    map_runs_add_up,
    nothing_is_left_of_what_ended,
    nothing_is_stuck,
    nothing_waits_for_a_bell,
    timers_have_owners,
)
from tasuki.testing.simulation.invariants_messages import (
    bodies_lie_beside_messages,
    conservation_holds,
    deleted_messages_stay_away,
    no_message_is_doubled,
    no_message_is_handed_over_twice,
    no_message_is_lost,
)
from tasuki.testing.simulation.invariants_pipes import (
    what_a_pipe_delivers_comes_out,
    what_a_pipe_is_done_with_is_gone,
    what_a_target_names_has_failed,
)
from tasuki.testing.simulation.invariants_schedules import (
    no_tick_comes_unasked,
    no_tick_is_lost,
    planned_times_have_timers,
    schedules_come_and_go_as_told,
)
from tasuki.testing.simulation.invariants_tasks import (
    every_task_that_began_ended,
    no_task_runs_twice,
    running_tasks_are_known,
)
from tasuki.testing.simulation.world import Violation, World

Invariant: TypeAlias = Callable[[World], None]


def no_fault_of_ours_was_logged(world: World) -> None:
    """Rooms and loops catch what breaks in a round and go on; it is a bug all the same."""
    if world.complaints:
        raise Violation("no fault of ours was logged", "; ".join(world.complaints[:3]))


CHEAP: tuple[Invariant, ...] = (
    no_fault_of_ours_was_logged,
    conservation_holds,
    no_message_is_doubled,
    no_message_is_lost,
    deleted_messages_stay_away,
    histories_are_contiguous,
    timers_have_owners,
    no_task_runs_twice,
    idempotent_starts_exist_once,
    deliveries_end_once,
    deliveries_are_never_stuck,
    calls_have_owners,
    what_was_delivered_is_there,
    no_tick_comes_unasked,
    planned_times_have_timers,
    events_reach_nobody_else,
    what_a_pipe_is_done_with_is_gone,
    what_a_pipe_delivers_comes_out,
    what_a_target_names_has_failed,
)
"""After each step."""

QUIET: tuple[Invariant, ...] = (
    nothing_waits_for_a_bell,
    nothing_is_stuck,
    nothing_is_left_of_what_ended,
    bodies_lie_beside_messages,
    no_message_is_handed_over_twice,
    running_tasks_are_known,
    map_runs_add_up,
    executions_that_were_started_are_there,
    no_message_is_doubled,
    dead_letters_are_there,
    no_tick_is_lost,
    schedules_come_and_go_as_told,
    events_reach_who_wants_them,
    planned_times_of_rules_fire_once,
    the_house_tells_of_its_executions,
)
"""When the house is at rest."""

LAST: tuple[Invariant, ...] = (every_task_that_began_ended, nothing_is_under_way)
"""At the end."""


def check(world: World, invariants: tuple[Invariant, ...]) -> int:
    """Check some invariants; answer how many. Raises `Violation`."""
    world.counted = None
    for invariant in invariants:
        invariant(world)
    world.counted = None
    return len(invariants)
