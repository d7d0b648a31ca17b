CREATE TABLE t (k integer PRIMARY KEY, v integer);
CREATE PROCEDURE p(INOUT r text) LANGUAGE plpgsql AS $$
DECLARE
  x integer;
BEGIN
  r := FOUND || ' ';
  INSERT INTO t VALUES (1, 1), (2, 2);
  r := r || FOUND || ' ';
  UPDATE t SET v = 5 WHERE k = 3;
  r := r || FOUND || ' ';
  UPDATE t SET v = 5 WHERE k = 2;
  r := r || FOUND || ' ';
  DELETE FROM t WHERE k = 7;
  r := r || FOUND || ' ';
  DELETE FROM t WHERE v = 5;
  r := r || FOUND || ' ';
  SELECT v INTO x FROM t WHERE k = 2;
  r := r || FOUND || ' ';
  SELECT v INTO x FROM t WHERE k = 1;
  r := r || FOUND || ' ';
  PERFORM 1 FROM t WHERE k = 2;
  r := r || FOUND || ' ';
  PERFORM 1 + 1;
  r := r || FOUND || ' ';
  x := 7;
  r := r || FOUND;
END;
$$;
CALL p('');
SELECT * FROM t ORDER BY k;
