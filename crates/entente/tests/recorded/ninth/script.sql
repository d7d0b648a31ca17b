-- A ledger of execution version 9: domains in routines, names that are looked for when a statement runs, sessions with a zone and forms
-- of values; and what version 10 brings, refused in words that stand in its rows and receipts.

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN amount AS integer CHECK (VALUE >= 0);
CREATE TYPE pair AS (r integer, i integer);
CREATE TABLE open (
    id integer PRIMARY KEY, at timestamptz, local timestamp, took interval, m mood NOT NULL DEFAULT 'ok', a amount, said text,
    pairs pair[], notes jsonb, CHECK (at > '2000-01-01 00:00+00'));
CREATE UNIQUE INDEX one_happy ON open (a) WHERE m = 'happy';
CREATE INDEX lowered ON open (lower(said)) INCLUDE (m);
CREATE VIEW happy AS SELECT id, m, a FROM open WHERE m = 'happy';
CREATE TABLE words (id integer PRIMARY KEY, said text)

CREATE FUNCTION half(of amount) RETURNS amount LANGUAGE plpgsql AS $$ DECLARE x amount := of / 2; BEGIN RETURN x; END $$;
CREATE FUNCTION family(of text) RETURNS text LANGUAGE sql AS 'SELECT ''family of '' || of';
CREATE FUNCTION network(of integer) RETURNS integer LANGUAGE sql AS 'SELECT of * 2';
CREATE FUNCTION isempty(of text) RETURNS boolean LANGUAGE sql AS 'SELECT of = ''''';
CREATE FUNCTION counted() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM not_there_yet); END $$;
CREATE PROCEDURE ask(which integer, what text) LANGUAGE plpgsql AS $$
BEGIN
    BEGIN
        EXECUTE what;
        INSERT INTO words VALUES (which, 'done');
    EXCEPTION WHEN OTHERS THEN
        INSERT INTO words VALUES (which, SQLSTATE || ' ' || SQLERRM);
    END;
END $$

SET TimeZone = 'Europe/Berlin'; SET DateStyle = 'German'; SET IntervalStyle = 'iso_8601'

INSERT INTO open (id, at, local, took, a, said)
    SELECT n, '2026-03-28 12:00'::timestamptz + n * interval '6 hours', '01.04.2026 08:00', n * interval '90 minutes', n, 'Word ' || n
    FROM generate_series(1, 20) AS g (n)

UPDATE open SET said = at::text || ' ' || took::text WHERE id <= 5

--@ fails 23514
INSERT INTO open (id, at) VALUES (100, '31.12.1999 23:00')

BEGIN

UPDATE open SET said = local::text WHERE id = 6

COMMIT

RESET TimeZone; RESET DateStyle; RESET IntervalStyle

CALL ask(1, 'SELECT ''[1,2)''::int4range'); CALL ask(2, 'SELECT ''10.0.0.1''::inet'); CALL ask(3, 'SELECT ''101''::bit(3)'); CALL ask(4, 'SELECT ''12:00+02''::timetz')

CALL ask(5, 'SELECT B''101'''); CALL ask(6, 'SELECT X''1F'''); CALL ask(7, 'SELECT int4range(1, 5)'); CALL ask(8, 'SELECT ''10.0.0.0/8''::cidr >>= ''10.1.1.1''')

CALL ask(9, 'SELECT family(''x'')'); CALL ask(10, 'SELECT network(4), isempty('''')'); CALL ask(11, 'SELECT range_agg(id) FROM open'); CALL ask(12, 'SELECT counted()'); CALL ask(13, 'SELECT half(9)')

CALL ask(14, 'SELECT ''{"08:00:2b:01:02:03"}''::macaddr[]'); CALL ask(15, 'SELECT ''{}''::int4multirange'); CALL ask(16, 'SELECT ''a''::varbit'); CALL ask(17, 'SELECT 1 -|- 2')

INSERT INTO happy VALUES (30, 'sad', 30)

--@ whatever
CREATE VIEW sad AS SELECT id, m FROM open WHERE m = 'sad' WITH CHECK OPTION

--@ whatever
CREATE MATERIALIZED VIEW kept AS SELECT count(*) FROM open

--@ whatever
REFRESH MATERIALIZED VIEW kept

--@ whatever
CREATE TABLE parted (id integer, day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day)

--@ whatever
CREATE TABLE part PARTITION OF open FOR VALUES FROM (1) TO (2)

--@ whatever
CREATE DATABASE other

--@ whatever
CREATE TABLE hosts (id integer PRIMARY KEY, host inet)

--@ whatever
CREATE TABLE flags (id integer PRIMARY KEY, flag bit(3))

--@ whatever
DO $$ DECLARE a integer[] := ARRAY[1, 2]; BEGIN a[1:2] := ARRAY[3, 4]; END $$

--@ whatever
DO $$ DECLARE c pair[]; BEGIN c[1].i := 4; END $$

CREATE ROLE clerk

GRANT SELECT, INSERT, UPDATE ON open TO clerk

--@ whatever
GRANT UPDATE (said) ON words TO clerk

--@ whatever
GRANT SELECT ON words TO clerk WITH GRANT OPTION

--@ whatever
CREATE TRIGGER instead INSTEAD OF INSERT ON happy FOR EACH ROW EXECUTE FUNCTION counted()

CREATE SCHEMA club MEMBERS (org1, org2, org3, org4)

CREATE TABLE club.accounts (id integer PRIMARY KEY, amount bigint NOT NULL, at timestamptz, notes jsonb);
INSERT INTO club.accounts (id, amount, at, notes) SELECT n, 100, '2026-07-01 10:00+00', to_jsonb(n) FROM generate_series(1, 50) AS g (n);
CREATE PROCEDURE club.pay(who integer, how_much bigint) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE club.accounts SET amount = amount - how_much, notes = jsonb_build_array(id, amount, at)
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
UPDATE open SET a = a + 100
