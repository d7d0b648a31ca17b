-- As ../ordered/more.sql.

CALL pay(1, 2, 1)

--@ at 4
CALL store(77, 1.5)

--@ at 2 fails 23505
CALL store(77, 1)

--@ together 8 fails 40001
UPDATE account SET balance = balance + 1 WHERE id = {n}

ALTER TABLE account ADD COLUMN more integer DEFAULT 1

--@ at 3
UPDATE account SET more = 2 WHERE id = 1

CHECKPOINT

CALL pay(2, 1, 1)
