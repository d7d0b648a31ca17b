-- What a later program does behind what was recorded: the same mistakes, until the network goes over to version 2. A statement
-- that divides by a count ends with 22012 where it is another one.

--@ fails XX000
DELETE FROM parent WHERE id = 3

--@ at 2 fails XX000
UPDATE parent SET id = 4 WHERE id = 3

--@ signed
WITH a AS (DELETE FROM t RETURNING id) SELECT 5

INSERT INTO t SELECT 5, 'still there' WHERE 1 / (SELECT count(*) FROM t WHERE id = 2) = 1

DELETE FROM t WHERE id = 4

--@ at 3
CALL with_it(0)

INSERT INTO t VALUES (3, 'the procedure has not made it')

INSERT INTO exact VALUES (1, 1), (2.0, 2)

UPDATE whole SET b = 77 WHERE a IN (SELECT n FROM exact)

--@ fails 22012
INSERT INTO t SELECT 6, 'changed' WHERE 1 / (SELECT count(*) FROM whole WHERE b = 77) > 0

--@ fails 23503
UPDATE one SET id = 7, other = 7

SELECT entente.set_charter('execution_version', '2')

--@ wait 25
DELETE FROM parent WHERE id = 3

--@ at 2 fails 23503
DELETE FROM parent WHERE id = 1

UPDATE parent SET id = 4 WHERE id = 2

INSERT INTO t SELECT 7, 'cascaded' WHERE 1 / (SELECT count(*) FROM cascaded WHERE id = 4) = 1

--@ signed
WITH a AS (DELETE FROM t WHERE id = 2 RETURNING id) INSERT INTO t SELECT 8, 'instead of ' || id FROM a

--@ fails 23505
INSERT INTO t VALUES (8, 'it is there')

DELETE FROM t WHERE id IN (3, 4)

--@ at 4
CALL with_it(0)

--@ fails 23505
INSERT INTO t VALUES (3, 'the procedure has made it')

UPDATE whole SET b = 78 WHERE a IN (SELECT n FROM exact)

INSERT INTO t SELECT 9, 'changed' WHERE 1 / ((SELECT count(*) FROM whole WHERE b = 78) - 1) = 1
