"""The SQL of redrive."""

# What an execution left open.
ADD_REMAINS = "INSERT INTO remains (execution, ended_at, body) VALUES (?, ?, ?)"
# It is redriven.
TAKE_REMAINS = "DELETE FROM remains WHERE execution = ? RETURNING body"
# An execution to redrive, by the names in its ARN; what `remains.Ended` holds, in its order.
TO_REDRIVE = (
    "SELECT e.id, e.status, e.started_at, e.stopped_at, e.last_event, m.status, "
    "EXISTS (SELECT 1 FROM remains r WHERE r.execution = e.id) "
    "FROM executions e JOIN machines m ON m.id = e.machine "
    "WHERE m.account = ? AND m.region = ? AND m.name = ? AND e.name = ? ORDER BY m.id DESC LIMIT 1"
)
# It runs again.
REDRIVE = (
    "UPDATE executions SET status = 'RUNNING', output = NULL, error = NULL, cause = NULL, stopped_at = NULL, "
    "deadline = NULL, redrives = redrives + 1, redriven_at = ? WHERE id = ?"
)
# With which tokens it was redriven, the newest first.
REMEMBERED = (
    "SELECT token, redriven_at FROM redrive_tokens WHERE execution = ? ORDER BY redriven_at DESC, token LIMIT ?"
)
# One more token.
REMEMBER = (
    "INSERT INTO redrive_tokens (execution, token, redriven_at) VALUES (?, ?, ?) "
    "ON CONFLICT (execution, token) DO UPDATE SET redriven_at = excluded.redriven_at"
)
# Those that count no more.
FORGET_OLD = "DELETE FROM redrive_tokens WHERE execution = ? AND redriven_at < ?"
