"""The auditor of what is due finds what it is there to find: each broken promise, planted into evidence that is otherwise sound."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest

from tests.crash.appointments import EACH_MINUTE, WAYS, Appointment, Arrivals, Posting, Promises, Tick
from tests.crash.timely_auditor import MINUTE, TimelyAudit, audit_times

START = 1_767_225_600_000  # 2026-01-01
AT = START + 10_000
MADE = START + 2_500


def written(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Evidence:
    """What there is when nothing went wrong: `at-0` to `at-3`, one of each way; of the postings one of each kind doesn't fit."""

    promised: Promises
    got: Arrivals

    def audit(self) -> TimelyAudit:
        return audit_times(self.promised, self.got)


def sound() -> Evidence:
    made = {f"at-{n}": Appointment(AT, way, goes=n % 2 == 1, answered=MADE) for n, way in enumerate(WAYS)}
    promised = Promises(
        made,
        {"event-0": Posting(wanted=True, id="e0"), "event-1": Posting(wanted=False, id="e1")},
        {"plain-0": Posting(wanted=True, id="m0"), "plain-1": Posting(wanted=False, id="m1")},
        dict.fromkeys(EACH_MINUTE, (MADE - 100, MADE)),
        closed=START + 2 * MINUTE + 1_000,
    )
    ticks = [Tick(name, written(AT), AT + 7, one.way) for name, one in made.items()]
    marks = dict.fromkeys(("cron", "rule"), (START + MINUTE, START + 2 * MINUTE))
    marks["rate"] = (START + 2_000, START + 2_000 + MINUTE)
    minutes = [Tick(of, written(at), at + 500, "minutes") for of, these in marks.items() for at in these]
    return Evidence(
        promised, Arrivals(ticks, [("event-0", "e0")], [("plain-0", "m0")], minutes, {"at-0", "at-2", "cron", "rate"})
    )


def test_sound_evidence_passes_and_is_counted() -> None:
    one = sound()
    one.promised.down.append((AT - 1, AT + 1))
    found = one.audit()
    assert found.violations == []
    assert (found.appointments, found.uncertain, found.missed) == (4, 0, 4)
    assert (found.minutes, found.events, found.letters) == (6, 2, 2)
    one.promised.down.clear()
    found = one.audit()
    assert (found.missed, found.latest_ms) == (0, 7)


@pytest.mark.parametrize("answered", [None, AT, AT + 1])
def test_what_was_answered_late_or_never_may_come_or_not_but_once(answered: int | None) -> None:
    one = sound()
    one.promised.appointments["at-0"].answered = answered
    assert one.audit().violations == []
    one.got.ticks.append(one.got.ticks[0])
    assert one.audit().violations == ["at-0 (queue) fired 2 times"]
    del one.got.ticks[0], one.got.ticks[-1]
    assert one.audit().violations == []
    for these in (one.promised.events, one.promised.letters):
        next(iter(these.values())).id = None
    one.got.events.clear()
    one.got.letters.clear()
    found = one.audit()
    assert (found.violations, found.unanswered) == ([], 3 if answered is None else 2)


def lost_tick(one: Evidence) -> None:
    del one.got.ticks[0]


def lost_execution(one: Evidence) -> None:
    del one.got.ticks[2]


def repeated_tick(one: Evidence) -> None:
    one.got.ticks.append(replace(one.got.ticks[1], at=AT + 900))


def other_planned_time(one: Evidence) -> None:
    one.got.ticks[3] = replace(one.got.ticks[3], tick=written(AT + 1000), at=AT + 1000)


def early(one: Evidence) -> None:
    one.got.ticks[0] = replace(one.got.ticks[0], at=AT - 1)


def made_up(one: Evidence) -> None:
    one.got.ticks.append(replace(one.got.ticks[0], name="at-9"))


def stayed(one: Evidence) -> None:
    one.got.schedules.add("at-1")


def went(one: Evidence) -> None:
    one.got.schedules.remove("at-2")


def cron_missed(one: Evidence) -> None:
    del one.got.minutes[1]


def cron_repeated(one: Evidence) -> None:
    one.got.minutes.append(one.got.minutes[0])


