"""Every statement of the tasks room."""

# ruff: noqa: S608 - made of constants only

# -- clusters ---------------------------------------------------------------------------------------------------

# Make a cluster, or bring an inactive one back.
PUT_CLUSTER = (
    "INSERT INTO clusters (account, region, name, status, settings, tags, created_at) VALUES (?, ?, ?, 'ACTIVE', ?, ?, ?) "
    "ON CONFLICT (account, region, name) DO UPDATE SET status = 'ACTIVE', settings = excluded.settings, tags = excluded.tags"
)
# Find a cluster by name.
CLUSTER = "SELECT name, status, settings, tags FROM clusters WHERE account = ? AND region = ? AND name = ?"
# A page of cluster names, in order.
CLUSTER_PAGE = "SELECT name FROM clusters WHERE account = ? AND region = ? AND status = 'ACTIVE' AND name > ? ORDER BY name LIMIT ?"
# Note that a cluster was deleted (ECS goes on showing it).
END_CLUSTER = "UPDATE clusters SET status = 'INACTIVE' WHERE account = ? AND region = ? AND name = ?"
# Change a cluster's tags.
TAG_CLUSTER = "UPDATE clusters SET tags = ? WHERE account = ? AND region = ? AND name = ?"
# How many tasks of a cluster run, and how many are on their way there.
COUNT_TASKS = (
    "SELECT count(*) FILTER (WHERE last_status = 'RUNNING'), count(*) FILTER (WHERE last_status <> 'RUNNING') FROM tasks "
    "WHERE account = ? AND region = ? AND cluster = ? AND stopped_at IS NULL"
)

# -- task definitions -------------------------------------------------------------------------------------------

DEFINITION_COLUMNS = "id, family, revision, status, document, tags, registered_at, registered_by, deregistered_at"
# The newest revision of a family, whatever its status: the next one is one more.
LAST_REVISION = "SELECT max(revision) FROM task_definitions WHERE account = ? AND region = ? AND family = ?"
# Keep a revision.
ADD_DEFINITION = (
    "INSERT INTO task_definitions (account, region, family, revision, status, document, tags, registered_at, registered_by) "
    "VALUES (?, ?, ?, ?, 'ACTIVE', ?, ?, ?, ?)"
)
# Find one revision.
DEFINITION = f"SELECT {DEFINITION_COLUMNS} FROM task_definitions WHERE account = ? AND region = ? AND family = ? AND revision = ?"
# Find the newest active revision of a family.
ACTIVE_DEFINITION = (
    f"SELECT {DEFINITION_COLUMNS} FROM task_definitions WHERE account = ? AND region = ? AND family = ? "
    "AND status = 'ACTIVE' ORDER BY revision DESC LIMIT 1"
)
# What a claimed task runs.
DEFINITION_DOCUMENT = "SELECT document FROM task_definitions WHERE id = ?"
# Take a revision out of use.
END_DEFINITION = "UPDATE task_definitions SET status = 'INACTIVE', deregistered_at = ? WHERE id = ?"
# Change a revision's tags.
TAG_DEFINITION = "UPDATE task_definitions SET tags = ? WHERE id = ?"
# A page of revisions, oldest first, after a (family, revision).
DEFINITIONS_UP = (
    "SELECT family, revision FROM task_definitions WHERE account = ? AND region = ? AND status = ? "
    "AND (? = '' OR family = ?) AND (family, revision) > (?, ?) ORDER BY family, revision LIMIT ?"
)
# A page of revisions, newest first, before a (family, revision).
DEFINITIONS_DOWN = (
    "SELECT family, revision FROM task_definitions WHERE account = ? AND region = ? AND status = ? "
    "AND (? = '' OR family = ?) AND (family, revision) < (?, ?) ORDER BY family DESC, revision DESC LIMIT ?"
)
# A page of families with whether any revision is active.
FAMILIES = (
    "SELECT family, count(*) FILTER (WHERE status = 'ACTIVE') FROM task_definitions WHERE account = ? AND region = ? "
    "AND substr(family, 1, length(?)) = ? AND family > ? GROUP BY family "
    "HAVING ? = 'ALL' OR (count(*) FILTER (WHERE status = 'ACTIVE') > 0) = (? = 'ACTIVE') ORDER BY family LIMIT ?"
)

