-- Connections, API destinations and calls to them (services/buses).

-- A connection: how to sign in where API destinations call. `kind` is the authorization type. `parameters` is AuthParameters as
-- it was given, the secrets too: it is shown to nobody, Describe leaves them out. `revision` is another one at each change, and
-- names what was fetched with the parameters (a token). `secret` ends the ARN by which AWS would name the secret.
CREATE TABLE connections (
    id INTEGER PRIMARY KEY,
    account TEXT NOT NULL,
    region TEXT NOT NULL,
    name TEXT NOT NULL,
    suffix TEXT NOT NULL,
    revision TEXT NOT NULL,
    description TEXT,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    parameters TEXT NOT NULL,
    secret TEXT NOT NULL,
    kms_key TEXT,
    created INTEGER NOT NULL,
    modified INTEGER NOT NULL,
    authorized INTEGER,
    UNIQUE (account, region, name)
);

-- An API destination. It is active while the very connection that it names (with its suffix) is there and authorized. `rate` is
-- NULL where none was given.
CREATE TABLE api_destinations (
    id INTEGER PRIMARY KEY,
    account TEXT NOT NULL,
    region TEXT NOT NULL,
    name TEXT NOT NULL,
    suffix TEXT NOT NULL,
    description TEXT,
    connection TEXT NOT NULL,
    connection_suffix TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    method TEXT NOT NULL,
    rate INTEGER,
    created INTEGER NOT NULL,
    modified INTEGER NOT NULL,
    UNIQUE (account, region, name)
);

-- How fast a destination may be called: `full_at` is the instant, in microseconds of house time, at which all its tokens are back.
-- Apart from the destination's row, for it changes with every call.
CREATE TABLE api_destination_paces (
    destination INTEGER PRIMARY KEY,
    full_at INTEGER NOT NULL
);

-- HTTP calls to be made, or being made (runtime/courier.py). One row is one call: who asked for it hears of its end by `watcher`,
-- and the row is gone. `key` is the Idempotency-Key of the call. Not before `due` (house time); `paced`: its turn under the
-- destination's rate is settled, and is `due`. Made by `holder` until `lease_until`, in real time; after that by anybody.
CREATE TABLE http_calls (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    destination INTEGER NOT NULL,
    payload TEXT NOT NULL,
    parameters TEXT NOT NULL,
    watcher TEXT,
    trace TEXT NOT NULL,
    due INTEGER NOT NULL,
    paced INTEGER NOT NULL DEFAULT 0,
    holder TEXT,
    lease_until INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX http_calls_due ON http_calls (due, id);
CREATE INDEX http_calls_of ON http_calls (destination);
/*pg
ALTER TABLE api_destination_paces SET (fillfactor = 20, autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE http_calls SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
*/
