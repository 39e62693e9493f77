"""A whole house in a test: the real door on a free port, house time in the test's hands, boto3 unchanged.

::

    def test_nightly(house):                      # the fixture of the pytest plugin; Kit() without pytest
        house.image("report", minutes=61)
        deploy()                                  # your own code: boto3.client("scheduler").create_schedule(...)
        house.advance_to("2026-10-10T02:01:00+09:00")
        [one] = house.executions("nightly")
        one.assert_succeeded()

Every call answers when the house is at rest: whatever could happen at this instant has happened. Only `advance` and `advance_to`
move the clock, and they stop at every instant at which something is due, in order.
"""

import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from tasuki.runtime.clock import HandClock
from tasuki.runtime.conductor import ClockBusy, Restless
from tasuki.services.tasks.polls import SHOWN_MS
from tasuki.testing import looking
from tasuki.testing.acting import Cast, Part, Rule
from tasuki.testing.clients import Clients, environment_of
from tasuki.testing.clock import instant_of, moment_of, told_ms
from tasuki.testing.life import Birth, Life, LifeOver
from tasuki.testing.looks import Event, Execution, Queue, Task
from tasuki.testing.outside import Images, Outside
from tasuki.testing.programs import OF_PROGRAMS, program
from tasuki.testing.scripted import Script
from tasuki.testing.telling import STORIES, crash_missed, executions_told, spoken, tasks_told
from tasuki.values.chance import Chance
from tasuki.values.config import Config
from tasuki.values.errors import DomainError
from tasuki.values.instant import DAY, Instant, to_datetime
from tasuki.values.outbound import Outbound

T = TypeVar("T")
START = "2026-01-01T00:00:00+00:00"
MEMORY_MIB = 1 << 20
"""What tasks may use together, unless a test says otherwise: more than any test asks for, on every machine the same."""
LOOPBACK = ["127.0.0.0/8", "::1", "localhost"]
"""Where API destinations may call besides public addresses: a server of the test's own."""
BUSY_S = 0.002
"""When it is tried again to move the clock, or to come to rest, where another thread is at it just now."""
SHOWN_DAYS = "stopped_tasks_days"
"""The quota that says how long a stopped task is shown."""


