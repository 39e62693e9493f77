-- Where a clock that is moved by hand stands. No row: the house goes by the clock of its machine, or of its database.
CREATE TABLE clock (
    name TEXT PRIMARY KEY,
    stands_at INTEGER NOT NULL
) WITHOUT ROWID;
