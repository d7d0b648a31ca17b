-- A ledger of execution version 11: materialized views, views whose queries have the names of their columns, parts of columns in UPDATE;
-- and what version 12 mends, as version 11 does it: names that decide on the order, columns with other names, hundreds of parts.

CREATE TYPE pair AS (a integer, b integer);
CREATE TYPE nested AS (x pair, y integer);
CREATE TABLE t (
    k integer PRIMARY KEY, n integer, said text, list integer[], pairs pair[], inside nested, notes jsonb);
CREATE TABLE words (id integer PRIMARY KEY, said text)

INSERT INTO t SELECT g, 21 - g, 'word ' || g % 5, ARRAY[g, 2], ARRAY[ROW(g, 1)::pair], ROW(ROW(1, 2), 3)::nested, '{}' FROM generate_series(1, 20) AS s (g)

CREATE PROCEDURE ask(which integer, what text) LANGUAGE plpgsql AS $$
BEGIN
    BEGIN
        EXECUTE what;
        INSERT INTO words VALUES (which, 'done');
    EXCEPTION WHEN OTHERS THEN
        INSERT INTO words VALUES (which, SQLSTATE || ' ' || SQLERRM);
    END;
END $$

CREATE VIEW plain (x, y) AS SELECT k, n FROM t

CREATE VIEW sorted (x) AS SELECT -k AS k FROM t ORDER BY k

CREATE VIEW swapped (n, k) AS SELECT k, n FROM t ORDER BY n DESC

CREATE VIEW grouped (k, amount) AS SELECT k % 3 AS z, count(*) FROM t GROUP BY z ORDER BY 1

CREATE MATERIALIZED VIEW counted (word, amount) AS SELECT said, count(*) FROM t GROUP BY said;
CREATE UNIQUE INDEX counted_by_word ON counted (word)

CREATE MATERIALIZED VIEW least (x) AS SELECT -k AS k FROM t ORDER BY k LIMIT 3

CREATE MATERIALIZED VIEW empty AS SELECT k, n FROM t WITH NO DATA

--@ fails 55000
INSERT INTO words SELECT k, 'empty' FROM empty

ALTER MATERIALIZED VIEW counted RENAME COLUMN amount TO many

INSERT INTO t (k, n, said) VALUES (21, 0, 'word 7')

REFRESH MATERIALIZED VIEW CONCURRENTLY counted

REFRESH MATERIALIZED VIEW least

REFRESH MATERIALIZED VIEW empty

ALTER MATERIALIZED VIEW empty RENAME TO full_of_rows

UPDATE t SET list[1] = 7, notes['a']['b'] = '1', pairs[1].a = 8, inside.x.b = 9 WHERE k = 1

UPDATE t SET list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7, list[1] = 7 WHERE k = 2

UPDATE t SET inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4, inside.y = 4 WHERE k = 3

UPDATE t SET inside.x.a = 4, inside.x.a = 4, inside.x.a = 4, inside.x.a = 4, inside.x.a = 4, inside.x.a = 4, inside.x.a = 4, inside.x.a = 4, inside.x.a = 4, inside.x.a = 4, inside.x.a = 4, inside.x.a = 4, inside.x.a = 4, inside.x.a = 4, inside.x.a = 4, inside.x.a = 4 WHERE k = 4

CALL ask(1, 'UPDATE t SET list[3] = 1 WHERE k = 5'); CALL ask(2, 'REFRESH MATERIALIZED VIEW counted'); CALL ask(3, 'CREATE DATABASE other')

--@ whatever
CREATE DATABASE other

CREATE SCHEMA club MEMBERS (org1, org2, org3, org4)

CREATE TABLE club.accounts (id integer PRIMARY KEY, amount bigint NOT NULL, list integer[]);
INSERT INTO club.accounts SELECT n, 100, ARRAY[n] FROM generate_series(1, 20) AS g (n);
CREATE PROCEDURE club.pay(customer integer, cents bigint) LANGUAGE sql AS 'UPDATE club.accounts SET amount = amount - cents, list[2] = 1 WHERE id = customer'

CREATE MATERIALIZED VIEW club.rich (account, has) AS SELECT id, amount FROM club.accounts WHERE amount > 98

--@ together 12
CALL club.pay({n}, 3)

REFRESH MATERIALIZED VIEW club.rich

CHECKPOINT
