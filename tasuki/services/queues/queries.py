"""The room's SQL."""

from tasuki.store.store import STRIPES

_QUEUE = (
    "id, queues.shelf, account, region, name, delay_s, visibility_s, retention_s, wait_s, max_bytes, dlq_arn, "
    "max_receives, sweep_at"
)
_QUEUES = "queues JOIN shelves ON shelves.shelf = queues.shelf"

# -- queues -------------------------------------------------------------------------------------------------

# The queue of a name: on every call, by the unique index.
QUEUE = f"SELECT {_QUEUE} FROM {_QUEUES} WHERE account = ? AND region = ? AND name = ?"  # noqa: S608 - the columns are ours
# The same, and when its next message becomes receivable: for those who only look.
LOOK = (
    f"SELECT (SELECT visible_at FROM messages WHERE messages.shelf = queues.shelf ORDER BY visible_at LIMIT 1), {_QUEUE} "  # noqa: S608 - the columns are ours
    f"FROM {_QUEUES} WHERE account = ? AND region = ? AND name = ?"
)
# The same of so many names at once; what is left over of the placeholders is filled with no name.
LOOK_MANY = {count: f"{LOOK.removesuffix('name = ?')}name IN ({', '.join('?' * count)})" for count in (10, 100)}
# The queue whose shelf is swept.
QUEUE_BY_ID = f"SELECT {_QUEUE} FROM {_QUEUES} WHERE id = ?"  # noqa: S608 - the columns are ours
# What only the queue's own attributes and tags are asked for.
DETAILS = "SELECT attributes, tags, created_at, modified_at, purged_at FROM queues WHERE id = ?"
INSERT_QUEUE = (
    "INSERT INTO queues (account, region, name, shelf, created_at, modified_at, delay_s, visibility_s, retention_s, "
    "wait_s, max_bytes, dlq_arn, max_receives, attributes, tags) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
    "RETURNING id"
)
# SetQueueAttributes, AddPermission, RemovePermission.
UPDATE_QUEUE = (
    "UPDATE queues SET modified_at = ?, delay_s = ?, visibility_s = ?, retention_s = ?, wait_s = ?, max_bytes = ?, "
    "dlq_arn = ?, max_receives = ?, attributes = ? WHERE id = ?"
)
UPDATE_TAGS = "UPDATE queues SET tags = ? WHERE id = ?"
DELETE_QUEUE = "DELETE FROM queues WHERE id = ?"
# PurgeQueue: an empty shelf instead of the full one.
REPLACE_SHELF = "UPDATE queues SET shelf = ?, purged_at = ? WHERE id = ?"
# ListQueues, a page after a name; the two bounds of the prefix come as text.
LIST_QUEUES = (
    "SELECT name FROM queues WHERE account = ? AND region = ? AND name > ? AND name >= ? AND name < ? "
    "ORDER BY name LIMIT ?"
)
# ListDeadLetterSourceQueues, a page after a name.
SOURCES = "SELECT name FROM queues WHERE dlq_arn = ? AND account = ? AND region = ? AND name > ? ORDER BY name LIMIT ?"

# Names that rest after a deletion.
REST_NAME = (
    "INSERT INTO deleted_queues (account, region, name, deleted_at) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (account, region, name) DO UPDATE SET deleted_at = excluded.deleted_at"
)
FORGET_NAMES = "DELETE FROM deleted_queues WHERE deleted_at <= ?"
DELETED_AT = "SELECT deleted_at FROM deleted_queues WHERE account = ? AND region = ? AND name = ?"

# -- shelves ------------------------------------------------------------------------------------------------

