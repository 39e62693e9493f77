"""The SQL that invariants need beyond what the API and the rooms' own checks say."""

# Every message that stands on a queue's shelf.
STANDING = (
    "SELECT q.name, m.shelf, m.sent_at, m.seq FROM messages m JOIN queues q ON q.shelf = m.shelf "
    "ORDER BY m.shelf, m.sent_at, m.seq"
)
# Those of one queue.
STANDING_IN = (
    "SELECT q.name, m.shelf, m.sent_at, m.seq FROM messages m JOIN queues q ON q.shelf = m.shelf WHERE q.name = ? "
    "ORDER BY m.sent_at, m.seq"
)
# What a message holds, in its row or beside it.
CONTENT = (
    "SELECT coalesce(m.content, b.content) FROM messages m LEFT JOIN message_bodies b ON b.id = m.body_id "
    "WHERE m.shelf = ? AND m.sent_at = ? AND m.seq = ?"
)
# All queues.
QUEUES = "SELECT account, region, name FROM queues ORDER BY name"
# What pipes took out of queues and did not give back, by message.
HANDED_OVER = (
    "SELECT source_id, count(*) FROM handovers WHERE outcome IN ('DELIVERED', 'DUPLICATE', 'FILTERED') AND via <> '' "
    "GROUP BY source_id ORDER BY source_id"
)
# Messages that Standard machines were given more than once (whoever is waited for may get them again), and those whose execution is not there.
HANDED_OVER_TWICE = (
    "SELECT source_id, count(*) FROM handovers WHERE outcome = 'DELIVERED' AND via <> '' AND target_id LIKE '%:execution:%' "
    "GROUP BY source_id HAVING count(*) > 1 ORDER BY source_id"
)
HANDED_TO_NOBODY = (
    "SELECT h.target_id FROM handovers h WHERE h.outcome = 'DELIVERED' AND h.target_id LIKE '%:execution:%' AND NOT EXISTS "
    "(SELECT 1 FROM executions e JOIN machines m ON m.id = e.machine "
    "WHERE h.target_id = 'arn:aws:states:' || m.region || ':' || m.account || ':execution:' || m.name || ':' || e.name)"
)

# Every execution, with what tells whether its history must be looked at again.
EXECUTIONS = (
    "SELECT e.id, m.name, m.type, e.name, e.status, e.last_event, e.redrives FROM executions e "
    "JOIN machines m ON m.id = e.machine ORDER BY e.id"
)
# The chunks of a history.
HISTORY = "SELECT first, count, body FROM history WHERE execution = ? ORDER BY first"
# Executions that go on.
OPEN_EXECUTIONS = (
    "SELECT m.account, m.region, m.name, e.name FROM executions e JOIN machines m ON m.id = e.machine "
    "WHERE e.status = 'RUNNING' AND m.type <> 'MAP' ORDER BY e.id"
)
# The same that wait for nothing: no timer, no token, no task of theirs, no child, no activity.
STUCK = (
    "SELECT m.name, e.name, e.id FROM executions e JOIN machines m ON m.id = e.machine WHERE e.status = 'RUNNING' "
    "AND NOT EXISTS (SELECT 1 FROM ready r WHERE r.execution = e.id) "
    "AND NOT EXISTS (SELECT 1 FROM frames f WHERE f.execution = e.id AND (f.token IS NOT NULL OR f.timer IS NOT NULL)) "
    "AND NOT EXISTS (SELECT 1 FROM activity_tasks a WHERE a.execution = e.id) "
    "AND NOT EXISTS (SELECT 1 FROM activity_waiters a WHERE a.execution = e.id) "
    "AND NOT EXISTS (SELECT 1 FROM map_runs r WHERE r.execution = e.id AND r.phase <> 'over') "
    "AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.stopped_at IS NULL AND t.watcher LIKE 'machines:' || e.id || ':%') "
    "AND NOT EXISTS (SELECT 1 FROM executions c WHERE c.status = 'RUNNING' AND c.watcher LIKE 'machines:' || e.id || ':%') "
    "AND NOT EXISTS (SELECT 1 FROM express c WHERE c.watcher LIKE 'machines:' || e.id || ':%') ORDER BY e.id"
)
# Tokens that somebody may still answer.
TOKENS = "SELECT token FROM frames WHERE token IS NOT NULL ORDER BY execution, id"

# Rows that belong to an execution which does not go on (and to none at all), table by table.
_GONE = "NOT EXISTS (SELECT 1 FROM executions e WHERE e.id = x.execution AND e.status = 'RUNNING')"
LEFT_OVER = {
    table: f"SELECT count(*) FROM {table} x WHERE {_GONE}"  # noqa: S608 - names of ours
    for table in ("frames", "results", "inbox", "ready", "activity_tasks", "activity_waiters")
}
# Large bodies of no message, and messages without the body that they point at.
LOST_BODIES = (
    "SELECT (SELECT count(*) FROM message_bodies b WHERE NOT EXISTS (SELECT 1 FROM messages m WHERE m.body_id = b.id)), "
    "(SELECT count(*) FROM messages m WHERE m.body_id IS NOT NULL "
    "AND NOT EXISTS (SELECT 1 FROM message_bodies b WHERE b.id = m.body_id))"
)
# What is still to be done now, by table: nothing, once the house is quiet.
UNDONE = "SELECT (SELECT count(*) FROM ready), (SELECT count(*) FROM map_ready), (SELECT count(*) FROM inbox)"

