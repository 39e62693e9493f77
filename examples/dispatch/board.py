"""What is known of each job, gathered through the public APIs, and how it is shown while it happens."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from dispatch.stage import Stage
from tasuki.cli.pages import describe_tasks, task_arns
from tasuki.cli.screen import show_table
from tasuki.cli.tasks import pid_of
from tasuki.runtime.clock import SystemClock
from tasuki.values.instant import Instant, from_datetime

LEFT_COLUMNS = 4
"""Of the final table: names to the left, figures to the right."""


@dataclass
class Job:
    """One job and what became of it."""

    id: str
    version: str
    instance: str
    seconds: int
    fate: str = "result"
    """What should become of it: `result` or `failure`."""
    sent: Instant = 0
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By ARN, as ECS describes them."""
    pid: int | None = None
    results: list[dict[str, Any]] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)

    @property
    def message(self) -> dict[str, Any]:
        """The message that asks for it."""
        return {"jobId": self.id, "version": self.version, "instance": self.instance, "seconds": self.seconds}

    @property
    def attempts(self) -> list[dict[str, Any]]:
        """Its tasks, oldest first."""
        return sorted(self.tasks.values(), key=lambda task: str(task["createdAt"]))

    @property
    def running(self) -> bool:
        """Tell whether its latest task runs."""
        return bool(self.tasks) and self.attempts[-1]["lastStatus"] == "RUNNING"

    @property
    def ended(self) -> bool:
        """Tell whether a result or a failure was announced."""
        return bool(self.results or self.failures)

    @property
    def state(self) -> str:
        """One word for the reader."""
        if self.results:
            return "done"
        if self.failures:
            return "failed"
        if not self.sent:
            return "to come"
        if not self.tasks:
            return "waiting"
        return {"RUNNING": "running", "STOPPED": "retrying" if exit_code(self.attempts[-1]) else "stopped"}.get(
            self.attempts[-1]["lastStatus"], "starting"
        )

    @property
    def wait_s(self) -> float | None:
        """From the message to the first task's start."""
        first = self.attempts[0] if self.tasks else {}
        return (from_datetime(first["startedAt"]) - self.sent) / 1000 if "startedAt" in first else None

    @property
    def run_s(self) -> float | None:
        """From the last task's start to its end."""
        if not self.tasks or "startedAt" not in self.attempts[-1]:
            return None
        last = self.attempts[-1]
        ended = last.get("executionStoppedAt")  # not stoppedAt: the node may have been away when it ended
        until = from_datetime(ended) if ended is not None else SystemClock().now()
        return (until - from_datetime(last["startedAt"])) / 1000


def exit_code(task: dict[str, Any]) -> int | None:
    """Answer the exit code of a task's container, once it has one."""
    code: int | None = task["containers"][0].get("exitCode")
    return code


def revision(task: dict[str, Any]) -> str:
    """Answer `family:revision` of a task."""
    return str(task["taskDefinitionArn"]).rpartition("/")[2]


class Board:
    """The jobs, looked at through AWS's calls: DescribeTasks, and what arrives in the results and failures queues."""

    def __init__(self, jobs: list[Job]) -> None:
        self.jobs = jobs
        self._by_id = {job.id: job for job in jobs}
        self._settled: set[str] = set()

    def look(self, stage: Stage) -> None:
        """Bring everything up to date."""
        arns = [arn for arn in task_arns(stage.reach) if arn not in self._settled]
        for task in describe_tasks(stage.reach, arns):
            job = self._by_id.get(_job_id(task))
            if job is None:
                continue
            job.tasks[task["taskArn"]] = task
            if task["lastStatus"] == "STOPPED":
                self._settled.add(task["taskArn"])
            elif task["lastStatus"] == "RUNNING":
                job.pid = pid_of(stage.reach, task["taskArn"].rpartition("/")[2])
        for told in stage.take(stage.results_url):
            self._by_id[told["jobId"]].results.append(told)
        for told in stage.take(stage.failures_url):
            self._by_id[told["job"]["jobId"]].failures.append(told)


def _job_id(task: dict[str, Any]) -> str:
    overrides = task.get("overrides", {}).get("containerOverrides", [])
    entries = (entry for override in overrides for entry in override.get("environment", ()))
    return next((str(entry["value"]) for entry in entries if entry["name"] == "JOB_ID"), "")


class Screen:
    """Tells the story: lines of what happens, and under them, on a terminal, the jobs as they stand."""

    def __init__(self, board: Board, *, live: bool) -> None:
        from rich.console import Console

        self._board = board
        self._console = Console(highlight=False, soft_wrap=True)
        self._began = SystemClock().now()
        self._shown: dict[str, str] = {}
        self._live: Any = None
        self._wants_live = live

    @contextmanager
    def lit(self) -> Iterator[None]:
        """Show the live table while inside, if there is a terminal."""
        if not self._wants_live:
            yield
            return
        from rich.live import Live

        with Live(console=self._console, auto_refresh=False, transient=True) as self._live:
            yield
        self._live = None

    def say(self, text: str) -> None:
        """Tell what happens."""
        seconds = (SystemClock().now() - self._began) / 1000
        self._console.print(f"[dim]{seconds:6.1f} s[/]  {text}")

    def show(self) -> None:
        """Show where the jobs stand: the table, or without a terminal a line for each that changed."""
        if self._live is not None:
            self._live.update(self._table(), refresh=True)
            return
        for job in self._board.jobs:
            now = job.state
            if now == "running":
                if not job.pid:
                    continue  # between two looks it has ended
                now += f" as {revision(job.attempts[-1])}, pid {job.pid}"
            if now != self._shown.get(job.id, "to come"):
                self._shown[job.id] = now
                self.say(f"{job.id} ({job.version}, {job.instance}) {now}")

    def _table(self) -> Any:
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
        for name in ("job", "version", "instance", "state", "task", "pid"):
            table.add_column(name)
        for name in ("wait s", "run s"):
            table.add_column(name, justify="right")
        colours = {"done": "green", "failed": "red", "running": "cyan", "retrying": "yellow", "to come": "dim"}
        for job in self._board.jobs:
            state = f"[{colours.get(job.state, 'white')}]{job.state}[/]"
            last = revision(job.attempts[-1]) if job.tasks else ""
            pid = str(job.pid) if job.running else ""
            table.add_row(job.id, job.version, job.instance, state, last, pid, number(job.wait_s), number(job.run_s))
        return table

    def table(self, rows: list[dict[str, str]]) -> None:
        """Show the final table."""
        if not self._wants_live:
            show_table(rows, tuple(rows[0]), empty="")
            return
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
        for at, name in enumerate(rows[0]):
            table.add_column(name, justify="left" if at < LEFT_COLUMNS else "right")
        for row in rows:
            table.add_row(*row.values(), style="" if row["end"] in {"ok", "caught"} else "red")
        self._console.print(table)


def number(value: float | None, digits: int = 1) -> str:
    """Write a number, or nothing."""
    return "" if value is None else f"{value:.{digits}f}"
