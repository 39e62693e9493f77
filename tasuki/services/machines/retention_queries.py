"""The SQL of forgetting.

An execution on machine 0 is *put aside*: nobody finds it any more, and its rows go slice by slice. On machine -1 nothing
is left of it but its number. No machine has these.
"""

# -- which ones ---------------------------------------------------------------------------------------------------

# A Map Run that is not over still needs its execution, and its execution it.
_AT_REST = "NOT EXISTS (SELECT 1 FROM map_runs r WHERE r.execution = e.id AND r.phase <> 'over')"
_ENDED = f"e.stopped_at IS NOT NULL AND e.map_run IS NULL AND e.machine > 0 AND {_AT_REST}"
# When the one ended that ended the longest ago.
OLDEST_ENDED = f"SELECT e.stopped_at FROM executions e WHERE {_ENDED} ORDER BY e.stopped_at LIMIT 1"  # noqa: S608 - words of ours
# Those whose time is over, the longest first.
DUE = (
    f"SELECT e.id, e.machine, e.history_bytes FROM executions e WHERE {_ENDED} AND e.stopped_at <= ? "  # noqa: S608 - words of ours
    "ORDER BY e.stopped_at LIMIT ? /*pg FOR UPDATE OF e SKIP LOCKED */"
)
# The newest of all: its row stays until there is a newer one, so that no id is given twice.
NEWEST = "SELECT max(id) FROM executions"
_ASIDE = f"(e.machine = 0 OR (e.machine = -1 AND e.id < (SELECT max(id) FROM executions))) AND {_AT_REST}"  # noqa: S608 - words of ours
# Whether any is put aside.
ANY_ASIDE = f"SELECT 1 FROM executions e WHERE {_ASIDE} LIMIT 1"  # noqa: S608 - words of ours
# Those that are put aside.
ASIDE = (
    f"SELECT e.id, e.machine, e.history_bytes FROM executions e WHERE {_ASIDE} "  # noqa: S608 - words of ours
    "ORDER BY e.id LIMIT ? /*pg FOR UPDATE OF e SKIP LOCKED */"
)

# -- what is large, slice by slice ----------------------------------------------------------------------------------

# Put an execution aside; its name is free again.
PUT_ASIDE = (
    "UPDATE executions SET machine = 0, name = CAST(id AS TEXT), input = '', output = NULL, cause = NULL WHERE id = ?"
)
# And its Map Runs with it.
PUT_RUNS_ASIDE = "UPDATE map_runs SET machine = 0 WHERE execution = ?"
# The first chunks of a history, with their sizes.
CHUNKS = "SELECT first, length(body) FROM history WHERE execution = ? ORDER BY first LIMIT ?"
# Those up to one.
DROP_CHUNKS = "DELETE FROM history WHERE execution = ? AND first <= ?"
# The Map Runs of an execution.
RUNS = "SELECT id FROM map_runs WHERE execution = ? ORDER BY id LIMIT ?"
# The first children of a Map Run.
CHILDREN = "SELECT execution FROM map_children WHERE run = ? ORDER BY number LIMIT ?"
# They are nobody's children now.
DROP_CHILD = "DELETE FROM map_children WHERE execution = ?"
# The first items of a Map Run.
ITEMS = "SELECT first FROM map_items WHERE run = ? ORDER BY first LIMIT ?"
# Those up to one.
DROP_ITEMS = "DELETE FROM map_items WHERE run = ? AND first <= ?"
# A Map Run of which nothing else is left.
DROP_TURN = "DELETE FROM map_ready WHERE run = ?"
DROP_RUN = "DELETE FROM map_runs WHERE id = ?"

# -- what is small, all at once ---------------------------------------------------------------------------------------

# Everything else that belongs to an execution, and its row at last. Most of it went when it ended.
DROP_ALL = tuple(
    f"DELETE FROM {table} WHERE execution = ?"  # noqa: S608 - names of ours
    for table in (
        "frames",
        "results",
        "inbox",
        "ready",
        "remains",
        "redrive_tokens",
        "map_children",
        "activity_tasks",
        "activity_waiters",
    )
)
DROP_EXECUTION = "DELETE FROM executions WHERE id = ?"
# But the number of the newest.
KEEP_NUMBER = (
    "UPDATE executions SET machine = -1, name = CAST(id AS TEXT), input = '', output = NULL, cause = NULL WHERE id = ?"
)

# -- what has a time of its own -----------------------------------------------------------------------------------------

# When the execution ended whose remains are the oldest.
OLDEST_REMAINS = "SELECT ended_at FROM remains ORDER BY ended_at LIMIT 1"
# Remains whose time is over, with their sizes, and whether somebody is about to take them.
DUE_REMAINS = (
    "SELECT r.execution, length(r.body), EXISTS (SELECT 1 FROM executions e WHERE e.id = r.execution AND e.status = 'RUNNING') "
    "OR EXISTS (SELECT 1 FROM map_children c WHERE c.execution = r.execution AND c.pending = 1) "
    "FROM remains r WHERE r.ended_at < ? ORDER BY r.ended_at LIMIT ? /*pg FOR UPDATE OF r SKIP LOCKED */"
)
# Gone.
DROP_REMAINS = "DELETE FROM remains WHERE execution = ?"
# Kept a while longer.
KEEP_REMAINS = "UPDATE remains SET ended_at = ? WHERE execution = ?"
# When the oldest chunk of logged events was written, but the newest, which stays: no id is given twice.
OLDEST_LOGGED = "SELECT at FROM logged WHERE id < (SELECT max(id) FROM logged) ORDER BY id LIMIT 1"
# The oldest chunks, with their sizes. Their ids follow time, but for moments.
FIRST_LOGGED = (
    "SELECT id, at, length(body) FROM logged WHERE id < (SELECT max(id) FROM logged) ORDER BY id LIMIT ? "
    "/*pg FOR UPDATE SKIP LOCKED */"
)
# Gone.
DROP_LOGGED = "DELETE FROM logged WHERE id = ?"
