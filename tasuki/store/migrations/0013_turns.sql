-- The machines room: turns that many nodes take.

-- Executions with something to do now, served in turn. `goes_on`: it stopped at its bound (or never began). Append-only, and so
-- several rows of one execution may stand here: nobody who has news for it waits for another who has. Whoever serves it holds it
-- (a row lock of `executions`), and then takes all that stand here of it.
CREATE TABLE turns (
    turn INTEGER PRIMARY KEY AUTOINCREMENT,
    execution INTEGER NOT NULL,
    goes_on INTEGER NOT NULL
);
INSERT INTO turns (execution, goes_on) SELECT execution, goes_on FROM ready ORDER BY turn;
DROP TABLE ready;
ALTER TABLE turns RENAME TO ready;
CREATE INDEX ready_execution ON ready (execution);

-- When the newest event of an execution was written, or it started: nodes' clocks differ, and no later event may have an earlier time.
ALTER TABLE executions ADD COLUMN last_at INTEGER NOT NULL DEFAULT 0;

-- Map Runs with something to do now, served in turn; append-only, as `ready` is. A child's end is a row here, with how it ended:
-- whoever serves the Map Run holds it (a row lock of `map_runs`), takes all that stands here of it, and counts it there.
CREATE TABLE map_turns (
    turn INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    status TEXT,
    items INTEGER NOT NULL DEFAULT 0,
    output_bytes INTEGER NOT NULL DEFAULT 0,
    lost INTEGER NOT NULL DEFAULT 0
);
INSERT INTO map_turns (run) SELECT run FROM map_ready ORDER BY turn;
DROP TABLE map_ready;
ALTER TABLE map_turns RENAME TO map_ready;
CREATE INDEX map_ready_run ON map_ready (run);

/*pg
-- Rows that come and go all the time: what was deleted is swept before looks at the line get slow.
ALTER TABLE ready SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
ALTER TABLE map_ready SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
ALTER TABLE inbox SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
-- Rows that each unit changes without touching an index: with room beside them the new version stays on their page.
ALTER TABLE executions SET (fillfactor = 80);
ALTER TABLE frames SET (fillfactor = 80);
*/
