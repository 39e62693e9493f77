-- Buses, rules, targets, events on their way (services/buses).

-- The default bus has a row as soon as something is said about it. `revision` changes with every change of a rule or target, and
-- is never used twice. `sources` is what an event's source must be for any enabled rule to match: a JSON list, or `*` where a
-- rule does not say; whoever makes an event reads only that.
CREATE TABLE event_buses (
    id INTEGER PRIMARY KEY,
    account TEXT NOT NULL,
    region TEXT NOT NULL,
    name TEXT NOT NULL,
    revision TEXT NOT NULL,
    sources TEXT NOT NULL,
    description TEXT,
    policy TEXT,
    settings TEXT NOT NULL,           -- JSON: DeadLetterConfig, KmsKeyIdentifier, LogConfig; kept and described
    tags TEXT NOT NULL,
    created INTEGER NOT NULL,
    modified INTEGER NOT NULL
);
CREATE UNIQUE INDEX event_buses_name ON event_buses (account, region, name);

-- `start_at` is where a rate counts from, `tick` the planned time that the timer `rule:ID` is set for.
CREATE TABLE event_rules (
    id INTEGER PRIMARY KEY,
    bus INTEGER NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    pattern TEXT,
    schedule TEXT,
    description TEXT,
    role TEXT,
    tags TEXT NOT NULL,
    created INTEGER NOT NULL,
    start_at INTEGER,
    tick INTEGER
);
CREATE UNIQUE INDEX event_rules_name ON event_rules (bus, name);

-- `document` is the target as PutTargets gave it.
CREATE TABLE event_targets (
    rule INTEGER NOT NULL,
    name TEXT NOT NULL,
    bus INTEGER NOT NULL,
    arn TEXT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (rule, name)
);
CREATE INDEX event_targets_of ON event_targets (bus, arn);

-- Events that rules may match and that have not been looked at. `after_rule` is the rule up to which that has been done,
-- where one unit was not enough; `hops` counts the buses it came through before.
CREATE TABLE bus_events (
    id INTEGER PRIMARY KEY,
    bus INTEGER NOT NULL,
    lane INTEGER NOT NULL,            -- 0: somebody put it; 1: the house tells of itself
    after_rule INTEGER NOT NULL DEFAULT 0,
    hops INTEGER NOT NULL DEFAULT 0,
    ingested INTEGER NOT NULL,
    trace TEXT NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX bus_events_lane ON bus_events (lane, id);

/*pg
ALTER TABLE bus_events SET (autovacuum_vacuum_scale_factor = 0.02);
*/
