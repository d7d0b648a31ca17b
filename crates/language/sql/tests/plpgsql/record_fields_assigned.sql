CREATE TABLE t (k integer PRIMARY KEY, v integer, s text);
INSERT INTO t VALUES (1, 5, 'five');
CREATE PROCEDURE p(INOUT r text) LANGUAGE plpgsql AS $$
DECLARE
  row record;
BEGIN
  SELECT * INTO row FROM t WHERE k = 1;
  row.v := row.v + 1.5;
  row.s := row.s || '!';
  r := row.k || ' ' || row.v || ' ' || row.s;
  UPDATE t SET v = row.v, s = row.s WHERE k = row.k;
END;
$$;
CALL p('');
SELECT * FROM t ORDER BY k;
