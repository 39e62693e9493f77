-- The machines room: Map Runs of distributed Maps.
--
-- The children of a Map Run are executions of a machine row of their own: its name is `NAME/LABEL`, its type 'MAP', and
-- it has no revision (an execution names its own).

-- A Map Run. `settings`: what is read, how it is grouped, where results go (map_runs.py); `cursor`: where reading, stopping or
-- writing stands. Counts of children and of items by status; a child of a batch has several items. `phase`: reading,
-- running, stopping, writing, over.
CREATE TABLE map_runs (
    id INTEGER PRIMARY KEY,
    machine INTEGER NOT NULL,
    name TEXT NOT NULL,
    revision INTEGER NOT NULL,
    execution INTEGER NOT NULL,
    frame INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    status TEXT NOT NULL,
    phase TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    stopped_at INTEGER,
    max_concurrency INTEGER NOT NULL,
    tolerated_count INTEGER,
    tolerated_percentage REAL,
    settings BLOB NOT NULL,
    cursor BLOB NOT NULL,
    error TEXT,
    cause TEXT,
    total INTEGER NOT NULL DEFAULT 0,
    taken INTEGER NOT NULL DEFAULT 0,
    children INTEGER NOT NULL DEFAULT 0,
    succeeded INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    timed_out INTEGER NOT NULL DEFAULT 0,
    aborted INTEGER NOT NULL DEFAULT 0,
    succeeded_items INTEGER NOT NULL DEFAULT 0,
    failed_items INTEGER NOT NULL DEFAULT 0,
    timed_out_items INTEGER NOT NULL DEFAULT 0,
    aborted_items INTEGER NOT NULL DEFAULT 0,
    output_bytes INTEGER NOT NULL DEFAULT 0,
    redrives INTEGER NOT NULL DEFAULT 0,
    redriven_at INTEGER,
    UNIQUE (machine, name)
);
CREATE INDEX map_runs_of ON map_runs (execution, id);

-- The items, in the order they are run: slices of a JSON array. Kept while the run is not over well.
CREATE TABLE map_items (
    run INTEGER NOT NULL,
    first INTEGER NOT NULL,
    count INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, first)
);

-- The child executions, by their number in the run: from which item on, how many. `item` is there when the child was
-- given something else (ItemSelector).
CREATE TABLE map_children (
    execution INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    number INTEGER NOT NULL,
    first INTEGER NOT NULL,
    items INTEGER NOT NULL,
    item TEXT
);
CREATE UNIQUE INDEX map_children_of ON map_children (run, number);

-- Map Runs with something to do now, served in turn.
CREATE TABLE map_ready (
    turn INTEGER PRIMARY KEY AUTOINCREMENT,
    run INTEGER NOT NULL UNIQUE
);
