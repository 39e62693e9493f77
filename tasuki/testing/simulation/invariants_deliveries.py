"""Promises about deliveries of ticks and events: each ends once, is tried as its policy says, and is never stuck.

What a delivery should look like is read off the record of handovers (`ledger.py`), the rows on their way, and the policies
that clients gave (fixed by the name of the schedule or rule).
"""

from tasuki.testing.simulation import queries
from tasuki.testing.simulation.actions_buses import POLICIES as OF_RULES
from tasuki.testing.simulation.actions_schedules import LETTERS, POLICIES
from tasuki.testing.simulation.invariants_messages import census_of
from tasuki.testing.simulation.ledger import Entry, Ledger, Name
from tasuki.testing.simulation.shapes import TICKS
from tasuki.testing.simulation.told_schedules import instant_of
from tasuki.testing.simulation.world import Violation, World
from tasuki.values.instant import DAY, MINUTE, SECOND, Instant

LONGEST_PAUSE_MS = 10 * MINUTE
"""Eight minutes and a quarter: the longest pause between two tries."""
LONGEST_WINDOW_MS = DAY


def ledger_of(world: World) -> Ledger:
    """Bring the ledger up to date."""
    world.look(world.ledger.read)
    return world.ledger


def deliveries_end_once(world: World) -> None:
    """Tries are counted from 1 without a gap, as many as the policy allows; then there is one ending, and nothing after it."""
    for entry in ledger_of(world).take_changed():
        trouble = trouble_in(entry)
        if trouble:
            raise Violation("deliveries end once", f"{said(entry.name)}: {trouble}")


def said(name: Name) -> str:
    """Name a delivery."""
    return f"{name.source.rpartition(':')[2]} {name.source_id} to {name.target.rpartition(':')[2]}"


def policy_of(source: str) -> tuple[int, int]:
    """Answer (retries, age in milliseconds) of whoever has this ARN."""
    name = source.rpartition("/")[2]
    retries, age_s = (POLICIES if ":scheduler:" in source else OF_RULES)[name]
    return retries, age_s * SECOND


def trouble_in(entry: Entry) -> str:
    """Answer what is wrong with a delivery so far, or an empty text."""
    numbers = [number for _, number in entry.tries]
    if numbers != list(range(1, len(numbers) + 1)):
        return f"its failed tries are numbered {numbers}"
    if len(entry.ends) > 1:
        return f"it ended {len(entry.ends)} times: {[outcome for _, outcome, _ in entry.ends]}"
    retries, age_ms = policy_of(entry.name.source)
    delivered = entry.outcome == "DELIVERED"
    tries = len(numbers) + delivered
    if tries > retries + 1:
        return f"it was tried {tries} times, and may be tried again {retries} times"
    if not entry.ends:
        return ""
    ended = entry.ends[0][0]
    if entry.tries and entry.tries[-1][0] > ended:
        return "it was tried after its end"
    if entry.outcome.split(":")[0] not in {"DELIVERED", "DEAD_LETTERED", "DROPPED"}:
        return f"its ending is {entry.outcome}"
    if "MaximumRetryAttempts" in entry.outcome and len(numbers) != retries + 1:
        return f"it was given up after {len(numbers)} tries, of {retries + 1}"
    return _trouble_with_age(entry, ended, age_ms)


def _trouble_with_age(entry: Entry, ended: Instant, age_ms: int) -> str:
    """Answer whether it was tried when it was too old, or given up for its age when it was not."""
    if ":scheduler:" not in entry.name.source:
        return ""  # when an event was taken in, the record doesn't say; `invariants_buses` knows
    planned = instant_of(entry.name.source_id)
    last = ended if entry.outcome == "DELIVERED" else entry.tries[-1][0] if entry.tries else planned
    if last > planned + LONGEST_WINDOW_MS + age_ms:
        return f"it was tried {last - planned} ms after its time, and may be {age_ms} ms old"
    if "MaximumEventAgeInSeconds" in entry.outcome and ended + LONGEST_PAUSE_MS <= planned + age_ms:
        return f"it was given up for its age after {ended - planned} ms, of {age_ms}"
    return ""


