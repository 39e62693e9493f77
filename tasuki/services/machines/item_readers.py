"""Reading a Map Run's items from objects (S3): a window at a time, so that files of any size fit the memory.

`read_items` answers the next items and where to go on. What it remembers between two windows is the offset of the
first byte that is not read yet (for a listing: the last key). Texts recorded in scenarios/test_map_item_reader*; where AWS
words things that were not recorded, ours say what is wrong.
"""

import csv
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tasuki.engine.context import STATE_DATA
from tasuki.language.errors import StatesError
from tasuki.services.machines.setting import Setting
from tasuki.services.switchboard import Objects
from tasuki.store.store import Tx
from tasuki.values.documents import loads
from tasuki.values.errors import DomainError, MalformedDocument

FAILED = "States.ItemReaderFailed"
WINDOW = 1 << 18
"""Bytes that one unit reads; more when a single item is larger."""
LARGEST_ITEM = 16 << 20
LARGEST_WHOLE = 64 << 20
"""A JSON file that an ItemsPointer leads into is read as a whole."""
LISTED = 500
"""Objects of a listing that one unit takes."""
MOST_ITEMS = 100_000_000

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|["\[\]{},]', re.DOTALL)
_BLANK = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"

Cursor = dict[str, Any]


class _Source(NamedTuple):
    """An object, in the caller's unit."""

    tx: Tx
    objects: Objects
    bucket: str
    key: str

    def get(self, start: int, length: int) -> bytes:
        try:
            return self.objects.get(self.tx, self.bucket, self.key, start, length)
        except DomainError as no:
            raise StatesError(FAILED, no.message) from None


def source_of(reader: Mapping[str, Any] | None) -> str:
    """Answer what `$$.Map.Item.Source` says of the items: where they were read."""
    if reader is None:
        return STATE_DATA
    arguments = reader["arguments"]
    key = f"/{arguments.get('Key')}" if reader["action"] == "getObject" else ""
    return f"S3://{arguments.get('Bucket')}{key}"


def read_items(
    tx: Tx, setting: Setting, reader: Mapping[str, Any], cursor: Cursor, have: int
) -> tuple[list[Any], Cursor | None]:
    """Answer the next items behind the `have` that there are, and where to go on; None when all are read.

    Raises `StatesError`.
    """
    most = reader["max_items"]
    if most < 0:
        raise StatesError(FAILED, "field MaxItems must be positive")
    room = min(most or MOST_ITEMS, MOST_ITEMS) - have
    headers = reader["headers"]
    if len(set(headers)) < len(headers):
        raise StatesError(FAILED, "CSV headers cannot contain duplicates.")
    items, following = _next_items(tx, setting, reader, cursor)
    if len(items) >= room:
        return items[:room], None
    return items, following


def _next_items(tx: Tx, setting: Setting, reader: Mapping[str, Any], cursor: Cursor) -> tuple[list[Any], Cursor | None]:
    """Choose how to read."""
    objects = setting.switchboard.objects
    if objects is None:
        raise StatesError(FAILED, "This node has no object store (S3) yet: give the items in the state's input.")
    arguments, kind = reader["arguments"], reader["input_type"]
    bucket = _text(arguments, "Bucket")
    if reader["action"] == "listObjectsV2":
        if reader["transformation"] != "NONE":
            raise StatesError(FAILED, "The Transformation LOAD_AND_FLATTEN comes with a later release of Tasuki.")
        return _listing(tx, objects, bucket, str(arguments.get("Prefix", "")), cursor)
    source = _Source(tx, objects, bucket, _text(arguments, "Key"))
    if kind == "CSV":
        return _csv(source, reader, cursor)
    if kind == "JSONL":
        return _lines(source, cursor)
    if kind == "JSON":
        pointer = reader["pointer"]
        return (_pointed(source, pointer), None) if pointer else _json(source, cursor)
    raise StatesError(FAILED, f"The InputType {kind} comes with a later release of Tasuki; use CSV, JSON or JSONL.")


def _text(arguments: Any, name: str) -> str:
    value = arguments.get(name) if isinstance(arguments, dict) else None
    if not isinstance(value, str):
        raise StatesError(FAILED, f"The ItemReader needs a {name} that is a string.")
    return value


def _windows(source: _Source, at: int) -> Iterator[tuple[bytes, bool]]:
    """Answer larger and larger windows from `at` on, and whether one reaches the object's end.

    The caller stops when a window holds at least one whole item. Raises `StatesError`.
    """
    length = WINDOW
    while length <= LARGEST_ITEM:
        # One byte more tells whether this is the end.
        window = source.get(at, length + 1)
        at_end = len(window) <= length
        yield window[:length], at_end
        if at_end:
            return
        length *= 4
    raise StatesError(FAILED, f"An item of {source.key} is larger than {LARGEST_ITEM} bytes.")


# -- lines -----------------------------------------------------------------------------------------------------------


def _records(source: _Source, at: int, *, quoted: bool) -> tuple[list[bytes], int, bool]:
    """Answer the next whole lines, where they end, and whether that is the object's end.

    `quoted`: a line ends only outside of quotes (RFC 4180).
    """
    for window, at_end in _windows(source, at):
        records: list[bytes] = []
        size = 0
        held: list[bytes] = []
        for line in window.split(b"\n"):
            held.append(line)
            if quoted and sum(part.count(b'"') for part in held) % 2:
                continue
            records.append(b"\n".join(held))
            held = []
        if at_end:
            if held:
                records.append(b"\n".join(held))
            return records, at + len(window), True
        # The last one may go on in the next window.
        if not held and records:
            held = [records.pop()]
        size = len(window) - len(b"\n".join(held))
        if records:
            return records, at + size, False
    raise AssertionError("the last window reaches the end")


def _decoded(source: _Source, record: bytes) -> str:
    try:
        return record.decode()
    except UnicodeDecodeError:
        raise StatesError(FAILED, f"{source.key} is not encoded in UTF-8.") from None


def _lines(source: _Source, cursor: Cursor) -> tuple[list[Any], Cursor | None]:
    """JSON Lines: a document a line, empty ones left out."""
    at = cursor.get("at", 0)
    records, end, at_end = _records(source, at, quoted=False)
    if at == 0 and records:
        records[0] = records[0].removeprefix(_BOM)
    items = [_document(source, record) for record in records if record.strip(_BLANK)]
    return items, None if at_end else {"at": end}


def _csv(source: _Source, reader: Mapping[str, Any], cursor: Cursor) -> tuple[list[Any], Cursor | None]:
    """CSV: an object a row, all values texts. Cells without a header are dropped, missing ones are empty."""
    at, headers = cursor.get("at", 0), cursor.get("headers")
    records, end, at_end = _records(source, at, quoted=True)
    if at == 0 and records:
        records[0] = records[0].removeprefix(_BOM)
    texts = (_decoded(source, record).removesuffix("\r") for record in records)
    try:
        rows = [row for row in csv.reader(texts, delimiter=reader["delimiter"]) if row]
    except csv.Error as bad:
        raise StatesError(FAILED, f"{source.key} is not CSV: {bad}") from None
    if headers is None:
        headers = reader["headers"]
        if reader["header_location"] == "FIRST_ROW":
            headers, rows = (rows[0] if rows else []), rows[1:]
        if len(set(headers)) < len(headers):
            raise StatesError(FAILED, "CSV headers cannot contain duplicates.")
    width = len(headers)
    items = [dict(zip(headers, [*row, *[""] * (width - len(row))], strict=False)) for row in rows]
    return items, None if at_end else {"at": end, "headers": headers}


# -- JSON ------------------------------------------------------------------------------------------------------------


def _document(source: _Source, text: bytes) -> Any:
    try:
        return loads(text)
    except MalformedDocument as bad:
        raise StatesError(FAILED, f"{source.key} is not JSON: {bad}") from None


def _json(source: _Source, cursor: Cursor) -> tuple[list[Any], Cursor | None]:
    """A JSON array, some members at a time."""
    at = cursor.get("at", 0)
    for window, at_end in _windows(source, at):
        place = 0
        if at == 0:
            place = _begin_array(source, window, at_end=at_end)
        texts, place, closed = _members(window, place)
        if closed or texts:
            items = [_document(source, text) for text in texts]
            return items, None if closed else {"at": at + place}
        if at_end:
            raise StatesError(FAILED, f"{source.key} is not JSON: the array does not end.")
    raise AssertionError("the last window reaches the end")


def _begin_array(source: _Source, window: bytes, *, at_end: bool) -> int:
    """Answer the place behind the bracket that opens the array. Raises `StatesError` for any other document."""
    start = len(_BOM) if window.startswith(_BOM) else 0
    while start < len(window) and window[start] in _BLANK:
        start += 1
    if window[start : start + 1] == b"[":
        return start + 1
    if at_end:
        _document(source, window[start:])
    raise StatesError(FAILED, "Attempting to map over non-iterable node.")


def _members(window: bytes, place: int) -> tuple[list[bytes], int, bool]:
    """Answer the texts of the whole members from `place` on, the place behind them, and whether the array ends there."""
    texts: list[bytes] = []
    depth = 0
    start = place
    for token in _TOKEN.finditer(window, place):
        first = token[0][0]
        if first in b"[{":
            depth += 1
        elif first in b"]}" and depth:
            depth -= 1
        elif first in b"]}" or (first == 0x2C and not depth):
            text = window[start : token.start()].strip(_BLANK)
            if text or first == 0x2C or texts:
                texts.append(text)
            start = token.end()
            if first != 0x2C:
                return texts, start, True
        elif token[0] == b'"':
            break  # a string that goes on behind the window
    return texts, start, False


def _pointed(source: _Source, pointer: str) -> list[Any]:
    """Answer the array that an ItemsPointer (RFC 6901) leads to. Raises `StatesError`."""
    text = source.get(0, LARGEST_WHOLE + 1)
    if len(text) > LARGEST_WHOLE:
        raise StatesError(FAILED, f"{source.key} is larger than {LARGEST_WHOLE} bytes, the most with an ItemsPointer.")
    node = _document(source, text.removeprefix(_BOM))
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and name in node:
            node = node[name]
        elif isinstance(node, list) and name.isdigit() and int(name) < len(node):
            node = node[int(name)]
        else:
            raise StatesError(FAILED, f"The ItemsPointer {pointer} leads to nothing in {source.key}.")
    if not isinstance(node, list):
        raise StatesError(FAILED, "Attempting to map over non-iterable node.")
    return node


# -- listings --------------------------------------------------------------------------------------------------------


def _listing(tx: Tx, objects: Objects, bucket: str, prefix: str, cursor: Cursor) -> tuple[list[Any], Cursor | None]:
    """The objects of a bucket: an item each, in the order of their keys."""
    try:
        found = objects.list(tx, bucket, prefix, cursor.get("after", ""), LISTED)
    except DomainError as no:
        raise StatesError(FAILED, no.message) from None
    items = [
        {
            "Etag": one.etag,
            "LastModified": one.modified // 1_000,
            "Key": one.key,
            "Size": one.size,
            "StorageClass": one.storage_class,
        }
        for one in found
    ]
    return items, {"after": found[-1].key} if len(found) == LISTED else None