INSERT_SHELF = "INSERT INTO shelves (queue_id) VALUES (NULL) RETURNING shelf"
OWN_SHELF = "UPDATE shelves SET queue_id = ? WHERE shelf = ?"
# A purge: the counters go with the queue, and what stood on the old shelf counts as purged.
TAKE_COUNTERS = (
    "INSERT INTO shelf_counts (shelf, stripe, sent, moved_in, received, deleted, expired, purged, moved_to_dlq, redriven) "
    "SELECT CAST(? AS BIGINT), 0, SUM(sent), SUM(moved_in), SUM(received), SUM(deleted), SUM(expired), "
    "SUM(sent + moved_in - deleted - expired - moved_to_dlq - redriven), SUM(moved_to_dlq), SUM(redriven) "
    "FROM shelf_counts WHERE shelf = ? HAVING COUNT(*) > 0"
)
DROP_COUNTERS = "DELETE FROM shelf_counts WHERE shelf = ?"
ABANDON_SHELF = "UPDATE shelves SET queue_id = NULL, sweep_at = 0 WHERE shelf = ?"
DELETE_SHELF = "DELETE FROM shelves WHERE shelf = ?"
COUNTERS = (
    "SELECT COALESCE(SUM(sent), 0), COALESCE(SUM(moved_in), 0), COALESCE(SUM(received), 0), COALESCE(SUM(deleted), 0), "
    "COALESCE(SUM(expired), 0), COALESCE(SUM(purged), 0), COALESCE(SUM(moved_to_dlq), 0), COALESCE(SUM(redriven), 0) "
    "FROM shelf_counts WHERE shelf = ?"
)
# Each counter in the row of the unit's stripe, which is made the first time: (shelf, stripe, how many).
_COUNT = (
    "INSERT INTO shelf_counts (shelf, stripe, {0}) VALUES (?, ?, ?) "
    "ON CONFLICT (shelf, stripe) DO UPDATE SET {0} = shelf_counts.{0} + excluded.{0}"
)
COUNT_SENT = _COUNT.format("sent")
# Answers the number of the stripe's last arrival; those by send are numbered by the insert.
COUNT_MOVED_IN = _COUNT.format("moved_in") + " RETURNING shelf_counts.sent + shelf_counts.moved_in"
COUNT_DELETED = _COUNT.format("deleted")
COUNT_EXPIRED = _COUNT.format("expired")
COUNT_TO_DLQ = _COUNT.format("moved_to_dlq")
COUNT_REDRIVEN = _COUNT.format("redriven")
# Receives, as long as the cap on messages in flight cannot have been reached; and with a new bound after a count.
COUNT_RECEIVED = (
    "UPDATE shelf_counts SET received = received + ? WHERE shelf = ? AND stripe = ? AND received + ? <= cap_check"
)
COUNT_RECEIVED_TO = (
    "INSERT INTO shelf_counts (shelf, stripe, received, cap_check) VALUES (?, ?, ?, ?) ON CONFLICT (shelf, stripe) "
    "DO UPDATE SET received = shelf_counts.received + excluded.received, "
    "cap_check = shelf_counts.received + excluded.cap_check"
)
# A message arrives that may expire before all others here.
SWEEP_SOONER = "UPDATE shelves SET sweep_at = ? WHERE shelf = ? AND (sweep_at IS NULL OR sweep_at > ?)"
# The sweep: when is the next, and of which shelf. Another node's is left to it.
NEXT_SWEEP = "SELECT sweep_at FROM shelves WHERE sweep_at IS NOT NULL ORDER BY sweep_at LIMIT 1"
DUE_SWEEP = (
    "SELECT shelf, queue_id FROM shelves WHERE sweep_at <= ? ORDER BY sweep_at LIMIT 1 /*pg FOR UPDATE SKIP LOCKED */"
)
SET_SWEEP = "UPDATE shelves SET sweep_at = ? WHERE shelf = ?"

# -- messages -----------------------------------------------------------------------------------------------

