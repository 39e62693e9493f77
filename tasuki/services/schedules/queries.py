"""The SQL of the schedules room."""

# -- schedules ----------------------------------------------------------------------------------------------

_LISTED = "id, account, region, grp, name, state, target, created, modified"
_COLUMNS = f"{_LISTED}, made_by, changed_by, definition"

INSERT = """
INSERT INTO schedules (account, region, grp, name, state, target, created, modified, made_by, changed_by, definition)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id
"""
"""Create a schedule."""

UPDATE = """
UPDATE schedules SET state = ?, target = ?, modified = ?, changed_by = ?, definition = ? WHERE id = ?
"""
"""Give a schedule a new definition."""

BY_NAME = f"SELECT {_COLUMNS} FROM schedules WHERE account = ? AND region = ? AND grp = ? AND name = ?"  # noqa: S608
"""A schedule by its name."""

IS_THERE = "SELECT made_by FROM schedules WHERE account = ? AND region = ? AND grp = ? AND name = ?"
"""Whether there is a schedule of this name, and which request made it."""

PAGE = f"""
SELECT {_LISTED} FROM schedules WHERE account = ? AND region = ? AND (grp, name) > (?, ?) ORDER BY grp, name LIMIT ?
"""  # noqa: S608 - our own column list
"""Schedules by group and name, from a place on."""

PAGE_OF_GROUP = f"""
SELECT {_LISTED} FROM schedules WHERE account = ? AND region = ? AND grp = ? AND name > ? ORDER BY name LIMIT ?
"""  # noqa: S608 - our own column list
"""Schedules of a group by name, behind a name."""

PAGE_OF_GROUP_FROM = PAGE_OF_GROUP.replace("name > ?", "name >= ?")
"""Schedules of a group by name, from a prefix on."""

DELETE = "DELETE FROM schedules WHERE id = ?"
"""Delete a schedule."""

SOME_OF_GROUP = "SELECT id FROM schedules WHERE account = ? AND region = ? AND grp = ? ORDER BY name LIMIT ?"
"""Some schedules of a group that is being deleted."""

# -- ticks --------------------------------------------------------------------------------------------------

INSERT_TICK = """
INSERT INTO schedule_ticks (schedule, revision, anchor, tick, moment, last) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (schedule) DO UPDATE SET revision = excluded.revision, anchor = excluded.anchor, tick = excluded.tick,
    moment = excluded.moment, last = excluded.last
"""
"""Plan a schedule's next tick, as its new definition wants it."""

TICK = "SELECT revision, anchor, tick, moment, last FROM schedule_ticks WHERE schedule = ?"
"""What a schedule has planned."""

HOLD_TICK = "SELECT schedule FROM schedule_ticks WHERE schedule = ? FOR UPDATE"
"""Hold a schedule's plan."""

FIRING = """
SELECT t.revision, t.anchor, t.tick, t.moment, t.last, s.account, s.region, s.grp, s.name, s.definition
FROM schedule_ticks t JOIN schedules s ON s.id = t.schedule WHERE t.schedule = ? AND t.moment IS NOT NULL
"""
"""All that a tick needs to know: once per tick, on the hot path."""

MOVE_ON = "UPDATE schedule_ticks SET tick = ?, moment = ?, last = ? WHERE schedule = ?"
"""Plan the tick after those that fired: once per tick, on the hot path."""

DELETE_TICK = "DELETE FROM schedule_ticks WHERE schedule = ?"
"""Forget what a schedule has planned."""

COMPLETED = """
SELECT s.definition FROM schedule_ticks t JOIN schedules s ON s.id = t.schedule
WHERE t.schedule = ? AND t.revision = ? AND t.tick IS NULL
"""
"""A schedule whose last tick is over, unless it was given another one since."""

PLACE = "SELECT account, region FROM schedules WHERE id = ?"
"""Whose a schedule is."""

_PLANNED = "t.moment, t.schedule, t.tick, t.anchor, s.region, s.account, s.grp, s.name, s.state, s.definition"

PLANNED = f"""
SELECT {_PLANNED} FROM schedule_ticks t JOIN schedules s ON s.id = t.schedule
WHERE t.moment IS NOT NULL AND (t.moment, t.schedule) > (?, ?) ORDER BY t.moment, t.schedule LIMIT ?
"""  # noqa: S608 - our own column list
"""Who fires next, in order of time."""

PLANNED_BY_NAME = f"""
SELECT {_PLANNED} FROM schedules s JOIN schedule_ticks t ON s.id = t.schedule
WHERE s.account = ? AND s.region = ? AND s.grp = ? AND s.name = ?
"""  # noqa: S608 - our own column list
"""What one schedule has planned."""

# -- groups -------------------------------------------------------------------------------------------------

_GROUP = "id, account, region, name, state, tags, request, created, modified"

INSERT_GROUP = """
INSERT INTO schedule_groups (account, region, name, state, tags, request, created, modified)
VALUES (?, ?, ?, 'ACTIVE', ?, ?, ?, ?)
"""
"""Create a group."""

GROUP = f"SELECT {_GROUP} FROM schedule_groups WHERE account = ? AND region = ? AND name = ?"  # noqa: S608
"""A group by its name."""

GROUPS = f"""
SELECT {_GROUP} FROM schedule_groups
WHERE account = ? AND region = ? AND name > ? AND substr(name, 1, length(?)) = ? ORDER BY name LIMIT ?
"""  # noqa: S608 - our own column list
"""Groups by name, from a name on."""

COUNT_GROUPS = "SELECT count(*) FROM schedule_groups WHERE account = ? AND region = ?"
"""How many groups have a row, against the quota."""

SET_TAGS = "UPDATE schedule_groups SET tags = ?, modified = ? WHERE id = ?"
"""Give a group other tags."""

BEGIN_DELETING = "UPDATE schedule_groups SET state = 'DELETING', modified = ? WHERE id = ?"
"""Let the room empty a group."""

DELETING = "SELECT id, account, region, name FROM schedule_groups WHERE state = 'DELETING' ORDER BY id LIMIT 1"
"""A group that is to be emptied."""

DELETE_GROUP = "DELETE FROM schedule_groups WHERE id = ?"
"""Delete a group that is empty."""

# -- counts -------------------------------------------------------------------------------------------------

COUNT = "SELECT coalesce(sum(stored), 0) FROM schedule_counts WHERE account = ? AND region = ?"
"""How many schedules there are."""

ADD = """
INSERT INTO schedule_counts (account, region, stripe, stored) VALUES (?, ?, ?, ?)
ON CONFLICT (account, region, stripe) DO UPDATE SET stored = schedule_counts.stored + excluded.stored
"""
"""Count schedules that come (or, below nought, go)."""
