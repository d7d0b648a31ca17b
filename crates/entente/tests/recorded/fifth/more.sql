-- What a later program does behind what was recorded.

CALL club.pay(30, 2)

--@ at 2 wait 2
CALL club.pay(31, 2); UPDATE deal.trades SET price = price + 100 WHERE id = 4

INSERT INTO deal.coins VALUES (3, '{org2}')

-- And the network goes over to the next execution version.

SELECT entente.set_charter('execution_version', '6')

--@ wait 25
CALL club.pay(32, 2)

-- What stands in schemas that are older moves between them, and has stakeholders.

--@ fails 42501
INSERT INTO deal.coins VALUES (4, '{org2}')

--@ fails 42501
CREATE PROCEDURE deal.earn(which integer, how_much bigint) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE deal.trades SET price = price + how_much WHERE id = which;
    PERFORM entente.take_over('club', how_much);
END $$

CREATE PROCEDURE club.spend(who integer, how_much bigint) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE club.accounts SET amount = amount - how_much WHERE id = who;
    PERFORM entente.hand_over('deal', how_much);
END $$

CREATE PROCEDURE club.earn(who integer, how_much bigint) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE club.accounts SET amount = amount + how_much WHERE id = who;
    PERFORM entente.take_over('other', how_much);
END $$

CREATE SCHEMA other MEMBERS (org1, org2)

CREATE TABLE other.pots (id integer PRIMARY KEY, amount bigint NOT NULL);
INSERT INTO other.pots VALUES (1, 100);
CREATE PROCEDURE other.spend(which integer, how_much bigint) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE other.pots SET amount = amount - how_much WHERE id = which;
    PERFORM entente.hand_over('club', how_much);
END $$

--@ wait 12
CALL club.pay(33, 2)

CALL other.spend(1, 10); CALL club.earn(1, 10)

--@ fails 23000
CALL other.spend(1, 10); CALL club.earn(1, 20)

--@ fails 23000
CALL other.spend(1, 10); UPDATE club.accounts SET amount = 0 WHERE id = 2

--@ fails 55000
CALL other.spend(1, 10); UPDATE deal.trades SET price = 0 WHERE id = 2

--@ wait 2
CALL other.spend(1, 5); CALL club.earn(1, 5)
