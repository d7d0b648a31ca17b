-- A ledger of execution version 7: random values, JSON, enums, domains and generated columns in rows, keys and schemas with members; and
-- what version 8 brings, refused in words that stand in its rows and receipts.

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN amount AS integer CHECK (VALUE >= 0);
CREATE TABLE open (
    id integer PRIMARY KEY, u uuid DEFAULT gen_random_uuid(), r float8 DEFAULT random(), m mood NOT NULL DEFAULT 'ok', a amount,
    j jsonb, k json, twice integer GENERATED ALWAYS AS (id * 2) STORED, at timestamptz DEFAULT clock_timestamp());
INSERT INTO open (id, a, j, k) SELECT n, n, jsonb_build_object('n', n, 'list', to_jsonb(ARRAY[n, n + 1])), row_to_json(g)
    FROM generate_series(1, 20) AS g (n)

CREATE TABLE words (id integer PRIMARY KEY, said text);
CREATE PROCEDURE ask(which integer, what text) LANGUAGE plpgsql AS $$
BEGIN
    BEGIN
        EXECUTE what;
        INSERT INTO words VALUES (which, 'done');
    EXCEPTION WHEN OTHERS THEN
        INSERT INTO words VALUES (which, SQLSTATE || ' ' || SQLERRM);
    END;
END $$

CALL ask(1, 'SELECT current_user'); CALL ask(2, 'SELECT current_schema()'); CALL ask(3, 'SELECT id FROM open FOR UPDATE'); CALL ask(4, 'SELECT now() AT TIME ZONE ''Europe/Berlin''')

CALL ask(5, 'SELECT ''[1,2)''::int4range'); CALL ask(6, 'SELECT ''10.0.0.1''::inet'); CALL ask(7, 'SELECT ''101''::bit(3)'); CALL ask(8, 'SELECT setseed(1)')

CALL ask(9, 'SELECT session_user'); CALL ask(10, 'SELECT pg_advisory_xact_lock(1)'); CALL ask(11, 'SELECT 1::mood'); CALL ask(12, 'SELECT (-1)::amount'); CALL ask(13, 'SELECT ''{''::jsonb')

CALL ask(14, 'SELECT current_setting(''TimeZone'')'); CALL ask(15, 'SELECT to_tsvector(''a'')'); CALL ask(16, 'SELECT array_ndims(''{{1,2}}''::integer[])'); CALL ask(17, 'SELECT ''12:00+01''::timetz')

CALL ask(18, 'SELECT 1 / (count(*) - 1) FROM (SELECT DISTINCT m FROM open) AS d'); CALL ask(19, 'SELECT jsonb_agg(DISTINCT id) FROM open'); CALL ask(20, 'SELECT json_object_agg(id, m ORDER BY id DESC) FROM open')

UPDATE open SET j = jsonb_set(j, '{list, 0}', to_jsonb(m)), m = 'happy' WHERE id <= 5

UPDATE open SET k = (SELECT json_agg(o.id ORDER BY o.id) FROM open AS o WHERE o.m = 'happy'), u = gen_random_uuid() WHERE j ->> 'n' = '7'

ALTER TYPE mood ADD VALUE 'so so' BEFORE 'ok'

ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'

INSERT INTO open (id, a, m) VALUES (100, 7, 'so so'), (101, 8, 'blue')

CREATE TABLE docs (doc jsonb PRIMARY KEY, m mood UNIQUE);
INSERT INTO docs VALUES ('{"b": 1, "aa": [1, 2.50, null]}', 'ok'), ('[]', 'blue'), ('1e2', NULL)

--@ fails 23505
INSERT INTO docs VALUES ('100', NULL)

--@ fails 23514
INSERT INTO open (id, a) VALUES (102, -1)

-- What version 8 may bring.

--@ fails 0A000
CREATE UNIQUE INDEX one_happy ON open (a) WHERE m = 'happy'

--@ fails 0A000
CREATE INDEX lowered ON words (lower(said))

--@ fails 0A000
CREATE TABLE children (id integer PRIMARY KEY, parent integer REFERENCES open (id) DEFERRABLE INITIALLY DEFERRED)

CREATE SCHEMA club MEMBERS (org1, org2, org3, org4)

CREATE TYPE club.kind AS ENUM ('cash', 'credit');
CREATE TABLE club.accounts (id integer PRIMARY KEY, amount bigint NOT NULL, kind club.kind NOT NULL DEFAULT 'cash', notes jsonb, salt uuid DEFAULT gen_random_uuid());
INSERT INTO club.accounts (id, amount, notes) SELECT n, 100, to_jsonb(n) FROM generate_series(1, 50) AS g (n);
CREATE PROCEDURE club.pay(who integer, how_much bigint) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE club.accounts SET amount = amount - how_much, notes = jsonb_build_array(notes, now(), random() < 2), kind = 'credit'
        WHERE id = who AND amount >= how_much;
    IF NOT FOUND THEN RAISE EXCEPTION 'account % has too little', who; END IF;
END $$

--@ together 12
CALL club.pay({n}, 3)

--@ fails P0001
CALL club.pay(1, 1000000)

--@ wait 40
CALL club.pay(25, 1)

--@ wait 40
UPDATE open SET a = a + 1
