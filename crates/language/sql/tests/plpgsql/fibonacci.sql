CREATE TABLE numbers (n integer PRIMARY KEY, value bigint NOT NULL);
CREATE PROCEDURE fill(last integer) LANGUAGE plpgsql AS $$
DECLARE
  a bigint := 0;
  b bigint := 1;
  next bigint;
BEGIN
  FOR i IN 1..last LOOP
    INSERT INTO numbers VALUES (i, a);
    next := a + b;
    a := b;
    b := next;
  END LOOP;
END;
$$;
CALL fill(12);
SELECT n, value FROM numbers ORDER BY n;
CALL fill(1);
SELECT count(*) FROM numbers;