# Arrival number n before the stripe's last: 0 for the last one.
INSERT_MESSAGE = (
    "INSERT INTO messages (shelf, sent_at, seq, visible_at, bytes, body_id, content) "  # noqa: S608 - a number
    f"SELECT shelf, ?, (sent + moved_in - ?) * {STRIPES} + stripe, ?, ?, ?, ? FROM shelf_counts "
    "WHERE shelf = ? AND stripe = ?"
)
INSERT_BODY = "INSERT INTO message_bodies (content) VALUES (?) RETURNING id"
BODY = "SELECT content FROM message_bodies WHERE id = ?"
BODIES = "SELECT id, content FROM message_bodies WHERE id IN (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
DELETE_BODY = "DELETE FROM message_bodies WHERE id = ?"
# When the shelf's next message becomes receivable: one index entry.
NEAREST = "SELECT visible_at FROM messages WHERE shelf = ? ORDER BY visible_at LIMIT 1"
# What a receive may take, first come first served: a prefix of the index. What another unit has in hand is passed over.
RECEIVABLE = (
    "SELECT sent_at, seq, received, carried, first_received_at, bytes, source, body_id, content FROM messages "
    "WHERE shelf = ? AND visible_at <= ? ORDER BY visible_at, received, sent_at, seq LIMIT ? "
    "/*pg FOR UPDATE SKIP LOCKED */"
)
CLAIM = (
    "UPDATE messages SET visible_at = ?, received = ?, first_received_at = ?, received_at = ?, receipt = ? "
    "WHERE shelf = ? AND sent_at = ? AND seq = ?"
)
# DeleteMessage: only the receive that is current (standard queues: an older handle deletes nothing).
DELETE_MESSAGE = "DELETE FROM messages WHERE shelf = ? AND sent_at = ? AND seq = ? AND receipt = ?"


def _places(width: int, count: int) -> str:
    one = f"({', '.join(['CAST(? AS BIGINT)'] * width)})"
    return ", ".join([one] * count)


# The same of so many at once; what is left over of the placeholders is filled with -1. The bounds (the first and the last
# sent_at) keep a planner that takes a shelf for small, as it was lately, from reading all of it.
DELETE_MANY = {
    count: "DELETE FROM messages WHERE shelf = ? "  # noqa: S608 - placeholders
    f"AND sent_at >= ? AND sent_at <= ? AND (sent_at, seq, receipt) IN (VALUES {_places(3, count)}) RETURNING sent_at, seq"
    for count in (10, 100)
}
# Before that: in the order of the key, so that two batches with the same messages don't wait for each other.
LOCK_MANY = {
    count: "SELECT 1 FROM messages WHERE shelf = ? "  # noqa: S608 - placeholders
    f"AND sent_at >= ? AND sent_at <= ? AND (sent_at, seq, receipt) IN (VALUES {_places(3, count)}) "
    "ORDER BY sent_at, seq FOR UPDATE"
    for count in (10, 100)
}
# Expiry: by key.
EXPIRE_MESSAGE = "DELETE FROM messages WHERE shelf = ? AND sent_at = ? AND seq = ?"
IN_FLIGHT = "SELECT receipt, received_at, visible_at FROM messages WHERE shelf = ? AND sent_at = ? AND seq = ? /*pg FOR UPDATE */"
# The same of up to ten, in the order of the key; what is left over of the placeholders is filled with -1.
IN_FLIGHT_TEN = (
    "SELECT sent_at, seq, receipt, received_at, visible_at FROM messages WHERE shelf = ? "  # noqa: S608 - placeholders
    f"AND sent_at >= ? AND sent_at <= ? AND (sent_at, seq) IN (VALUES {_places(2, 10)}) "
    "ORDER BY sent_at, seq /*pg FOR UPDATE */"
)
SET_VISIBLE = "UPDATE messages SET visible_at = ? WHERE shelf = ? AND sent_at = ? AND seq = ?"
# A pipe gives back what it took, if it still has it.
RELEASE = "UPDATE messages SET visible_at = ? WHERE shelf = ? AND sent_at = ? AND seq = ? AND receipt = ?"
# To a dead-letter queue: same message, other shelf, receivable at once.
MOVE_TO_DLQ = (
    "UPDATE messages SET shelf = ?, seq = ?, visible_at = ?, carried = received, source = ?, receipt = NULL, "
    "received_at = NULL WHERE shelf = ? AND sent_at = ? AND seq = ?"
)
# Back from a dead-letter queue, as a new message.
REDRIVE = (
    "UPDATE messages SET shelf = ?, sent_at = ?, seq = ?, visible_at = ?, received = 0, carried = 0, "
    "first_received_at = NULL, received_at = NULL, receipt = NULL, source = NULL, body_id = ?, content = ? "
    "WHERE shelf = ? AND sent_at = ? AND seq = ?"
)
# The oldest messages of a shelf that were sent up to an instant: expired ones, or all of an abandoned shelf.
OLDEST = (
    "SELECT sent_at, seq, body_id FROM messages WHERE shelf = ? AND sent_at <= ? ORDER BY sent_at, seq LIMIT ? "
    "/*pg FOR UPDATE SKIP LOCKED */"
)
OLDEST_SENT = "SELECT sent_at FROM messages WHERE shelf = ? ORDER BY sent_at LIMIT 1"
# Counts for GetQueueAttributes. What is invisible is counted in the index; the rest follows from the counters.
INVISIBLE = "SELECT COUNT(*), COUNT(*) FILTER (WHERE received > 0) FROM messages WHERE shelf = ? AND visible_at > ?"
# The same for the cap, and over how many stripes what is left of it is to be shared out.
IN_FLIGHT_NOW = (
    f"SELECT COUNT(*), 1 /*pg * {STRIPES} */ FROM messages "  # noqa: S608 - a number
    "WHERE shelf = ? AND visible_at > ? AND received > 0"
)
# (The plus keeps the planner on the primary key: expired ones are few, visible ones perhaps many.)
EXPIRED_VISIBLE = "SELECT COUNT(*) FROM messages WHERE shelf = ? AND sent_at <= ? AND +visible_at <= ?"
EXPIRED_INVISIBLE = (
    "SELECT COUNT(*), COUNT(*) FILTER (WHERE received > 0) FROM messages "
    "WHERE shelf = ? AND sent_at <= ? AND +visible_at > ?"
)
STANDING = (
    "SELECT COALESCE(SUM(sent + moved_in - deleted - expired - purged - moved_to_dlq - redriven), 0) "
    "FROM shelf_counts WHERE shelf = ?"
)
# The check of promise P8 counts for real.
COUNT_ROWS = "SELECT COUNT(*) FROM messages WHERE shelf = ?"
# How many a pipe could take now, counted up to a bound.
COUNT_RECEIVABLE = "SELECT COUNT(*) FROM (SELECT 1 FROM messages WHERE shelf = ? AND visible_at <= ? LIMIT ?) AS few"

