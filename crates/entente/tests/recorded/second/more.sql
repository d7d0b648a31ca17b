-- What a later program does behind what was recorded.

CALL take(8, 2)

--@ at 2
INSERT INTO stock SELECT n, 'item ' || n, 1, 0 FROM generate_series(3001, 3500) AS g (n)

--@ fails 23505
INSERT INTO stock VALUES (1, 'item 1', 1, 1)

--@ wait 30
CALL take(9, 2)

-- And the network goes over to the next execution version.

SELECT entente.set_charter('execution_version', '3')

--@ wait 25
CALL take(10, 2)

SELECT entente.set_charter('checkpoint_rows', '1000')

--@ wait 25
UPDATE stock SET amount = amount + 1

--@ at 3
UPDATE places SET item = 'again' WHERE number % 3 = 0

--@ wait 12
CALL take(11, 2)
