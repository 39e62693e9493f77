"""The story, in order: jobs arrive, a deploy happens in mid-run, the node goes away and comes back, every job is accounted for.

With `--crash` the node is killed with SIGKILL while two tasks run. One ends while the node is down, the other is still
at work when it comes back, as the same process.
"""

import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import psutil

from dispatch import engines, stage
from dispatch.board import Board, Job, Screen, exit_code, revision
from dispatch.proof import prove
from dispatch.reckoning import reckon
from tasuki.cli import screen as output
from tasuki.cli.complaints import Code, Complaint
from tasuki.cli.own_node import OwnNode
from tasuki.cli.pace import pause
from tasuki.cli.stories import Options
from tasuki.runtime.clock import SystemClock

INSTANCES = ("X-n101-k25", "X-n106-k14", "X-n110-k13", "X-n115-k10", "X-n120-k6", "X-n125-k30")
LATE = "job-3"
"""Its input arrives after it does: the first attempt fails, the machine's Retry runs it again."""
Begun: TypeAlias = tuple[str, psutil.Process]
"""A task's ARN and its process."""
PATIENCE_S = 60
"""How much longer than its search a job may take before it counts as lost."""


def play(options: Options) -> int:
    """Play it; answer 0 if every job is accounted for and every solution holds."""
    if missing := engines.missing():
        names = {"v1": "OR-Tools", "v2": "PyVRP"}
        if not options.as_json:
            output.line(f"Setting up {' and '.join(f'engine {v} ({names[v]})' for v in missing)}, once ...")
        engines.set_up(missing)
    root = Path(".tasuki-demo").resolve()
    root.mkdir(exist_ok=True)
    data = Path(tempfile.mkdtemp(prefix="dispatch-", dir=root))
    keep = True  # whatever did not end well is left for a look: its error names files in it
    try:
        code = Story(data, options).play()
        keep = options.keep or code != Code.DONE
    except KeyboardInterrupt:
        keep = options.keep
        raise
    finally:
        if keep:
            output.line(f"kept: {data}", sys.stderr)
        else:
            shutil.rmtree(data, ignore_errors=True)
            if not any(root.iterdir()):
                root.rmdir()
    return code


