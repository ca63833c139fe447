-- The columns of points, as JSON. The first layout is that of volumes, in which the chunks of before version 4 are read.
CREATE TABLE layouts (
    id INTEGER PRIMARY KEY,
    columns TEXT NOT NULL UNIQUE
) STRICT;
-- What is recorded of one subject. Labels are JSON, by name.
CREATE TABLE series (
    id INTEGER PRIMARY KEY,
    subject TEXT NOT NULL,
    labels TEXT NOT NULL,
    -- The minute of the latest point.
    latest INTEGER NOT NULL,
    -- JSON: the latest minute of each mark.
    marks TEXT NOT NULL,
    UNIQUE (subject, labels)
) STRICT;
-- The same labels, to find a series by one of them.
CREATE TABLE labels (
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    series INTEGER NOT NULL,
    PRIMARY KEY (name, value, series)
) WITHOUT ROWID, STRICT;
-- Each tier has two such tables. Numbers are minutes since 1970.
CREATE TABLE minutes (
    series INTEGER NOT NULL,
    number INTEGER NOT NULL,
    layout INTEGER NOT NULL,
    packed BLOB NOT NULL,
    PRIMARY KEY (series, number)
) WITHOUT ROWID, STRICT;
CREATE INDEX minutes_by_age ON minutes (number);
-- Points of past hours, packed: hours since 1970, and how many points each has.
CREATE TABLE IF NOT EXISTS minute_chunks (
    series INTEGER NOT NULL,
    chunk INTEGER NOT NULL,
    count INTEGER NOT NULL,
    packed BLOB NOT NULL,
    layout INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (series, chunk)
) WITHOUT ROWID, STRICT;
CREATE INDEX IF NOT EXISTS hours_by_age ON minute_chunks (chunk, count);
