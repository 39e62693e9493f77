"""The SQL of the machines room."""

# -- machines and revisions ------------------------------------------------------------------------------------

# One machine with its newest revision, by name.
MACHINE = (
    "SELECT m.id, m.name, m.type, m.status, m.created_at, m.tags, r.id, r.revision_id, r.definition, r.role_arn, "
    "r.logging, r.tracing, r.created_at, r.digest FROM machines m JOIN revisions r ON r.id = m.revision "
    "WHERE m.account = ? AND m.region = ? AND m.name = ? AND m.status <> 'DELETED'"
)
# What StartExecution and a delivery need of a machine.
MACHINE_TO_START = (
    "SELECT m.id, m.status, r.id, r.digest, r.role_arn, r.logging, m.type FROM machines m JOIN revisions r ON r.id = m.revision "
    "WHERE m.account = ? AND m.region = ? AND m.name = ? AND m.status <> 'DELETED'"
)
# The text of a definition, when the cache has lost it.
DEFINITION = "SELECT definition FROM revisions WHERE id = ?"
# A page of machines, by name.
MACHINES = (
    "SELECT name, type, created_at FROM machines "
    "WHERE account = ? AND region = ? AND status <> 'DELETED' AND type <> 'MAP' AND name > ? ORDER BY name LIMIT ?"
)
# How many machines there are, for the quota.
MACHINE_COUNT = (
    "SELECT count(*) FROM machines WHERE account = ? AND region = ? AND status <> 'DELETED' AND type <> 'MAP'"
)
# A new machine; its revision is put in next.
ADD_MACHINE = (
    "INSERT INTO machines (account, region, name, type, status, created_at, revision, tags) "
    "VALUES (?, ?, ?, ?, 'ACTIVE', ?, 0, ?) RETURNING id"
)
# A revision of a machine.
ADD_REVISION = (
    "INSERT INTO revisions (machine, revision_id, definition, digest, role_arn, logging, tracing, created_at) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id"
)
# From now on executions start on this revision.
SET_REVISION = "UPDATE machines SET revision = ? WHERE id = ?"
# DELETING while executions run, DELETED after.
SET_MACHINE_STATUS = "UPDATE machines SET status = ? WHERE id = ?"
# Two executions that end at the same time must not each take the other for the last one.
HOLD_MACHINE = "SELECT 1 FROM machines WHERE id = ? FOR UPDATE"
# The last execution of a machine that is being deleted has ended.
END_DELETING = "UPDATE machines SET status = 'DELETED' WHERE id = ? AND status = 'DELETING'"
# Tags are one JSON list.
SET_TAGS = "UPDATE machines SET tags = ? WHERE id = ?"

# -- executions ------------------------------------------------------------------------------------------------

# A new execution. Answers no row if the name is taken.
ADD_EXECUTION = (
    "INSERT INTO executions (machine, revision, name, status, input, output, error, cause, started_at, stopped_at, seed, "
    "trace, origin, origin_id, watcher, deadline, last_event, last_frame, last_attempt, history_bytes, variable_bytes, version, alias, map_run, last_at) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (machine, name) DO NOTHING RETURNING id"
)
# The execution that has the name.
EXECUTION_NAMED = "SELECT status, input, started_at FROM executions WHERE machine = ? AND name = ?"
# Everything that stepping an execution needs.
LOAD = (
    "SELECT e.id, e.machine, e.revision, e.name, e.status, e.input, e.started_at, e.seed, e.trace, e.watcher, e.deadline, "
    "e.last_event, e.last_frame, e.last_attempt, e.history_bytes, e.variable_bytes, m.account, m.region, m.name, m.status, r.digest, r.role_arn, "
    "r.logging, e.version, e.alias, e.redrives, e.redriven_at, e.last_at "
    "FROM executions e JOIN machines m ON m.id = e.machine JOIN revisions r ON r.id = e.revision WHERE e.id = ? "
    "/*pg FOR UPDATE OF e */"
)
# The same, if nobody else has it in hand.
LOAD_FREE = LOAD.replace("OF e", "OF e SKIP LOCKED")
# Take an execution in hand before anything that is read of it.
HOLD_EXECUTION = "SELECT 1 FROM executions WHERE id = ? FOR UPDATE"
# The same, if nobody else has it.
HOLD_FREE_EXECUTION = "SELECT status FROM executions WHERE id = ? /*pg FOR UPDATE SKIP LOCKED */"
# Whether it is open, whoever has it in hand.
EXECUTION_STATUS = "SELECT status FROM executions WHERE id = ?"
# Find an execution by the names in its ARN. Of machines that shared a name the newest counts.
FIND_EXECUTION = (
    "SELECT e.id, e.status, e.last_event FROM executions e JOIN machines m ON m.id = e.machine "
    "WHERE m.account = ? AND m.region = ? AND m.name = ? AND e.name = ? ORDER BY m.id DESC LIMIT 1"
)
# All that DescribeExecution says.
DESCRIBE_EXECUTION = (
    "SELECT e.status, e.started_at, e.stopped_at, e.input, e.output, e.error, e.cause, e.trace, e.version, e.alias, "
    "e.redrives, e.redriven_at, e.last_event, m.status, EXISTS (SELECT 1 FROM remains r WHERE r.execution = e.id) "
    "FROM executions e JOIN machines m ON m.id = e.machine "
    "WHERE m.account = ? AND m.region = ? AND m.name = ? AND e.name = ? ORDER BY m.id DESC LIMIT 1"
)
# The revision an execution runs on.
EXECUTION_REVISION = (
    "SELECT r.id, r.revision_id, r.definition, r.role_arn, r.logging, r.tracing, r.created_at, r.digest "
    "FROM executions e JOIN machines m ON m.id = e.machine JOIN revisions r ON r.id = e.revision "
    "WHERE m.account = ? AND m.region = ? AND m.name = ? AND e.name = ? ORDER BY m.id DESC LIMIT 1"
)
# A page of a machine's executions, newest first; the filter is applied by the caller.
EXECUTIONS = (
    "SELECT id, name, status, started_at, stopped_at, version, alias, redrives, redriven_at FROM executions "
    "WHERE machine = ? AND id < ? ORDER BY id DESC LIMIT ?"
)
# A page of the open ones.
OPEN_EXECUTIONS = (
    "SELECT id, name, status, started_at, stopped_at, version, alias, redrives, redriven_at FROM executions "
    "WHERE machine = ? AND status = 'RUNNING' AND id < ? ORDER BY id DESC LIMIT ?"
)
# How many executions are open, for the quota: no more than a number.
OPEN_COUNT = "SELECT count(*) FROM (SELECT 1 FROM executions WHERE status = 'RUNNING' LIMIT ?) AS counted"
# Whether a machine still has an open one.
ANY_OPEN = "SELECT 1 FROM executions WHERE machine = ? AND status = 'RUNNING' LIMIT 1"
# Where an execution stands after a unit.
SAVE_EXECUTION = (
    "UPDATE executions SET status = ?, output = ?, error = ?, cause = ?, stopped_at = ?, deadline = ?, last_event = ?, "
    "last_frame = ?, last_attempt = ?, history_bytes = ?, variable_bytes = ?, last_at = ? WHERE id = ?"
)

