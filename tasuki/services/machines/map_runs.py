"""Map Runs: what a distributed Map has going on outside its execution. A row, its children, and where it stands.

::

    StartMapRun ─► READING ─► RUNNING ──────────────► WRITING ─► over, and the parent's inbox told
                   (reader)    ▲ │ tolerated failures    ▲
                               │ ├──► STOPPING ──────────┘
    CancelMapRun ──────────────┼─┘      (children)            ABORTED: nobody is told
    RedriveMapRun ──► REDRIVING┘ (map_redriving.py)

The phases move in `map_polls.py`, slice by slice. A child is an execution of the machine `NAME/LABEL` on the parent's
revision; here it is found again when it begins (what it runs, its item) and when it ends (the counts).

Who holds what, where several nodes serve: a Map Run's row is held by the unit that serves it, or that stops or redrives it
for its parent. Whoever holds the row waits for nobody that runs: the parent is read, not held, children that run are told
through their inboxes, and those that are redriven have ended. A child that ends waits for nobody either: it leaves a row
in `map_ready` (its Map Run's turn, and how it ended), and who serves the run takes these in before deciding anything.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from tasuki.engine.commands import CancelMapRun, Finish, RedriveMapRun, StartMapRun
from tasuki.engine.states.distributed import MAX_CONCURRENCY
from tasuki.services.machines import map_queries as sql
from tasuki.services.machines.model import machine_arn
from tasuki.store.store import Row, Tx
from tasuki.values.documents import Doc, dumps, pack, unpack
from tasuki.values.errors import StoreNewer
from tasuki.values.instant import Instant

TOPIC = "map_runs"
"""The bell of the polls."""
SLICE_ITEMS = 500
SLICE_BYTES = 262_144
"""How much a row of items holds, at most (one item that is larger has a row of its own)."""
EXPRESS_MS = 300_000
"""How long a child of ExecutionType EXPRESS may run (Step Functions quotas)."""
MAX_REDRIVES = 1_000
"""How often a Map Run can be redriven (developer guide, "Redrive eligibility for child workflows in a Map Run")."""
_VERSION = 1
_IN_HAND = "machines.map_run"
"""Under which name a unit notes the Map Run that it holds."""


class Stage(StrEnum):
    """What a Map Run is at."""

    READING = "reading"
    RUNNING = "running"
    STOPPING = "stopping"
    WRITING = "writing"
    OVER = "over"
    REDRIVING = "redriving"


@dataclass(slots=True)
class MapRun:
    """A row of `map_runs`, as `map_queries.RUN` answers it. Mutable: it belongs to the unit that loaded it."""

    id: int
    machine: int
    name: str
    revision: int
    execution: int
    frame: int
    attempt: int
    status: str
    stage: Stage
    started_at: Instant
    stopped_at: Instant | None
    max_concurrency: int
    tolerated_count: int | None
    tolerated_percentage: float | None
    settings: Mapping[str, Any]
    cursor: dict[str, Any]
    error: str | None
    cause: str | None
    total: int
    taken: int
    children: int
    succeeded: int
    failed: int
    timed_out: int
    aborted: int
    succeeded_items: int
    failed_items: int
    timed_out_items: int
    aborted_items: int
    output_bytes: int
    redrives: int
    redriven_at: Instant | None
    was_read: int
    again: int
    pending: int
    pending_items: int
    lost: int
    lost_items: int
    account: str
    region: str
    machine_name: str

    @property
    def arn(self) -> str:
        """Its own ARN."""
        return map_run_arn(self.account, self.region, self.machine_name, self.name)

    @property
    def running(self) -> int:
        """How many children are open."""
        return self.children - self.succeeded - self.failed - self.timed_out - self.aborted - self.pending

    @property
    def running_items(self) -> int:
        """How many items open children have."""
        ended = self.succeeded_items + self.failed_items + self.timed_out_items + self.aborted_items
        return self.taken - ended - self.pending_items

    def room(self, most: int) -> int:
        """Answer how many children may be opened now, `most` of which a house has open at a time."""
        return min(self.max_concurrency or MAX_CONCURRENCY, most) - self.running

    @property
    def has_failed(self) -> bool:
        """Tell whether more items failed than are tolerated: more than a number, or than a share, where given.

        Without either none is.
        """
        lost = self.failed_items + self.timed_out_items + self.aborted_items
        if not lost:
            return False
        count, share = self.tolerated_count, self.tolerated_percentage
        if count is None and share is None:
            return True
        return (count is not None and lost > count) or (share is not None and lost * 100 > share * self.total)

    def fail(self, error: str, cause: str) -> None:
        """Let it end badly: its children are stopped first."""
        if self.error is None:
            self.error, self.cause = error, cause
        self.stage = Stage.STOPPING
        self.cursor = {"number": -1}

    def abort(self) -> None:
        """Let it end with nobody being told: its children are stopped first."""
        self.status = "ABORTED"
        self.stage = Stage.STOPPING
        self.again = 0
        self.cursor = {"number": -1}

    def count(self, status: str, children: int, items: int) -> None:
        """Count children that have ended so; a negative number of those that have not, after all."""
        if status == "SUCCEEDED":
            self.succeeded += children
            self.succeeded_items += items
        elif status == "FAILED":
            self.failed += children
            self.failed_items += items
        elif status == "TIMED_OUT":
            self.timed_out += children
            self.timed_out_items += items
        else:
            self.aborted += children
            self.aborted_items += items

    def take_in(self, status: str, children: int, items: int, *, size: int, lost: int, lost_items: int) -> None:
        """Count children that have just ended: their results have `size` bytes, `lost` of them cannot be redriven."""
        self.count(status, children, items)
        self.output_bytes += size
        self.lost += lost
        self.lost_items += lost_items

    def save(self, tx: Tx) -> None:
        """Write where it stands; for whoever holds it."""
        stands = (self.status, self.stage.value, self.stopped_at, pack(self.cursor), self.error, self.cause)
        redrive = (self.redrives, self.redriven_at, self.was_read, self.again)
        ended = (
            *(self.succeeded, self.succeeded_items, self.failed, self.failed_items),
            *(self.timed_out, self.timed_out_items, self.aborted, self.aborted_items),
        )
        rest = (self.pending, self.pending_items, self.lost, self.lost_items, self.output_bytes)
        tx.run(sql.SAVE_RUN, (*stands, self.total, self.taken, self.children, *redrive, *ended, *rest, self.id))


class Child(NamedTuple):
    """What an execution must know that is a Map Run's child."""

    run: int
    items: int
    express: bool


