-- The papers' table with a single value column, so that every update of a row meets every read of it.
CREATE TABLE usertable (
    key bigint PRIMARY KEY,
    v   bigint NOT NULL
);
