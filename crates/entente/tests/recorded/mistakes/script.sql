-- What execution version 1 answers wrongly, and has to answer for ever: ledgers have it.

-- A foreign key that is the whole primary key of its table.

CREATE TABLE parent (id integer PRIMARY KEY);
CREATE TABLE child (id integer PRIMARY KEY REFERENCES parent);
INSERT INTO parent VALUES (1), (2), (3);
INSERT INTO child VALUES (1)

--@ whatever
DELETE FROM parent WHERE id = 1

--@ whatever
DELETE FROM parent WHERE id = 2

--@ whatever
UPDATE parent SET id = 4 WHERE id = 3

CREATE TABLE cascaded (id integer PRIMARY KEY REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE)

--@ whatever
INSERT INTO cascaded VALUES (2)

--@ whatever
DELETE FROM parent WHERE id = 2

-- Data-changing WITH behind a SELECT.

CREATE TABLE t (id integer PRIMARY KEY, note text)

--@ signed whatever
WITH a AS (INSERT INTO t VALUES (1, 'dropped') RETURNING 1) SELECT 2

--@ signed whatever
INSERT INTO t VALUES (2, 'kept'); WITH a AS (DELETE FROM t RETURNING id) SELECT 3

CREATE PROCEDURE with_it(INOUT n integer) LANGUAGE plpgsql AS $$
BEGIN
    WITH a AS (INSERT INTO t VALUES (3, 'dropped too') RETURNING id) SELECT 7 INTO n;
    INSERT INTO t VALUES (4, 'n is ' || n);
END $$

--@ whatever
CALL with_it(0)

-- Integers and numerics in IN and its kind.

CREATE TABLE whole (a integer PRIMARY KEY, b bigint);
CREATE TABLE exact (n numeric PRIMARY KEY, m numeric(10, 2));
CREATE TABLE found (how text PRIMARY KEY, count bigint);
INSERT INTO whole VALUES (1, 1), (2, 2), (3, 30), (4, NULL);
INSERT INTO exact VALUES (1, 1), (2.0, 2), (30, 30.00), (4.5, 4.5)

--@ whatever
INSERT INTO found SELECT 'in', count(*) FROM whole WHERE a IN (SELECT n FROM exact);
INSERT INTO found SELECT 'not in', count(*) FROM whole WHERE b NOT IN (SELECT n FROM exact);
INSERT INTO found SELECT 'any', count(*) FROM whole WHERE a = ANY (SELECT m FROM exact);
INSERT INTO found SELECT 'other way', count(*) FROM exact WHERE n IN (SELECT b FROM whole);
INSERT INTO found SELECT 'rows', count(*) FROM whole WHERE (a, b) IN (SELECT n, m FROM exact);
INSERT INTO found SELECT 'less', count(*) FROM whole WHERE b < ALL (SELECT n FROM exact);
INSERT INTO found SELECT 'row', count(*) FROM whole WHERE (a, b) = (SELECT n, m FROM exact WHERE n = 1);
INSERT INTO found SELECT 'integers', count(*) FROM whole WHERE a IN (SELECT b FROM whole)

--@ whatever
UPDATE whole SET b = b + 100 WHERE a IN (SELECT n FROM exact)

--@ whatever
DELETE FROM exact WHERE n NOT IN (SELECT a FROM whole)

-- Two tables that reference each other.

CREATE TABLE one (id integer PRIMARY KEY, other integer);
CREATE TABLE two (id integer PRIMARY KEY, other integer REFERENCES one ON UPDATE CASCADE);
ALTER TABLE one ADD FOREIGN KEY (other) REFERENCES two ON UPDATE CASCADE;
INSERT INTO one VALUES (1, NULL);
INSERT INTO two VALUES (1, 1);
UPDATE one SET other = 1

--@ whatever
UPDATE one SET id = 5 WHERE id = 1

--@ whatever
UPDATE two SET id = 6 WHERE id = 1

CREATE TABLE man (id integer PRIMARY KEY);
CREATE TABLE wife (id integer PRIMARY KEY, man integer REFERENCES man ON UPDATE CASCADE)

-- A row that references what its own change makes.

CREATE TABLE tree (id integer PRIMARY KEY, up integer REFERENCES tree ON UPDATE CASCADE ON DELETE CASCADE)

--@ whatever
INSERT INTO tree VALUES (1, 1), (2, 1), (3, 2)

--@ whatever
UPDATE tree SET id = id + 10

--@ whatever
DELETE FROM tree WHERE id = 11

--@ whatever
CHECKPOINT
