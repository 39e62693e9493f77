"""State transitions in a second: a token bucket over all Standard executions, off by default (Step Functions quotas, "state throttling").

Whoever finds the bucket empty waits and never fails. An execution that is told something writes what follows from it at once,
but enters no state without a token: its frames stay ready, and it stands in line with all others that are. While anybody
stands in line only those in front get tokens, a few at a time; `polls.Turns` comes back when there are some again. In house
time. What the bucket holds is lost with the node, and a unit that is run again takes its tokens twice: the rate may be
lower than what is set for a moment, and is never higher. Each node has a bucket of its own.

Express machines have no such quota. A retry enters no state, and takes nothing.
"""

from typing import TYPE_CHECKING

from tasuki.engine.step import Outcome, step
from tasuki.engine.turn import MAX_TRANSITIONS
from tasuki.values.buckets import Bucket
from tasuki.values.instant import Instant

if TYPE_CHECKING:
    from tasuki.engine.events import Event
    from tasuki.services.machines.running import Run

AT_A_TURN = 20
"""How many transitions one execution may make before it goes behind all others."""
WAKES_PER_SECOND = 50
"""How often an empty bucket is looked at again: at a high rate several tokens come together."""


class Purse:
    """The tokens that an execution has for its turn."""

    __slots__ = ("tokens",)

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens


class Transitions:
    """The bucket, and who may take from it."""

    def __init__(self, per_second: int, burst: int) -> None:
        self._bucket = Bucket(burst, per_second)
        self._gulp = max(1, min(burst, per_second // WAKES_PER_SECOND))
        self._in_line = False
        """Somebody may be waiting."""

    def take(self, now: Instant, *, in_front: bool) -> int:
        """Take tokens for as many transitions as an execution may make now; `in_front`: of the line, and in its whole turn."""
        if self._in_line and not in_front:
            return 0
        count = min(int(self._bucket.held(now)), AT_A_TURN if self._in_line else MAX_TRANSITIONS)
        self._bucket.spend(count)
        return count

    def give_back(self, count: int, *, more: bool) -> None:
        """Give back what was not used; `more` tells whether the execution would go on and stands in line now."""
        self._bucket.spend(-count)
        self._in_line = self._in_line or more

    def opens(self, now: Instant) -> Instant:
        """Answer when the one in front may go on: not after `now` when there is a token."""
        if self._bucket.held(now) >= 1:
            return now
        self._in_line = True
        return now + self._bucket.wait_ms(self._gulp)

    def nobody_waits(self) -> None:
        """The line is empty: whoever comes may go on at once."""
        self._in_line = False


def step_within(transitions: Transitions | None, run: "Run", event: "Event", now: Instant) -> Outcome:
    """Tell an execution what happened; it enters as many states as the quota lets it."""
    if transitions is None or run.state.express:
        return step(run.machine, run.state, event, now)
    # Taken before the step, not after: it reads rows, and other executions are stepped meanwhile.
    purse = run.purse or Purse(transitions.take(now, in_front=False))
    more = False
    try:
        outcome = step(run.machine, run.state, event, now, purse.tokens)
        purse.tokens -= outcome.transitions
        more = outcome.ready
    finally:
        transitions.give_back(purse.tokens if run.purse is None else 0, more=more)
    return outcome
