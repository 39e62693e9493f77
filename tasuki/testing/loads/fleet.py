"""Workers that poll: a fleet that is always on, and one that follows the backlog.

A queue per version, since a worker runs one version and a queue can't be asked for some of its messages. Each worker is a
task of the house, which goes on until it is stopped. It long-polls, works, deletes, and polls again; a job that fails, or is
killed with its worker, comes back when its message's visibility timeout is over.

An idle worker's polls that find nothing are counted and not played. That is exact: a queue is looked at whenever something
can be in it (an arrival, the end of a visibility timeout), who is idle then has been polling all along, and the poll that began
first is answered first, as the house's own long polls are.

A worker that is protected (`Backlog.protect`) is so from before it asks for a message until a poll finds none, as a careful one
would be on AWS: between a message and its protection it could be stopped else. Scale-in then ends who is idle or still starts, and
the others when they come to rest, for as long as there are more of them than are wanted.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from tasuki.testing.loads.jobs import Job
from tasuki.testing.loads.ledger import Ledger, Stay
from tasuki.testing.loads.plan import Backlog, Plan, Version
from tasuki.testing.loads.stage import CONTAINER, Stage, environment
from tasuki.testing.scripted import Script
from tasuki.values.attempts import Launch
from tasuki.values.chance import Chance
from tasuki.values.instant import Instant

WORKER = "WORKER"


@dataclass(slots=True, eq=False)
class _Hold:
    """A message in somebody's hand: until when it is invisible, or None once it is deleted."""

    until: Instant | None


@dataclass(slots=True, eq=False)
class _Worker:
    number: int
    line: "_Line"
    task: str = ""
    stay: Stay | None = None
    idle_since: Instant | None = None
    job: Job | None = None
    began: Instant = 0
    turn: int = 0
    """Counts what it has done: what was entered in the agenda for an earlier turn is void."""


@dataclass(slots=True, eq=False)
class _Line:
    """A version's queue and its workers."""

    version: Version
    url: str
    workers: list[_Worker] = field(default_factory=list)
    wanted: int = 0
    """The service's desired count. Where workers are protected there may be more of them."""
    above_since: Instant | None = None
    below_since: Instant | None = None
    last_out: Instant | None = None
    last_change: Instant | None = None