# -- move tasks ---------------------------------------------------------------------------------------------

_TASK = (
    "id, account, region, source_id, source_arn, destination_arn, per_second, status, failure, started_at, moved, "
    "to_move, next_at"
)
INSERT_TASK = f"INSERT INTO move_tasks ({_TASK}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - the columns are ours
# ListMessageMoveTasks: the newest first.
TASKS = f"SELECT {_TASK} FROM move_tasks WHERE source_arn = ? ORDER BY started_at DESC LIMIT ?"  # noqa: S608 - the columns are ours
TASK = f"SELECT {_TASK} FROM move_tasks WHERE id = ? AND source_arn = ?"  # noqa: S608 - the columns are ours
# One active task per source; and the account's quota.
RUNNING_TASK = "SELECT 1 FROM move_tasks WHERE source_arn = ? AND next_at IS NOT NULL LIMIT 1"
COUNT_RUNNING = "SELECT COUNT(*) FROM move_tasks WHERE next_at IS NOT NULL"
NEXT_TASK = "SELECT next_at FROM move_tasks WHERE next_at IS NOT NULL ORDER BY next_at LIMIT 1"
# Another node's is left to it.
DUE_TASK = (
    f"SELECT {_TASK} FROM move_tasks WHERE next_at <= ? ORDER BY next_at LIMIT 1 "  # noqa: S608 - the columns are ours
    "/*pg FOR UPDATE SKIP LOCKED */"
)
STEP_TASK = "UPDATE move_tasks SET moved = moved + ?, next_at = ? WHERE id = ?"
END_TASK = "UPDATE move_tasks SET moved = moved + ?, next_at = NULL, status = ?, failure = ? WHERE id = ?"
# Is this queue the dead-letter queue of any other?
IS_DLQ = "SELECT 1 FROM queues WHERE dlq_arn = ? LIMIT 1"
