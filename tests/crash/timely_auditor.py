"""Compares what schedules, a bus and pipes promised over many crashes with what arrived: each once, none early, none made up.

S2-11, S2-14: a schedule that was there before its time fires once, with its planned time, also when its node was dead just then.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from tests.crash.appointments import Arrivals, Posting, Promises, Tick

MINUTE = 60_000


@dataclass
class TimelyAudit:
    """What was found. `violations` names each promise that was broken, and by what."""

    appointments: int = 0
    """Schedules that had to fire."""
    uncertain: int = 0
    """Schedules that were answered late or not at all; they fire at most once."""
    missed: int = 0
    """Of those that fired: due while no node ran."""
    latest_ms: int = 0
    """How late a tick came, at most, of those that were due while a node ran."""
    minutes: int = 0
    events: int = 0
    letters: int = 0
    unanswered: int = 0
    """Schedules, events and letters that nobody answered for."""
    violations: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        broken = "".join(f"\n  {one}" for one in self.violations[:20])
        return (
            f"timely auditor: {self.appointments} schedules that had to fire and {self.uncertain} that might, {self.missed} of them "
            f"due while no node ran (others at most {self.latest_ms} ms late), {self.minutes} ticks of each minute, {self.events} "
            f"acknowledged events, {self.letters} acknowledged letters ({self.unanswered} of all unanswered): {len(self.violations)} violations{broken}"
        )


def audit_times(promised: Promises, got: Arrivals) -> TimelyAudit:
    """Compare."""
    found = TimelyAudit(
        events=sum(one.id is not None for one in promised.events.values()),
        letters=sum(one.id is not None for one in promised.letters.values()),
        minutes=len(got.minutes),
        unanswered=sum(one.answered is None for one in promised.appointments.values())
        + sum(one.id is None for these in (promised.events, promised.letters) for one in these.values()),
    )
    say = found.violations.append
    _appointments(promised, got, found)
    for of, (asked, answered) in promised.minutes.items():
        came = [one for one in got.minutes if one.name == of]
        for one in came:
            _early(one, found.violations)
        ticks = sorted(_ms(one.tick) for one in came)
        say_all = _rate if of == "rate" else _cron
        found.violations += [f"{of}: {said}" for said in say_all(ticks, asked, answered, promised.closed)]
    found.violations += _postings("event", promised.events, got.events)
    found.violations += _postings("letter", promised.letters, got.letters)
    for body in got.dead:
        say(f"a dead letter: {body}")
    for queue in got.left:
        say(f"messages are still in the queue of the pipe {queue}")
    return found


def _appointments(promised: Promises, got: Arrivals, found: TimelyAudit) -> None:
    say = found.violations.append
    fired = Counter(one.name for one in got.ticks)
    for one in got.ticks:
        made = promised.appointments.get(one.name)
        if made is None:
            say(f"{one.name} fired and was never made")
            continue
        if _ms(one.tick) != made.at:
            say(f"{one.name} fired for {one.tick}, and was planned for {made.at}")
        _early(one, found.violations)
        if any(since <= made.at <= until for since, until in promised.down):
            found.missed += 1
        elif made.is_due:
            found.latest_ms = max(found.latest_ms, one.at - made.at)
    for name, made in promised.appointments.items():
        found.appointments += made.is_due
        found.uncertain += not made.is_due
        if made.is_due and not fired[name]:
            say(f"{name} ({made.way}) was there before its time and did not fire")
        if fired[name] > 1:
            say(f"{name} ({made.way}) fired {fired[name]} times")
        if made.is_due and (name in got.schedules) == made.goes:
            say(f"{name} is {'still there, and was to go' if made.goes else 'gone, and was to stay'}")


def _early(one: Tick, violations: list[str]) -> None:
    if one.at < _ms(one.tick):
        violations.append(f"{one.name} came {_ms(one.tick) - one.at} ms before its time {one.tick}")


def _cron(ticks: Sequence[int], asked: int, answered: int, closed: int) -> list[str]:
    """Each minute's mark once, from its creation on."""
    said = [f"{tick} came {count} times" for tick, count in Counter(ticks).items() if count > 1]
    said += [f"{tick} is no minute of its" for tick in ticks if tick % MINUTE or tick <= asked]
    first = answered // MINUTE * MINUTE + MINUTE
    return said + [f"{tick} is missing" for tick in range(first, closed + 1, MINUTE) if tick not in ticks]


def _rate(ticks: Sequence[int], asked: int, answered: int, closed: int) -> list[str]:
    """The second of its creation, and each minute from there."""
    if not ticks or not asked // 1000 * 1000 <= ticks[0] <= answered:
        return [f"did not begin when it was made, but with {ticks[:1]}"]
    wanted = list(range(ticks[0], max(closed, ticks[-1]) + 1, MINUTE))
    return [] if list(ticks) == wanted else [f"came at {list(ticks)} and not at {wanted}"]


def _postings(kind: str, promised: Mapping[str, Posting], got: Sequence[tuple[str, str]]) -> list[str]:
    """Each once that was acknowledged and fits; none that does not fit; none twice."""
    said = []
    arrived = Counter(name for name, _ in got)
    for name, one in promised.items():
        if one.id is not None and one.wanted and not arrived[name]:
            said.append(f"{kind} {name} was acknowledged and is lost")
        if arrived[name] and not one.wanted:
            said.append(f"{kind} {name} arrived and does not fit")
        if arrived[name] > 1:
            said.append(f"{kind} {name} arrived {arrived[name]} times")
    for name, id_ in got:
        if name not in promised:
            said.append(f"{kind} {name} was never sent")
        elif promised[name].id not in {None, id_}:
            said.append(f"{kind} {name} has another id than it was answered with")
    return said


def _ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)
