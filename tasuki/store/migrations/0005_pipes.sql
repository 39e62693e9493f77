-- The pipes room.

-- What a pipe is. Read when it is described, and once per revision when it moves messages.
CREATE TABLE pipes (
    id INTEGER PRIMARY KEY,
    account TEXT NOT NULL,
    region TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    desired TEXT NOT NULL,
    current TEXT NOT NULL,
    source TEXT NOT NULL,
    source_parameters TEXT NOT NULL,
    enrichment TEXT NOT NULL,
    target TEXT NOT NULL,
    target_parameters TEXT NOT NULL,
    role TEXT NOT NULL,
    log_configuration TEXT,
    kms_key TEXT,
    tags TEXT NOT NULL,
    created INTEGER NOT NULL,
    modified INTEGER NOT NULL
);
CREATE UNIQUE INDEX pipes_name ON pipes (account, region, name);

-- How a pipe is doing: all that its rounds read and write, small, one row per pipe.
CREATE TABLE pipe_flows (
    pipe INTEGER PRIMARY KEY,
    revision TEXT NOT NULL,           -- changes with every definition; never used twice
    running INTEGER NOT NULL,
    source TEXT NOT NULL,
    batch_size INTEGER NOT NULL,
    window_ms INTEGER NOT NULL,
    window_from INTEGER,              -- when the first message of the batch in the making was seen
    retry_at INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,   -- rounds without a delivery in a row
    reason TEXT NOT NULL DEFAULT '',       -- StateReason
    served INTEGER NOT NULL DEFAULT 0,     -- turns: who was served longest ago comes next
    delivered INTEGER NOT NULL DEFAULT 0,
    duplicates INTEGER NOT NULL DEFAULT 0,
    filtered INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX pipe_flows_turns ON pipe_flows (served) WHERE running = 1;
