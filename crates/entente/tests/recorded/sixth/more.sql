-- What a later program does behind what was recorded.

CALL ask(30, 'SELECT random()'); CALL ask(31, 'SELECT to_jsonb(1) = ''<1>''')

CALL other.spend(1, 5); CALL club.earn(1, 5)

-- And the network goes over to the next execution version.

SELECT entente.set_charter('execution_version', '7')

--@ wait 25
CALL club.pay(32, 2)

UPDATE open SET u = gen_random_uuid(), f = random(), t = md5('a')

ALTER TABLE open ALTER COLUMN u SET DEFAULT gen_random_uuid()

INSERT INTO open (id, n, f) VALUES (100, 1, exp(1)), (101, 2, sin(1))

CALL ask(32, 'SELECT 1 / (count(DISTINCT u) - 22) FROM open')

CALL ask(33, 'SELECT clock_timestamp(), digest(''a'', ''sha256'')')

CALL other.spend(1, 5); CALL club.earn(1, 5)
