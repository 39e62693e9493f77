"""The SQL of the handovers room."""

INSERT = """
INSERT INTO handovers (at, source, source_id, via, target, target_id, trace, outcome) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
"""Record one handover: once per message, on the hot path."""

HANDED_OVER = "SELECT 1 FROM handovers WHERE target_id = ? AND target_id <> '' LIMIT 1"
"""Whether a target id was given anything before."""

_PAGE = "SELECT id, at, source, source_id, via, target, target_id, trace, outcome FROM handovers WHERE "

BY_TRACE = _PAGE + "trace = ? AND id > ? ORDER BY id LIMIT ?"
"""A page of all that belongs to one correlation id."""

BY_MESSAGE = _PAGE + "source_id = ? AND id > ? ORDER BY id LIMIT ?"
"""A page of all attempts on one message."""

BY_EXECUTION = _PAGE + "target_id = ? AND target_id <> '' AND id > ? ORDER BY id LIMIT ?"
"""A page of the messages that one execution was given."""

BY_SOURCE = _PAGE + "source = ? AND via = '' AND id > ? ORDER BY id LIMIT ?"
"""A page of what a schedule or rule posted: only these have no `via`, and only these are in the index."""

ALL = _PAGE + "id > ? ORDER BY id LIMIT ?"
"""A page of everything, oldest first."""

OLDEST = "SELECT at FROM handovers ORDER BY id LIMIT 1"
"""When the oldest row was written: rows are written about in the order of time."""

DELETE_OLD = (
    "DELETE FROM handovers WHERE id IN (SELECT id FROM handovers ORDER BY id LIMIT ? /*pg FOR UPDATE SKIP LOCKED */) "
    "AND at <= ?"
)
"""Forget a slice of the oldest rows, if their time is over."""
