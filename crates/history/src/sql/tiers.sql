-- Version 5: seconds and hours. Numbers are seconds, and hours, since 1970; a chunk has the points of a minute, and of a day.
CREATE TABLE seconds (
    series INTEGER NOT NULL,
    number INTEGER NOT NULL,
    layout INTEGER NOT NULL,
    packed BLOB NOT NULL,
    PRIMARY KEY (series, number)
) WITHOUT ROWID, STRICT;
CREATE INDEX seconds_by_age ON seconds (number);
CREATE TABLE second_chunks (
    series INTEGER NOT NULL,
    chunk INTEGER NOT NULL,
    count INTEGER NOT NULL,
    packed BLOB NOT NULL,
    layout INTEGER NOT NULL,
    PRIMARY KEY (series, chunk)
) WITHOUT ROWID, STRICT;
CREATE INDEX second_chunks_by_age ON second_chunks (chunk, count);
CREATE TABLE hours (
    series INTEGER NOT NULL,
    number INTEGER NOT NULL,
    layout INTEGER NOT NULL,
    packed BLOB NOT NULL,
    PRIMARY KEY (series, number)
) WITHOUT ROWID, STRICT;
-- `hours_by_age` is the index of the chunks of minutes.
CREATE INDEX hour_points_by_age ON hours (number);
CREATE TABLE hour_chunks (
    series INTEGER NOT NULL,
    chunk INTEGER NOT NULL,
    count INTEGER NOT NULL,
    packed BLOB NOT NULL,
    layout INTEGER NOT NULL,
    PRIMARY KEY (series, chunk)
) WITHOUT ROWID, STRICT;
CREATE INDEX hour_chunks_by_age ON hour_chunks (chunk, count);
