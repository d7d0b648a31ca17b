-- A ledger of execution version 2: enough rows that its state's tree has many ranges, and checkpoints by height alone.

CREATE TABLE stock (id integer PRIMARY KEY, item text NOT NULL, amount bigint NOT NULL, weight numeric(8,2));
CREATE TABLE places (shelf text, number integer, item text, PRIMARY KEY (shelf, number));
CREATE TABLE log (id bigserial PRIMARY KEY, what text NOT NULL, at integer NOT NULL);
CREATE TABLE unkeyed (note text);
CREATE TABLE nothing (id integer PRIMARY KEY);
CREATE UNIQUE INDEX ON stock (item);
CREATE PROCEDURE take(which integer, how_many bigint) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE stock SET amount = amount - how_many WHERE id = which;
    IF NOT FOUND THEN RAISE EXCEPTION 'there is no item %', which; END IF;
    INSERT INTO log (what, at) VALUES ('taken', which);
END $$

INSERT INTO stock SELECT n, 'item ' || n, n % 100 + 50, n / 8.0 FROM generate_series(1, 3000) AS g (n)

--@ at 2
INSERT INTO places SELECT 'shelf ' || n % 7, n, repeat('x', n % 400) FROM generate_series(1, 800) AS g (n)

INSERT INTO unkeyed SELECT 'note ' || n FROM generate_series(1, 40) AS g (n)

--@ together 12
CALL take({n}, 3)

--@ at 3 fails P0001
CALL take(100000, 1)

DELETE FROM stock WHERE id % 50 = 7

--@ at 4
UPDATE stock SET amount = amount + 1 WHERE id BETWEEN 900 AND 1100

CHECKPOINT

--@ wait 35
UPDATE places SET item = 'moved' WHERE number % 13 = 0

SELECT entente.set_charter('block.batch_transactions', '20')

--@ wait 30
CALL take(5, 1)

DELETE FROM unkeyed WHERE note LIKE '%3'

CHECKPOINT

--@ wait 8
CALL take(6, 1)