def map_run_arn(account: str, region: str, machine_name: str, name: str) -> str:
    """Build a Map Run's ARN; `machine_name` is `NAME/LABEL`."""
    return f"arn:aws:states:{region}:{account}:mapRun:{machine_name}:{name}"


def made(row: Row) -> MapRun:
    """Make a Map Run of its row. Raises `StoreNewer` for settings of an unknown format."""
    run = MapRun(*row)
    run.stage = Stage(run.stage)
    run.settings = read_settings(row[14])
    run.cursor = unpack(row[15])
    return run


def hold(tx: Tx, run_id: int) -> MapRun | None:
    """Answer a Map Run and hold it until the unit is over."""
    row = tx.one(sql.RUN, (run_id,))
    return made(row) if row is not None else None


def take_news(tx: Tx, run: MapRun) -> bool:
    """Take in which children have ended, into a Map Run that is held; tell whether there was anything to do for it.

    From here on it counts by itself those that end in this unit.
    """
    rows = tx.all(sql.TAKE_NEWS, (run.id,))
    for status, items, size, lost in rows:
        if status is not None:
            run.take_in(status, 1, items, size=size, lost=lost, lost_items=lost * items)
    tx.notes[_IN_HAND] = run
    return bool(rows)


def with_news(tx: Tx, run: MapRun) -> MapRun:
    """Answer a Map Run for show: those children counted, too, that whoever serves it has not taken in yet."""
    for status, children, items, size, lost, lost_items in tx.all(sql.NEWS, (run.id,)):
        run.take_in(status, children, items, size=size, lost=lost, lost_items=lost_items)
    return run


def read_settings(body: bytes) -> Mapping[str, Any]:
    """Answer the settings of a Map Run. Raises `StoreNewer`."""
    version, text = unpack(body)
    if version != _VERSION:
        raise StoreNewer(f"a Map Run has format {version}; this Tasuki reads up to {_VERSION}")
    settings: Mapping[str, Any] = Doc.of_text(text).value
    return settings


def begin_map_run(
    tx: Tx, wish: StartMapRun, *, execution: int, revision: int, account: str, region: str, machine: str
) -> None:
    """Write a new Map Run; its children are opened in later units."""
    plan, items = wish.plan, wish.items
    settings = {
        "state": plan.state,
        "block": plan.block,
        "express": plan.express,
        "reader": plan.reader,
        "batcher": plan.batcher,
        "writer": plan.writer,
        "selects": plan.selects,
    }
    stage = Stage.READING if items is None else Stage.RUNNING
    row = tx.one(
        sql.ADD_RUN,
        (
            _labelled(tx, account, region, f"{machine}/{wish.label}"),
            wish.name,
            revision,
            execution,
            wish.frame,
            wish.attempt,
            stage.value,
            tx.now,
            plan.max_concurrency,
            plan.tolerated_count,
            plan.tolerated_percentage,
            pack((_VERSION, dumps(settings))),
            pack({}),
            len(items or ()),
            int(items is not None),
        ),
    )
    assert row is not None
    add_items(tx, row[0], 0, items or ())
    wake(tx, row[0])


