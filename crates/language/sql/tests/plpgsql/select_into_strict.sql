CREATE TABLE t (k integer PRIMARY KEY, v text);
INSERT INTO t VALUES (1, 'x'), (2, 'y');
CREATE PROCEDURE p(lowest integer, INOUT r text) LANGUAGE plpgsql AS $$
BEGIN
  SELECT v INTO STRICT r FROM t WHERE k >= lowest;
END;
$$;
CALL p(2, NULL);
CALL p(3, NULL);
CALL p(1, NULL);
