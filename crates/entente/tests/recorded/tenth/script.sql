-- A ledger of execution version 10: addresses, bits, ranges and times with zones, partitions, views that are written through, privileges
-- on columns; and what version 11 brings or mends, refused or answered as version 10 does, in words that stand in its rows and receipts.

CREATE TYPE span AS (at timestamp(1), note text);
CREATE TABLE hosts (
    id integer PRIMARY KEY, host inet, net cidr, card macaddr, flag bit(3), more varbit, at timetz, up int4range, seen tstzmultirange,
    list integer[], notes jsonb, spans span[]);
CREATE UNIQUE INDEX hosts_by_host ON hosts (host);
CREATE INDEX hosts_by_up ON hosts (up);
CREATE VIEW near AS SELECT id, host FROM hosts WHERE id < 100 WITH CHECK OPTION;
CREATE TABLE words (id integer PRIMARY KEY, said text);
CREATE TABLE days (day date, id integer, amount bigint, PRIMARY KEY (day, id)) PARTITION BY RANGE (day);
CREATE TABLE days_a PARTITION OF days FOR VALUES FROM ('2026-01-01') TO ('2026-07-01');
CREATE TABLE days_b PARTITION OF days FOR VALUES FROM ('2026-07-01') TO ('2027-01-01')

CREATE PROCEDURE ask(which integer, what text) LANGUAGE plpgsql AS $$
BEGIN
    BEGIN
        EXECUTE what;
        INSERT INTO words VALUES (which, 'done');
    EXCEPTION WHEN OTHERS THEN
        INSERT INTO words VALUES (which, SQLSTATE || ' ' || SQLERRM);
    END;
END $$;
CREATE FUNCTION inside() RETURNS text LANGUAGE plpgsql AS $$
DECLARE a timestamp(0)[]; s span; all_of span[]; j jsonb := '{}';
BEGIN
    a[1] := '2026-01-01 00:00:00.7'::timestamp;
    s.at := '2026-01-01 00:00:00.06'::timestamp;
    all_of[1].at := s.at + interval '0.06 s';
    j['a']['b'] := '1';
    RETURN a::text || s::text || all_of::text || j::text;
END $$

INSERT INTO hosts SELECT n, ('10.0.0.' || n)::inet, '10.0.0.0/8', '08:00:2b:01:02:03', B'101', X'1F'::varbit, '12:00+02', int4range(n, n + 5),
    '{[2026-01-01,2026-02-01)}', ARRAY[n, 2], to_jsonb(n), NULL FROM generate_series(1, 20) AS g (n)

INSERT INTO days SELECT '2026-06-20'::date + n, n, n * 10 FROM generate_series(1, 20) AS g (n)

INSERT INTO near VALUES (30, '10.0.0.30')

--@ fails 44000
INSERT INTO near VALUES (300, '10.0.0.99')

--@ fails 23514
INSERT INTO days VALUES ('2028-01-01', 1, 1)

--@ fails 23505
INSERT INTO hosts (id, host) VALUES (99, '10.0.0.1')

UPDATE hosts SET up = up * int4range(3, 100), more = more || B'1' WHERE id <= 5

UPDATE days_a SET amount = amount + 1

CREATE ROLE clerk;
CREATE ROLE chief;
GRANT SELECT (id, host), UPDATE (host) ON hosts TO clerk;
GRANT SELECT ON words TO chief WITH GRANT OPTION

--@ fails 23505
UPDATE hosts SET host = '10.0.0.2' WHERE id = 1

CALL ask(1, 'SELECT inside()'); CALL ask(2, 'UPDATE hosts SET list[1] = 7 WHERE id = 1'); CALL ask(3, 'UPDATE hosts SET notes[''k''] = ''1'' WHERE id = 1')

INSERT INTO words VALUES (20, inside())

CALL ask(4, 'CREATE MATERIALIZED VIEW kept AS SELECT 1'); CALL ask(5, 'REFRESH MATERIALIZED VIEW kept'); CALL ask(6, 'CREATE DATABASE other')

--@ whatever
CREATE MATERIALIZED VIEW kept AS SELECT count(*) FROM hosts

--@ whatever
REFRESH MATERIALIZED VIEW kept

--@ whatever
DROP MATERIALIZED VIEW kept

--@ whatever
ALTER MATERIALIZED VIEW kept RENAME TO other

--@ whatever
COMMENT ON MATERIALIZED VIEW kept IS 'rows'

--@ whatever
ALTER MATERIALIZED VIEW kept OWNER TO clerk

--@ whatever
CREATE DATABASE other

--@ whatever
DROP DATABASE other

--@ whatever
GRANT chief TO clerk GRANTED BY CURRENT_USER

--@ whatever
UPDATE hosts SET list[1] = 7 WHERE id = 1

--@ whatever
UPDATE hosts SET list[1:2] = ARRAY[7, 8] WHERE id = 1

--@ whatever
UPDATE hosts SET notes['k'] = '1' WHERE id = 1

--@ whatever
TRUNCATE days_b

CREATE VIEW named (a, b) AS SELECT id, host FROM hosts

CREATE SCHEMA club MEMBERS (org1, org2, org3, org4)

CREATE TABLE club.accounts (id integer PRIMARY KEY, amount bigint NOT NULL, host inet, up int4range);
INSERT INTO club.accounts SELECT n, 100, '10.0.0.1', int4range(n, n + 1) FROM generate_series(1, 20) AS g (n);
CREATE PROCEDURE club.pay(customer integer, cents bigint) LANGUAGE sql AS 'UPDATE club.accounts SET amount = amount - cents WHERE id = customer'

--@ together 12
CALL club.pay({n}, 3)

CHECKPOINT

--@ wait 40
CALL club.pay(15, 1)

--@ wait 40
UPDATE hosts SET up = up + int4range(1, 4) WHERE id <= 2
