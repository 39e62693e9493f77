-- The machines room: redrive of Map Runs.

-- Whether all items are known (a run that was stopped while reading is not gone on with), and whether it is to be redriven
-- as soon as it has stopped. Runs that are older than this are not gone on with.
ALTER TABLE map_runs ADD COLUMN was_read INTEGER NOT NULL DEFAULT 0;
ALTER TABLE map_runs ADD COLUMN again INTEGER NOT NULL DEFAULT 0;
-- Children that wait for their redrive, and failed ones that cannot be redriven; with their items.
ALTER TABLE map_runs ADD COLUMN pending INTEGER NOT NULL DEFAULT 0;
ALTER TABLE map_runs ADD COLUMN pending_items INTEGER NOT NULL DEFAULT 0;
ALTER TABLE map_runs ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;
ALTER TABLE map_runs ADD COLUMN lost_items INTEGER NOT NULL DEFAULT 0;

-- 1 while a child waits for its redrive; its execution still says how it ended.
ALTER TABLE map_children ADD COLUMN pending INTEGER NOT NULL DEFAULT 0;
CREATE INDEX map_children_pending ON map_children (run, number) WHERE pending = 1;