class Story:
    """One performance, on a node and in a folder of its own."""

    def __init__(self, data: Path, options: Options) -> None:
        self.options = options
        self.results, self.instances = data / "results", data / "instances"
        self.results.mkdir()
        self.instances.mkdir()
        self.node = OwnNode(data)
        self.jobs = _jobs(options)
        self.board = Board(self.jobs)
        self.screen = Screen(self.board, live=output.interactive() and not options.as_json)
        self.say = self.screen.say if not options.as_json else lambda _text: None
        self.late_delivered = False
        self.proofs: list[str] = []
        stage.write_images(data, self.instances, self.results)

    def play(self) -> int:
        """From the first message to the last line of the table."""
        for name in INSTANCES:
            if name != _instance_of(self.jobs, LATE):
                shutil.copy(stage.HERE / "instances" / f"{name}.vrp", self.instances)
        try:
            with self.screen.lit():
                self._acts()
        finally:
            self._leave()
        rows, verdict = reckon(self.jobs, self.results)
        if self.options.as_json:
            output.show_json({"jobs": rows, "proofs": self.proofs, "verdict": verdict})
        else:
            self.screen.table(rows)
            output.line(verdict or "Every job is accounted for, and every solution holds.")
        return Code.NO if verdict else Code.DONE

    def _acts(self) -> None:
        self.node.start()
        self.stage = stage.build(self.node.reach)
        self.say(
            f"A node at {self.node.url}, pid {self.node.pid}. Queues, task definitions, a machine and a pipe are made."
        )
        half = len(self.jobs) - self.options.jobs // 2
        self._send(self.jobs[:half])
        runners = [job for job in self.jobs[:half] if job.fate == "result" and job.id != LATE]
        self._until(
            lambda: self._late_ran() and all(job.running or job.ended for job in runners), "the first jobs run", 60
        )
        self.stage.deploy("2")
        before = self._at_work(runners)
        self.say(
            f"Deployed release 2: two task revisions, the machine, the pipe. {len(before)} tasks run on what they began with."
        )
        if self.options.crash:
            self._crash(runners)
        else:
            self._restart(before)
        self._send(self.jobs[half:])
        longest = max(job.seconds for job in self.jobs)
        self._until(lambda: all(job.ended for job in self.jobs), "all jobs end", longest * 3 + PATIENCE_S)
        self._finished_as_begun(before, self.jobs[half:])

    def _at_work(self, jobs: list[Job]) -> dict[str, Begun]:
        """Answer what runs now: each job's task, and its process with the time it was born."""
        found = {}
        for job in jobs:
            if job.running and job.pid:
                with suppress(psutil.NoSuchProcess):
                    found[job.id] = (job.attempts[-1]["taskArn"], psutil.Process(job.pid))
        return found

    def _send(self, jobs: list[Job]) -> None:
        for job in jobs:
            job.sent = SystemClock().now()
            self.stage.send(job.message)
        self.say(f"Sent {len(jobs)} jobs: {', '.join(job.id for job in jobs)}.")

    def _until(self, reached: Callable[[], bool], what: str, within_s: int) -> None:
        """Look and show until something is so. Raises `Complaint` when it takes too long."""
        clock = SystemClock()
        end = clock.now() + within_s * 1000
        while True:
            self.board.look(self.stage)
            if not self.options.as_json:
                self.screen.show()
            self._deliver_late()
            if reached():
                return
            if clock.now() > end:
                waiting = ", ".join(f"{job.id} {job.state}" for job in self.jobs if job.sent and not job.ended)
                raise Complaint(f"waited {within_s} s until {what}; still open: {waiting}", hint=f"see {self.node.log}")
            pause()

    def _late_ran(self) -> bool:
        return any(exit_code(task) for job in self.jobs if job.id == LATE for task in job.attempts)

    def _deliver_late(self) -> None:
        """Bring the input that was missing, once its job has failed for want of it."""
        if self.late_delivered or not self._late_ran():
            return
        self.late_delivered = True
        name = _instance_of(self.jobs, LATE)
        self.say(f"{LATE} failed: {name}.vrp was not there yet. It is now; the machine's Retry will find it.")
        shutil.copy(stage.HERE / "instances" / f"{name}.vrp", self.instances)

    def _restart(self, before: dict[str, Begun]) -> None:
        """Stop the node as an upgrade does, and start it again."""
        old = self.node.pid
        self.node.stop()
        alive = [process.pid for _, process in before.values() if process.is_running()]
        self.say(
            f"The node (pid {old}) is stopped with SIGTERM. {len(alive)} tasks go on without it: pids {_list(alive)}."
        )
        self.node.start()
        self.say(f"The node is back, pid {self.node.pid}.")
        self._adopted(before)

    def _crash(self, runners: list[Job]) -> None:
        """Kill the node while two tasks run; start it when one of them has ended in its absence."""
        short, long = min(runners, key=lambda job: job.seconds), max(runners, key=lambda job: job.seconds)
        self.board.look(self.stage)
        both = self._at_work([short, long])
        if len(both) < 2:
            raise Complaint(
                f"{short.id} and {long.id} were to run now", hint="this machine is slow: give more --seconds"
            )
        ending, staying = both[short.id][1], both[long.id][1]
        old = self.node.pid
        self.node.kill()
        names = f"{short.id} (pid {ending.pid}) and {long.id} (pid {staying.pid})"
        self.say(f"The node (pid {old}) is killed with SIGKILL. {names} run on.")
        _gone(ending, short.seconds + PATIENCE_S)
        self.say(f"{short.id} has ended, with no node to see it. {long.id} is still at work.")
        self.node.start()
        self.say(f"The node is back, pid {self.node.pid}.")
        self._adopted({long.id: both[long.id]})
        self._until(lambda: bool(short.results), f"{short.id} is settled", 30)
        kept = exit_code(short.attempts[-1]) == 0 and len(short.tasks) == 1
        self._check(kept, f"{short.id}: ended while the node was down; its exit code 0 was not lost, and it ran once")

    def _adopted(self, before: dict[str, Begun]) -> None:
        """Prove that what ran before is the same task and the same process now: one job was to last that long."""
        self.board.look(self.stage)
        proved = len(self.proofs)
        for job in self.jobs:
            if job.id in before and job.running:
                arn, process = before[job.id]
                same = job.attempts[-1]["taskArn"] == arn and job.pid == process.pid and process.is_running()
                self._check(same, f"{job.id}: adopted, still pid {process.pid}, still {revision(job.attempts[-1])}")
        self._check(len(self.proofs) > proved, "a task was at work before, during and after the node's absence")

    def _finished_as_begun(self, before: dict[str, Begun], later: list[Job]) -> None:
        """Prove that the deploy disturbed nobody, and that those who came later got what it brought."""
        for job in self.jobs:
            if job.id in before and job.results:
                arn, process = before[job.id]
                once = list(job.tasks) == [arn] and prove(self.results / f"{job.id}.json").pid == process.pid
                self._check(
                    once and _releases(job) == ("1", "1", "1"),
                    f"{job.id}: one run, pid {process.pid}, all of release 1",
                )
        fresh = [job for job in later if job.results]
        self._check(
            all(_releases(job) == ("2", "2", "2") for job in fresh), f"{len(fresh)} later jobs: all of release 2"
        )

    def _check(self, holds: bool, text: str) -> None:
        if not holds:
            raise Complaint(f"not so: {text}", hint=f"see {self.node.log}")
        self.proofs.append(text)
        self.say(f"[green]proved[/]  {text}")

    def _leave(self) -> None:
        """Leave nothing running behind: tasks outlive a node, so they are stopped first."""
        if not self.node.running:
            return
        try:
            ecs = self.node.reach.client("ecs")
            for arn in ecs.list_tasks(desiredStatus="RUNNING")["taskArns"]:
                ecs.stop_task(task=arn, reason="the demo is over")
        except Exception as gone:  # noqa: BLE001 - the node may be gone; the first failure is the one to tell
            self.say(f"(tasks could not be stopped: {gone})")
        self.node.stop()