# -- frames and results ------------------------------------------------------------------------------------------

# One frame.
FRAME = "SELECT id, body, counts, timer FROM frames WHERE execution = ? AND id = ?"
# The open frames below one.
FRAMES_BELOW = "SELECT id, body, counts, timer FROM frames WHERE execution = ? AND parent = ? ORDER BY id"
# The frames that wait for nothing: a step stopped at its bound.
READY_FRAMES = "SELECT id, body, counts, timer FROM frames WHERE execution = ? AND ready = 1 ORDER BY id"
# Who waits for the answer with this token.
FRAME_OF_TOKEN = "SELECT execution, id FROM frames WHERE token = ?"  # noqa: S105 - a statement, no secret
# A frame as it now is; its body is newer than its counts.
SAVE_FRAME = (
    "INSERT INTO frames (execution, id, parent, timer, ready, token, body) VALUES (?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (execution, id) DO UPDATE SET timer = excluded.timer, ready = excluded.ready, token = excluded.token, "
    "body = excluded.body, counts = NULL"
)
# The few numbers of a frame that move while children come and go.
SAVE_COUNTS = "UPDATE frames SET counts = ? WHERE execution = ? AND id = ?"
# What the timer row of a frame says.
SAVE_TIMER = "UPDATE frames SET timer = ? WHERE execution = ? AND id = ?"
# A frame is over.
DROP_FRAME = "DELETE FROM frames WHERE execution = ? AND id = ?"
# An execution is over.
DROP_FRAMES = "DELETE FROM frames WHERE execution = ?"
# The results of finished children.
RESULTS = "SELECT child, output FROM results WHERE execution = ? AND parent = ?"
# A result to keep until the join.
ADD_RESULT = (
    "INSERT INTO results (execution, parent, child, output) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (execution, parent, child) DO UPDATE SET output = excluded.output"
)
# A parent is done, or starts over.
DROP_RESULTS_OF = "DELETE FROM results WHERE execution = ? AND parent = ?"
# An execution is over.
DROP_RESULTS = "DELETE FROM results WHERE execution = ?"

# -- history -----------------------------------------------------------------------------------------------------

# A chunk.
ADD_CHUNK = "INSERT INTO history (execution, first, count, body) VALUES (?, ?, ?, ?)"
# The chunk that holds an event, or the nearest before it.
CHUNK_AT = "SELECT first, count, body FROM history WHERE execution = ? AND first <= ? ORDER BY first DESC LIMIT 1"

# -- inbox and ready -----------------------------------------------------------------------------------------------

# Something happened to an execution.
ADD_TO_INBOX = "INSERT INTO inbox (execution, body) VALUES (?, ?)"
# Whether there is anything.
ANY_IN_INBOX = "SELECT 1 FROM inbox WHERE execution = ? LIMIT 1"
# The oldest of it.
INBOX = "SELECT id, body FROM inbox WHERE execution = ? ORDER BY id LIMIT ?"
# What was told. By its number alone: of two rows the later one may be seen first, so "up to here" would lose some.
DROP_INBOX = "DELETE FROM inbox WHERE id = ?"
# An execution is over.
DROP_INBOX_OF = "DELETE FROM inbox WHERE execution = ?"
# An execution has something to do now; behind all others that have. It may stand here more than once.
ADD_READY = "INSERT INTO ready (execution, goes_on) VALUES (?, ?)"
# The last turn given out to anybody who still waits for it.
LAST_TURN = "SELECT max(turn) FROM ready"
# Whose turns are next. The join: what stands here of an execution that is forgotten is nobody's work.
NEXT_READY = (
    "SELECT r.turn, r.execution FROM ready r /*pg JOIN executions e ON e.id = r.execution */ "
    "WHERE r.turn > ? AND r.turn <= ? ORDER BY r.turn LIMIT ?"
)
# The same, and hold them; those in other hands are passed over.
HOLD_READY = f"{NEXT_READY} /*pg FOR UPDATE OF e SKIP LOCKED */"
# Taken, all that stand here of an execution.
TAKE_READY = "DELETE FROM ready WHERE execution = ? RETURNING goes_on"
# An execution is over.
DROP_READY_OF = "DELETE FROM ready WHERE execution = ?"
