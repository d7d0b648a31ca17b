-- A ledger of execution version 6: what version 7 brings is refused in words that stand in its rows and receipts; and schemas with
-- members whose things move.

CREATE TABLE open (id integer PRIMARY KEY, n bigint NOT NULL, t text, at timestamptz DEFAULT now(), u uuid, f float8, a integer[]);
INSERT INTO open (id, n) SELECT n, n FROM generate_series(1, 20) AS g (n)

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

CALL ask(1, 'SELECT random()'); CALL ask(2, 'SELECT gen_random_uuid()'); CALL ask(3, 'SELECT gen_random_bytes(3)')

CALL ask(4, 'SELECT clock_timestamp()'); CALL ask(5, 'SELECT exp(1)'); CALL ask(6, 'SELECT md5(''a'')'); CALL ask(7, 'SELECT 2 ^ 2')

CALL ask(8, 'SELECT ''{}''::jsonb'); CALL ask(9, 'SELECT to_jsonb(1)'); CALL ask(10, 'SELECT row_to_json(w) FROM words w'); CALL ask(11, 'SELECT json_agg(id) FROM words')

CALL ask(12, 'SELECT t -> ''a'' FROM open'); CALL ask(13, 'SELECT t ? ''a'' FROM open'); CALL ask(14, 'SELECT current_user'); CALL ask(15, 'SELECT digest(''a'', ''sha256'')')

CALL ask(16, 'SELECT enum_range(NULL::text)'); CALL ask(17, 'SELECT id FROM open FOR UPDATE'); CALL ask(18, 'SELECT ''[1,2)''::int4range'); CALL ask(19, 'SELECT setseed(1)')

-- A function of the ledger under a name that version 7 has for itself.

CREATE FUNCTION md5(what text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN 'my ' || what; END $$

CREATE FUNCTION to_jsonb(what integer) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN '<' || what || '>'; END $$

UPDATE open SET t = md5(id::text) || to_jsonb(id) WHERE id <= 5

CREATE SCHEMA club MEMBERS (org1, org2, org3, org4)

CREATE SCHEMA other MEMBERS (org1, org2)

CREATE TABLE club.accounts (id integer PRIMARY KEY, amount bigint NOT NULL);
INSERT INTO club.accounts SELECT n, 100 FROM generate_series(1, 50) AS g (n);
CREATE PROCEDURE club.pay(who integer, how_much bigint) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE club.accounts SET amount = amount - how_much WHERE id = who AND amount >= how_much;
    IF NOT FOUND THEN RAISE EXCEPTION 'account % has too little', who; END IF;
END $$;
CREATE PROCEDURE club.earn(who integer, how_much bigint) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE club.accounts SET amount = amount + how_much WHERE id = who;
    PERFORM entente.take_over('other', how_much);
END $$

CREATE TABLE other.pots (id integer PRIMARY KEY, amount bigint NOT NULL);
INSERT INTO other.pots VALUES (1, 100);
CREATE PROCEDURE other.spend(which integer, how_much bigint) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE other.pots SET amount = amount - how_much WHERE id = which;
    PERFORM entente.hand_over('club', how_much);
END $$

--@ together 12
CALL club.pay({n}, 3)

--@ wait 12
CALL club.pay(33, 2)

CALL other.spend(1, 10); CALL club.earn(1, 10)

--@ fails 23000
CALL other.spend(1, 10); CALL club.earn(1, 20)

--@ fails P0001
CALL club.pay(1, 1000000)

-- What happens in schemas is certified some blocks later: nothing of that is to be open at the end.

--@ wait 40
CALL club.pay(25, 1)

--@ wait 40
UPDATE open SET n = n + 1
