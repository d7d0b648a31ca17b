-- What a later program does behind what was recorded.

CALL ask(30, 'SELECT random(), md5(''a''), to_jsonb(1)')

CALL club.pay(26, 1)

UPDATE open SET j = j || '{"more": true}', m = 'ok', u = gen_random_uuid() WHERE id < 4

-- And the network goes over to the next execution version.

SELECT entente.set_charter('execution_version', '8')

--@ wait 25
CALL club.pay(32, 2)

UPDATE open SET u = gen_random_uuid(), j = to_jsonb(m)

ALTER TYPE mood ADD VALUE 'great'; INSERT INTO open (id, a, m) VALUES (110, 7, 'great')
