"""Opening a Map Run's children: the next items, selected and grouped, each group an execution that begins at once.

A unit opens children until it has done its share, so that one which ends at once never becomes a frame; how many are
open at a time is bounded by MaxConcurrency and by the house (`quotas.map_run_children`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tasuki.engine.events import Started
from tasuki.engine.execution import Execution
from tasuki.engine.states.distributed import Selector
from tasuki.engine.turn import MAX_PAYLOAD_BYTES, MAX_STEP_BYTES, MAX_STEP_EVENTS
from tasuki.language.errors import StatesError
from tasuki.services.machines import map_queries as sql
from tasuki.services.machines.item_readers import source_of
from tasuki.services.machines.map_runs import EXPRESS_MS, Child, MapRun, labelled_arn
from tasuki.services.machines.model import execution_arn
from tasuki.services.machines.running import Run, insert_row, load, make_ready, proceed
from tasuki.services.machines.setting import Setting
from tasuki.store.store import Tx
from tasuki.values.documents import Doc, loads

CHILDREN_AT_ONCE = 50
"""Children that one unit opens at most."""


class ParentGone(Exception):
    """The execution that started the Map Run has ended."""


@dataclass(slots=True)
class _Group:
    """What one child gets: the documents of its items."""

    first: int
    count: int = 0
    documents: list[Doc] = field(default_factory=list)
    size: int = 0
    item: Doc | None = None


def open_children(tx: Tx, setting: Setting, run: MapRun) -> None:
    """Open as many children as there is room for, up to a unit's share.

    Raises `StatesError` when an item cannot be selected or is too large, `ParentGone`.
    """
    # Read, not held: whoever holds it may wait for this run, and its Map does not end before it has held the run.
    parent = load(tx, setting, run.execution, sql.PARENT_SEEN)
    if parent is None:
        raise ParentGone
    if parent.deleting:
        make_ready(tx, run.execution)  # it ends when it is served, and its Map Run with it
        return
    frame = parent.state.frames.get(run.frame)
    if frame is None or frame.attempt != run.attempt:
        raise ParentGone
    selector = None
    if run.settings["selects"]:
        selector = Selector(parent.machine, parent.state, frame, tx.now, source_of(run.settings["reader"]))
    batcher = run.settings["batcher"]
    room = run.room(setting.map_run_children)
    events = size = 0
    opened = 0
    groups = _groups(tx, run, selector, batcher)
    while opened < CHILDREN_AT_ONCE and room > 0 and events < MAX_STEP_EVENTS and size < MAX_STEP_BYTES:
        group = next(groups, None)
        if group is None:
            return
        child = _begin(tx, setting, run, parent, group)
        opened += 1
        events += len(child.history)
        size += child.state.history_bytes
        if child.finish is None:
            room -= 1
        elif child.finish.status != "SUCCEEDED":
            return  # perhaps that was one too many


def _groups(tx: Tx, run: MapRun, selector: Selector | None, batcher: dict[str, Any] | None) -> Iterator[_Group]:
    """Go through what the next children get, from the first item that none has yet. Raises `StatesError`."""
    items = _items(tx, run)
    if batcher is None:
        for number, item in items:
            given = Doc(selector(number, item) if selector is not None else item)
            yield _Group(number, 1, [given], _size(run, given), Doc(item) if selector is not None else None)
        return
    most_items = batcher["max_items"] or MAX_PAYLOAD_BYTES
    most_bytes = min(batcher["max_bytes"] or MAX_PAYLOAD_BYTES, MAX_PAYLOAD_BYTES)
    around = len(_batch(batcher, []).text.encode())
    group: _Group | None = None
    for number, item in items:
        given = Doc(selector(number, item) if selector is not None else item)
        size = _size(run, given) + 1
        if group is not None and (group.count >= most_items or group.size + size - 1 > most_bytes):
            yield group
            group = None
        if group is None:
            group = _Group(number, size=around)
        group.documents.append(given)
        group.count += 1
        group.size += size
    if group is not None:
        yield group


def _items(tx: Tx, run: MapRun) -> Iterator[tuple[int, Any]]:
    """Go through the items that no child has yet, slice by slice."""
    number = run.taken
    while number < run.total:
        row = tx.one(sql.ITEMS_AT, (run.id, number))
        assert row is not None, f"Map Run {run.id} has no item {number}"
        first, count, body = row
        items = loads(body)
        for place in range(number - first, count):
            yield first + place, items[place]
        number = first + count


def _size(run: MapRun, document: Doc) -> int:
    """Answer the size of a child's input. Raises `StatesError` when it is larger than an input may be."""
    size = len(document.text.encode())
    if size > MAX_PAYLOAD_BYTES:
        state = run.settings["state"]
        raise StatesError(
            "States.DataLimitExceeded",
            f"The state/task '{state}' returned a result with a size exceeding the maximum number of bytes service limit.",
        )
    return size


def _batch(batcher: dict[str, Any], documents: list[Doc]) -> Doc:
    """Answer the input of a child that gets several items."""
    around = f'"BatchInput":{Doc(batcher["input"]).text},' if "input" in batcher else ""
    return Doc.of_text(f'{{{around}"Items":{Doc.array(documents).text}}}')


def _begin(tx: Tx, setting: Setting, run: MapRun, parent: Run, group: _Group) -> Run:
    """Write a child and let it do its first share."""
    batcher = run.settings["batcher"]
    document = group.documents[0] if batcher is None else _batch(batcher, group.documents)
    name, express = tx.chance.uuid(), run.settings["express"]
    child = Run(
        machine=parent.machine,
        state=Execution(
            arn=execution_arn(run.account, run.region, run.machine_name, name),
            name=name,
            machine_arn=labelled_arn(run),
            machine_name=run.machine_name,
            role_arn=parent.state.role_arn,
            input=document,
            started_at=tx.now,
            seed=tx.chance.hex(32),
            trace=parent.state.trace,
            deadline=tx.now + EXPRESS_MS if express else None,
            express=express,
            block=run.settings["block"],
            item=None if batcher is not None else (group.first, group.item or document),
        ),
        machine_id=run.machine,
        revision=run.revision,
        account=run.account,
        region=run.region,
        logging=parent.logging,
        origin=parent.state.arn,
        origin_id=run.name,
        child=Child(run.id, group.count, express),
    )
    # The row first, for its id: what the child does names it.
    execution = insert_row(tx, setting, child)
    item = group.item.text if group.item is not None else None
    tx.run(sql.ADD_CHILD, (execution, run.id, run.children, group.first, group.count, item))
    run.children += 1
    run.taken = group.first + group.count
    proceed(tx, setting, child, (Started(),))
    return child