def cron_off(one: Evidence) -> None:
    one.got.minutes.append(Tick("cron", written(START + MINUTE + 1_000), START + MINUTE + 1_000, "minutes"))


def cron_before_it_was_made(one: Evidence) -> None:
    one.got.minutes.append(Tick("cron", written(START), START + 500, "minutes"))


def cron_early(one: Evidence) -> None:
    one.got.minutes[0] = replace(one.got.minutes[0], at=START)


def rule_missed(one: Evidence) -> None:
    one.got.minutes = [tick for tick in one.got.minutes if tick.name != "rule"]


def rate_not_begun(one: Evidence) -> None:
    one.got.minutes = [tick for tick in one.got.minutes if (tick.name, tick.tick) != ("rate", written(START + 2_000))]


def rate_repeated(one: Evidence) -> None:
    one.got.minutes.append(next(tick for tick in one.got.minutes if tick.name == "rate"))


def rate_drifted(one: Evidence) -> None:
    one.got.minutes[-1] = replace(one.got.minutes[-1], tick=written(START + 3_000 + MINUTE))


def rate_stopped(one: Evidence) -> None:
    one.promised.closed += MINUTE
    for of in ("cron", "rule"):
        one.got.minutes.append(Tick(of, written(START + 3 * MINUTE), START + 3 * MINUTE, "minutes"))


def lost_event(one: Evidence) -> None:
    one.got.events.clear()


def repeated_event(one: Evidence) -> None:
    one.got.events *= 2


def unfit_event(one: Evidence) -> None:
    one.got.events.append(("event-1", "e1"))


def other_event(one: Evidence) -> None:
    one.got.events[0] = ("event-0", "e7")


def lost_letter(one: Evidence) -> None:
    one.got.letters.clear()


def repeated_letter(one: Evidence) -> None:
    one.got.letters *= 2


def unfit_letter(one: Evidence) -> None:
    one.got.letters.append(("plain-1", "m1"))


def unsent_letter(one: Evidence) -> None:
    one.got.letters.append(("plain-9", "m9"))


def dead(one: Evidence) -> None:
    one.got.dead.append("{}")


def left(one: Evidence) -> None:
    one.got.left.append("plain")


@pytest.mark.parametrize(
    ("plant", "said"),
    [
        (lost_tick, "at-0 (queue) was there before its time and did not fire"),
        (lost_execution, "at-2 (machine) was there before its time and did not fire"),
        (repeated_tick, "at-1 (universal) fired 2 times"),
        (other_planned_time, f"at-3 fired for {written(AT + 1000)}"),
        (early, "at-0 came 1 ms before its time"),
        (made_up, "at-9 fired and was never made"),
        (stayed, "at-1 is still there"),
        (went, "at-2 is gone"),
        (cron_missed, f"cron: {START + 2 * MINUTE} is missing"),
        (cron_repeated, f"cron: {START + MINUTE} came 2 times"),
        (cron_off, f"cron: {START + MINUTE + 1_000} is no minute"),
        (cron_before_it_was_made, f"cron: {START} is no minute of its"),
        (cron_early, "cron came 60000 ms before its time"),
        (rule_missed, f"rule: {START + MINUTE} is missing"),
        (rate_not_begun, "rate: did not begin when it was made"),
        (rate_repeated, "rate: came at"),
        (rate_drifted, "rate: came at"),
        (rate_stopped, "rate: came at"),
        (lost_event, "event event-0 was acknowledged and is lost"),
        (repeated_event, "event event-0 arrived 2 times"),
        (unfit_event, "event event-1 arrived and does not fit"),
        (other_event, "event event-0 has another id"),
        (lost_letter, "letter plain-0 was acknowledged and is lost"),
        (repeated_letter, "letter plain-0 arrived 2 times"),
        (unfit_letter, "letter plain-1 arrived and does not fit"),
        (unsent_letter, "letter plain-9 was never sent"),
        (dead, "a dead letter"),
        (left, "messages are still in the queue of the pipe plain"),
    ],
)
def test_a_broken_promise_is_named(plant: Callable[[Evidence], None], said: str) -> None:
    one = sound()
    plant(one)
    violations = one.audit().violations
    assert [word for word in violations if word.startswith(said)], violations
