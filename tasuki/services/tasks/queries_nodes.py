"""The statements about nodes: a row each, renewed every few seconds of real time. Only where several share a store."""

# -- one's own row ----------------------------------------------------------------------------------------------

# Who held an id last, and hold the row.
HOLDER = "SELECT place, seen_at, stopped_at, host, url FROM nodes WHERE id = ? /*pg FOR UPDATE*/"
# Join, or come back: how often the node has been given up stays.
JOIN = (
    "INSERT INTO nodes (id, place, incarnation, host, boot, url, version, owner, memory_mib, images, lost_ms, losses, "
    "clock_ahead_ms, joined_at, seen_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?) "
    "ON CONFLICT (id) DO UPDATE SET place = excluded.place, incarnation = excluded.incarnation, host = excluded.host, "
    "boot = excluded.boot, url = excluded.url, version = excluded.version, owner = excluded.owner, "
    "memory_mib = excluded.memory_mib, images = excluded.images, lost_ms = excluded.lost_ms, joined_at = excluded.joined_at, "
    "seen_at = excluded.seen_at, stopped_at = NULL, lost_at = NULL RETURNING losses"
)
# Be seen. Answers nothing when the row is another's now, or gone.
RENEW = (
    "UPDATE nodes SET seen_at = ?, clock_ahead_ms = ?, stopped_at = NULL, lost_at = NULL "
    "WHERE id = ? AND incarnation = ? RETURNING losses"
)
# Leave.
LEAVE = "UPDATE nodes SET seen_at = ?, stopped_at = ? WHERE id = ? AND incarnation = ?"
# Whether a node still is what it believes to be, and keep the others from giving it up until this unit is over.
STANDS = "SELECT 1 FROM nodes WHERE id = ? AND incarnation = ? AND losses = ? /*pg FOR KEY SHARE*/"
# Who made the schema what it is now.
SCHEMA = "SELECT value FROM house WHERE name = 'schema'"

# -- the owner's key --------------------------------------------------------------------------------------------

# What the owner's key looks like (a digest), once a node without --dev has joined.
OWNER = "SELECT value FROM house WHERE name = 'owner'"
KEEP_OWNER = "INSERT INTO house (name, value) VALUES ('owner', ?)"
# A node that lives and takes another key.
OTHER_OWNER = "SELECT id, host FROM nodes WHERE id <> ? AND owner <> ? AND stopped_at IS NULL AND lost_at IS NULL AND seen_at > ? LIMIT 1"

# -- all of them ------------------------------------------------------------------------------------------------

# Every node, with how many tasks it has in hand.
NODES = (
    "SELECT id, host, url, version, memory_mib, joined_at, seen_at, stopped_at, lost_at, lost_ms, clock_ahead_ms, "
    "(SELECT count(*) FROM tasks WHERE node = nodes.id AND stopped_at IS NULL) FROM nodes ORDER BY joined_at, id"
)
# How many tasks the one node of a store has in hand.
ACTIVE = "SELECT count(*) FROM tasks WHERE stopped_at IS NULL AND last_status <> 'PROVISIONING'"
# What each node that lives has for tasks, what of it is taken, and which images the node has.
LIVE_MEMORY = (
    "SELECT memory_mib, (SELECT coalesce(sum(memory_mib), 0) FROM tasks WHERE node = nodes.id AND stopped_at IS NULL), images "
    "FROM nodes WHERE stopped_at IS NULL AND lost_at IS NULL AND seen_at > ?"
)
# Which images the other nodes have that nobody has given up and that were not stopped: one that is silent may come back.
IMAGES_OF_OTHERS = "SELECT images FROM nodes WHERE id <> ? AND stopped_at IS NULL AND lost_at IS NULL"
# What waits for a node, and how many tasks there are in all.
WAITING_MIB = "SELECT coalesce(sum(CASE WHEN node IS NULL THEN memory_mib ELSE 0 END), 0), count(*) FROM tasks WHERE stopped_at IS NULL"
# What a node's own tasks have reserved.
OWN_MIB = "SELECT coalesce(sum(memory_mib), 0) FROM tasks WHERE node = ? AND stopped_at IS NULL"

# -- those that don't come back ---------------------------------------------------------------------------------

# Give a node up, if it was not seen since.
GIVE_UP = "UPDATE nodes SET lost_at = ?, losses = losses + 1 WHERE id = ? AND seen_at = ? AND lost_at IS NULL"
# Whether it is given up still, and keep it from coming back until this unit is over.
STILL_LOST = "SELECT host, lost_ms FROM nodes WHERE id = ? AND seen_at = ? AND lost_at IS NOT NULL /*pg FOR UPDATE*/"
# Some of the tasks that a node has in hand.
IN_HAND = "SELECT name, attempt FROM tasks WHERE node = ? AND stopped_at IS NULL ORDER BY id LIMIT ?"
# Nodes that tasks belong to and that nobody knows (of a backup that was restored elsewhere).
UNKNOWN = (
    "SELECT DISTINCT node FROM tasks WHERE stopped_at IS NULL AND node IS NOT NULL "
    "AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = tasks.node)"
)
# Which of some tasks (by id) a node still has, stopped ones too.
OF_NODE = "SELECT last_status, stop_code FROM tasks WHERE name = ? AND node = ?"
# The tasks of a node that had the store for itself, before it was restored into one that several share; and make one ours.
LEFT_ALONE = "SELECT name FROM tasks WHERE node = ?"
ADOPT = "UPDATE tasks SET node = ? WHERE node = ? AND name = ?"
# Forget tasks that were shown long enough and whose node was not seen for as long: their folders are its own.
FORGET_ORPHANS = (
    "DELETE FROM tasks WHERE id IN (SELECT id FROM tasks WHERE stopped_at IS NOT NULL AND stopped_at <= ? "
    "AND node IS NOT NULL AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = tasks.node AND seen_at > ?) LIMIT ?)"
)
# Forget nodes that nobody has seen for long and that no task belongs to.
FORGET_NODES = "DELETE FROM nodes WHERE seen_at <= ? AND NOT EXISTS (SELECT 1 FROM tasks WHERE node = nodes.id)"
