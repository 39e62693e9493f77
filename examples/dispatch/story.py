"""The story, in order: jobs arrive, a deploy happens in mid-run, the node goes away and comes back, every job is accounted for.

With `--crash` the node is killed with SIGKILL while two tasks run. One ends while the node is down, the other is still
at work when it comes back, as the same process.
"""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import psutil

from dispatch import engines, stage
from dispatch.board import Board, Job, Screen, exit_code, revision
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
    try:
        return Story(data, options).play()
    finally:
        if options.keep:
            output.line(f"kept: {data}")
        else:
            shutil.rmtree(data, ignore_errors=True)
            if not any(root.iterdir()):
                root.rmdir()


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
        self._until(lambda: self._late_ran() and all(job.running for job in runners), "the first jobs run", 60)
        self.stage.deploy("2")
        before = {job.id: (job.attempts[-1]["taskArn"], job.pid) for job in self.jobs if job.running}
        self.say(
            f"Deployed release 2: two task revisions, the machine, the pipe. {len(before)} tasks run on what they began with."
        )
        self._crash(runners) if self.options.crash else self._restart(before)
        self._send(self.jobs[half:])
        longest = max(job.seconds for job in self.jobs)
        self._until(lambda: all(job.ended for job in self.jobs), "all jobs end", longest * 3 + PATIENCE_S)

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

    def _restart(self, before: dict[str, tuple[str, int | None]]) -> None:
        """Stop the node as an upgrade does, and start it again."""
        old = self.node.pid
        self.node.stop()
        alive = [pid for _, pid in before.values() if pid and psutil.pid_exists(pid)]
        self.say(
            f"The node (pid {old}) is stopped with SIGTERM. {len(alive)} tasks go on without it: pids {_list(alive)}."
        )
        self.node.start()
        self.say(f"The node is back, pid {self.node.pid}.")
        self.board.look(self.stage)
        self._same(before)

    def _crash(self, runners: list[Job]) -> None:
        """Kill the node while two tasks run; start it when one of them has ended in its absence."""
        short, long = min(runners, key=lambda job: job.seconds), max(runners, key=lambda job: job.seconds)
        self.board.look(self.stage)
        kept = {long.id: (long.attempts[-1]["taskArn"], long.pid)}
        if not (short.running and long.running and short.pid and long.pid):
            raise Complaint(
                f"{short.id} and {long.id} were to run by now", hint="this machine is slow: give more --seconds"
            )
        adopted = psutil.Process(long.pid)
        old, born = self.node.pid, adopted.create_time()
        self.node.kill()
        self.say(
            f"The node (pid {old}) is killed with SIGKILL. {short.id} (pid {short.pid}) and {long.id} (pid {long.pid}) run on."
        )
        _gone(short.pid, short.seconds + PATIENCE_S)
        self.say(
            f"{short.id} (pid {short.pid}) has ended, with no node to see it. {long.id} (pid {long.pid}) is still at work."
        )
        self.node.start()
        self.say(f"The node is back, pid {self.node.pid}.")
        self._until(lambda: bool(short.results), f"{short.id} is settled", 30)
        self._check(
            exit_code(short.attempts[-1]) == 0 and len(short.tasks) == 1,
            f"{short.id}: its exit code 0 was not lost, and it ran once",
        )
        self._check(
            adopted.is_running() and adopted.create_time() == born,
            f"{long.id}: still the same process, pid {adopted.pid}",
        )
        self._same(kept)

    def _same(self, before: dict[str, tuple[str, int | None]]) -> None:
        """Prove that what ran before is the same task and the same process now."""
        for job in self.jobs:
            if job.id in before and job.running:
                arn, pid = before[job.id]
                last = job.attempts[-1]
                self._check(
                    last["taskArn"] == arn and job.pid == pid,
                    f"{job.id}: adopted, pid {pid} as before, still {revision(last)}",
                )

    def _check(self, holds: bool, text: str) -> None:
        if not holds:
            raise Complaint(f"not so: {text}", hint=f"see {self.node.log}")
        self.proofs.append(text)
        self.say(f"[green]proved[/]  {text}")

    def _leave(self) -> None:
        """Leave nothing running behind: tasks outlive a node, so they are stopped first."""
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
    if options.crash:
        regular[1].seconds = options.seconds * 3
    half = options.jobs - options.jobs // 2
    odd = [
        Job("job-v9", "v9", INSTANCES[0], options.seconds, fate="failure"),
        Job("job-lost", "v1", "X-n999-k99", options.seconds, fate="failure"),
    ]
    return [*regular[:half], *odd, *regular[half:]]


def _instance_of(jobs: list[Job], wanted: str) -> str:
    return next(job.instance for job in jobs if job.id == wanted)


def _gone(pid: int, within_s: int) -> None:
    """Wait until a process has ended. Raises `Complaint` when it does not."""
    clock = SystemClock()
    end = clock.now() + within_s * 1000
    while psutil.pid_exists(pid):
        if clock.now() > end:
            raise Complaint(f"process {pid} did not end within {within_s} s")
        pause(0.05)


def _list(pids: list[int]) -> str:
    return ", ".join(map(str, pids)) or "none"