class Kit:
    """See the module. Use it as a context manager, or `close` it.

    `start`: where the clock stands (ISO 8601 with an offset, or an aware datetime). `seed`: the same calls and the same seed give
    the same ids and histories. `real_tasks`: images may be programs (`image(command=...)`). `quotas` are those of tasuki.toml.
    `root`: where relative folders of programs start; the fixture says the folder of the test's file, else it is the working
    directory. `port`: 0 is a free one. `patience_s`: how long, in real time, one real task is waited for.
    """

    def __init__(
        self,
        *,
        start: str | datetime = START,
        seed: int | str = 0,
        real_tasks: bool = False,
        root: str | Path | None = None,
        region: str = "us-east-1",
        account: str = "000000000000",
        quotas: Mapping[str, int] | None = None,
        memory_mib: int = MEMORY_MIB,
        port: int = 0,
        patience_s: float = 60.0,
    ) -> None:
        self._began, self._zone = instant_of(start), moment_of(start).tzinfo
        self.clock = HandClock(self._began)
        self.cast = Cast(self.clock, wake=self._wake, programs=real_tasks)
        self.folder = Path(tempfile.mkdtemp(prefix="tasuki-")) if real_tasks else None
        self.root = Path.cwd() if root is None else Path(root).resolve()
        self._listener = socket.create_server(("127.0.0.1", port), backlog=1024, reuse_port=False)
        number = int(self._listener.getsockname()[1])
        chance = Chance.seeded(f"{seed} key")
        self._key, self._secret = f"TSUK{chance.hex(16).upper()}", chance.hex(40)
        self._images = Images()
        self._outside = Outside(self.cast, self.folder, self._images)
        self.config = Config(
            data=self.folder or Path(),
            port=number,
            clock="manual",
            account=account,
            region=region,
            memory_mib=memory_mib,
            images=self._images,
            quotas=dict(quotas or {}),
            outbound=Outbound.of(LOOPBACK),
        )
        self.url = f"http://127.0.0.1:{number}"
        self._birth = Birth(
            config=self.config,
            listener=self._listener,
            clock=self.clock,
            seed=str(seed),
            key=self._key,
            secret=self._secret,
            image=None,
            runner=self._outside.open,
            couriers=(self.cast,),
            running=self._outside.running,
            patience_s=patience_s,
        )
        self._changed = threading.Condition()
        self._away_ms = 0
        self._dies_after = 0
        self.lives = 0
        """How often a node was started: once, and once more for each crash."""
        self._closed = False
        self._life: Life | None = None
        self.environment = environment_of(self.url, self._key, self._secret, region)
        self._clients = Clients(self.environment)
        try:
            self._bear(None)
        except BaseException:
            self._listener.close()
            self._remove_folder()
            raise

    # -- clients ----------------------------------------------------------------------------------------------

    def client(self, service: str) -> Any:
        """Answer a boto3 client that speaks to this house. The same one each time."""
        return self._clients.get(service)

    # -- time -------------------------------------------------------------------------------------------------

    @property
    def now(self) -> datetime:
        """House time, in UTC."""
        return to_datetime(self.clock.now())

    def advance(self, **by: float) -> None:
        """Move the clock by `ms=`, `seconds=`, `minutes=`, `hours=` and `days=`, through everything that is due on the way."""
        __tracebackhide__ = True
        step = told_ms("advance", by)
        if step < 0:
            raise ValueError("house time never runs backwards")
        self._advance(self.clock.now() + step)

    def advance_to(self, moment: str | datetime) -> None:
        """Move the clock to a moment, through everything that is due on the way. Raises `ValueError` for one that is past."""
        __tracebackhide__ = True
        to = instant_of(moment)
        if to < self.clock.now():
            raise ValueError(
                f"house time never runs backwards: it is {self.now.isoformat()}, and {moment} is before that"
            )
        self._advance(to)

    def settle(self) -> None:
        """Let everything happen that can at this instant. Calls of clients do so by themselves."""
        __tracebackhide__ = True
        self._refuse_tasks("settle")
        self._run(lambda life: life.rest())
        self._raise_troubles()

    def _advance(self, to: Instant) -> None:
        __tracebackhide__ = True
        self._refuse_tasks("advance")
        self._run(lambda life: life.advance(to))
        self._raise_troubles()

    # -- tasks ------------------------------------------------------------------------------------------------

    def image(
        self,
        name: str,
        act: Script | Rule | None = None,
        *,
        times: int | None = None,
        command: Sequence[str] | None = None,
        **more: Any,
    ) -> Part:
        """Say what an image does when a task runs it, from its next run on.

        `minutes=61`, `exit_code=3`, `output="..."`, `memory_mib=900` (more than the limit: killed), `forever=True`,
        `effect=function` (called with the run when its time is over, before it ends): see `Script.lasting`. Or a function that is
        called with the run when it begins, and answers an exit code or a `Script`. `times`: for so many runs; add
        `.then(...)`. Or `command=["python", "etl.py"]`, with `folder`, `venv`, `environment` and `stop_signal`: a real
        program, where the house has `real_tasks` (`programs.py`).
        """
        if command is not None:
            if self.folder is None:
                raise TypeError(f'image("{name}", command=...) runs a program: give the house real_tasks=True')
            if act is not None or times is not None:
                raise TypeError(f'image("{name}"): a program says itself how it goes; leave out the script and times=')
            self._images.real[name] = program(name, command, self.root, more)
            return Part(name)
        if of_programs := sorted(more.keys() & set(OF_PROGRAMS)):
            raise TypeError(f'image("{name}"): {of_programs[0]}= is for a program; say its command=, too')
        self._images.real.pop(name, None)
        before = self.cast.parts.get(name)
        part = self.cast.parts[name] = Part(name, [] if before is None else before.runs)
        return part.then(act, times=times, **more)

    def runs(self, image: str) -> list[Any]:
        """Answer every run of a scripted image, in the order in which they began. Raises `TypeError` for a program."""
        __tracebackhide__ = True
        part = self.cast.parts.get(image)
        if part is None and image in self._images.real:
            raise TypeError(
                f'runs("{image}"): runs are of scripted images, and this is a program; its tasks tell: house.tasks()'
            )
        return [] if part is None else list(part.runs)

    def lose(self, task: str) -> None:
        """Have the machine lose a scripted task (its ARN) that runs, as when a host dies."""
        self.cast.lose(task)
        self._wake()
        self.settle()

    # -- crashes ----------------------------------------------------------------------------------------------

    def crash(self, *, after: int | None = None, **away: float) -> None:
        """Kill the node as SIGKILL does, and start another on what it had committed. The world outside goes on.

        `hours=3`: for so long there is no node, and what was due meanwhile is late; else no time passes. `after=3`: not now, but
        right after its third commit from here on, before anybody has heard of it. Clients find their connection gone, and ask
        again, as boto3 does by itself. One that was asked for and never came fails the test when the house is closed or the next
        one is asked for with `after`; `after=0` takes it back.
        """
        __tracebackhide__ = True
        self._away_ms = told_ms("crash (besides after)", away)
        dead = self._living()
        if after is not None:
            if after < 0:
                raise ValueError(f"crash(after={after}): say after how many commits from here on, or 0 for never")
            if after and (missed := self._missed_crash()):
                raise AssertionError(missed)
            self._dies_after, dead.store.dies_in = after, after or None
            return
        dead.die()
        with self._changed:
            self._changed.wait_for(lambda: self._life is not dead or self._closed, timeout=60)
        if threading.get_ident() != self.cast.worker:
            self._run(lambda life: life.rest(for_tasks=False))
            self._raise_troubles()

    def _missed_crash(self) -> str | None:
        """Say of a crash that was asked for that it has not come yet."""
        left = self._living().store.dies_in
        return None if left is None else crash_missed(self._dies_after, self._dies_after - left)

    # -- looks ------------------------------------------------------------------------------------------------

    def executions(self, machine: str | None = None, *, status: str | None = None) -> list[Execution]:
        """Answer the executions of a Standard machine (name or ARN), or of all, oldest first."""
        __tracebackhide__ = True
        return self._run(lambda life: looking.executions(life, self.config, machine, status))

    def execution(self, arn: str) -> Execution:
        """Answer one execution."""
        __tracebackhide__ = True
        return self._run(lambda life: looking.execution(life, arn))

    def queue(self, name: str) -> Queue:
        """Look into a queue (name, URL or ARN) without receiving anything."""
        __tracebackhide__ = True
        return self._run(lambda life: looking.queue(life, self.config, name))

    def tasks(self, family: str | None = None, *, status: str | None = None) -> list[Task]:
        """Answer the tasks, of one family of task definitions or of all, in the order in which they were asked for."""
        runs = [run for part in self.cast.parts.values() for run in part.runs]
        return self._run(lambda life: looking.tasks(life, family, status, runs, self._outside.log_of))

    def record_events(self, bus: str = "default") -> None:
        """Write down every event of a bus from here on, for `events`: by a rule and a queue, `tasuki-recorder-BUS`.

        The queue keeps them for 14 days.
        """
        self._run(lambda life: looking.record(life, self.config, bus))
        self.settle()

    def events(self, bus: str = "default") -> list[Event]:
        """Answer what was put on a bus since `record_events`, in order."""
        __tracebackhide__ = True
        return self._run(lambda life: looking.events(life, self.config, bus))

    def handovers(self, **by: str) -> list[dict[str, Any]]:
        """Answer what was passed on from source to target, oldest first: all, or by `Trace`, `MessageId` or `ExecutionArn`."""
        return self._run(lambda life: looking.handovers(life, by))

    def story(self) -> str:
        """Tell in a few lines what there is: for the report of a test that failed."""
        told = [f"house time {spoken(self.now, self._zone)}, node number {self.lives}"]
        told += filter(None, [self._missed_crash()])
        told += executions_told(self.executions(), self._zone)
        told += tasks_told(self.tasks())
        days = self.config.quotas.get(SHOWN_DAYS, SHOWN_MS // DAY)
        if (self.cast.parts or self._images.real) and self.clock.now() - self._began > days * DAY:
            told.append(f'tasks that stopped more than {days} days ago are forgotten: quotas={{"{SHOWN_DAYS}": ...}}')
        told += self._run(lambda life: looking.lost(life, STORIES, self._zone))
        return "\n".join(told)

    # -- inside -----------------------------------------------------------------------------------------------

    def _bear(self, image: bytes | None) -> None:
        """Start a node. On the test's thread the first time, then on that of the node that died."""
        self.lives += 1
        birth = (
            self._birth if image is None else replace(self._birth, image=image, seed=f"{self._birth.seed} {self.lives}")
        )
        life = Life(birth, self._reborn)
        with self._changed:
            self._life = life
            self._changed.notify_all()
        self._wake()

    def _reborn(self, image: bytes) -> None:
        if self._closed:
            return
        self.clock.set(self.clock.now() + self._away_ms)
        self._away_ms = 0
        try:
            self._bear(image)
        except BaseException as bad:  # noqa: BLE001 - there is nobody else to tell
            self.cast.troubles.append(bad)
            with self._changed:
                self._closed = True
                self._changed.notify_all()

    def _wake(self) -> None:
        """Have the node of now settle what the test's own functions did."""
        life = self._life
        if life is not None:
            life.soon(lambda: self._resume(life))

    def _resume(self, life: Life) -> None:
        self.cast.resume()
        life.bell.ring("tasks")

    def _living(self) -> Life:
        if self._life is None or self._closed:
            raise RuntimeError("this house is closed")
        return self._life

    def _run(self, work: Callable[[Life], Coroutine[Any, Any, T]]) -> T:
        """Run something on the node that lives; when it dies meanwhile, on the next one.

        What another thread does with the clock (a request of its own is answered when the house is at rest) comes first.
        """
        __tracebackhide__ = True
        while True:
            life = self._living()
            try:
                return life.run(work(life))
            except ClockBusy:
                time.sleep(BUSY_S)
            except (looking.NoSuchThing, DomainError, Restless) as bad:
                raise bad.with_traceback(None) from None  # the sentence says it all
            except LifeOver:
                with self._changed:
                    self._changed.wait_for(lambda: self._life is not life or self._closed, timeout=60)  # noqa: B023
                self._raise_troubles()

    def _refuse_tasks(self, what: str) -> None:
        __tracebackhide__ = True
        if threading.get_ident() == self.cast.worker:
            raise RuntimeError(f"{what}() from inside a task: house time stands still while a task's code runs")

    def _raise_troubles(self) -> None:
        __tracebackhide__ = True
        if self.cast.troubles:
            raise self.cast.troubles.pop(0)

    def close(self) -> None:
        """End the house, and what still runs for it. Raises what nobody has heard of: a task's function, a crash that never came."""
        __tracebackhide__ = True
        if self._closed:
            return
        life, missed = self._living(), self._missed_crash()
        life.store.dies_in = None
        try:
            self._outside.end(lambda: life.run(life.rest(for_tasks=False)))
        finally:
            self._let_go()
        self._raise_troubles()
        if missed:
            raise AssertionError(missed)

    def _let_go(self) -> None:
        last = self._living()
        self._closed = True
        last.end()
        self._clients.close()
        self._listener.close()
        self._remove_folder()

    def _remove_folder(self) -> None:
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, bad: BaseException | None, at: TracebackType | None) -> None:
        __tracebackhide__ = True
        if kind is not None:  # the test fails already, and says why
            self.cast.troubles.clear()
            if self._life is not None:
                self._life.store.dies_in = None
        self.close()
