CREATE TABLE t (k integer PRIMARY KEY, v integer NOT NULL);
INSERT INTO t VALUES (1, 10), (2, 20), (3, 30);
CREATE PROCEDURE p(INOUT turns integer) LANGUAGE plpgsql AS $$
DECLARE
  r record;
BEGIN
  turns := 0;
  FOR r IN SELECT k, v FROM t ORDER BY k LOOP
    turns := turns + 1;
    INSERT INTO t VALUES (r.k + 10, r.v);
    UPDATE t SET v = v + 1;
    DELETE FROM t WHERE k = r.k + 1;
  END LOOP;
END;
$$;
CALL p(0);
SELECT * FROM t ORDER BY k;
