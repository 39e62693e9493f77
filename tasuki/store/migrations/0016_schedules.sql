-- Schedules and their groups (services/schedules).

-- A group. `default` has a row once something is said about it; it is there without.
CREATE TABLE schedule_groups (
    id INTEGER PRIMARY KEY,
    account TEXT NOT NULL,
    region TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,              -- ACTIVE or DELETING
    tags TEXT NOT NULL,
    request TEXT NOT NULL,            -- digest of the request that made it, with its client token
    created INTEGER NOT NULL,
    modified INTEGER NOT NULL
);
CREATE UNIQUE INDEX schedule_groups_name ON schedule_groups (account, region, name);
CREATE INDEX schedule_groups_deleting ON schedule_groups (id) WHERE state = 'DELETING';

-- What a schedule is. Read when it is described and when it fires; listings read the columns before the definition only.
CREATE TABLE schedules (
    id INTEGER PRIMARY KEY,
    account TEXT NOT NULL,
    region TEXT NOT NULL,
    grp TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,              -- ENABLED or DISABLED
    target TEXT NOT NULL,
    created INTEGER NOT NULL,
    modified INTEGER NOT NULL,
    made_by TEXT NOT NULL,            -- client token and digest of the request that made it
    changed_by TEXT NOT NULL,         -- the same of the last update
    definition TEXT NOT NULL
);
CREATE UNIQUE INDEX schedules_name ON schedules (account, region, grp, name);

-- When it fires: all that a tick reads and writes, small, one row per schedule, with a timer for the next moment.
CREATE TABLE schedule_ticks (
    schedule INTEGER PRIMARY KEY,
    revision TEXT NOT NULL,           -- changes when another tick is planned by a new definition; never used twice
    anchor INTEGER NOT NULL,          -- where a rate counts from
    tick INTEGER,                     -- the next planned time; null: there is none
    moment INTEGER,                   -- when it fires: the planned time, or an instant in its window
    last INTEGER                      -- the last planned time that fired: none is repeated
);
CREATE INDEX schedule_ticks_next ON schedule_ticks (moment, schedule) WHERE moment IS NOT NULL;

-- How many schedules there are, against the quota; in stripes, as queues count (0012_queue_counts.sql).
CREATE TABLE schedule_counts (
    account TEXT NOT NULL,
    region TEXT NOT NULL,
    stripe INTEGER NOT NULL,
    stored INTEGER NOT NULL,
    PRIMARY KEY (account, region, stripe)
) WITHOUT ROWID;

-- What was fired, by whom: only for what deliveries hand over (a pipe's hand-overs have a `via`).
CREATE INDEX handovers_deliveries ON handovers (source, id) WHERE via = '';
/*pg
ALTER TABLE schedule_ticks SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
*/
