CREATE TABLE t (k integer PRIMARY KEY, v text);
INSERT INTO t VALUES (1, 'one');
CREATE PROCEDURE p(read boolean, INOUT r text) LANGUAGE plpgsql AS $$
DECLARE
  row record;
BEGIN
  IF read THEN
    SELECT * INTO row FROM t WHERE k = 1;
  END IF;
  r := row.v;
END;
$$;
CALL p(true, NULL);
CALL p(false, NULL);
