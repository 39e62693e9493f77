"""What is written down while a strategy is played: tasks and their seconds, calls at queues, tries, transitions."""

import math
from collections import Counter
from dataclasses import dataclass, field

from tasuki.testing.loads.jobs import Job
from tasuki.testing.loads.plan import Version
from tasuki.values.instant import Instant


@dataclass(slots=True, eq=False)
class Stay:
    """One task from the order to start it (from where AWS charges for it) to its end."""

    version: Version
    began: Instant
    ended: Instant | None = None

    def lasted_ms(self, now: Instant) -> int:
        """How long it has been there."""
        return (self.ended if self.ended is not None else now) - self.began


@dataclass(slots=True, eq=False)
class Ledger:
    """Filled by a play. Times are of the play's own clock, calls as they were made."""

    stays: list[Stay] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    """By operation; `empty` counts those ReceiveMessage that gave nothing (they are counted as ReceiveMessage too)."""
    useful_ms: int = 0
    starting_ms: int = 0
    wasted_ms: int = 0
    """Work of tries that failed, were killed, or did again what was done."""
    killed: int = 0
    failed: int = 0
    refused: int = 0
    """How often no more task was let run, and the machine asked again later."""
    transitions: int = 0
    piped: int = 0
    fleet: dict[str, int] = field(default_factory=dict)
    ends: Instant = 0

    def begin(self, version: Version, now: Instant) -> Stay:
        """A task is started."""
        stay = Stay(version, now)
        self.stays.append(stay)
        return stay

    def worked(self, job: Job, began: Instant, now: Instant) -> None:
        """A try has done its job: usefully, if nobody had done it before."""
        if job.done is None:
            job.began, job.done = began, now
            self.useful_ms += now - began
        else:
            self.wasted_ms += now - began

    @property
    def task_ms(self) -> int:
        """The time of all tasks together."""
        return sum(stay.lasted_ms(self.ends) for stay in self.stays)

    @property
    def peak(self) -> int:
        """How many tasks there were at once, at most."""
        steps = sorted(
            step for stay in self.stays for step in ((stay.began, 1), (stay.began + stay.lasted_ms(self.ends), -1))
        )
        now = most = 0
        for _, change in steps:
            now += change
            most = max(most, now)
        return most

    def running(self, buckets: int, until: Instant) -> list[float]:
        """Answer how many tasks ran, on average in each of so many equal parts of the time to `until`."""
        width = until / buckets
        sums = [0.0] * buckets
        for stay in self.stays:
            began, ended = stay.began, min(stay.began + stay.lasted_ms(self.ends), until)
            for at in range(math.floor(began / width), min(math.ceil(ended / width), buckets)):
                sums[at] += max(0.0, min(ended, (at + 1) * width) - max(began, at * width))
        return [one / width for one in sums]
