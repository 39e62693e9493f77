"""Promises about pipes: a message is deleted exactly when it is delivered, filtered or enriched to nothing, and comes out once."""

from tasuki.testing.simulation.invariants_deliveries import ledger_of
from tasuki.testing.simulation.invariants_messages import census_of
from tasuki.testing.simulation.shapes import TICKS
from tasuki.testing.simulation.world import Violation, World

_DONE = ("DELIVERED", "DUPLICATE", "FILTERED")


def what_a_pipe_is_done_with_is_gone(world: World) -> None:
    """A message that a pipe delivered or filtered stands in no queue, unless a client held it, too; and that happens once."""
    told = world.told
    standing = {one.id: one for one in census_of(world)[0]}
    done: dict[str, str] = {}
    for one in ledger_of(world).passed:
        if one.outcome not in _DONE or one.source_id in told.latest:
            continue
        before = done.get(one.source_id)
        if before is not None:
            raise Violation(
                "what a pipe is done with is gone",
                f"message {one.source_id} of {one.source}: {before}, and then {one.outcome} to {one.target}",
            )
        done[one.source_id] = f"{one.outcome} to {one.target}"
        if one.source_id in standing:
            raise Violation(
                "what a pipe is done with is gone", f"{standing[one.source_id]} was {done[one.source_id]} by {one.via}"
            )


def what_a_pipe_delivers_comes_out(world: World) -> None:
    """In the queue that is there for that: a message of its own for each that was passed on, saying the same; enriched, its event."""
    told = world.told
    for one in ledger_of(world).passed:
        if one.outcome != "DELIVERED" or not one.target.endswith(f":{TICKS}"):
            continue
        out, into = told.ids.get(one.target_id), told.ids.get(one.source_id)
        if out is None:
            raise Violation("what a pipe delivers comes out", f"{one.source_id} became {one.target_id}: never seen")
        if out.startswith("en:"):
            if f"en:{one.source_id}" not in told.sent:
                raise Violation("what a pipe delivers comes out", f"{one.source_id} was enriched, and never came")
        elif into is not None and out != into:
            raise Violation("what a pipe delivers comes out", f"{into} ({one.source_id}) became {out}")


def what_a_target_names_has_failed(world: World) -> None:
    """Of a batch that an Express machine worked off in part, those are left that it named, and those only."""
    told = world.told
    for one in ledger_of(world).passed:
        if not one.target.endswith(":partial"):
            continue
        number = told.numbers.get(told.ids.get(one.source_id, ""))
        if number is None or one.outcome.startswith("FILTERED"):
            continue
        named = "named the message" in one.outcome
        if named != (number == 1) and (named or one.outcome == "DELIVERED"):
            raise Violation(
                "what a target names has failed", f"{one.source_id} has n = {number} and is {one.outcome[:80]}"
            )
