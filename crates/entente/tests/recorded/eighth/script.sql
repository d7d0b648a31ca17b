-- A ledger of execution version 8: policies of rows, indexes of expressions and of some rows, constraints that wait, time zones, who
-- executes a statement; and what version 9 brings, refused in words that stand in its rows and receipts.

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN amount AS integer CHECK (VALUE >= 0);
CREATE DOMAIN small AS amount CHECK (VALUE < 1000);
CREATE TABLE open (
    id integer PRIMARY KEY, who text NOT NULL DEFAULT current_user, at timestamptz DEFAULT now(), m mood NOT NULL DEFAULT 'ok', a small,
    said text, here timestamp GENERATED ALWAYS AS ('2026-07-01 12:00+00'::timestamptz AT TIME ZONE 'Europe/Berlin') STORED);
CREATE UNIQUE INDEX one_happy ON open (a) WHERE m = 'happy';
CREATE INDEX lowered ON open (lower(said)) INCLUDE (m);
INSERT INTO open (id, a, said) SELECT n, n, 'Word ' || n FROM generate_series(1, 20) AS g (n)

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

CALL ask(1, 'SELECT ''today''::date'); CALL ask(2, 'SELECT ''tomorrow''::timestamptz'); CALL ask(3, 'SELECT id FROM open FOR UPDATE'); CALL ask(4, 'SELECT now() AT TIME ZONE ''Europe/Nowhere''')

CALL ask(5, 'SELECT ''[1,2)''::int4range'); CALL ask(6, 'SELECT ''10.0.0.1''::inet'); CALL ask(7, 'SELECT ''101''::bit(3)'); CALL ask(8, 'SELECT ''now''::timestamp')

CALL ask(9, 'SELECT booleq(true, true)'); CALL ask(10, 'SELECT pg_advisory_xact_lock(1)'); CALL ask(11, 'SELECT ''{{1,2}}''::integer[]'); CALL ask(12, 'SELECT (-1)::small'); CALL ask(13, 'SELECT 1000::small')

CREATE TABLE parents (id integer PRIMARY KEY);
CREATE TABLE children (id integer PRIMARY KEY, parent integer REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)

INSERT INTO children VALUES (1, 1), (2, 2); INSERT INTO parents VALUES (1), (2)

--@ fails 23503
INSERT INTO children VALUES (3, 3)

CREATE ROLE clerk

GRANT SELECT, INSERT, UPDATE ON open TO clerk

ALTER TABLE open ENABLE ROW LEVEL SECURITY; ALTER TABLE open FORCE ROW LEVEL SECURITY;
CREATE POLICY everybody ON open USING (true);
CREATE POLICY own ON open AS RESTRICTIVE FOR UPDATE USING (who = current_user) WITH CHECK (a IS NULL OR a < 500)

UPDATE open SET m = 'happy', said = upper(said) WHERE id <= 5

--@ fails 42501
UPDATE open SET a = 600 WHERE id = 7

--@ fails 23505
UPDATE open SET a = 1, m = 'happy' WHERE id = 6

--@ fails 23514
INSERT INTO open (id, a) VALUES (102, -1)

-- What version 9 may bring.

--@ fails 0A000
CREATE FUNCTION half(of amount) RETURNS amount LANGUAGE plpgsql AS $$ DECLARE x amount := of / 2; BEGIN RETURN x; END $$

--@ fails 42P01
CREATE FUNCTION counted() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM not_there_yet); END $$

--@ fails 42601
CREATE TABLE old (id integer PRIMARY KEY) WITHOUT OIDS

--@ fails 0A000
CREATE DOMAIN pair AS open CHECK ((VALUE).id > 0)

CREATE SCHEMA club MEMBERS (org1, org2, org3, org4)

CREATE TYPE club.kind AS ENUM ('cash', 'credit');
CREATE TABLE club.accounts (id integer PRIMARY KEY, amount bigint NOT NULL, kind club.kind NOT NULL DEFAULT 'cash', notes jsonb);
CREATE UNIQUE INDEX ON club.accounts (notes) WHERE kind = 'credit';
INSERT INTO club.accounts (id, amount, notes) SELECT n, 100, to_jsonb(n) FROM generate_series(1, 50) AS g (n);
CREATE PROCEDURE club.pay(who integer, how_much bigint) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE club.accounts SET amount = amount - how_much, notes = jsonb_build_array(id, amount), kind = 'credit'
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
