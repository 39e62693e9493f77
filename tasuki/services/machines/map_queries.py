"""The SQL of Map Runs."""

# -- the labelled machines whose executions a Map Run's children are ----------------------------------------------

# The machine of a label.
LABELLED = "SELECT id FROM machines WHERE account = ? AND region = ? AND name = ? AND type = 'MAP'"
# A new one.
ADD_LABELLED = (
    "INSERT INTO machines (account, region, name, type, status, created_at, revision, tags) "
    "VALUES (?, ?, ?, 'MAP', 'ACTIVE', ?, 0, '[]') RETURNING id"
)

# -- runs -----------------------------------------------------------------------------------------------------------

# A new Map Run.
ADD_RUN = (
    "INSERT INTO map_runs (machine, name, revision, execution, frame, attempt, status, phase, started_at, "
    "max_concurrency, tolerated_count, tolerated_percentage, settings, cursor, total, was_read) "
    "VALUES (?, ?, ?, ?, ?, ?, 'RUNNING', ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id"
)
_COLUMNS = (
    "r.id, r.machine, r.name, r.revision, r.execution, r.frame, r.attempt, r.status, r.phase, r.started_at, r.stopped_at, "
    "r.max_concurrency, r.tolerated_count, r.tolerated_percentage, r.settings, r.cursor, r.error, r.cause, r.total, r.taken, "
    "r.children, r.succeeded, r.failed, r.timed_out, r.aborted, r.succeeded_items, r.failed_items, r.timed_out_items, "
    "r.aborted_items, r.output_bytes, r.redrives, r.redriven_at, r.was_read, r.again, r.pending, r.pending_items, r.lost, "
    "r.lost_items, m.account, m.region, m.name "
)
# All there is to know of one.
RUN = f"SELECT {_COLUMNS} FROM map_runs r JOIN machines m ON m.id = r.machine WHERE r.id = ?"  # noqa: S608 - columns of ours
# The same, by the names in its ARN.
FIND_RUN = (
    f"SELECT {_COLUMNS} FROM map_runs r JOIN machines m ON m.id = r.machine "  # noqa: S608 - columns of ours
    "WHERE m.account = ? AND m.region = ? AND m.name = ? AND r.name = ?"
)
# The names in the ARN of the execution that a run belongs to.
PARENT = (
    "SELECT m.account, m.region, m.name, e.name FROM executions e JOIN machines m ON m.id = e.machine WHERE e.id = ?"
)
# A page of an execution's Map Runs, newest first.
RUNS_OF = (
    "SELECT r.id, r.name, r.started_at, r.stopped_at, m.account, m.region, m.name "
    "FROM map_runs r JOIN machines m ON m.id = r.machine WHERE r.execution = ? AND r.id < ? ORDER BY r.id DESC LIMIT ?"
)
# The one that a frame waits for.
RUN_OF_FRAME = "SELECT id FROM map_runs WHERE execution = ? AND frame = ? AND attempt = ?"
# Where it stands, as far as only its own poll decides.
SAVE_RUN = (
    "UPDATE map_runs SET status = ?, phase = ?, stopped_at = ?, cursor = ?, error = ?, cause = ?, total = ?, taken = ?, "
    "children = ?, redrives = ?, redriven_at = ?, was_read = ?, again = ? WHERE id = ?"
)
# UpdateMapRun.
SET_LIMITS = "UPDATE map_runs SET max_concurrency = ?, tolerated_count = ?, tolerated_percentage = ? WHERE id = ?"
# A child has ended: one statement for each status.
CHILD_SUCCEEDED = (
    "UPDATE map_runs SET succeeded = succeeded + 1, succeeded_items = succeeded_items + ?, output_bytes = output_bytes + ? "
    "WHERE id = ?"
)
CHILD_FAILED = "UPDATE map_runs SET failed = failed + 1, failed_items = failed_items + ? WHERE id = ?"
CHILD_TIMED_OUT = "UPDATE map_runs SET timed_out = timed_out + 1, timed_out_items = timed_out_items + ? WHERE id = ?"
CHILD_ABORTED = "UPDATE map_runs SET aborted = aborted + 1, aborted_items = aborted_items + ? WHERE id = ?"
# It cannot be redriven.
CHILD_LOST = "UPDATE map_runs SET lost = lost + 1, lost_items = lost_items + ? WHERE id = ?"

# -- items ----------------------------------------------------------------------------------------------------------

# A slice of the items.
ADD_ITEMS = "INSERT INTO map_items (run, first, count, body) VALUES (?, ?, ?, ?)"
# The slice that an item is in.
ITEMS_AT = "SELECT first, count, body FROM map_items WHERE run = ? AND first <= ? ORDER BY first DESC LIMIT 1"
# Nobody wants them any more.
DROP_ITEMS = "DELETE FROM map_items WHERE run = ?"

