-- What a later program does behind what was recorded.

CALL ask(30, 'SELECT inside()'); CALL ask(31, 'CREATE MATERIALIZED VIEW kept AS SELECT 1'); CALL ask(32, 'UPDATE hosts SET list[1] = 7 WHERE id = 1')

INSERT INTO words VALUES (33, inside())

--@ fails 0A000
CREATE MATERIALIZED VIEW kept AS SELECT count(*) FROM hosts

--@ fails 23505
UPDATE hosts SET host = '10.0.0.2' WHERE id = 1

CALL club.pay(6, 1)

UPDATE days_b SET amount = amount - 1

-- And the network goes over to the next execution version.

SELECT entente.set_charter('execution_version', '11')

--@ wait 25
CALL club.pay(12, 2)

CREATE MATERIALIZED VIEW kept AS SELECT count(*), max(host) FROM hosts

INSERT INTO hosts (id, host) VALUES (40, '10.0.0.40')

REFRESH MATERIALIZED VIEW kept

INSERT INTO words VALUES (34, inside())

CREATE MATERIALIZED VIEW club.rich (account, has) AS SELECT id, amount FROM club.accounts WHERE amount > 98

CALL club.pay(19, 90)

REFRESH MATERIALIZED VIEW club.rich
