-- What a later program does behind what was recorded.

CALL ask(30, 'SELECT ''10.0.0.1''::inet'); CALL ask(31, 'SELECT network(21), family(''y''), isempty(''z'')')

--@ fails 42704
CREATE TABLE hosts (id integer PRIMARY KEY, host inet)

--@ fails 0A000
CREATE MATERIALIZED VIEW kept AS SELECT count(*) FROM open

CALL club.pay(26, 1)

UPDATE open SET said = said || '!', m = 'sad' WHERE id < 4

-- And the network goes over to the next execution version.

SELECT entente.set_charter('execution_version', '10')

--@ wait 25
CALL club.pay(32, 2)

CREATE TABLE hosts (id integer PRIMARY KEY, host inet, up int4range, flag bit(3), at timetz)

INSERT INTO hosts VALUES (1, '10.0.0.1/8', '[1,9]', B'101', '12:00+02')

CALL ask(40, 'SELECT network(21), family(''y''), isempty(''z'')')

UPDATE open SET a = a + 1, m = 'ok' WHERE id = 9
