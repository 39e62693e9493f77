-- The machines room: activities, versions, aliases, redrive.

-- An activity: a name that workers ask for tasks under.
CREATE TABLE activities (
    id INTEGER PRIMARY KEY,
    account TEXT NOT NULL,
    region TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    tags TEXT NOT NULL,
    UNIQUE (account, region, name)
);

-- Scheduled and not handed out yet, the oldest first. A row whose frame has gone on is passed over at hand-out.
CREATE TABLE activity_tasks (
    id INTEGER PRIMARY KEY,
    activity INTEGER NOT NULL,
    execution INTEGER NOT NULL,
    frame INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    input TEXT NOT NULL
);
CREATE INDEX activity_tasks_waiting ON activity_tasks (activity, id);
CREATE UNIQUE INDEX activity_tasks_attempt ON activity_tasks (execution, frame, attempt);

-- Tasks of executions that ask for an activity's task themselves (aws-sdk:sfn:getActivityTask), for a minute at most.
CREATE TABLE activity_waiters (
    id INTEGER PRIMARY KEY,
    activity INTEGER NOT NULL,
    execution INTEGER NOT NULL,
    frame INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    worker TEXT
);
CREATE INDEX activity_waiters_first ON activity_waiters (activity, id);
CREATE UNIQUE INDEX activity_waiters_attempt ON activity_waiters (execution, frame, attempt);

-- A numbered snapshot of a machine: the revision that was current when it was published.
CREATE TABLE versions (
    machine INTEGER NOT NULL,
    number INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    description TEXT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (machine, number)
) WITHOUT ROWID;
-- The highest version number given out: a deleted one is not given again.
ALTER TABLE machines ADD COLUMN last_version INTEGER NOT NULL DEFAULT 0;

-- A name that stands for one or two versions. `routing`: [[version number, weight], ...] as JSON.
CREATE TABLE aliases (
    id INTEGER PRIMARY KEY,
    machine INTEGER NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    routing TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (machine, name)
);

-- By which version and alias an execution was started; how often it was redriven, and when last.
ALTER TABLE executions ADD COLUMN version INTEGER;
ALTER TABLE executions ADD COLUMN alias TEXT;
ALTER TABLE executions ADD COLUMN redrives INTEGER NOT NULL DEFAULT 0;
ALTER TABLE executions ADD COLUMN redriven_at INTEGER;

-- What an execution that ended badly left open (services/machines/remains.py): kept for the fortnight in which it can be redriven.
CREATE TABLE remains (
    execution INTEGER PRIMARY KEY,
    ended_at INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX remains_ended ON remains (ended_at);

-- The client tokens with which an execution was redriven: asked again with one of them, the answer is the same.
CREATE TABLE redrive_tokens (
    execution INTEGER NOT NULL,
    token TEXT NOT NULL,
    redriven_at INTEGER NOT NULL,
    PRIMARY KEY (execution, token)
) WITHOUT ROWID;
