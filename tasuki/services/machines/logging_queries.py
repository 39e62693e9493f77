"""The SQL of what machines log."""

# A chunk of events.
ADD_LOGGED = "INSERT INTO logged (log_group, at, body) VALUES (?, ?, ?)"
# A page of a log group's chunks, in the order in which they were written.
LOGGED = "SELECT id, body FROM logged WHERE log_group = ? AND id > ? ORDER BY id LIMIT ?"
