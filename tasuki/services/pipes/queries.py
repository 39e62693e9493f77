"""The SQL of the pipes room."""

INSERT = """
INSERT INTO pipes (account, region, name, description, desired, current, source, source_parameters, enrichment,
    enrichment_parameters, target, target_parameters, role, log_configuration, kms_key, tags, created, modified)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id
"""
"""Create a pipe."""

INSERT_FLOW = """
INSERT INTO pipe_flows (pipe, revision, running, source, batch_size, window_ms, served)
VALUES (?, ?, ?, ?, ?, ?, (SELECT coalesce(max(served), 0) FROM pipe_flows WHERE running = 1))
"""
"""Create the flow of a pipe; its first turn comes after everybody's who waits."""

_CURRENT = """CASE WHEN p.current = 'STOPPED' AND EXISTS (SELECT 1 FROM pipe_calls c WHERE c.pipe = p.id)
    THEN 'STOPPING' ELSE p.current END"""

_COLUMNS = f"""p.id, p.account, p.region, p.name, p.description, p.desired, {_CURRENT}, f.reason, p.source, p.source_parameters,
    p.enrichment, p.enrichment_parameters, p.target, p.target_parameters, p.role, p.log_configuration, p.kms_key, p.tags,
    p.created, p.modified"""

BY_NAME = f"""
SELECT {_COLUMNS} FROM pipes p JOIN pipe_flows f ON f.pipe = p.id WHERE p.account = ? AND p.region = ? AND p.name = ?
"""  # noqa: S608 - our own column list
"""A pipe by its name."""

BY_ID = f"SELECT {_COLUMNS} FROM pipes p JOIN pipe_flows f ON f.pipe = p.id WHERE p.id = ?"  # noqa: S608 - our own column list
"""A pipe by its id, when a round meets a revision it doesn't know."""

COUNT = "SELECT count(*) FROM pipes WHERE account = ? AND region = ?"
"""How many pipes there are, against the quota."""

PAGE = f"""
SELECT {_COLUMNS} FROM pipes p JOIN pipe_flows f ON f.pipe = p.id
WHERE p.account = ? AND p.region = ? AND p.name > ?
  AND (? = '' OR p.desired = ?) AND (? = '' OR {_CURRENT} = ?)
  AND substr(p.name, 1, length(?)) = ? AND substr(p.source, 1, length(?)) = ? AND substr(p.target, 1, length(?)) = ?
ORDER BY p.name LIMIT ?
"""  # noqa: S608 - our own column list
"""A page of ListPipes, by name."""

UPDATE = """
UPDATE pipes SET description = ?, desired = ?, current = ?, source_parameters = ?, enrichment = ?,
    enrichment_parameters = ?, target = ?, target_parameters = ?, role = ?, log_configuration = ?, kms_key = ?, modified = ? WHERE id = ?
"""
"""Give a pipe a new definition."""

UPDATE_FLOW = """
UPDATE pipe_flows SET revision = ?, running = ?, batch_size = ?, window_ms = ?, window_from = NULL, retry_at = 0,
    failures = 0, reason = ? WHERE pipe = ?
"""
"""Let the next round see a new definition, with a clean slate; the counters stay."""

SET_STATE = "UPDATE pipes SET desired = ?, current = ?, modified = ? WHERE id = ?"
"""Start or stop a pipe at a caller's wish."""

SET_CURRENT = "UPDATE pipes SET current = ? WHERE id = ?"
"""Note that a pipe stopped on its own."""

RUN_FLOW = """
UPDATE pipe_flows SET running = ?, window_from = NULL, retry_at = 0, failures = 0, reason = ? WHERE pipe = ?
"""
"""Start or stop a flow; its reason is why it stopped on its own, or failed to start, or empty."""

SET_TAGS = "UPDATE pipes SET tags = ? WHERE id = ?"
"""Replace a pipe's tags."""

