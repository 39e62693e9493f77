"""The SQL of versions and aliases."""

# One version, with its machine and revision in the shape of `queries.MACHINE`; the date is the version's own.
VERSION = (
    "SELECT m.id, m.name, m.type, m.status, v.created_at, m.tags, r.id, r.revision_id, r.definition, r.role_arn, "
    "r.logging, r.tracing, r.created_at, r.digest, v.description "
    "FROM machines m JOIN versions v ON v.machine = m.id JOIN revisions r ON r.id = v.revision "
    "WHERE m.account = ? AND m.region = ? AND m.name = ? AND m.status <> 'DELETED' AND v.number = ?"
)
# What StartExecution needs of a version's revision.
VERSION_TO_START = (
    "SELECT r.id, r.digest, r.role_arn, r.logging FROM versions v JOIN revisions r ON r.id = v.revision "
    "WHERE v.machine = ? AND v.number = ?"
)
# The newest version of a revision.
VERSION_OF_REVISION = (
    "SELECT number, created_at FROM versions WHERE machine = ? AND revision = ? ORDER BY number DESC LIMIT 1"
)
# How many versions a machine has, for the quota.
VERSION_COUNT = "SELECT count(*) FROM versions WHERE machine = ?"
# The next number.
NEXT_VERSION = "UPDATE machines SET last_version = last_version + 1 WHERE id = ? RETURNING last_version"
# A new version.
ADD_VERSION = "INSERT INTO versions (machine, number, revision, description, created_at) VALUES (?, ?, ?, ?, ?)"
# A page of versions, newest first.
VERSIONS = "SELECT number, created_at FROM versions WHERE machine = ? AND number < ? ORDER BY number DESC LIMIT ?"
# Gone.
DROP_VERSION = "DELETE FROM versions WHERE machine = ? AND number = ?"
# The machine is gone.
DROP_VERSIONS = "DELETE FROM versions WHERE machine = ?"

# One alias.
ALIAS = "SELECT id, name, description, routing, created_at, updated_at FROM aliases WHERE machine = ? AND name = ?"
# All aliases of a machine, in the order in which they were made; there are a hundred at most.
ALIASES = "SELECT id, name, description, routing, created_at, updated_at FROM aliases WHERE machine = ? AND id > ? ORDER BY id"
# How many there are, for the quota.
ALIAS_COUNT = "SELECT count(*) FROM aliases WHERE machine = ?"
# A new one.
ADD_ALIAS = (
    "INSERT INTO aliases (machine, name, description, routing, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)"
)
# Another description or routing.
SET_ALIAS = "UPDATE aliases SET description = ?, routing = ?, updated_at = ? WHERE id = ?"
# Gone.
DROP_ALIAS = "DELETE FROM aliases WHERE id = ?"
# The machine is gone.
DROP_ALIASES = "DELETE FROM aliases WHERE machine = ?"
