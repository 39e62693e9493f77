"""What becomes of a Map Run's results: joined into the state's output, or exported as objects with a manifest.

Layout and members from the developer guide ("ResultWriter"); the state's output recorded in
scenarios/test_map_state_result_writer. A child that failed within what is tolerated is there with all that
DescribeExecution says of it, whatever the transformation.
"""

from collections.abc import Iterator
from typing import Any

from tasuki.language.errors import StatesError
from tasuki.services.machines import map_queries as sql
from tasuki.services.machines.map_runs import MapRun, labelled_arn
from tasuki.services.machines.model import execution_arn, redrive_facts
from tasuki.services.machines.setting import Setting
from tasuki.store.store import Row, Tx
from tasuki.values.documents import Doc, dumps, loads
from tasuki.values.errors import DomainError
from tasuki.values.instant import to_iso

FAILED = "States.ResultWriterFailed"
ROWS = 2_000
OBJECT_BYTES = 4 << 20
"""How much one unit writes, and so one object: a Map Run of many results has several (AWS's are up to 5 GB)."""
_KINDS = ("SUCCEEDED", "FAILED", "PENDING")


def joined(tx: Tx, run: MapRun, transformation: str, most: int) -> Doc:
    """Answer the results in the order of their children. Raises `StatesError` when they are more than `most` bytes."""
    texts: list[str] = []
    size = max(run.output_bytes + 1 if transformation == "COMPACT" else 0, 2)
    if size > most:
        raise _too_large(run)
    size = 2
    for row in _children(tx, run):
        for text in _entries(run, row, transformation):
            texts.append(text)
            size += len(text.encode()) + 1
        if size - 1 > most:
            raise _too_large(run)
    return Doc.of_text(f"[{','.join(texts)}]")


def _too_large(run: MapRun) -> StatesError:
    state = run.settings["state"]
    return StatesError(
        "States.DataLimitExceeded",
        f"The state/task '{state}' returned a result with a size exceeding the maximum number of bytes service limit.",
    )


def _children(tx: Tx, run: MapRun) -> Iterator[Row]:
    number = -1
    while True:
        rows = tx.all(sql.RESULTS, (run.id, number, ROWS))
        yield from rows
        if len(rows) < ROWS:
            return
        number = rows[-1][0]


def _entries(run: MapRun, row: Row, transformation: str) -> list[str]:
    """Answer what stands in the results for a child: one JSON text, or several for an array that is flattened."""
    _, _, status, _, _, _, output, *_ = row
    if transformation == "NONE" or status != "SUCCEEDED":
        return [dumps(_described(run, row))]
    if transformation == "FLATTEN":
        value = loads(output)
        if isinstance(value, list):
            return [dumps(member) for member in value]
    return [output]


def _described(run: MapRun, row: Row) -> dict[str, Any]:
    """Answer a child as DescribeExecution does, in PascalCase."""
    _, name, status, started_at, stopped_at, given, output, error, cause, redrives = row
    shown = {**redrive_facts(status), "redriveCount": redrives}
    facts = {key[0].upper() + key[1:]: value for key, value in shown.items()}
    described: dict[str, Any] = {
        "ExecutionArn": execution_arn(run.account, run.region, run.machine_name, name),
        "Input": given,
        "InputDetails": {"Included": True},
        "Name": name,
        **facts,
        "StartDate": to_iso(started_at),
        "StateMachineArn": labelled_arn(run),
        "Status": status,
    }
    if stopped_at is not None:
        described["StopDate"] = to_iso(stopped_at)
    if output is not None:
        described |= {"Output": output, "OutputDetails": {"Included": True}}
    for key, value in (("Error", error), ("Cause", cause)):
        if value is not None:
            described[key] = value
    return dict(sorted(described.items()))


def write_results(tx: Tx, setting: Setting, run: MapRun) -> tuple[dict[str, Any], Doc | None]:
    """Write the next object; answer where writing stands now, and the state's output when all are written.

    `cursor`: `kind` (which objects are being written), `number` (the last child looked at), `files` ([key, size] by kind).
    Raises `StatesError`.
    """
    writer = run.settings["writer"]
    bucket, folder = _destination(run)
    cursor = run.cursor or {"kind": 0, "number": -1, "files": {kind: [] for kind in sorted(_KINDS)}}
    place, files = cursor["kind"], cursor["files"]
    if place < len(_KINDS):
        kind = _KINDS[place]
        texts, number, more = _page(tx, run, kind, cursor["number"], writer["transformation"])
        if texts:
            ending = writer["output_type"].lower()
            key = f"{folder}/{kind}_{len(files[kind])}.{ending}"
            body = "\n".join(texts) if ending == "jsonl" else f"[{','.join(texts)}]"
            files[kind].append([key, _put(tx, setting, bucket, key, body)])
        following = {"kind": place, "number": number} if more else {"kind": place + 1, "number": -1}
        return {**following, "files": files}, None
    manifest = {
        "DestinationBucket": bucket,
        "MapRunArn": run.arn,
        "ResultFiles": {
            kind: [{"Key": key, "Size": size} for key, size in found] for kind, found in sorted(files.items())
        },
    }
    key = f"{folder}/manifest.json"
    _put(tx, setting, bucket, key, dumps(manifest))
    return {}, Doc({"MapRunArn": run.arn, "ResultWriterDetails": {"Bucket": bucket, "Key": key}})


def _page(tx: Tx, run: MapRun, kind: str, after: int, transformation: str) -> tuple[list[str], int, bool]:
    """Answer the next entries of a kind, the last child or item looked at, and whether there may be more."""
    texts: list[str] = []
    size = 0
    if kind == "PENDING":
        number = max(after, run.taken - 1)
        while number + 1 < run.total and size < OBJECT_BYTES:
            row = tx.one(sql.ITEMS_AT, (run.id, number + 1))
            assert row is not None, f"Map Run {run.id} has no item {number + 1}"
            first, count, body = row
            texts += [dumps({"Input": dumps(item)}) for item in loads(body)[number + 1 - first :]]
            size += len(body)
            number = first + count - 1
        return texts, number, number + 1 < run.total
    rows = tx.all(sql.RESULTS, (run.id, after, ROWS))
    for row in rows:
        after = row[0]
        if (row[2] == "SUCCEEDED") == (kind == "SUCCEEDED"):
            for text in _entries(run, row, transformation):
                texts.append(text)
                size += len(text)
            if size >= OBJECT_BYTES:
                return texts, after, True
    return texts, after, len(rows) == ROWS


def _destination(run: MapRun) -> tuple[str, str]:
    """Answer the bucket, and the folder of this Map Run. Raises `StatesError`."""
    arguments = run.settings["writer"]["arguments"]
    bucket = arguments.get("Bucket") if isinstance(arguments, dict) else None
    if not isinstance(bucket, str):
        raise StatesError(FAILED, "The ResultWriter needs a Bucket that is a string.")
    prefix = arguments.get("Prefix")
    return bucket, f"{str(prefix).rstrip('/')}/{run.name}" if prefix else run.name


def _put(tx: Tx, setting: Setting, bucket: str, key: str, text: str) -> int:
    """Write an object; answer its size. Raises `StatesError`."""
    objects = setting.switchboard.objects
    if objects is None:
        raise StatesError(FAILED, f"Could not write {key} to bucket {bucket}: this node has no object store (S3) yet.")
    body = text.encode()
    try:
        objects.put(tx, bucket, key, body)
    except DomainError as no:
        raise StatesError(FAILED, f"Could not write {key} to bucket {bucket}: {no.message}") from None
    return len(body)
