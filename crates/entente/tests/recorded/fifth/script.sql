-- A ledger of execution version 5: schemas with members, transactions over several of them, members who come and leave.

CREATE TABLE open (id integer PRIMARY KEY, n bigint NOT NULL);
INSERT INTO open SELECT n, n FROM generate_series(1, 20) AS g (n)

CREATE SCHEMA club MEMBERS (org1, org2, org3, org4)

CREATE SCHEMA deal MEMBERS (org1, org2)

CREATE TABLE club.accounts (id integer PRIMARY KEY, amount bigint NOT NULL);
INSERT INTO club.accounts SELECT n, 100 FROM generate_series(1, 50) AS g (n);
CREATE PROCEDURE club.pay(who integer, how_much bigint) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE club.accounts SET amount = amount - how_much WHERE id = who AND amount >= how_much;
    IF NOT FOUND THEN RAISE EXCEPTION 'account % has too little', who; END IF;
END $$

CREATE TABLE deal.trades (id integer PRIMARY KEY, price bigint NOT NULL);
INSERT INTO deal.trades VALUES (1, 10), (2, 20), (3, 30)

--@ together 12
CALL club.pay({n}, 3)

--@ at 3 fails P0001
CALL club.pay(1, 1000000)

--@ at 2
UPDATE deal.trades SET price = price + 1

--@ wait 3
CALL club.pay(20, 5); UPDATE deal.trades SET price = price + 5 WHERE id = 2

--@ at 2 fails P0001
CALL club.pay(21, 1000000); UPDATE deal.trades SET price = 0 WHERE id = 1

--@ at 3 fails 42P01
INSERT INTO deal.trades VALUES (9, 9)

ALTER SCHEMA deal ADD MEMBER org3

--@ wait 30
UPDATE deal.trades SET price = price + 1 WHERE id = 3

--@ at 3 wait 2
CALL club.pay(22, 7); INSERT INTO deal.trades VALUES (4, 40)

SELECT entente.set_charter('window_blocks', '10')

--@ at 4 wait 25
CALL club.pay(23, 7)

UPDATE open SET n = n + 1

--@ wait 8
CALL club.pay(24, 1)

-- A policy of endorsement says nothing in such a ledger yet.

CREATE TABLE deal.coins (id integer PRIMARY KEY, stakeholders text[] NOT NULL) WITH (endorsement_policy = 'org1 AND org2')

INSERT INTO deal.coins VALUES (1, '{org2}'), (2, '{org1,org2}')

--@ at 2 wait 3
DELETE FROM deal.coins WHERE id = 2

--@ whatever
CREATE PROCEDURE deal.move() LANGUAGE plpgsql AS $$ BEGIN PERFORM entente.hand_over('club', 10); END $$

-- What happens in schemas is certified some blocks later: nothing of that is to be open at the end.

--@ wait 40
CALL club.pay(25, 1)

--@ wait 40
UPDATE open SET n = n + 1
