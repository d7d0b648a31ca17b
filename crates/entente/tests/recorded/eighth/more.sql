-- What a later program does behind what was recorded.

CALL ask(30, 'SELECT (now() AT TIME ZONE ''Asia/Tokyo'')::date, current_user')

--@ fails 0A000
CREATE FUNCTION half(of amount) RETURNS amount LANGUAGE plpgsql AS $$ DECLARE x amount := of / 2; BEGIN RETURN x; END $$

CALL club.pay(26, 1)

UPDATE open SET said = said || '!', m = 'sad' WHERE id < 4

-- And the network goes over to the next execution version.

SELECT entente.set_charter('execution_version', '9')

--@ wait 25
CALL club.pay(32, 2)

CREATE FUNCTION half(of amount) RETURNS amount LANGUAGE plpgsql AS $$ DECLARE x amount := of / 2; BEGIN RETURN x; END $$

CREATE FUNCTION counted() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM not_there_yet); END $$

CREATE TABLE not_there_yet (id integer PRIMARY KEY, a amount) WITHOUT OIDS

INSERT INTO not_there_yet VALUES (1, half(9))

UPDATE open SET a = counted(), m = 'ok' WHERE id = 9
