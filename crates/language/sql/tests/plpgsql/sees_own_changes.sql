CREATE TABLE t (k integer PRIMARY KEY, v integer);
CREATE PROCEDURE p(INOUT r text) LANGUAGE plpgsql AS $$
DECLARE
  x integer;
BEGIN
  r := '';
  INSERT INTO t VALUES (1, 1);
  UPDATE t SET v = v * 10 WHERE k = 1;
  SELECT v INTO x FROM t WHERE k = 1;
  r := r || x || ' ';
  UPDATE t SET v = v + x;
  SELECT sum(v) INTO x FROM t;
  r := r || x || ' ';
  DELETE FROM t;
  SELECT count(*) INTO x FROM t;
  r := r || x;
  INSERT INTO t VALUES (1, 3);
END;
$$;
CALL p('');
SELECT * FROM t ORDER BY k;
CALL p('');
