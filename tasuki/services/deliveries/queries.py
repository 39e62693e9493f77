"""The statements of the room."""

_ROW = """
SELECT id, account, region, sender, source, source_id, target, trace, since, max_age_ms, max_retries, rest,
    attempt, state, next_at, try_id, code, message
FROM deliveries
"""

ADD = """
INSERT INTO deliveries (account, region, sender, source, source_id, target, trace, since, max_age_ms, max_retries, rest,
    attempt, state, next_at, try_id, code, message)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id
"""
"""Keep a delivery that was not taken at once, or is waited for."""

TRIED = "UPDATE deliveries SET attempt = ?, state = ?, next_at = ?, try_id = ?, code = ?, message = ? WHERE id = ?"
"""How its last try went."""

CALLING = "UPDATE deliveries SET attempt = ?, state = 'calling', next_at = NULL, try_id = ? WHERE id = ?"
"""A try whose end the target will tell."""

HOLD = "SELECT 1 FROM deliveries WHERE id = ? /*pg FOR UPDATE */"
"""Keep others off a delivery until this unit is over."""

KEPT = _ROW + "WHERE id = ? /*pg FOR UPDATE */"
"""A delivery on its way."""

DROP = "DELETE FROM deliveries WHERE id = ?"
"""It is over."""

PAGE = (
    _ROW
    + "WHERE account = ? AND region = ? AND id > ? AND (? = '' OR source = ?) AND (? = '' OR target = ?) ORDER BY id LIMIT ?"
)
"""A page of what is on its way, oldest first, of one source or target if one is named."""