# Every timer, and what may own one.
TIMERS = "SELECT room, key, due FROM timers ORDER BY room, key"
FRAME_THERE = "SELECT 1 FROM frames WHERE execution = ? AND id = ?"
EXECUTION_OPEN = "SELECT 1 FROM executions WHERE id = ? AND status = 'RUNNING'"
EXPRESS_THERE = "SELECT 1 FROM express WHERE id = ?"
WAITER_THERE = "SELECT 1 FROM activity_waiters WHERE execution = ? AND frame = ? AND attempt = ?"
# A timer that was fired comes once more.
FIRE_AGAIN = "INSERT INTO timers (room, key, due) VALUES (?, ?, ?) ON CONFLICT (room, key) DO NOTHING"
# Frames that say they have a timer and have none.
UNTIMED = (
    "SELECT f.execution, f.id FROM frames f WHERE f.timer IS NOT NULL AND NOT EXISTS "
    "(SELECT 1 FROM timers t WHERE t.room = 'machines' AND t.key = f.execution || ':' || f.id)"
)

# Every task.
TASKS = "SELECT name, attempt, last_status, stopped_at, started_by FROM tasks ORDER BY id"
# Map Runs that are over, with their counts.
MAP_RUNS = (
    "SELECT name, status, phase, children, succeeded, failed, timed_out, aborted, pending FROM map_runs ORDER BY id"
)
# How many tasks a client's token stands behind.
STARTED_BY = (
    "SELECT started_by, count(*) FROM tasks WHERE started_by IS NOT NULL GROUP BY started_by ORDER BY started_by"
)
# Shelves that are being swept.
ABANDONED = "SELECT count(*) FROM shelves WHERE queue_id IS NULL"
# What goes on still: executions, Express executions, calls of pipes.
EXECUTIONS_LEFT = (
    "SELECT (SELECT count(*) FROM executions WHERE status = 'RUNNING'), (SELECT count(*) FROM express), "
    "(SELECT count(*) FROM pipe_calls)"
)

# -- schedules, rules, deliveries -----------------------------------------------------------------------------

# What was handed over, from a row on.
HANDOVERS = (
    "SELECT id, at, source, source_id, via, target, target_id, trace, outcome FROM handovers WHERE id > ? ORDER BY id"
)
# Deliveries on their way, each with its timer and the HTTP call that it waits for.
DELIVERIES = (
    "SELECT d.id, d.source, d.source_id, d.target, d.trace, d.attempt, d.state, d.next_at, t.due, "
    "(SELECT count(*) FROM http_calls h WHERE h.watcher = 'deliveries:' || d.id || ':' || d.attempt) FROM deliveries d "
    "LEFT JOIN timers t ON t.room = 'deliveries' AND t.key = CAST(d.id AS TEXT) ORDER BY d.id"
)
# What schedules have planned, with their timers.
PLANNED = (
    "SELECT s.grp, s.name, k.tick, k.moment, t.due FROM schedules s JOIN schedule_ticks k ON k.schedule = s.id "
    "LEFT JOIN timers t ON t.room = 'schedules' AND t.key = CAST(s.id AS TEXT) ORDER BY s.id"
)
# What rules have planned, with their timers.
RULES_PLANNED = (
    "SELECT r.name, r.state, r.schedule, r.tick, t.due FROM event_rules r "
    "LEFT JOIN timers t ON t.room = 'buses' AND t.key = 'rule:' || r.id ORDER BY r.id"
)
# HTTP calls for which no delivery waits. (A pipe may give a batch up whose call is under way still.)
CALLS_OF_NOBODY = (
    "SELECT h.key, h.watcher FROM http_calls h WHERE h.watcher LIKE 'deliveries:%' AND NOT EXISTS "
    "(SELECT 1 FROM deliveries d WHERE h.watcher = 'deliveries:' || d.id || ':' || d.attempt AND d.state = 'calling')"
)
# Batches that are waited for: each has a timer, and somebody who will answer, or has.
CALLS_WITHOUT_TIMER = (
    "SELECT c.id FROM pipe_calls c WHERE NOT EXISTS (SELECT 1 FROM timers t WHERE t.room = 'pipes' AND t.key = c.id)"
)
# What may not be there once all is over.
UNDER_WAY = {
    "deliveries": "SELECT count(*) FROM deliveries",
    "events": "SELECT count(*) FROM bus_events",
    "HTTP calls": "SELECT count(*) FROM http_calls",
    "batches of pipes": "SELECT count(*) FROM pipe_calls",
    "groups that are being deleted": "SELECT count(*) FROM schedule_groups WHERE state = 'DELETING'",
}
# Who owns a timer of these rooms.
SCHEDULE_THERE = "SELECT 1 FROM schedule_ticks WHERE CAST(schedule AS TEXT) = ? AND moment IS NOT NULL"
DELIVERY_THERE = "SELECT 1 FROM deliveries WHERE CAST(id AS TEXT) = ? AND state = 'waiting'"
RULE_THERE = "SELECT 1 FROM event_rules WHERE 'rule:' || id = ? AND tick IS NOT NULL"
CALL_THERE = "SELECT 1 FROM pipe_calls WHERE id = ?"
OWNERS = {"schedules": SCHEDULE_THERE, "deliveries": DELIVERY_THERE, "buses": RULE_THERE, "pipes": CALL_THERE}
# Standard executions that ended well or badly in a time (and not by StopExecution, a timeout, or as a child of a Map).
ENDED = (
    "SELECT count(*) FROM executions e JOIN machines m ON m.id = e.machine WHERE m.type = 'STANDARD' "
    "AND e.status IN ('SUCCEEDED', 'FAILED') AND e.stopped_at > ? AND e.stopped_at <= ?"
)
