-- What a later program does behind what was recorded.

CALL club.pay(30, 2)

--@ at 2 wait 2
CALL club.pay(31, 2); UPDATE deal.trades SET price = price + 100 WHERE id = 4

--@ at 4 fails 42P01
INSERT INTO deal.trades VALUES (10, 10)

--@ at 3
UPDATE deal.trades SET price = price + 1 WHERE id = 1

-- And the network goes over to the next execution version.

SELECT entente.set_charter('execution_version', '5')

--@ wait 25
CALL club.pay(32, 2)

--@ at 3 wait 2
CALL club.pay(33, 2); UPDATE deal.trades SET price = price + 100 WHERE id = 1
