"""The statements of the room."""

_BUS = "id, account, region, name, description, policy, settings, tags, created, modified"
_RULE = "id, bus, name, state, pattern, schedule, description, role, tags, created, start_at, tick"

BUS = f"SELECT {_BUS} FROM event_buses WHERE account = ? AND region = ? AND name = ?"  # noqa: S608 - our own column list
"""A bus by its name."""

BUS_BY_ID = f"SELECT {_BUS} FROM event_buses WHERE id = ?"  # noqa: S608 - our own column list
"""A bus by its number."""

BUSES = f"""
SELECT {_BUS} FROM event_buses
WHERE account = ? AND region = ? AND name > ? AND name <> 'default' AND substr(name, 1, length(?)) = ? ORDER BY name LIMIT ?
"""  # noqa: S608 - our own column list
"""A page of buses by name; the default one is told apart."""

COUNT_BUSES = "SELECT count(*) FROM event_buses WHERE account = ? AND region = ? AND name <> 'default'"
"""How many buses there are, against the quota."""

ADD_BUS = """
INSERT INTO event_buses (account, region, name, revision, sources, description, policy, settings, tags, created, modified)
VALUES (?, ?, ?, ?, '[]', ?, NULL, ?, ?, ?, ?) RETURNING id
"""
"""Make a bus."""

UPDATE_BUS = "UPDATE event_buses SET description = ?, settings = ?, modified = ? WHERE id = ?"
"""Describe a bus anew."""

SET_POLICY = "UPDATE event_buses SET policy = ?, modified = ? WHERE id = ?"
"""Replace a bus's policy."""

SET_BUS_TAGS = "UPDATE event_buses SET tags = ? WHERE id = ?"
"""Replace a bus's tags."""

DROP_BUS = "DELETE FROM event_buses WHERE id = ?"
"""Forget a bus."""

SOURCES = "SELECT id, sources FROM event_buses WHERE account = ? AND region = ? AND name = ?"
"""What an event's source must be for a rule of the bus to match."""

REVISION = "SELECT revision FROM event_buses WHERE id = ?"
"""The revision of a bus's rules."""

SET_SOURCES = "UPDATE event_buses SET revision = ?, sources = ? WHERE id = ?"
"""Let everybody see rules that have changed."""

PATTERNS = """
SELECT pattern FROM event_rules r WHERE bus = ? AND state <> 'DISABLED' AND pattern IS NOT NULL
  AND EXISTS (SELECT 1 FROM event_targets t WHERE t.rule = r.id)
"""
"""The patterns by which a bus passes on events."""

MATCHING = """
SELECT id, name, pattern FROM event_rules WHERE bus = ? AND state <> 'DISABLED' AND pattern IS NOT NULL ORDER BY id
"""
"""The rules of a bus that match events."""

TARGETS_OF_BUS = "SELECT rule, document FROM event_targets WHERE bus = ? ORDER BY rule, name"
"""The targets of all rules of a bus."""

RULE = f"SELECT {_RULE} FROM event_rules WHERE bus = ? AND name = ?"  # noqa: S608 - our own column list
"""A rule by its name."""

RULE_BY_ID = f"SELECT {_RULE} FROM event_rules WHERE id = ?"  # noqa: S608 - our own column list
"""A rule by its number."""

HOLD_RULE = "SELECT id FROM event_rules WHERE id = ? FOR UPDATE"
"""Whose timer is fired."""

RULES = f"""
SELECT {_RULE} FROM event_rules WHERE bus = ? AND name > ? AND substr(name, 1, length(?)) = ? ORDER BY name LIMIT ?
"""  # noqa: S608 - our own column list
"""A page of rules by name."""

RULES_BY_TARGET = """
SELECT DISTINCT r.name FROM event_targets t JOIN event_rules r ON r.id = t.rule
WHERE t.bus = ? AND t.arn = ? AND r.name > ? ORDER BY r.name LIMIT ?
"""
"""A page of the names of rules that have a target."""

COUNT_RULES = "SELECT count(*) FROM event_rules WHERE bus = ?"
"""How many rules a bus has."""

ADD_RULE = """
INSERT INTO event_rules (bus, name, state, pattern, schedule, description, role, tags, created)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id
"""
"""Make a rule."""

UPDATE_RULE = """
UPDATE event_rules SET state = ?, pattern = ?, schedule = ?, description = ?, role = ? WHERE id = ?
"""
"""Say anew what a rule is."""

SET_STATE = "UPDATE event_rules SET state = ? WHERE id = ?"
"""Enable or disable a rule."""

SET_RULE_TAGS = "UPDATE event_rules SET tags = ? WHERE id = ?"
"""Replace a rule's tags."""

SET_TICK = "UPDATE event_rules SET start_at = ?, tick = ? WHERE id = ?"
"""Plan a rule's next time."""

DROP_RULE = "DELETE FROM event_rules WHERE id = ?"
"""Forget a rule."""

TARGETS = "SELECT name, document FROM event_targets WHERE rule = ? AND name > ? ORDER BY name LIMIT ?"
"""A page of a rule's targets by Id."""

ANY_TARGET = "SELECT 1 FROM event_targets WHERE rule = ? LIMIT 1"
"""Whether a rule has targets."""

PUT_TARGET = """
INSERT INTO event_targets (rule, name, bus, arn, document) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (rule, name) DO UPDATE SET arn = excluded.arn, document = excluded.document
"""
"""Add a target, or say anew what it is."""

DROP_TARGET = "DELETE FROM event_targets WHERE rule = ? AND name = ?"
"""Take a target away."""

ADD_EVENT = "INSERT INTO bus_events (bus, lane, hops, ingested, trace, body) VALUES (?, ?, ?, ?, ?, ?)"
"""An event that a rule may match."""

ANY_EVENT = "SELECT id FROM bus_events ORDER BY id LIMIT ?"
"""The events that have waited longest."""

TAKE_EVENTS = """
SELECT id, bus, after_rule, hops, ingested, trace, body FROM bus_events WHERE lane = ? ORDER BY id LIMIT ?
/*pg FOR UPDATE SKIP LOCKED */
"""
"""The next events of a lane, in order; what another node has in hand is left to it."""

DROP_EVENT = "DELETE FROM bus_events WHERE id = ?"
"""An event that all rules have seen."""

DROP_EVENTS_OF = "DELETE FROM bus_events WHERE bus = ?"
"""Events on their way to a bus that is deleted, whose number may be given to another one."""

GO_ON = "UPDATE bus_events SET after_rule = ? WHERE id = ?"
"""An event that the rules behind this one have still to see."""
