-- A ledger of execution version 14: FOR UPDATE SKIP LOCKED skips nothing, and hash functions are unknown, in words that stand in rows and
-- receipts. Advisory locks, notifications, frames of windows and values of 1 MiB are known.

CREATE TABLE t (k integer PRIMARY KEY, n integer, said text, at date);
CREATE TABLE words (id integer PRIMARY KEY, said text);
CREATE TABLE job (id integer PRIMARY KEY, state text NOT NULL DEFAULT 'waiting', worker text);
CREATE TABLE long (id integer PRIMARY KEY, said text)

CREATE SEQUENCE counter INCREMENT BY 3 CACHE 20

INSERT INTO t SELECT g, 21 - g, 'word ' || g % 5, DATE '2026-01-01' + g FROM generate_series(1, 20) AS s (g);
INSERT INTO job (id) SELECT g FROM generate_series(1, 20) AS s (g);
INSERT INTO long VALUES (1, repeat('a', 300000))

CREATE PROCEDURE ask(which integer, what text) LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    BEGIN
        EXECUTE what INTO answer;
        INSERT INTO words VALUES (which, coalesce(answer, 'nothing'));
    EXCEPTION WHEN OTHERS THEN
        INSERT INTO words VALUES (which, SQLSTATE || ' ' || SQLERRM);
    END;
END $$

CREATE FUNCTION next_job(who text) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    found integer;
BEGIN
    SELECT id INTO found FROM job WHERE state = 'waiting' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED;
    UPDATE job SET state = 'taken', worker = who WHERE id = found;
    PERFORM pg_notify('jobs', found::text);
    RETURN found;
END $$

-- A function of the ledger has the name of one that the system does not have yet.
CREATE FUNCTION hashtextextended(word text, seed bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT length(word) + seed'

CREATE VIEW running AS SELECT k, sum(n) OVER (ORDER BY k RANGE BETWEEN 2 PRECEDING AND CURRENT ROW) AS around FROM t

CALL ask(1, 'SELECT hashtext(''jobs'')');
CALL ask(2, 'SELECT hashtextextended(''jobs'', 7)');
CALL ask(3, 'SELECT id FROM job WHERE state = ''waiting'' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED');
CALL ask(4, 'SELECT id FROM job ORDER BY id DESC LIMIT 1 FOR NO KEY UPDATE NOWAIT');
CALL ask(5, 'SELECT next_job(''anna'')');
CALL ask(6, 'SELECT pg_advisory_xact_lock(7)');
CALL ask(7, 'SELECT pg_try_advisory_lock(hashtext(''jobs''))')

SELECT next_job('bert'); SELECT next_job('carl')

UPDATE job SET state = 'taken', worker = 'dora' WHERE id = (SELECT id FROM job WHERE state = 'waiting' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)

WITH next AS (SELECT id FROM job WHERE state = 'waiting' ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED) DELETE FROM job USING next WHERE job.id = next.id

--@ fails 42883
SELECT hashtext('jobs'), nextval('counter')

SELECT pg_advisory_lock(42), nextval('counter')

--@ together 12
SELECT next_job('worker {n}')

INSERT INTO words SELECT 100 + nextval('counter'), 'counted' FROM generate_series(1, 3)

CREATE SCHEMA club MEMBERS (org1, org2, org3, org4)

CREATE TABLE club.accounts (id integer PRIMARY KEY, amount bigint NOT NULL);
INSERT INTO club.accounts SELECT n, 100 FROM generate_series(1, 20) AS g (n);
CREATE PROCEDURE club.pay(customer integer, cents bigint) LANGUAGE sql AS 'UPDATE club.accounts SET amount = amount - cents WHERE id = customer'

--@ together 12
CALL club.pay({n}, 3)

CHECKPOINT