SET_REVISION = "UPDATE pipe_flows SET revision = ? WHERE pipe = ?"
"""Let the next round read a definition that changed in a tag only."""

DELETE = "DELETE FROM pipes WHERE id = ?"
"""Forget a pipe."""

DELETE_FLOW = "DELETE FROM pipe_flows WHERE pipe = ?"
"""Forget its flow."""

_TURN = "SELECT pipe, revision, source, batch_size, window_ms, window_from, retry_at, failures, reason, served FROM pipe_flows"

TURNS = f"{_TURN} WHERE running = 1 ORDER BY served, pipe"
"""The running flows, who was served longest ago first."""

TAKE_TURN = f"{_TURN} WHERE pipe = ? AND running = 1 /*pg FOR UPDATE SKIP LOCKED */"
"""The flow that is to be served, as it is now; another node's is left to it."""

OPEN_WINDOW = "UPDATE pipe_flows SET window_from = ? WHERE pipe = ?"
"""Open a batching window at the first message seen, or forget it (NULL) when its messages have gone."""

SETTLE = """
UPDATE pipe_flows SET window_from = NULL, retry_at = ?, failures = ?, reason = ?, delivered = delivered + ?,
    duplicates = duplicates + ?, filtered = filtered + ?, failed = failed + ?,
    served = (SELECT coalesce(max(served), 0) FROM pipe_flows WHERE running = 1) + 1 WHERE pipe = ?
"""
"""Close a round: what became of its messages, when to go on, and the back of the line."""

ADD_CALL = """
INSERT INTO pipe_calls (id, pipe, via, source, target, execution, called, stage, began, name, revision, definition)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
"""A batch that is waited for."""

CALL = """
SELECT pipe, via, source, target, execution, called, stage, began, name, revision, definition, answer FROM pipe_calls
WHERE id = ?
"""
"""What was handed over in a call."""

KEEP_ANSWER = "UPDATE pipe_calls SET answer = ? WHERE id = ? AND answer IS NULL"
"""An enrichment has answered: what is to be handed on."""

HOLD_CALLER = "SELECT 1 FROM pipe_flows WHERE pipe = (SELECT pipe FROM pipe_calls WHERE id = ?) FOR UPDATE"
HOLD_CALL = "SELECT 1 FROM pipe_calls WHERE id = ? FOR UPDATE"
"""A call is taken in hand: its flow first, if its pipe is still there, as everybody does who settles or serves one."""

CALLS = "SELECT count(*) FROM pipe_calls WHERE pipe = ?"
"""How many calls of a pipe are open."""

ORPHAN_CALLS = "UPDATE pipe_calls SET pipe = 0 WHERE pipe = ?"
"""Calls outlive their pipe, whose number may be given to another one."""

DROP_CALL = "DELETE FROM pipe_calls WHERE id = ?"
"""A call is over."""

FAILURES = "SELECT failures FROM pipe_flows WHERE pipe = ? /*pg FOR UPDATE */"
"""How many times in a row a flow delivered nothing; held first, as a round holds it before it takes messages."""

SETTLE_CALL = """
UPDATE pipe_flows SET retry_at = CASE WHEN retry_at > ? THEN retry_at ELSE ? END, failures = ?, reason = ?, delivered = delivered + ?,
    duplicates = duplicates + ?, filtered = filtered + ?, failed = failed + ? WHERE pipe = ?
"""
"""Close a call."""

COUNTERS = """
SELECT f.delivered, f.duplicates, f.filtered, f.failed FROM pipes p JOIN pipe_flows f ON f.pipe = p.id
WHERE p.account = ? AND p.region = ? AND p.name = ?
"""
"""What became of a pipe's messages so far."""

ALL_COUNTERS = """
SELECT p.name, f.delivered, f.duplicates, f.filtered, f.failed FROM pipes p JOIN pipe_flows f ON f.pipe = p.id
WHERE p.account = ? AND p.region = ? ORDER BY p.name
"""
"""The same of all pipes; how many there are is bounded by the quota."""
