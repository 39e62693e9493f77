-- Deliveries on their way (services/deliveries): what was not taken at its first try, or is waited for. What is taken at once
-- is never a row here.
--
-- `attempt` counts the tries that were begun. `state` is `waiting` (its timer `ID` is set to `next_at`) or `calling` (the
-- target will tell of the end; no timer). `code` and `message` are the last refusal, `try_id` the last try's own. `rest` is JSON:
-- what nobody looks for (payload, parameters, context, dead-letter queue, watcher).
CREATE TABLE deliveries (
    id INTEGER PRIMARY KEY,
    account TEXT NOT NULL,
    region TEXT NOT NULL,
    sender TEXT NOT NULL,
    source TEXT NOT NULL,
    source_id TEXT NOT NULL,
    target TEXT NOT NULL,
    trace TEXT NOT NULL,
    since INTEGER NOT NULL,
    max_age_ms INTEGER NOT NULL,
    max_retries INTEGER NOT NULL,
    rest BLOB NOT NULL,
    attempt INTEGER NOT NULL,
    state TEXT NOT NULL,
    next_at INTEGER,
    try_id TEXT NOT NULL,
    code TEXT NOT NULL,
    message TEXT NOT NULL
);
