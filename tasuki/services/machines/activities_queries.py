"""The SQL of activities and their tasks."""

# One activity, by name.
ACTIVITY = "SELECT id, name, created_at, tags FROM activities WHERE account = ? AND region = ? AND name = ?"
# How many there are, for the quota.
ACTIVITY_COUNT = "SELECT count(*) FROM activities WHERE account = ? AND region = ?"
# A new one.
ADD_ACTIVITY = "INSERT INTO activities (account, region, name, created_at, tags) VALUES (?, ?, ?, ?, ?)"
# A page of them, by name.
ACTIVITIES = (
    "SELECT name, created_at FROM activities WHERE account = ? AND region = ? AND name > ? ORDER BY name LIMIT ?"
)
# Gone.
DROP_ACTIVITY = "DELETE FROM activities WHERE id = ?"
# Nobody can ask for its tasks any more.
DROP_TASKS_OF = "DELETE FROM activity_tasks WHERE activity = ?"
# Tags are one JSON list.
SET_ACTIVITY_TAGS = "UPDATE activities SET tags = ? WHERE id = ?"
# A scheduled task.
ADD_TASK = "INSERT INTO activity_tasks (activity, execution, frame, attempt, input) VALUES (?, ?, ?, ?, ?)"
# The tasks that have waited the longest.
TASKS = "SELECT id, execution, frame, attempt FROM activity_tasks WHERE activity = ? ORDER BY id LIMIT ?"
# The one that has waited the longest, behind a number and in nobody's hands.
FREE_TASK = (
    "SELECT id, execution, frame, attempt FROM activity_tasks WHERE activity = ? AND id > ? ORDER BY id LIMIT 1 "
    "/*pg FOR UPDATE SKIP LOCKED */"
)
# Handed out, or passed over: once, whoever asks.
TAKE_TASK = "DELETE FROM activity_tasks WHERE id = ? RETURNING input"
# Nobody waits for it any more.
WITHDRAW_TASK = "DELETE FROM activity_tasks WHERE execution = ? AND frame = ? AND attempt = ?"

# A Task that waits for a task of an activity.
ADD_WAITER = "INSERT INTO activity_waiters (activity, execution, frame, attempt, worker) VALUES (?, ?, ?, ?, ?)"
# The one that has waited the longest and that nobody else is about to answer, taken.
TAKE_WAITER = (
    "DELETE FROM activity_waiters WHERE id = (SELECT id FROM activity_waiters WHERE activity = ? ORDER BY id LIMIT 1 "
    "/*pg FOR UPDATE SKIP LOCKED */) RETURNING execution, frame, attempt, worker"
)
# Whoever has a task for an activity, and whoever is about to wait for one, must see each other: tasks are put in by many
# at a time, and meanwhile nobody begins to wait.
HOLD_TO_OFFER = "SELECT 1 FROM activities WHERE id = ? FOR SHARE"
HOLD_TO_WAIT = "SELECT 1 FROM activities WHERE account = ? AND region = ? AND name = ? FOR UPDATE"
# The timer of one that waits no more, unless it is about to fire: who fires it takes timer and waiter in the other order.
CLEAR_WAIT = (
    "DELETE FROM timers WHERE room = ? AND key = (SELECT key FROM timers WHERE room = ? AND key = ? "
    "/*pg FOR UPDATE SKIP LOCKED */)"
)
# One that waits no more.
DROP_WAITER = "DELETE FROM activity_waiters WHERE execution = ? AND frame = ? AND attempt = ?"
