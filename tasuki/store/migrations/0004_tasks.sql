-- The tasks room.

CREATE TABLE clusters (
    id INTEGER PRIMARY KEY,
    account TEXT NOT NULL,
    region TEXT NOT NULL,
    name TEXT NOT NULL,
    status TEXT NOT NULL,
    settings TEXT NOT NULL,
    tags TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (account, region, name)
);

-- One row a revision. `document` is what was registered, with ECS's defaults filled in; it never changes.
CREATE TABLE task_definitions (
    id INTEGER PRIMARY KEY,
    account TEXT NOT NULL,
    region TEXT NOT NULL,
    family TEXT NOT NULL,
    revision INTEGER NOT NULL,
    status TEXT NOT NULL,
    document TEXT NOT NULL,
    tags TEXT NOT NULL,
    registered_at INTEGER NOT NULL,
    registered_by TEXT NOT NULL,
    deregistered_at INTEGER,
    UNIQUE (account, region, family, revision)
);

-- One row a task. `document` is what RunTask fixed, `containers` what each container has come to (by name).
-- `attempt` is 0 until a node has claimed it; then host and boot say where it runs, and nowhere else does it ever.
-- `access_key` and `secret` are this attempt's own and are wiped when it ends.
CREATE TABLE tasks (
    id INTEGER PRIMARY KEY,
    account TEXT NOT NULL,
    region TEXT NOT NULL,
    name TEXT NOT NULL,
    cluster TEXT NOT NULL,
    definition_id INTEGER NOT NULL,
    family TEXT NOT NULL,
    revision INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    host TEXT,
    boot TEXT,
    last_status TEXT NOT NULL,
    desired_status TEXT NOT NULL,
    memory_mib INTEGER NOT NULL,
    access_key TEXT,
    secret TEXT,
    watcher TEXT,
    batch TEXT NOT NULL,
    trace TEXT NOT NULL,
    origin TEXT NOT NULL,
    started_by TEXT,
    launch_type TEXT NOT NULL,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    pulled_at INTEGER,
    started_at INTEGER,
    stopping_at INTEGER,
    execution_stopped_at INTEGER,
    stopped_at INTEGER,
    stop_code TEXT,
    stopped_reason TEXT,
    document TEXT NOT NULL,
    containers TEXT NOT NULL,
    tags TEXT NOT NULL,
    UNIQUE (name, account, region)
);
CREATE INDEX tasks_active ON tasks (memory_mib) WHERE stopped_at IS NULL;
CREATE INDEX tasks_to_start ON tasks (id) WHERE last_status = 'PROVISIONING';
CREATE INDEX tasks_to_stop ON tasks (id) WHERE stopped_at IS NULL AND desired_status = 'STOPPED';
CREATE INDEX tasks_listed ON tasks (account, region, cluster, desired_status, id);
CREATE INDEX tasks_batch ON tasks (batch);
CREATE INDEX tasks_stopped ON tasks (stopped_at) WHERE stopped_at IS NOT NULL;
CREATE UNIQUE INDEX tasks_access_key ON tasks (access_key) WHERE access_key IS NOT NULL;

-- What a client token started, so that a repeat starts nothing.
CREATE TABLE task_tokens (
    account TEXT NOT NULL,
    region TEXT NOT NULL,
    token TEXT NOT NULL,
    request TEXT NOT NULL,
    batch TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (account, region, token)
) WITHOUT ROWID;
CREATE INDEX task_tokens_age ON task_tokens (created_at);
