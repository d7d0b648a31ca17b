CREATE TABLE t (k integer PRIMARY KEY);
CREATE PROCEDURE p(n integer, INOUT r text) LANGUAGE plpgsql AS $$
BEGIN
  r := 'start';
  FOR i IN 1..10 LOOP
    IF i > n THEN
      r := 'stopped at ' || i;
      RETURN;
    END IF;
    INSERT INTO t VALUES (i * 10 + n);
  END LOOP;
  r := 'finished';
END;
$$;
CALL p(2, NULL);
CALL p(20, NULL);
SELECT count(*), min(k), max(k) FROM t;
