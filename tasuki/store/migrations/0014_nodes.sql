-- The nodes of a house that several share, and which of them a task belongs to.

-- One row a data directory that has ever joined. A store with one node only (SQLite) has none.
-- `place` says where the directory is (host, boot, device, inode), `incarnation` which process holds the id now.
-- `losses` counts how often the others gave it up: what it claimed before that is not its own any more.
-- Instants are real time. `lost_ms`: unheard of for so long, it is given up, and its tasks have ended by themselves before.
-- `images` is a JSON list of the names that its tasuki.toml maps: a task goes to a node that has its images.
CREATE TABLE nodes (
    id TEXT PRIMARY KEY,
    place TEXT NOT NULL,
    incarnation TEXT NOT NULL,
    host TEXT NOT NULL,
    boot TEXT NOT NULL,
    url TEXT NOT NULL,
    version TEXT NOT NULL,
    owner TEXT NOT NULL,
    memory_mib INTEGER NOT NULL,
    images TEXT NOT NULL DEFAULT '[]',
    lost_ms INTEGER NOT NULL,
    losses INTEGER NOT NULL,
    clock_ahead_ms INTEGER NOT NULL,
    joined_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    stopped_at INTEGER,
    lost_at INTEGER
) WITHOUT ROWID;

-- An attempt is pinned to its node. `here` is the one node of a store that has only one.
ALTER TABLE tasks ADD COLUMN node TEXT;
UPDATE tasks SET node = 'here' WHERE host IS NOT NULL;
CREATE INDEX tasks_of_node ON tasks (node) WHERE stopped_at IS NULL AND node IS NOT NULL;