class Fleet:
    """Plays workers. With `rule` their number follows the backlog; else it is `sizes`, by version, from the beginning."""

    def __init__(self, plan: Plan, jobs: list[Job], sizes: Mapping[str, int], rule: Backlog | None = None) -> None:
        self._plan, self._jobs, self._sizes, self._rule = plan, jobs, sizes, rule
        self.ledger = Ledger(fleet=dict(sizes) if rule is None else {})
        self._chance = Chance.seeded(f"{plan.seed}/scale-in")
        self._workers: dict[int, _Worker] = {}
        self._lines: dict[str, _Line] = {}

    def play(self) -> Ledger:
        """Play it all; answer what was written down."""
        plan, workers = self._plan, self._plan.workers
        with Stage(plan, self.ledger, self._script, self._bury) as self._stage:
            stage = self._stage
            redrive = {"deadLetterTargetArn": stage.arn(stage.dead_queue()), "maxReceiveCount": workers.receives}
            for version in plan.versions:
                visible_s = workers.visibility_ms // 1000
                url = stage.queue(f"jobs-{version.name}", VisibilityTimeout=visible_s, RedrivePolicy=redrive)
                line = self._lines[version.name] = _Line(version, url)
                least = self._sizes[version.name] if self._rule is None else self._rule.least
                line.wanted = least
                for _ in range(least):
                    self._order(line)
            for job in self._jobs:
                stage.at(job.arrives, lambda job=job: self._arrive(job))  # type: ignore[misc]
            stage.at(plan.ends, lambda: None)
            if self._rule is not None:
                self._tick(self._rule)
            stage.play(self._over)
            self._close()
        return self.ledger

    def _bury(self, body: str) -> None:
        self._jobs[int(body)].buried = True

    # -- the queue -------------------------------------------------------------------------------------------

    def _arrive(self, job: Job) -> None:
        line = self._lines[job.version.name]
        self._stage.sqs("SendMessage", QueueUrl=line.url, MessageBody=str(job.number))
        self._serve(line)

    def _serve(self, line: _Line) -> None:
        """Answer the polls of those who are idle, for as long as there is something."""
        now, poll = self._stage.now, self._plan.workers.poll_ms
        idle = [
            (now - (now - one.idle_since) % poll, one.number, one) for one in line.workers if one.idle_since is not None
        ]
        for _, _, worker in sorted(idle):
            given = {"QueueUrl": line.url, "WaitTimeSeconds": poll // 1000}
            # The worker's call is under way already: it counts once, when it is answered.
            found = self._stage.house.call("sqs", "ReceiveMessage", given).get("Messages")
            if not found:
                return
            self._count_polls(worker, now, answered=True)
            self._begin(worker, self._jobs[int(found[0]["Body"])], found[0]["ReceiptHandle"])

    def _count_polls(self, worker: _Worker, now: Instant, *, answered: bool) -> None:
        """Count the polls of a worker that is idle no more: those that ended empty, and the one under way."""
        assert worker.idle_since is not None
        empty = (now - worker.idle_since) // self._plan.workers.poll_ms
        self.ledger.calls["ReceiveMessage"] += empty + 1
        self.ledger.calls["empty"] += empty + (0 if answered else 1)
        worker.idle_since = None

    # -- a worker --------------------------------------------------------------------------------------------

    def _order(self, line: _Line) -> None:
        """Start a worker's task, if one more may run."""
        number = len(self._workers)
        override = {"name": CONTAINER, "environment": [{"name": WORKER, "value": str(number)}]}
        worker = self._workers[number] = _Worker(number, line)
        ran = self._stage.ecs("RunTask", taskDefinition=line.version.name, overrides={"containerOverrides": [override]})
        if not ran["tasks"]:
            self.ledger.refused += 1
            return
        worker.task = ran["tasks"][0]["taskArn"]
        line.workers.append(worker)
        self._stage.house.drain()

    def _script(self, launch: Launch) -> Script:
        worker = self._workers[int(environment(launch)[WORKER])]
        return Script(forever=True, on_start=lambda _: self._started(worker), on_end=lambda _: self._stopped(worker))

    def _started(self, worker: _Worker) -> None:
        now = self._stage.now
        worker.stay = self.ledger.begin(worker.line.version, now)
        # Who is there from the beginning was there before it.
        ready = now + worker.line.version.start_ms if now > 0 else now
        turn = worker.turn
        self._stage.at(ready, lambda: self._ready(worker, turn))

    def _ready(self, worker: _Worker, turn: int) -> None:
        if worker.turn == turn:
            assert worker.stay is not None
            self.ledger.starting_ms += self._stage.now - worker.stay.began
            self._rest(worker)

    def _rest(self, worker: _Worker) -> None:
        worker.turn += 1
        worker.job, worker.idle_since = None, self._stage.now
        self._serve(worker.line)
        if self._rule is not None and self._rule.protect and worker.job is None:
            self._scale_in(worker.line, self._rule)

    def _begin(self, worker: _Worker, job: Job, receipt: str) -> None:
        now, visible = self._stage.now, self._plan.workers.visibility_ms
        worker.turn += 1
        turn = worker.turn
        worker.job, worker.began = job, now
        job.try_begins(now)
        fails = job.fails()
        hold = _Hold(now + visible)
        self._stage.at(now + visible, lambda: self._returned(worker.line, hold))
        self._stage.at(now + job.works_ms, lambda: self._end(worker, turn, hold, receipt, fails=fails))
        if self._plan.workers.extend:
            self._stage.at(now + visible // 2, lambda: self._extend(worker, turn, hold, receipt))

    def _extend(self, worker: _Worker, turn: int, hold: _Hold, receipt: str) -> None:
        if worker.turn != turn:
            return
        now, visible = self._stage.now, self._plan.workers.visibility_ms
        self._stage.sqs(
            "ChangeMessageVisibility",
            QueueUrl=worker.line.url,
            ReceiptHandle=receipt,
            VisibilityTimeout=visible // 1000,
        )
        hold.until = now + visible
        self._stage.at(now + visible, lambda: self._returned(worker.line, hold))
        self._stage.at(now + visible // 2, lambda: self._extend(worker, turn, hold, receipt))

    def _returned(self, line: _Line, hold: _Hold) -> None:
        """A message may be back in the queue: whoever is idle gets it, or has it moved to the dead-letter queue."""
        if hold.until == self._stage.now:
            self._serve(line)

    def _end(self, worker: _Worker, turn: int, hold: _Hold, receipt: str, *, fails: bool) -> None:
        if worker.turn != turn:
            return
        job, now = worker.job, self._stage.now
        assert job is not None
        job.ended += 1
        if fails:
            self.ledger.failed += 1
            self.ledger.wasted_ms += now - worker.began
        else:
            self._stage.sqs("DeleteMessage", QueueUrl=worker.line.url, ReceiptHandle=receipt)
            hold.until = None
            self.ledger.worked(job, worker.began, now)
        self._rest(worker)

    def _stop(self, worker: _Worker) -> None:
        self._stage.ecs("StopTask", task=worker.task)
        self._stage.house.drain()

    def _stopped(self, worker: _Worker) -> None:
        """It is no more; what it worked at is lost, and its message comes back in its own time."""
        now = self._stage.now
        assert worker.stay is not None
        worker.stay.ended = now
        worker.line.workers.remove(worker)
        if worker.job is not None:
            self.ledger.killed += 1
            self.ledger.wasted_ms += now - worker.began
        elif worker.idle_since is not None:
            self._count_polls(worker, now, answered=False)
        else:
            self.ledger.starting_ms += now - worker.stay.began
        worker.turn += 1
        worker.job = worker.idle_since = None

    # -- the rule --------------------------------------------------------------------------------------------

    def _tick(self, rule: Backlog) -> None:
        for line in self._lines.values():
            self._scale(line, rule)
        self._stage.at(self._stage.now + rule.every_ms, lambda: self._tick(rule))

    def _scale(self, line: _Line, rule: Backlog) -> None:
        """Start or stop workers, as the messages that wait (not those that are worked on) would have it."""
        now, there = self._stage.now, line.wanted
        waiting = self._stage.standing(line.url)[0]
        wanted = min(max(math.ceil(waiting / rule.per_worker), rule.least), rule.most)
        line.above_since = (line.above_since if line.above_since is not None else now) if wanted > there else None
        line.below_since = (line.below_since if line.below_since is not None else now) if wanted < there else None
        if _lasts(line.above_since, now, rule.out_after_ms) and _rested(line.last_out, now, rule.out_cooldown_ms):
            line.wanted, line.last_out, line.last_change = wanted, now, now
        elif _lasts(line.below_since, now, rule.in_after_ms) and _rested(line.last_change, now, rule.in_cooldown_ms):
            line.wanted, line.last_change = wanted, now
        # A service orders what it lacks, also what was refused when it was asked for first.
        for _ in range(line.wanted - len(line.workers)):
            self._order(line)
        self._scale_in(line, rule)

    def _scale_in(self, line: _Line, rule: Backlog) -> None:
        """Stop whoever is too many: any of them, for ECS asks nobody what they are at, unless the task is protected."""
        for _ in range(len(line.workers) - line.wanted):
            free = [one for one in line.workers if not rule.protect or one.job is None]
            if not free:
                return
            self._stop(free[int(self._chance.fraction() * len(free))])

    # -- the end ---------------------------------------------------------------------------------------------

    def _over(self) -> bool:
        return all(self._stage.standing(line.url) == (0, 0) for line in self._lines.values())

    def _close(self) -> None:
        """Draw the line: who is idle is no more of this bill once the last job has come and it has done its own last one."""
        now, ends = self._stage.now, self._plan.ends
        for line in self._lines.values():
            for worker in line.workers:
                assert worker.stay is not None
                worker.stay.ended = now
                if worker.idle_since is not None:
                    worker.stay.ended = min(now, max(ends, worker.idle_since))
                    self._count_polls(worker, worker.stay.ended, answered=False)
                elif worker.job is not None:
                    self.ledger.wasted_ms += now - worker.began
                else:
                    self.ledger.starting_ms += now - worker.stay.began
        self._stage.clear_dead()
        self.ledger.ends = max([ends, *(stay.ended or 0 for stay in self.ledger.stays)])


def _lasts(since: Instant | None, now: Instant, for_ms: int) -> bool:
    return since is not None and now - since >= for_ms


def _rested(last: Instant | None, now: Instant, cooldown_ms: int) -> bool:
    return last is None or now - last >= cooldown_ms
