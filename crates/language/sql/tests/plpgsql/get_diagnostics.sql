CREATE TABLE t (k integer PRIMARY KEY, v integer);
CREATE PROCEDURE p(INOUT r text) LANGUAGE plpgsql AS $$
DECLARE
  n integer;
  m bigint;
BEGIN
  r := '';
  INSERT INTO t VALUES (1, 1), (2, 2), (3, 3);
  GET DIAGNOSTICS n = ROW_COUNT;
  r := r || n || ' ';
  UPDATE t SET v = v + 1 WHERE k >= 2;
  GET CURRENT DIAGNOSTICS n := ROW_COUNT, m = ROW_COUNT;
  r := r || n || m || ' ';
  PERFORM k FROM t;
  GET DIAGNOSTICS n = ROW_COUNT;
  r := r || n || ' ';
  SELECT k INTO n FROM t ORDER BY k;
  GET DIAGNOSTICS m = ROW_COUNT;
  r := r || m || ' ';
  DELETE FROM t WHERE k = 55;
  GET DIAGNOSTICS m = ROW_COUNT;
  r := r || m;
END;
$$;
CALL p('');
