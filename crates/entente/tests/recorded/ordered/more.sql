-- What a later program does behind what was recorded: all that was defined there still works.

CALL send_payment(1, 2, 10)

--@ at 2
INSERT INTO orders (item, quantity) VALUES (1, 7) RETURNING number

--@ at 3 fails 23505
INSERT INTO items VALUES (6, 'nail', 1)

UPDATE every_type SET p.x = 5, ia = ia || 9 WHERE id = 2

--@ at 4
CALL restock(0)

--@ together 12
CALL deposit_checking({n}, 5)

ALTER TABLE items ADD COLUMN shelf text DEFAULT 'none'

--@ at 2
UPDATE items SET shelf = 'top' WHERE price > 10

BEGIN

SELECT balance FROM savings WHERE customer_id = 15

UPDATE savings SET balance = 1 WHERE customer_id = 15

COMMIT

SELECT entente.set_charter('block.batch_transactions', '16')

CHECKPOINT

--@ wait 25
CALL amalgamate(20, 21)

-- And the network goes over to the next execution version.

SELECT entente.set_charter('execution_version', '2')

--@ wait 25
CALL send_payment(3, 4, 1)

UPDATE items SET weight = weight * 2 RETURNING id, name, weight
