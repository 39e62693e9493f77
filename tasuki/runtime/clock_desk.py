"""`GetClock`, `AdvanceClock`, `RunClock`: operations of our own (service `tasuki`) that move the house's clock. The owner's alone.

GetClock      no input. `Now`, `Kind` (`manual` or `real`), `Speed`, `Next` (`At` and `What` is due then), `Busy` (what is at work at
              this instant)
AdvanceClock  `By` (`36h`, `PT36H`, `90`) or `To` (an instant with its zone); `PatienceSeconds` (60: how long, in real time, a task
              that runs is waited for), `WaitSeconds` (20, at most 50: after how long it is answered how far it came). `Now`, `To`,
              `Arrived`, `Visited` (instants), `Busy`, `Counts`. Not arrived is no error: ask again with the answer's `To`.
RunClock      `Speed`: so many seconds of house time pass in a real one; 0 stops it. Answers as GetClock.
"""

from typing import Any

from tasuki.runtime import tally
from tasuki.runtime.conductor import PATIENCE_S, ClockBusy, Conductor, Progress, Restless
from tasuki.runtime.loop import Loop
from tasuki.store.store import Store, Tx
from tasuki.values.durations import parse_duration, parse_instant
from tasuki.values.errors import DomainError
from tasuki.values.instant import DAY, Clock, Instant, to_iso
from tasuki.values.operations import Operation, Request, acting

WAIT_S, LONGEST_WAIT_S = 20.0, 50.0
"""Clients give up after a minute, mostly."""
COUNTED_EACH_MS = DAY // 2
"""After how much house time it is counted what happened: before retention takes it away."""
FASTEST = DAY / 1000
"""A day a second."""
LAST = 253_402_300_799_000
"""The last second of the year 9999."""
NEXT_TIMER = "SELECT room, key FROM timers ORDER BY due LIMIT 1"


class ValidationException(DomainError):
    """What is asked cannot be done with this clock."""

    code = "ValidationException"


class ConflictException(DomainError):
    """Somebody else moves the clock just now."""

    code = "ConflictException"


class NotAtRest(DomainError):
    """The house does not come to rest at an instant."""

    code = "NotAtRestException"
    status = 500
    sender = False


class ClockDesk:
    """Takes what people say to the conductor. `conductor` is None where the clock is real."""

    def __init__(self, *, conductor: Conductor | None, loop: Loop, clock: Clock, store: Store) -> None:
        self._conductor, self._loop, self._clock, self._store = conductor, loop, clock, store

    @property
    def operations(self) -> dict[str, Operation]:
        """Answer them, by name."""
        return {
            "GetClock": acting(self._get),
            "AdvanceClock": acting(self._advance),
            "RunClock": acting(self._run),
        }

    async def _get(self, _request: Request) -> dict[str, Any]:
        return await self._shown()

    async def _shown(self) -> dict[str, Any]:
        conductor = self._conductor
        kind, speed = ("real", 1.0) if conductor is None else ("manual", conductor.speed)
        now = await self._store.read(lambda tx: tx.now)  # on disk: no power cut takes it back
        shown: dict[str, Any] = {"Now": to_iso(now), "Kind": kind, "Speed": speed}
        following = self._loop.next
        if following is not None and following.due is not None:
            what = following.duty.name
            if what == "timers" and (timer := await self._store.look(_next_timer)) is not None:
                what = timer
            shown["Next"] = {"At": to_iso(following.due), "What": what}
        shown["Busy"] = [] if conductor is None else list(conductor.busy)
        return shown

    async def _advance(self, request: Request) -> dict[str, Any]:
        conductor, given = self._movable(), request.input
        patience_s = _bounded(given, "PatienceSeconds", PATIENCE_S, float(DAY))
        wait_s = _bounded(given, "WaitSeconds", WAIT_S, LONGEST_WAIT_S)
        to = self._target(given.get("By"), given.get("To"))
        counting = tally.Tally(await self._store.look(tally.look))

        async def count(now: Instant) -> None:
            if now - counting.before.since >= COUNTED_EACH_MS:
                await self._store.look(counting.add)

        try:
            progress = await conductor.advance(to, patience_s=patience_s, within_s=wait_s, on_rest=count)
        except ClockBusy:
            raise _busy(conductor) from None
        except Restless as why:
            await self._store.read(counting.add)
            raise NotAtRest(f"The clock stands at {to_iso(self._clock.now())}: {why}.") from why
        await self._store.read(counting.add)  # not before it is on disk where the clock stands
        return _answer(progress, to, counting.counts)

    async def _run(self, request: Request) -> dict[str, Any]:
        conductor = self._movable()
        if request.input.get("Speed") is None:
            raise ValidationException(
                "Give Speed: how many seconds of house time pass in a real one; 0 stops the clock."
            )
        speed = _bounded(request.input, "Speed", 0.0, FASTEST)
        try:
            await conductor.run(speed)
        except ClockBusy:
            raise _busy(conductor) from None
        return await self._shown()

    def _movable(self) -> Conductor:
        if self._conductor is None:
            raise ValidationException(
                "This node's clock is real, and nobody moves it. Start a node with --clock manual to move its clock."
            )
        return self._conductor

    def _target(self, by: str | None, to: str | None) -> Instant:
        now = self._clock.now()
        if (by is None) == (to is None):
            raise ValidationException("Give either By (a duration: 36h) or To (an instant with its zone).")
        try:
            target = now + parse_duration(by) if by is not None else parse_instant(to or "")
        except ValueError as bad:
            raise ValidationException(f"{'By' if by is not None else 'To'}: {bad}.") from None
        if target < now:
            raise ValidationException(
                f"The clock stands at {to_iso(now)}, and never goes back: {to_iso(target)} is before."
            )
        if target > LAST:
            raise ValidationException("The clock goes as far as the year 9999.")
        return target


def _next_timer(tx: Tx) -> str | None:
    row = tx.one(NEXT_TIMER)
    return f"timer {row[0]} {row[1]}" if row is not None else None


def _bounded(given: Any, name: str, default: float, most: float) -> float:
    value = given.get(name)
    number = default if value is None else value
    if not 0 <= number <= most:  # before it is made a float, which not every whole number can be
        raise ValidationException(f"{name} must be between 0 and {most:g}.")
    return float(number)


def _busy(conductor: Conductor) -> ConflictException:
    if conductor.speed:
        return ConflictException(f"The clock runs at speed {conductor.speed:g}. Stop it first: RunClock with Speed 0.")
    return ConflictException("The clock is being moved by another request. Ask again when that one is answered.")


def _answer(progress: Progress, to: Instant, counts: tally.Counts) -> dict[str, Any]:
    return {
        "Now": to_iso(progress.now),
        "To": to_iso(to),
        "Arrived": progress.arrived,
        "Visited": progress.visited,
        "Busy": list(progress.busy),
        "Counts": counts.shown,
    }
