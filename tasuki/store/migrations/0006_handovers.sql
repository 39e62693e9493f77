-- The handovers room.

-- What was passed on, one row per message and attempt, oldest first.
CREATE TABLE handovers (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    source TEXT NOT NULL,
    source_id TEXT NOT NULL,
    via TEXT NOT NULL,
    target TEXT NOT NULL,
    target_id TEXT NOT NULL,
    trace TEXT NOT NULL,
    outcome TEXT NOT NULL
);
CREATE INDEX handovers_trace ON handovers (trace);
CREATE INDEX handovers_source_id ON handovers (source_id);
CREATE INDEX handovers_target_id ON handovers (target_id) WHERE target_id <> '';