# -- tasks ------------------------------------------------------------------------------------------------------

TASK_COLUMNS = (
    "id, name, account, region, cluster, family, revision, definition_id, attempt, last_status, desired_status, memory_mib, "
    "watcher, batch, trace, origin, started_by, launch_type, version, created_at, pulled_at, started_at, stopping_at, "
    "execution_stopped_at, stopped_at, stop_code, stopped_reason, node, document, containers, tags"
)
# Keep a new task.
ADD_TASK = (
    "INSERT INTO tasks (name, account, region, cluster, family, revision, definition_id, attempt, last_status, "
    "desired_status, memory_mib, watcher, batch, trace, origin, started_by, launch_type, version, created_at, document, "
    "containers, tags) VALUES (?, ?, ?, ?, ?, ?, ?, 0, 'PROVISIONING', 'RUNNING', ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?)"
)
# The memory that pending and running tasks have reserved.
RESERVED_MIB = "SELECT coalesce(sum(memory_mib), 0), count(*) FROM tasks WHERE stopped_at IS NULL"
# Wait for one's turn to add tasks, and hold it until the unit is over. (PostgreSQL only: see Tx.lock.)
TURN = "SELECT pg_advisory_xact_lock(hashtext('tasuki: tasks'), hashtext(current_schema()))"
# Find a task by its id.
TASK = f"SELECT {TASK_COLUMNS} FROM tasks WHERE account = ? AND region = ? AND name = ?"
# Hold the tasks of all batches that some tasks (by id) belong to. Whoever changes a task holds its batch first, in this one
# order: of two that end at once, the second sees the first one's end, and tells the watcher. (PostgreSQL only: see Tx.lock.)
LOCK_BATCHES = (
    "SELECT id FROM tasks WHERE batch IN (SELECT batch FROM tasks WHERE name = ANY(?)) ORDER BY id FOR UPDATE"
)
# Find a task by its id alone (what a runner reports).
TASK_BY_NAME = f"SELECT {TASK_COLUMNS} FROM tasks WHERE name = ?"
# All tasks of one RunTask call.
BATCH = f"SELECT {TASK_COLUMNS} FROM tasks WHERE batch = ? ORDER BY id"
# Leave out tasks of some definitions (`,3,17,`): the images that they name are on other nodes.
NOT_LEFT = "CAST(? AS TEXT) NOT LIKE '%,' || definition_id || ',%'"
# What is to be started and not larger than so many MiB, first come first served, up to a row.
TO_START = (
    f"SELECT {TASK_COLUMNS} FROM tasks WHERE last_status = 'PROVISIONING' AND memory_mib <= ? AND id <= ? AND {NOT_LEFT} "
    "ORDER BY id LIMIT ? /*pg FOR UPDATE SKIP LOCKED*/"
)
# The first that has waited for long (created before an instant) because it is larger than what is free, not than what there is.
OVERTAKEN = (
    f"SELECT {TASK_COLUMNS} FROM tasks WHERE last_status = 'PROVISIONING' AND memory_mib > ? AND memory_mib <= ? "
    f"AND created_at <= ? AND {NOT_LEFT} ORDER BY id LIMIT 1"
)
# Pin a task to this node, host and boot, with the attempt's own key.
CLAIM = (
    "UPDATE tasks SET last_status = 'PENDING', attempt = ?, node = ?, host = ?, boot = ?, access_key = ?, secret = ?, "
    "pulled_at = ?, containers = ?, version = version + 1 WHERE id = ?"
)
# Give up a claim whose attempt never began: it may be claimed again, as another attempt.
UNCLAIM = (
    "UPDATE tasks SET last_status = 'PROVISIONING', node = NULL, host = NULL, boot = NULL, access_key = NULL, secret = NULL, "
    "pulled_at = NULL WHERE id = ?"
)
# Whether anything is to be started that is not larger than so many MiB.
ANY_TO_START = f"SELECT 1 FROM tasks WHERE last_status = 'PROVISIONING' AND memory_mib <= ? AND {NOT_LEFT} LIMIT 1"
# Whether anything that a node claimed is to stop.
ANY_TO_STOP = (
    "SELECT 1 FROM tasks WHERE stopped_at IS NULL AND desired_status = 'STOPPED' "
    "AND last_status <> 'PROVISIONING' AND node = ? LIMIT 1"
)
# Tasks that a node claimed, that are to stop and have not.
TO_STOP = (
    "SELECT name, attempt FROM tasks WHERE stopped_at IS NULL AND desired_status = 'STOPPED' "
    "AND last_status <> 'PROVISIONING' AND node = ? ORDER BY id"
)
# Everything that a node had claimed before it was started again.
CLAIMED = "SELECT name, attempt FROM tasks WHERE stopped_at IS NULL AND last_status <> 'PROVISIONING' AND node = ? ORDER BY id"
# Whether there are tasks of other nodes (in a store that had several before it was restored into ours).
ANY_OF_OTHERS = "SELECT 1 FROM tasks WHERE node <> ? LIMIT 1"
# Take them over.
TAKE_OVER = "UPDATE tasks SET node = ? WHERE node <> ?"
# Note where a task stands.
PROGRESS = (
    "UPDATE tasks SET last_status = ?, desired_status = ?, started_at = ?, stopping_at = ?, stop_code = ?, "
    "stopped_reason = ?, containers = ?, version = ? WHERE id = ?"
)
# Note a task's end. Its key ends with it.
END = (
    "UPDATE tasks SET last_status = 'STOPPED', desired_status = 'STOPPED', started_at = ?, stopping_at = ?, "
    "execution_stopped_at = ?, stopped_at = ?, stop_code = ?, stopped_reason = ?, containers = ?, version = ?, "
    "access_key = NULL, secret = NULL WHERE id = ?"
)
# Change a task's tags.
TAG_TASK = "UPDATE tasks SET tags = ? WHERE id = ?"
# Who holds an access key, while the task lives.
KEY_HOLDER = "SELECT secret FROM tasks WHERE access_key = ? AND stopped_at IS NULL"
# A page of tasks; an empty text means any.
TASK_PAGE = (
    "SELECT id, name FROM tasks WHERE account = ? AND region = ? AND cluster = ? AND desired_status = ? AND id > ? "
    "AND (? = '' OR family = ?) AND (? = '' OR started_by = ?) AND (? = '' OR launch_type = ?) AND (? = '' OR node = ?) "
    "ORDER BY id LIMIT ?"
)
# Whether any task of a batch goes on.
BATCH_GOES_ON = "SELECT 1 FROM tasks WHERE batch = ? AND stopped_at IS NULL LIMIT 1"

# -- client tokens and age --------------------------------------------------------------------------------------

# What a client token started.
TOKEN = "SELECT request, batch FROM task_tokens WHERE account = ? AND region = ? AND token = ?"  # noqa: S105 - SQL
# Remember what a client token started.
ADD_TOKEN = "INSERT INTO task_tokens (account, region, token, request, batch, created_at) VALUES (?, ?, ?, ?, ?, ?)"  # noqa: S105
# When the longest stopped task stopped.
OLDEST_STOPPED = "SELECT min(stopped_at) FROM tasks WHERE stopped_at IS NOT NULL"
# Tasks of a node, or of none, that have been shown long enough.
EXPIRED = (
    "SELECT id, name FROM tasks WHERE stopped_at IS NOT NULL AND stopped_at <= ? AND (node = ? OR node IS NULL) "
    "ORDER BY stopped_at LIMIT ?"
)
# Forget a task.
FORGET = "DELETE FROM tasks WHERE id = ?"
# Forget the tokens of long ago.
FORGET_TOKENS = "DELETE FROM task_tokens WHERE created_at <= ?"
