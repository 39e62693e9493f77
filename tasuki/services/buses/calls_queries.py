"""The SQL of HTTP calls to API destinations."""

from tasuki.services.buses.destinations_queries import _CONNECTION, _DESTINATION, _JOINED

ADD = """
INSERT INTO http_calls (key, destination, payload, parameters, watcher, trace, due) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO NOTHING
"""
"""Ask for a call; asked again in the same words while it is under way, it is one call."""

_NOT_FULL = "CAST(? AS TEXT) NOT LIKE '%,' || destination || ',%'"

NEXT = f"SELECT due FROM http_calls WHERE lease_until <= ? AND {_NOT_FULL} ORDER BY due, id LIMIT 1"  # noqa: S608 - our own words
"""When the next call is due that nobody makes, but to some destinations (`,1,2,`)."""

TO_CLAIM = f"""
SELECT id, key, destination, payload, parameters, watcher, trace, due, paced FROM http_calls
WHERE due <= ? AND lease_until <= ? AND {_NOT_FULL} ORDER BY due, id LIMIT ? /*pg FOR UPDATE SKIP LOCKED */
"""  # noqa: S608 - our own words
"""Calls that are due and that nobody makes, the longest due first, but to some destinations."""

WITH_ALL = f"SELECT {_CONNECTION}, {_DESTINATION} {_JOINED} WHERE d.id = ?"
"""A destination by its id, and its connection (NULLs: it is gone)."""

PACE = "SELECT full_at FROM api_destination_paces WHERE destination = ? /*pg FOR UPDATE */"
"""When a destination's tokens are all back."""

SET_PACE = "UPDATE api_destination_paces SET full_at = ? WHERE destination = ?"
"""Take tokens."""

CLAIM = "UPDATE http_calls SET paced = 1, holder = ?, lease_until = ? WHERE id = ?"
"""A call that is being made."""

PUT_OFF = "UPDATE http_calls SET paced = 1, due = ? WHERE id = ?"
"""A call whose turn comes later."""

PACE_ANEW = "UPDATE http_calls SET paced = 0, due = ? WHERE destination = ? AND paced = 1 AND lease_until = 0"
"""Calls that waited for their turn under another rate."""

ORPHAN = "UPDATE http_calls SET destination = 0, paced = 0, due = ? WHERE destination = ?"
"""Calls to a destination that is deleted, whose number may be given to another one: they fail, and call nobody."""

DROP = "DELETE FROM http_calls WHERE id = ? AND holder = ?"
"""A call is over, if it is still its holder's."""

WITHDRAW = "DELETE FROM http_calls WHERE key = ? AND lease_until <= ?"
"""A call is not wanted any more, unless somebody makes it."""

HELD = "SELECT watcher FROM http_calls WHERE id = ? AND holder = ?"
"""Who is told, if the call is still its holder's."""

TURN = "SELECT due FROM http_calls WHERE key = ? AND paced = 1 AND due > ?"
"""When the turn of a call comes that its destination's rate holds back."""

LET_GO = "UPDATE http_calls SET lease_until = 0 WHERE holder = ?"
"""Give back what a node that ends had in hand."""

LET_ALL_GO = "UPDATE http_calls SET lease_until = 0 WHERE lease_until > 0"
"""Give back what a node had in hand that was killed, and was the only one."""

ANY_HELD = "SELECT 1 FROM http_calls WHERE lease_until > 0 LIMIT 1"
"""Whether anything is in hand."""
