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
TASKS = "SELECT id, execution, frame, attempt, input FROM activity_tasks WHERE activity = ? ORDER BY id LIMIT ?"
# Handed out, or passed over.
DROP_TASK = "DELETE FROM activity_tasks WHERE id = ?"
# Nobody waits for it any more.
WITHDRAW_TASK = "DELETE FROM activity_tasks WHERE execution = ? AND frame = ? AND attempt = ?"

# A Task that waits for a task of an activity.
ADD_WAITER = "INSERT INTO activity_waiters (activity, execution, frame, attempt, worker) VALUES (?, ?, ?, ?, ?)"
# The one that has waited the longest, taken.
TAKE_WAITER = (
    "DELETE FROM activity_waiters WHERE id = (SELECT min(id) FROM activity_waiters WHERE activity = ?) "
    "RETURNING execution, frame, attempt, worker"
)
# One that waits no more.
DROP_WAITER = "DELETE FROM activity_waiters WHERE execution = ? AND frame = ? AND attempt = ?"
