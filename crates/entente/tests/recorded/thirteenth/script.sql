-- A ledger of execution version 13: values of more than 128 KiB and notifications are refused, in words that stand in rows and receipts.

CREATE UNLOGGED TABLE t (k integer PRIMARY KEY, n integer, said text, at date);
CREATE TABLE u (id integer PRIMARY KEY, t integer REFERENCES t);
CREATE TABLE words (id integer PRIMARY KEY, said text);
CREATE TABLE long (id integer PRIMARY KEY, said text, raw bytea, document jsonb, numbers integer[])

CREATE SEQUENCE counter INCREMENT BY 3 CACHE 20

INSERT INTO t SELECT g, 21 - g, 'word ' || g % 5, DATE '2026-01-01' + g FROM generate_series(1, 20) AS s (g);
INSERT INTO u SELECT g, 1 + g % 7 FROM generate_series(1, 30) AS s (g);
INSERT INTO long VALUES (1, repeat('a', 131072), NULL, NULL, NULL);
INSERT INTO long VALUES (2, 'short', decode(repeat('ab', 40000), 'hex'), to_jsonb(repeat('b', 60000)), array_fill(7, ARRAY[16384]))

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

-- A function of the ledger has the name of one that the system does not have yet.
CREATE FUNCTION pg_notify(channel text, payload text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT ''mine of '' || channel || payload'

CREATE VIEW grouped AS SELECT t.k, t.said, count(*) AS amount FROM t JOIN u ON u.t = t.k GROUP BY t.k

CREATE VIEW least AS SELECT k FROM t ORDER BY n OFFSET 1 ROWS FETCH FIRST (1 + 1) ROWS WITH TIES

CALL ask(1, 'SELECT length(repeat(''a'', 131073))');
CALL ask(2, 'SELECT length(said || said) FROM long WHERE id = 1');
CALL ask(3, 'SELECT length(raw || raw || raw || raw) FROM long WHERE id = 2');
CALL ask(4, 'SELECT length(jsonb_build_array(document, document, document)::text) FROM long WHERE id = 2');
CALL ask(5, 'SELECT cardinality(numbers || numbers) FROM long WHERE id = 2');
CALL ask(6, 'SELECT cardinality(array_fill(repeat(''c'', 100), ARRAY[2000]))');
CALL ask(7, 'SELECT length(string_agg(repeat(''d'', 10000), '','')) FROM generate_series(1, 20)');
CALL ask(8, 'SELECT length(repeat(''1'', 131073)::varbit)');
CALL ask(9, 'SELECT pg_notify(''orders'', ''42'')');
CALL ask(10, 'NOTIFY orders');
CALL ask(11, 'SELECT length(lpad(''x'', 200000))');
CALL ask(12, 'SELECT length(format(''%s%s'', said, said)) FROM long WHERE id = 1');
CALL ask(13, 'SELECT length(replace(said, ''a'', ''bc'')) FROM long WHERE id = 1');
CALL ask(14, 'SELECT length(array_to_string(numbers || 1, '','')) FROM long WHERE id = 2');
CALL ask(15, 'SELECT length(encode(raw || raw || raw, ''hex'')) FROM long WHERE id = 2');
CALL ask(16, 'SELECT length((SELECT json_agg(t) FROM t, generate_series(1, 100))::text)');
CALL ask(17, 'INSERT INTO long SELECT 3, said, raw, document, numbers || 1 FROM long WHERE id = 2');
CALL ask(18, 'UPDATE long SET said = said || ''b'' WHERE id = 1')

--@ fails 54000
SELECT repeat('a', 200000)

--@ fails 54000
INSERT INTO long VALUES (4, repeat('a', 131073))

INSERT INTO words SELECT 100 + nextval('counter'), 'counted' FROM generate_series(1, 3)

CREATE SCHEMA club MEMBERS (org1, org2, org3, org4)

CREATE TABLE club.accounts (id integer PRIMARY KEY, amount bigint NOT NULL);
INSERT INTO club.accounts SELECT n, 100 FROM generate_series(1, 20) AS g (n);
CREATE PROCEDURE club.pay(customer integer, cents bigint) LANGUAGE sql AS 'UPDATE club.accounts SET amount = amount - cents WHERE id = customer'

--@ together 12
CALL club.pay({n}, 3)

CHECKPOINT
