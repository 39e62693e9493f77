"""The SQL of connections and API destinations."""

_CONNECTION = """c.id, c.account, c.region, c.name, c.suffix, c.revision, c.description, c.kind, c.state, c.parameters, c.secret,
    c.kms_key, c.created, c.modified, c.authorized"""

ADD_CONNECTION = """
INSERT INTO connections (account, region, name, suffix, revision, description, kind, state, parameters, secret, kms_key, created,
    modified, authorized)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
"""Create a connection."""

CONNECTION = f"SELECT {_CONNECTION} FROM connections c WHERE c.account = ? AND c.region = ? AND c.name = ?"  # noqa: S608 - our own column list
"""A connection by its name."""

SET_CONNECTION = """
UPDATE connections SET revision = ?, description = ?, kind = ?, state = ?, parameters = ?, kms_key = ?, modified = ?, authorized = ?
WHERE id = ?
"""
"""Give a connection other parameters, or take them away."""

DROP_CONNECTION = "DELETE FROM connections WHERE id = ?"
"""Forget a connection, secrets and all."""

COUNT_CONNECTIONS = "SELECT count(*) FROM connections WHERE account = ? AND region = ?"
"""How many connections there are, against the quota."""

CONNECTIONS_PAGE = f"""
SELECT {_CONNECTION} FROM connections c
WHERE c.account = ? AND c.region = ? AND c.name > ? AND substr(c.name, 1, length(?)) = ? AND (? = '' OR c.state = ?)
ORDER BY c.name LIMIT ?
"""  # noqa: S608 - our own column list
"""A page of ListConnections, by name."""

_DESTINATION = """d.id, d.account, d.region, d.name, d.suffix, d.description, d.connection, d.connection_suffix, d.endpoint, d.method,
    d.rate, d.created, d.modified, c.state"""

_JOINED = """FROM api_destinations d LEFT JOIN connections c
    ON c.account = d.account AND c.region = d.region AND c.name = d.connection AND c.suffix = d.connection_suffix"""

ADD_DESTINATION = """
INSERT INTO api_destinations (account, region, name, suffix, description, connection, connection_suffix, endpoint, method, rate,
    created, modified)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id
"""
"""Create a destination."""

ADD_PACE = "INSERT INTO api_destination_paces (destination, full_at) VALUES (?, 0)"
"""Give a new destination its tokens."""

DESTINATION = f"SELECT {_DESTINATION} {_JOINED} WHERE d.account = ? AND d.region = ? AND d.name = ?"
"""A destination by its name, with its connection's state (NULL: it is gone)."""

SET_DESTINATION = """
UPDATE api_destinations SET description = ?, connection = ?, connection_suffix = ?, endpoint = ?, method = ?, rate = ?, modified = ?
WHERE id = ?
"""
"""Give a destination another definition."""

DROP_DESTINATION = "DELETE FROM api_destinations WHERE id = ?"
"""Forget a destination. Calls that wait for it end with that reason."""

DROP_PACE = "DELETE FROM api_destination_paces WHERE destination = ?"
"""Forget its tokens."""

COUNT_DESTINATIONS = "SELECT count(*) FROM api_destinations WHERE account = ? AND region = ?"
"""How many destinations there are, against the quota."""

DESTINATIONS_PAGE = f"""
SELECT {_DESTINATION} {_JOINED}
WHERE d.account = ? AND d.region = ? AND d.name > ? AND substr(d.name, 1, length(?)) = ?
  AND (? = '' OR (d.connection = ? AND d.connection_suffix = ?))
ORDER BY d.name LIMIT ?
"""
"""A page of ListApiDestinations, by name."""
