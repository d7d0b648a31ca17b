-- As ../ordered/script.sql, on a network that executes before it orders.

CREATE TABLE account (id bigint PRIMARY KEY, owner text NOT NULL, balance bigint NOT NULL CHECK (balance >= 0))

CREATE TABLE vault (id bigint PRIMARY KEY, grams numeric(10, 3) NOT NULL, marks text[]) WITH (endorsement_policy = 'org4')

CREATE INDEX account_by_owner ON account (owner)

CREATE PROCEDURE pay(payer bigint, payee bigint, amount bigint) LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM account WHERE id = payee) THEN
        RAISE EXCEPTION 'account % does not exist', payee USING ERRCODE = 'P0002';
    END IF;
    UPDATE account SET balance = balance - amount WHERE id = payer;
    UPDATE account SET balance = balance + amount WHERE id = payee;
END $$

CREATE PROCEDURE store(k bigint, weight numeric) LANGUAGE plpgsql SET entente.endorsement = 'org1 AND (org2 OR org4)' AS $$
BEGIN
    INSERT INTO vault VALUES (k, weight, ARRAY['stored', k::text]);
END $$

INSERT INTO account SELECT n, 'owner ' || n % 5, 100 FROM generate_series(1, 30) AS n

CALL pay(1, 2, 10)

--@ at 2
CALL pay(2, 3, 20)

--@ at 4
CALL store(1, 12.5)

CALL store(2, 0.001)

--@ fails 23514
CALL pay(3, 4, 1000)

--@ fails P0002
CALL pay(3, 99, 1)

--@ fails 23505
CALL store(1, 1)

-- All read what all write: some are stale, and run again where they may.

--@ together 16 fails 40001
CALL pay(5, 6, {n})

--@ together 8 fails 40001
UPDATE account SET balance = balance + 1 WHERE id = {n}

--@ together 8 fails 40001
DELETE FROM account WHERE id = 20 + {n}

--@ together 8 fails 40001
INSERT INTO account VALUES (50 + {n}, 'new', {n})

UPDATE account SET owner = 'nobody' WHERE owner = 'owner 2'

CHECKPOINT

BEGIN

SELECT sum(balance) FROM account WHERE owner = 'nobody'

UPDATE account SET balance = balance + 7 WHERE id = 2

COMMIT

ALTER TABLE account ADD COLUMN note text DEFAULT 'none'

UPDATE account SET note = 'changed' WHERE id <= 3

SELECT entente.set_charter('block.fill_ms', '30')

--@ wait 25
CALL pay(1, 2, 1)

ALTER TABLE vault SET (endorsement_policy = 'org3 OR org4')

CALL store(3, 3.3)
