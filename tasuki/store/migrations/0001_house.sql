-- What every room shares: due instants, leases, and facts about the file itself.

CREATE TABLE house (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- The secret that signs page tokens (values/pages.py). Made with the file, so tokens outlast a restart.
INSERT INTO house (name, value) VALUES ('page_secret', lower(hex(randomblob(32))));

-- Every "not before" of the house. Firing happens inside the unit that claims the row.
CREATE TABLE timers (
    room TEXT NOT NULL,
    key TEXT NOT NULL,
    due INTEGER NOT NULL,
    PRIMARY KEY (room, key)
) WITHOUT ROWID;
CREATE INDEX timers_due ON timers (due);

-- Who holds what, until when. In real time: a moved clock loses nobody's lease.
CREATE TABLE leases (
    room TEXT NOT NULL,
    key TEXT NOT NULL,
    holder TEXT NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (room, key)
) WITHOUT ROWID;
