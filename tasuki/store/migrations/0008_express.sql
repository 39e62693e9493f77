-- Express executions between two units, and what machines are told to log.

-- One Express execution that waits for something, whole: there is no history, and no frame is a row. `id` is the last part
-- of its ARN. `caller` is the StartSyncExecution that waits for it, `watcher` who else wants to know of its end. `state` is
-- where it stands (services/machines/express_state.py), NULL before its first step. `answer` is how it ended, kept until
-- the caller has taken it. Its one timer is `express:ID`.
CREATE TABLE express (
    id TEXT PRIMARY KEY,
    machine INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    name TEXT NOT NULL,
    input TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    seed TEXT NOT NULL,
    trace TEXT NOT NULL,
    caller TEXT,
    watcher TEXT,
    state BLOB,
    answer TEXT
);
CREATE UNIQUE INDEX express_caller ON express (caller) WHERE caller IS NOT NULL;

-- Deliveries of pipes that are waited for (services/pipes/calls.py). `called` is a JSON list of [message, receipt, trace].
CREATE TABLE pipe_calls (
    id TEXT PRIMARY KEY,
    pipe INTEGER NOT NULL,
    via TEXT NOT NULL,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    execution TEXT NOT NULL,
    called TEXT NOT NULL
);
CREATE INDEX pipe_calls_of ON pipe_calls (pipe);

-- Chunks of logged events: what one unit of one execution logs (services/machines/logging_records.py), in the order in
-- which it happened. `log_group` is the ARN of the destination.
CREATE TABLE logged (
    id INTEGER PRIMARY KEY,
    log_group TEXT NOT NULL,
    at INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX logged_to ON logged (log_group, id);