def _jobs(options: Options) -> list[Job]:
    """Make the jobs: half of them before the deploy, with one of an unknown version and one whose input never comes."""
    regular = [
        Job(f"job-{at + 1}", "v1" if at % 2 == 0 else "v2", INSTANCES[at % len(INSTANCES)], options.seconds)
        for at in range(options.jobs)
    ]
    regular[1].seconds = options.seconds * 3  # so long that it is at work before, during and after the node's absence
    half = options.jobs - options.jobs // 2
    odd = [
        Job("job-v9", "v9", INSTANCES[0], options.seconds, fate="failure"),
        Job("job-lost", "v1", "X-n999-k99", options.seconds, fate="failure"),
    ]
    return [*regular[:half], *odd, *regular[half:]]


def _instance_of(jobs: list[Job], wanted: str) -> str:
    return next(job.instance for job in jobs if job.id == wanted)


def _releases(job: Job) -> tuple[str, str, str]:
    """Answer which release of the task definition, the machine and the pipe a job met."""
    told = job.results[0]
    return str(told["taskDefinitionArn"]).rpartition(":")[2], told["machineRelease"], told["pipeRelease"]


def _gone(process: psutil.Process, within_s: int) -> None:
    """Wait until a process has ended. Raises `Complaint` when it does not."""
    clock = SystemClock()
    end = clock.now() + within_s * 1000
    while process.is_running():
        if clock.now() > end:
            raise Complaint(f"process {process.pid} did not end within {within_s} s")
        pause(0.05)


def _list(pids: list[int]) -> str:
    return ", ".join(map(str, pids)) or "none"
