-- A ledger of execution version 15: arrays have one dimension, which begins at 1, and keys of arrays are looked for in their order, in words that
-- stand in rows and receipts. Text search and inverted indexes are known.

CREATE TABLE words (id integer PRIMARY KEY, said text);
CREATE TABLE row (id integer PRIMARY KEY, cells integer[], names text[], more jsonb[], spans int4multirange);
CREATE TABLE keyed (k integer[] PRIMARY KEY, n integer);
CREATE TABLE posts (id integer PRIMARY KEY, body text, words tsvector GENERATED ALWAYS AS (to_tsvector('english', body)) STORED)

CREATE INDEX ON posts USING gin (words);
CREATE INDEX ON row USING gin (names);
CREATE INDEX ON row (cells)

INSERT INTO row SELECT g, ARRAY[g, g * 2, NULL], ARRAY['name ' || g % 3, 'x'], ARRAY['{"a": [1, 2]}'::jsonb], '{[1,3)}' FROM generate_series(1, 12) AS s (g);
INSERT INTO keyed SELECT ARRAY[g % 3, g], g FROM generate_series(1, 12) AS s (g);
INSERT INTO posts (id, body) SELECT g, 'The ' || g || ' fat cats ran' FROM generate_series(1, 6) AS s (g)

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

-- Functions and a domain of the ledger have names that the system does not have yet.
CREATE FUNCTION unaccent(word text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT replace(word, ''é'', ''E'')';
CREATE FUNCTION similarity(one text, other text) RETURNS real LANGUAGE sql IMMUTABLE AS 'SELECT 0.5::real';
CREATE DOMAIN citext AS text CHECK (length(VALUE) < 20)

CREATE TABLE people (name citext PRIMARY KEY, said text)

INSERT INTO people VALUES ('Anna', unaccent('café')), ('anna', similarity('a', 'b')::text)

CREATE FUNCTION grown(cells integer[]) RETURNS integer[] LANGUAGE plpgsql AS $$
BEGIN
    cells[6] := 6;
    RETURN cells;
END $$

CREATE FUNCTION far() RETURNS integer[] LANGUAGE plpgsql AS $$
DECLARE
    none integer[];
BEGIN
    none[3] := 3;
    RETURN none;
END $$

CREATE FUNCTION opened() RETURNS refcursor LANGUAGE plpgsql AS $$
DECLARE
    rows CURSOR FOR SELECT id FROM row ORDER BY id;
BEGIN
    OPEN rows;
    MOVE NEXT FROM rows;
    RETURN rows;
END $$

CALL ask(1, 'SELECT ''{{1,2},{3,4}}''::integer[]');
CALL ask(2, 'SELECT ''[0:1]={1,2}''::integer[]');
CALL ask(3, 'SELECT ARRAY[[1,2],[3,4]]');
CALL ask(4, 'SELECT (ARRAY[1,2])[1][1]');
CALL ask(5, 'SELECT grown(cells) FROM row WHERE id = 1');
CALL ask(6, 'SELECT far()');
CALL ask(7, 'SELECT array_fill(1, ARRAY[-1])');
CALL ask(8, 'SELECT array_fill(1, ARRAY[2], ARRAY[0])');
CALL ask(9, 'SELECT array_agg(cells) FROM row');
CALL ask(10, 'SELECT more[1][''a''] FROM row WHERE id = 1');
CALL ask(11, 'SELECT max(n) FROM keyed WHERE k < ARRAY[1]');
CALL ask(12, 'SELECT n FROM keyed ORDER BY k DESC LIMIT 1');
CALL ask(13, 'SELECT count(*) FROM generate_subscripts(ARRAY[1,2], 1)');
CALL ask(14, 'SELECT cardinality(array_fill(1, ARRAY[20000]))');
CALL ask(15, 'SELECT opened()::text');
CALL ask(16, 'SELECT count(*) FROM row WHERE names @> ARRAY[''name 1'']');
CALL ask(17, 'SELECT max(id) FROM posts WHERE words @@ ''cat & run''');
CALL ask(18, 'SELECT a FROM json_to_record(''{"a": [[1, 2], [3, 4]]}'') AS r (a jsonb[])');
CALL ask(19, 'SELECT ''a=>1''::hstore');
CALL ask(20, 'SELECT max(id) FROM row WHERE cells > ARRAY[5] AND cells < ARRAY[9]')

UPDATE row SET cells[5] = 5, names[1:2] = '{a,b,c}' WHERE id = 2

--@ fails 0A000
UPDATE row SET cells[0] = 5 WHERE id = 3

--@ fails 0A000
INSERT INTO row (id, cells) VALUES (20, '{{1,2}}')

UPDATE keyed SET n = n + 100 WHERE k BETWEEN ARRAY[0] AND ARRAY[1]

CREATE SCHEMA club MEMBERS (org1, org2, org3, org4)

CREATE TABLE club.accounts (id integer PRIMARY KEY, amount bigint[] NOT NULL);
INSERT INTO club.accounts SELECT n, ARRAY[100, n] FROM generate_series(1, 20) AS g (n);
CREATE PROCEDURE club.pay(customer integer, cents bigint) LANGUAGE sql AS 'UPDATE club.accounts SET amount[1] = amount[1] - cents WHERE id = customer'

--@ together 12
CALL club.pay({n}, 3)

CHECKPOINT
