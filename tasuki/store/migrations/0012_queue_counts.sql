-- The queues room: counters that many nodes add to.
--
-- A shelf's counters stand in up to 16 rows, its *stripes*: a unit adds to the row of its stripe, so that sends and receives
-- don't wait for each other's commit (on SQLite there is one stripe). Who reads them adds them up.
--
-- What became of every message (promise P8): at any commit, summed over a shelf's stripes,
--   sent + moved_in = standing on the shelf + deleted + expired + purged + moved_to_dlq + redriven.
-- sent + moved_in of a stripe also numbers its arrivals: times 16 plus the stripe is unique on the shelf.
-- cap_check: the value of `received` up to which this stripe may count receives without looking at how many are in flight.
CREATE TABLE shelf_counts (
    shelf INTEGER NOT NULL,
    stripe INTEGER NOT NULL,
    sent INTEGER NOT NULL DEFAULT 0,
    moved_in INTEGER NOT NULL DEFAULT 0,
    received INTEGER NOT NULL DEFAULT 0,
    deleted INTEGER NOT NULL DEFAULT 0,
    expired INTEGER NOT NULL DEFAULT 0,
    purged INTEGER NOT NULL DEFAULT 0,
    moved_to_dlq INTEGER NOT NULL DEFAULT 0,
    redriven INTEGER NOT NULL DEFAULT 0,
    cap_check INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (shelf, stripe)
) WITHOUT ROWID;
INSERT INTO shelf_counts (shelf, stripe, sent, moved_in, received, deleted, expired, purged, moved_to_dlq, redriven, cap_check)
    SELECT shelf, 0, sent, moved_in, received, deleted, expired, purged, moved_to_dlq, redriven, cap_check
    FROM shelves WHERE queue_id IS NOT NULL;

-- What is left of a shelf's row changes rarely: whose it is, and when messages expire next, at the earliest (0: abandoned).
ALTER TABLE shelves DROP COLUMN sent;
ALTER TABLE shelves DROP COLUMN moved_in;
ALTER TABLE shelves DROP COLUMN received;
ALTER TABLE shelves DROP COLUMN deleted;
ALTER TABLE shelves DROP COLUMN expired;
ALTER TABLE shelves DROP COLUMN purged;
ALTER TABLE shelves DROP COLUMN moved_to_dlq;
ALTER TABLE shelves DROP COLUMN redriven;
ALTER TABLE shelves DROP COLUMN cap_check;

-- PostgreSQL's indexes don't end with the primary key as those of a table without rowid do; and its rows leave dead versions
-- behind: room for them on the page, and swept up before receives have to step over many.
/*pg
DROP INDEX messages_visible;
CREATE INDEX messages_visible ON messages (shelf, visible_at, received, sent_at, seq);
ALTER TABLE shelf_counts SET (fillfactor = 20, autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE messages SET (autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE pipe_flows SET (fillfactor = 20, autovacuum_vacuum_scale_factor = 0.02);
*/