def deliveries_are_never_stuck(world: World) -> None:
    """What is on its way and what is told of it agree; what waits has a timer for its next try, what was called a call."""
    ledger = ledger_of(world)
    there: set[Name] = set()
    for number, *named, attempt, state, next_at, due, calls in world.look(lambda tx: tx.all(queries.DELIVERIES)):
        name = Name(*named)
        there.add(name)
        entry = ledger.entries.get(name)
        failed = len(entry.tries) if entry is not None else 0
        if entry is not None and entry.ends:
            raise Violation("deliveries are never stuck", f"{said(name)} is over ({entry.outcome}) and has a row")
        if attempt != failed + (state == "calling"):
            raise Violation("deliveries are never stuck", f"{said(name)} is at try {attempt}, and {failed} failed")
        if (due != next_at) if state == "waiting" else not calls:
            raise Violation(
                "deliveries are never stuck",
                f"{said(name)} (row {number}) is {state} until {next_at}; its timer is at {due}, its calls are {calls}",
            )
    lost = [name for name, entry in ledger.entries.items() if not entry.ends and name not in there]
    if lost:
        raise Violation("deliveries are never stuck", f"{said(lost[0])} has not ended and is not on its way")


def calls_have_owners(world: World) -> None:
    """Each HTTP call that a delivery made is waited for; each batch of a pipe that is on its way has a timer."""
    nobodys = world.look(lambda tx: tx.all(queries.CALLS_OF_NOBODY))
    untimed = world.look(lambda tx: tx.all(queries.CALLS_WITHOUT_TIMER))
    if nobodys or untimed:
        raise Violation("calls have owners", f"nobody waits for {nobodys[:3]}; without a timer: {untimed[:3]}")


def dead_letters_are_there(world: World) -> None:
    """A dead letter that is told of stands in its queue, once, and there is no other."""
    told, now = world.told, world.clock.now()
    kept = told.retention[LETTERS]
    wanted: set[str] = set()
    for entry in ledger_of(world).entries.values():
        if not entry.outcome.startswith("DEAD_LETTERED"):
            continue
        at, _, message = entry.ends[0]
        if message not in told.ids and now < at + kept:
            raise Violation("dead letters are there", f"the letter {message} of {said(entry.name)} was never seen")
        wanted.add(message)
    strays = [one.key for one in census_of(world)[0] if one.queue == LETTERS and one.id not in wanted]
    if strays:
        raise Violation("dead letters are there", f"nobody gave these up: {strays[:3]}")


def what_was_delivered_is_there(world: World) -> None:
    """What a tick became in the queue for that is there, with the planned time it is of, and the number of its try."""
    told = world.told
    for entry in ledger_of(world).entries.values():
        name = entry.name
        if entry.outcome != "DELIVERED" or ":scheduler:" not in name.source or not name.target.endswith(f":{TICKS}"):
            continue
        message = entry.ends[0][2]
        key = f"t:{name.source}@{name.source_id[:19]}Z"
        if told.ids.get(message) != key:
            raise Violation(
                "what was delivered is there", f"{said(name)} became {message}: {told.ids.get(message)}, not {key}"
            )
        if told.attempts.get(message) != str(len(entry.tries) + 1):
            raise Violation(
                "what was delivered is there",
                f"{said(name)} says that it is try {told.attempts.get(message)}, and is {len(entry.tries) + 1}",
            )


def nothing_is_under_way(world: World) -> None:
    """At the end: no delivery, event, HTTP call, batch of a pipe or dying group is left."""
    counts = world.look(lambda tx: {what: tx.all(sql)[0][0] for what, sql in queries.UNDER_WAY.items()})
    left = {what: count for what, count in counts.items() if count}
    if left:
        raise Violation("nothing is under way", f"still there at the end: {left}")
