CREATE TABLE counters (name text PRIMARY KEY, n integer NOT NULL);
CREATE PROCEDURE increment(counter text, INOUT value integer) LANGUAGE plpgsql AS $$
BEGIN
  UPDATE counters SET n = n + 1 WHERE name = counter;
  IF NOT FOUND THEN
    INSERT INTO counters VALUES (counter, 1);
  END IF;
  SELECT n INTO value FROM counters WHERE name = counter;
END;
$$;
CALL increment('a', NULL);
CALL increment('a', NULL);
CALL increment('b', NULL);
SELECT * FROM counters ORDER BY name;