# -- children -------------------------------------------------------------------------------------------------------

# An execution is a Map Run's child.
ADD_CHILD = "INSERT INTO map_children (execution, run, number, first, items, item) VALUES (?, ?, ?, ?, ?, ?)"
# What a child must know of itself, to begin and to end.
CHILD = (
    "SELECT c.run, c.first, c.items, c.item, r.settings FROM map_children c JOIN map_runs r ON r.id = c.run "
    "WHERE c.execution = ?"
)
# The Map Run a child belongs to, by the child's names.
RUN_OF_CHILD = (
    "SELECT r.name, r.settings, c.pending FROM executions e JOIN machines m ON m.id = e.machine "
    "JOIN map_children c ON c.execution = e.id JOIN map_runs r ON r.id = c.run "
    "WHERE m.account = ? AND m.region = ? AND m.name = ? AND m.type = 'MAP' AND e.name = ?"
)
# Open children, by number.
OPEN_CHILDREN = (
    "SELECT c.number, c.execution FROM map_children c JOIN executions e ON e.id = c.execution "
    "WHERE c.run = ? AND c.number > ? AND e.status = 'RUNNING' ORDER BY c.number LIMIT ?"
)
# What children came to, by number.
RESULTS = (
    "SELECT c.number, e.name, e.status, e.started_at, e.stopped_at, e.input, e.output, e.error, e.cause, e.redrives "
    "FROM map_children c JOIN executions e ON e.id = c.execution WHERE c.run = ? AND c.number > ? ORDER BY c.number LIMIT ?"
)
# A page of a run's children, newest first; the filter is applied by the caller.
CHILDREN = (
    "SELECT c.number, e.name, CASE c.pending WHEN 1 THEN 'PENDING_REDRIVE' ELSE e.status END, e.started_at, e.stopped_at, "
    "c.items, e.redrives, e.redriven_at "
    "FROM map_children c JOIN executions e ON e.id = c.execution WHERE c.run = ? AND c.number < ? ORDER BY c.number DESC LIMIT ?"
)

# -- redrive --------------------------------------------------------------------------------------------------------

# Children that ended badly, by number; what `remains.Ended` holds, in its order.
UNSUCCESSFUL = (
    "SELECT c.number, c.execution, c.items, e.status, e.started_at, e.stopped_at, e.last_event, m.status, "
    "EXISTS (SELECT 1 FROM remains r WHERE r.execution = e.id) "
    "FROM map_children c JOIN executions e ON e.id = c.execution JOIN machines m ON m.id = e.machine "
    "WHERE c.run = ? AND c.number > ? AND e.status IN ('FAILED', 'TIMED_OUT', 'ABORTED') ORDER BY c.number LIMIT ?"
)
# The next children that wait for their redrive.
PENDING = (
    "SELECT c.execution, c.items, e.status FROM map_children c JOIN executions e ON e.id = c.execution "
    "WHERE c.run = ? AND c.pending = 1 ORDER BY c.number LIMIT ?"
)
# A child waits for its redrive, or does so no more.
SET_PENDING = "UPDATE map_children SET pending = ? WHERE execution = ?"
# What cannot be redriven is counted anew.
FORGET_LOST = "UPDATE map_runs SET lost = 0, lost_items = 0 WHERE id = ?"
# The counts of a run move by so much: failed, timed out, aborted, pending, each with its items.
MOVE_COUNTS = (
    "UPDATE map_runs SET failed = failed + ?, failed_items = failed_items + ?, timed_out = timed_out + ?, "
    "timed_out_items = timed_out_items + ?, aborted = aborted + ?, aborted_items = aborted_items + ?, "
    "pending = pending + ?, pending_items = pending_items + ? WHERE id = ?"
)
# An Express child starts over: what it was is forgotten, but its attempts are counted on.
START_OVER = (
    "UPDATE executions SET status = 'RUNNING', output = NULL, error = NULL, cause = NULL, started_at = ?, stopped_at = NULL, "
    "seed = ?, deadline = ?, last_event = 0, last_frame = 0, history_bytes = 0, redrives = redrives + 1 WHERE id = ?"
)

# -- turns ----------------------------------------------------------------------------------------------------------

# A Map Run has something to do; behind all others that have.
ADD_READY = "INSERT INTO map_ready (run) VALUES (?) ON CONFLICT (run) DO NOTHING"
# Whose turns are next.
NEXT_READY = "SELECT turn, run FROM map_ready ORDER BY turn LIMIT ?"
# Taken.
DROP_READY = "DELETE FROM map_ready WHERE turn = ?"
