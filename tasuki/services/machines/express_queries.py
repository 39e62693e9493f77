"""The SQL of Express executions."""

# One that has to wait, or begins in a later unit.
ADD_EXPRESS = (
    "INSERT INTO express (id, machine, revision, name, input, started_at, seed, trace, caller, watcher, state) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
# Everything that stepping it needs.
LOAD_EXPRESS = (
    "SELECT e.machine, e.revision, e.name, e.input, e.started_at, e.seed, e.trace, e.caller, e.watcher, e.state, "
    "e.answer IS NOT NULL, m.account, m.region, m.name, m.status, r.digest, r.role_arn, r.logging "
    "FROM express e JOIN machines m ON m.id = e.machine JOIN revisions r ON r.id = e.revision WHERE e.id = ?"
)
# Take it in hand.
HOLD_EXPRESS = "SELECT 1 FROM express WHERE id = ? FOR UPDATE"
# Where it stands.
EXPRESS_STANDING = "SELECT state FROM express WHERE id = ? /*pg FOR UPDATE */"
# Where it stands after a unit.
SAVE_EXPRESS = "UPDATE express SET state = ? WHERE id = ?"
# It is over, and its caller has not heard of it yet.
END_EXPRESS = "UPDATE express SET state = NULL, answer = ? WHERE id = ?"
# It is over, or its answer was taken.
DROP_EXPRESS = "DELETE FROM express WHERE id = ?"
# What a StartSyncExecution began: one row at most.
EXPRESS_OF_CALLER = (
    "SELECT e.id, e.name, e.input, e.started_at, e.answer, m.account, m.region, m.name "
    "FROM express e JOIN machines m ON m.id = e.machine WHERE e.caller = ?"
)
