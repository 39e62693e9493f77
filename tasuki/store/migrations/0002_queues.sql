-- The queues room.
--
-- A queue's messages stand on its *shelf*. Purging or deleting a queue takes one step however many messages there are:
-- the queue gets a new shelf (or goes), and the old shelf is swept in slices afterwards.

CREATE TABLE queues (
    id INTEGER PRIMARY KEY,
    account TEXT NOT NULL,
    region TEXT NOT NULL,
    name TEXT NOT NULL,
    shelf INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    modified_at INTEGER NOT NULL,
    purged_at INTEGER,
    delay_s INTEGER NOT NULL,
    visibility_s INTEGER NOT NULL,
    retention_s INTEGER NOT NULL,
    wait_s INTEGER NOT NULL,
    max_bytes INTEGER NOT NULL,
    dlq_arn TEXT,
    max_receives INTEGER,
    attributes TEXT NOT NULL,
    tags TEXT NOT NULL,
    UNIQUE (account, region, name)
);
CREATE INDEX queues_dlq ON queues (dlq_arn) WHERE dlq_arn IS NOT NULL;

-- Names that may not be used again yet, as on AWS.
CREATE TABLE deleted_queues (
    account TEXT NOT NULL,
    region TEXT NOT NULL,
    name TEXT NOT NULL,
    deleted_at INTEGER NOT NULL,
    PRIMARY KEY (account, region, name)
) WITHOUT ROWID;

-- What became of every message (promise P8): at any commit
--   sent + moved_in = standing on the shelf + deleted + expired + purged + moved_to_dlq + redriven.
-- sent + moved_in also numbers the arrivals. sweep_at: when messages expire next, at the earliest (0: abandoned, sweep now).
-- cap_check: the value of `received` up to which the cap on messages in flight cannot have been reached.
CREATE TABLE shelves (
    shelf INTEGER PRIMARY KEY,
    queue_id INTEGER,
    sent INTEGER NOT NULL DEFAULT 0,
    moved_in INTEGER NOT NULL DEFAULT 0,
    received INTEGER NOT NULL DEFAULT 0,
    deleted INTEGER NOT NULL DEFAULT 0,
    expired INTEGER NOT NULL DEFAULT 0,
    purged INTEGER NOT NULL DEFAULT 0,
    moved_to_dlq INTEGER NOT NULL DEFAULT 0,
    redriven INTEGER NOT NULL DEFAULT 0,
    sweep_at INTEGER,
    cap_check INTEGER NOT NULL DEFAULT 0
);

-- content: MessagePack of what never changes (model.py, Content); NULL when it is too long to be rewritten with the row at
-- every receive: then message_bodies has it. received counts over all queues, carried is its value on arrival here.
CREATE TABLE messages (
    shelf INTEGER NOT NULL,
    sent_at INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    visible_at INTEGER NOT NULL,
    received INTEGER NOT NULL DEFAULT 0,
    carried INTEGER NOT NULL DEFAULT 0,
    first_received_at INTEGER,
    received_at INTEGER,
    receipt INTEGER,
    bytes INTEGER NOT NULL,
    source TEXT,
    body_id INTEGER,
    content BLOB,
    PRIMARY KEY (shelf, sent_at, seq)
) WITHOUT ROWID;
-- Receivable messages are a prefix of their shelf here: neither a backlog nor what is in flight is ever scanned.
CREATE INDEX messages_visible ON messages (shelf, visible_at, received);

CREATE TABLE message_bodies (
    id INTEGER PRIMARY KEY,
    content BLOB NOT NULL
);

CREATE TABLE move_tasks (
    id TEXT PRIMARY KEY,
    account TEXT NOT NULL,
    region TEXT NOT NULL,
    source_id INTEGER NOT NULL,
    source_arn TEXT NOT NULL,
    destination_arn TEXT,
    per_second INTEGER,
    status TEXT NOT NULL,
    failure TEXT,
    started_at INTEGER NOT NULL,
    moved INTEGER NOT NULL DEFAULT 0,
    to_move INTEGER NOT NULL,
    next_at INTEGER
);
CREATE INDEX move_tasks_source ON move_tasks (source_arn, started_at);
CREATE INDEX move_tasks_next ON move_tasks (next_at) WHERE next_at IS NOT NULL;
