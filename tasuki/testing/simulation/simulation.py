"""One run: a seed, its steps, the invariants after each, and at the end the faults off until all that can end has ended.

::

    furnish ─► step: an action, the nodes work, CHEAP ─► ... ─► now and then: calm, rest, QUIET ─► settle ─► QUIET, LAST

The same seed gives the same run, whatever the machine (`Outcome.trace`).
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tasuki.store.store import Tx
from tasuki.testing.simulation import actions_buses as buses
from tasuki.testing.simulation import actions_schedules as schedules
from tasuki.testing.simulation import grounds, queries
from tasuki.testing.simulation.actions import draw, furnish, populate
from tasuki.testing.simulation.actions_machines import SERVICE
from tasuki.testing.simulation.faults import Rates
from tasuki.testing.simulation.grounds import GroundMaker
from tasuki.testing.simulation.invariants import CHEAP, LAST, QUIET, check
from tasuki.testing.simulation.world import Violation, World
from tasuki.values.instant import DAY, HOUR, MINUTE

STEPS = 250
"""Steps of a run, unless told otherwise."""
CALM_EVERY = 40
"""Steps after which the faults pause and the house comes to rest."""
_PATIENCE = (MINUTE, 10 * MINUTE, HOUR, HOUR, 3 * HOUR, DAY, DAY, DAY, 6 * DAY)
"""How far the clock moves, round by round, while the house settles."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to play. `nodes` take turns on one store; `tamper` plants a bug (tests)."""

    seed: int
    steps: int = STEPS
    nodes: int = 2
    rates: Rates = field(default_factory=Rates)
    ground: GroundMaker = grounds.memory
    tamper: Callable[[Tx], Tx] | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it. `violation` is None when all invariants held; `step` is the last one that was played."""

    seed: int
    step: int
    violation: str | None
    last_actions: tuple[str, ...]
    faults: Counter[str]
    crashes: int
    units: int
    checked: int
    days: float
    trace: str


def simulate(plan: Plan) -> Outcome:
    """Play a plan to its end, or to the first invariant that does not hold."""
    world = World(plan.seed, plan.ground, plan.rates, nodes=plan.nodes, tamper=plan.tamper)
    step, checked = 0, 0
    violation: str | None = None
    try:
        furnish(world)
        populate(world)
        for step in range(1, plan.steps + 1):
            checked += _step(world, step)
            if step % CALM_EVERY == 0:
                checked += _calm(world)
        settle(world)
        checked += check(world, CHEAP) + check(world, QUIET) + check(world, LAST)
    except Violation as bad:
        violation = str(bad)
    except Exception as bad:  # noqa: BLE001 - whatever the house raises that no client is to see
        violation = f"the house broke: {bad!r}"
    finally:
        crashes = world.crashes
        world.close()
    return Outcome(
        seed=plan.seed,
        step=step,
        violation=violation,
        last_actions=tuple(world.last),
        faults=world.weather.counts,
        crashes=crashes,
        units=world.units,
        checked=checked,
        days=(world.clock.now() - world.began) / DAY,
        trace=world.trace,
    )


def _step(world: World, step: int) -> int:
    world.weather.calm = False
    if world.chance.random() < 0.3:
        world.revive()
    action = draw(world)
    world.last.append(f"  (step {step}: {action.__name__})")
    world.note(f"{step} {action(world)}")
    world.pump(some=True)
    return check(world, CHEAP)


def _calm(world: World) -> int:
    """Let the faults pause, whoever was slow or deaf catch up, and the house come to rest; check what holds then."""
    world.weather.clear_up()
    _wake(world)
    return check(world, QUIET)


def _wake(world: World) -> None:
    world.revive()
    for node in world.nodes:
        if node is not None:
            node.catch_up()
    world.rest()


def settle(world: World) -> None:
    """No faults any more: have tokens answered, activities worked on, endless tasks stopped, until nothing goes on.

    Who waits for a token that nobody has any more is stopped at last. Raises `Violation` when executions go on even so.
    """
    world.weather.clear_up()
    _wake(world)
    check(world, CHEAP + QUIET)
    schedules.end_all(world)
    buses.end_all(world)
    for patience in _PATIENCE:
        _answer_all(world)
        world.advance(patience)
        check(world, CHEAP)
    for account, region, machine, name in world.look(lambda tx: tx.all(queries.OPEN_EXECUTIONS)):
        arn = f"arn:aws:states:{region}:{account}:execution:{machine}:{name}"
        if not machine.startswith("ask"):
            raise Violation("nothing is stuck", f"{arn} goes on although all that it waits for has been answered")
        world.ask(SERVICE, "StopExecution", {"executionArn": arn})
    world.advance(DAY)
    left = world.look(lambda tx: tx.all(queries.EXECUTIONS_LEFT))[0]
    if any(left):
        raise Violation(
            "nothing is stuck", f"{left[0]} executions, {left[1]} Express ones, {left[2]} pipe calls go on for ever"
        )


def _answer_all(world: World) -> None:
    """Do everything that executions may wait for."""
    for token in world.told.tokens[-400:]:
        world.ask(SERVICE, "SendTaskSuccess", {"taskToken": token, "output": "{}"})
    arn = "arn:aws:states:us-east-1:000000000000:activity:press"
    while (taken := world.ask(SERVICE, "GetActivityTask", {"activityArn": arn})).said:
        if not taken.said.get("taskToken"):
            break
        world.ask(SERVICE, "SendTaskSuccess", {"taskToken": taken.said["taskToken"], "output": "{}"})
    listed = world.ask("ecs", "ListTasks", {"desiredStatus": "RUNNING"})
    for task in (listed.said or {}).get("taskArns", ()):
        world.ask("ecs", "StopTask", {"task": task})
    world.rest()
