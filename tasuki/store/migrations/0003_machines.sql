-- The machines room.

-- A state machine. Deleted ones stay as the parents of their executions; their names are free again.
CREATE TABLE machines (
    id INTEGER PRIMARY KEY,
    account TEXT NOT NULL,
    region TEXT NOT NULL,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    tags TEXT NOT NULL
);
CREATE INDEX machines_all ON machines (account, region, name);
CREATE UNIQUE INDEX machines_name ON machines (account, region, name) WHERE status <> 'DELETED';

-- One row per UpdateStateMachine (the first: CreateStateMachine, without a revision id). Executions stay on theirs.
-- `digest` is the SHA-256 of the definition: parsed machines are cached by it.
CREATE TABLE revisions (
    id INTEGER PRIMARY KEY,
    machine INTEGER NOT NULL,
    revision_id TEXT,
    definition TEXT NOT NULL,
    digest BLOB NOT NULL,
    role_arn TEXT NOT NULL,
    logging TEXT NOT NULL,
    tracing TEXT NOT NULL,
    created_at INTEGER NOT NULL
);

-- One run of a revision. `origin` says who started it and `origin_id` with what (a pipe and a message id), `watcher`
-- who wants to know of its end.
CREATE TABLE executions (
    id INTEGER PRIMARY KEY,
    machine INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    name TEXT NOT NULL,
    status TEXT NOT NULL,
    input TEXT NOT NULL,
    output TEXT,
    error TEXT,
    cause TEXT,
    started_at INTEGER NOT NULL,
    stopped_at INTEGER,
    seed TEXT NOT NULL,
    trace TEXT NOT NULL,
    origin TEXT,
    origin_id TEXT,
    watcher TEXT,
    deadline INTEGER,
    last_event INTEGER NOT NULL,
    last_frame INTEGER NOT NULL,
    last_attempt INTEGER NOT NULL,
    history_bytes INTEGER NOT NULL,
    UNIQUE (machine, name)
);
CREATE INDEX executions_of ON executions (machine, id);
CREATE INDEX executions_open ON executions (machine) WHERE status = 'RUNNING';

-- One row per open frame (engine/saved.py): `counts`, when there, are newer than `body`; `timer` is the due instant of
-- its row in `timers`, if it has one; `ready` tells that it waits for nothing,
-- `token` is what SendTaskSuccess must bring.
CREATE TABLE frames (
    execution INTEGER NOT NULL,
    id INTEGER NOT NULL,
    parent INTEGER,
    timer INTEGER,
    ready INTEGER NOT NULL,
    token TEXT,
    body BLOB NOT NULL,
    counts BLOB,
    PRIMARY KEY (execution, id)
) WITHOUT ROWID;
CREATE INDEX frames_below ON frames (execution, parent) WHERE parent IS NOT NULL;
CREATE UNIQUE INDEX frames_token ON frames (token) WHERE token IS NOT NULL;
CREATE INDEX frames_ready ON frames (execution) WHERE ready = 1;

-- Outputs of finished children (branches, iterations) of frames that are still open.
CREATE TABLE results (
    execution INTEGER NOT NULL,
    parent INTEGER NOT NULL,
    child INTEGER NOT NULL,
    output TEXT NOT NULL,
    PRIMARY KEY (execution, parent, child)
) WITHOUT ROWID;

-- Chunks: all events that one unit made, from `first` on, at most 1 MiB each. Append-only.
CREATE TABLE history (
    execution INTEGER NOT NULL,
    first INTEGER NOT NULL,
    count INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (execution, first)
) WITHOUT ROWID;

-- What happened to an execution and was not told to it yet: appended by anybody, drained by who steps it.
CREATE TABLE inbox (
    id INTEGER PRIMARY KEY,
    execution INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX inbox_execution ON inbox (execution, id);

-- Executions with something to do now, served in turn. `goes_on`: it stopped at its bound (or never began).
CREATE TABLE ready (
    turn INTEGER PRIMARY KEY AUTOINCREMENT,
    execution INTEGER NOT NULL UNIQUE,
    goes_on INTEGER NOT NULL
);