def _labelled(tx: Tx, account: str, region: str, name: str) -> int:
    """Answer the machine that stands for a labelled Map."""
    names = (account, region, name)
    row = tx.one(sql.LABELLED, names) or tx.one(sql.ADD_LABELLED, (*names, tx.now)) or tx.one(sql.LABELLED, names)
    assert row is not None, "it was there, or has been added, here or by another unit"
    number: int = row[0]
    return number


def add_items(tx: Tx, run: int, first: int, items: Sequence[Any]) -> None:
    """Keep items, the first of which is number `first`, in rows of a bounded size."""
    for start in range(0, len(items), SLICE_ITEMS):
        _add_slice(tx, run, first + start, items[start : start + SLICE_ITEMS])


def _add_slice(tx: Tx, run: int, first: int, items: Sequence[Any]) -> None:
    body = dumps(items)
    if len(body) > SLICE_BYTES and len(items) > 1:
        middle = len(items) // 2
        _add_slice(tx, run, first, items[:middle])
        _add_slice(tx, run, first + middle, items[middle:])
        return
    tx.run(sql.ADD_ITEMS, (run, first, len(items), body))


def change_map_run(tx: Tx, execution: int, wish: CancelMapRun | RedriveMapRun) -> None:
    """Stop a Map Run, or have one go on that did not end well; in later units. The parent is held, and now the run."""
    row = tx.one(sql.RUN_OF_FRAME, (execution, wish.frame, wish.attempt))
    run = hold(tx, row[0]) if row is not None else None
    if run is None:
        return
    if isinstance(wish, RedriveMapRun):
        _redrive(tx, run)
    elif run.stage is not Stage.OVER:
        run.abort()
    else:
        return
    run.save(tx)
    wake(tx, run.id)


def _redrive(tx: Tx, run: MapRun) -> None:
    """Begin again, now or when what the run is at is done."""
    run.redrives += 1
    run.redriven_at = tx.now
    if run.redrives > MAX_REDRIVES:
        run.error, run.status = None, "RUNNING"
        run.fail("States.Runtime", f"The Map Run has been redriven {MAX_REDRIVES} times, which is the most.")
    elif run.stage is Stage.OVER:
        begin_redrive(run)
    else:
        run.again = 1


def begin_redrive(run: MapRun) -> None:
    """Let a Map Run that is over begin again: what failed is counted anew (map_redriving.py)."""
    run.lost = run.lost_items = 0
    run.status, run.stage, run.again = "RUNNING", Stage.REDRIVING, 0
    run.stopped_at = run.error = run.cause = None
    run.cursor = {"number": -1}


def wake(tx: Tx, run: int) -> None:
    """Have a Map Run served in its turn."""
    tx.run(sql.ADD_READY, (run,))
    tx.ring(TOPIC)


def child_of(tx: Tx, execution: int, given: Doc) -> tuple[Child, str, tuple[int, Doc] | None]:
    """Answer what an execution with input `given` is as a child, the block it runs, and its item (a batch has none)."""
    row = tx.one(sql.CHILD, (execution,))
    assert row is not None, f"execution {execution} is no child"
    run, first, items, item, body = row
    settings = read_settings(body)
    child = Child(run, items, settings["express"])
    if settings["batcher"] is not None:
        return child, settings["block"], None
    return child, settings["block"], (first, Doc.of_text(item) if item is not None else given)


def child_ended(tx: Tx, child: Child, end: Finish) -> None:
    """Have a child counted that has ended, and let its Map Run go on. Waits for nobody."""
    succeeded = end.status == "SUCCEEDED"
    size = len(end.output.text) + 1 if succeeded and end.output is not None else 0
    lost = int(not succeeded and not child.express and not end.remains)
    run: MapRun | None = tx.notes.get(_IN_HAND)
    if run is not None and run.id == child.run:
        run.take_in(end.status, 1, child.items, size=size, lost=lost, lost_items=lost * child.items)
        return
    tx.run(sql.ADD_ENDED, (child.run, end.status, child.items, size, lost))
    tx.ring(TOPIC)


def labelled_arn(run: MapRun) -> str:
    """Answer the ARN of the labelled machine of a run: its children's `stateMachineArn`."""
    return machine_arn(run.account, run.region, run.machine_name)
