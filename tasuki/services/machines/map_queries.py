"""The SQL of Map Runs."""

from tasuki.services.machines.queries import LOAD

# -- the labelled machines whose executions a Map Run's children are ----------------------------------------------

# The machine of a label.
LABELLED = "SELECT id FROM machines WHERE account = ? AND region = ? AND name = ? AND type = 'MAP'"
# A new one, unless another unit has just added it.
ADD_LABELLED = (
    "INSERT INTO machines (account, region, name, type, status, created_at, revision, tags) "
    "VALUES (?, ?, ?, 'MAP', 'ACTIVE', ?, 0, '[]') ON CONFLICT DO NOTHING RETURNING id"
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
# All there is to know of one, which is held from then on.
RUN = (
    f"SELECT {_COLUMNS} FROM map_runs r JOIN machines m ON m.id = r.machine WHERE r.id = ? "  # noqa: S608 - columns of ours
    "/*pg FOR UPDATE OF r */"
)
# The same, by the names in its ARN.
FIND_RUN = (
    f"SELECT {_COLUMNS} FROM map_runs r JOIN machines m ON m.id = r.machine "  # noqa: S608 - columns of ours
    "WHERE m.account = ? AND m.region = ? AND m.name = ? AND r.name = ?"
)
# The names in the ARN of the execution that a run belongs to.
PARENT = (
    "SELECT m.account, m.region, m.name, e.name FROM executions e JOIN machines m ON m.id = e.machine WHERE e.id = ?"
)
# The same execution as `running.load` takes it, but not held.
PARENT_SEEN = LOAD.partition("/*pg")[0]
# A page of an execution's Map Runs, newest first.
RUNS_OF = (
    "SELECT r.id, r.name, r.started_at, r.stopped_at, m.account, m.region, m.name "
    "FROM map_runs r JOIN machines m ON m.id = r.machine WHERE r.execution = ? AND r.id < ? ORDER BY r.id DESC LIMIT ?"
)
# The one that a frame waits for.
RUN_OF_FRAME = "SELECT id FROM map_runs WHERE execution = ? AND frame = ? AND attempt = ?"
# What is known of the one that a frame waits for; it is not held.
RUN_SEEN = (
    "SELECT m.account, m.region, m.name, r.name, r.status, r.error, r.was_read, r.redrives "
    "FROM map_runs r JOIN machines m ON m.id = r.machine WHERE r.execution = ? AND r.frame = ? AND r.attempt = ?"
)
# Where it stands, as far as whoever holds it decides.
SAVE_RUN = (
    "UPDATE map_runs SET status = ?, phase = ?, stopped_at = ?, cursor = ?, error = ?, cause = ?, total = ?, taken = ?, "
    "children = ?, redrives = ?, redriven_at = ?, was_read = ?, again = ?, succeeded = ?, succeeded_items = ?, failed = ?, "
    "failed_items = ?, timed_out = ?, timed_out_items = ?, aborted = ?, aborted_items = ?, pending = ?, pending_items = ?, "
    "lost = ?, lost_items = ?, output_bytes = ? WHERE id = ?"
)
# UpdateMapRun.
SET_LIMITS = (
    "UPDATE map_runs SET max_concurrency = COALESCE(?, max_concurrency), tolerated_count = COALESCE(?, tolerated_count), "
    "tolerated_percentage = COALESCE(?, tolerated_percentage) WHERE id = ?"
)

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
# An Express child starts over: what it was is forgotten, but its attempts are counted on.
START_OVER = (
    "UPDATE executions SET status = 'RUNNING', output = NULL, error = NULL, cause = NULL, started_at = ?, stopped_at = NULL, "
    "seed = ?, deadline = ?, last_event = 0, last_frame = 0, history_bytes = 0, redrives = redrives + 1 WHERE id = ?"
)

# -- turns ----------------------------------------------------------------------------------------------------------

# A Map Run has something to do; behind all others that have.
ADD_READY = "INSERT INTO map_ready (run) VALUES (?)"
# The same, since a child of it has ended.
ADD_ENDED = "INSERT INTO map_ready (run, status, items, output_bytes, lost) VALUES (?, ?, ?, ?, ?)"
# Whose turns are next, of those that nobody holds; it is held from then on.
NEXT_RUNS = (
    f"SELECT q.turn, {_COLUMNS} FROM map_ready q JOIN map_runs r ON r.id = q.run JOIN machines m ON m.id = r.machine "  # noqa: S608 - columns of ours
    "WHERE q.turn > ? ORDER BY q.turn LIMIT ? /*pg FOR UPDATE OF r SKIP LOCKED */"
)
# The same, held by others or not: who looks only.
NEXT_READY = "SELECT turn, run FROM map_ready WHERE turn > ? ORDER BY turn LIMIT ?"
# Taken by whoever holds the run: all that there is.
TAKE_NEWS = "DELETE FROM map_ready WHERE run = ? RETURNING status, items, output_bytes, lost"
# Children that have ended and were not taken in yet.
NEWS = (
    "SELECT status, count(*), sum(items), sum(output_bytes), sum(lost), sum(lost * items) FROM map_ready "
    "WHERE run = ? AND status IS NOT NULL GROUP BY status"
)
