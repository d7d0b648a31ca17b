CREATE TABLE t (k integer PRIMARY KEY, n numeric(10,3), d double precision, s text);
INSERT INTO t VALUES (1, 12.500, 2.5, '77'), (2, -0.5, 3.5, 'x');
CREATE PROCEDURE p(key integer, INOUT a integer, INOUT b integer, INOUT c integer) LANGUAGE plpgsql AS $$
BEGIN
  SELECT n, d, s INTO a, b, c FROM t WHERE k = key;
END;
$$;
CALL p(1, 0, 0, 0);
CALL p(2, 0, 0, 0);
CALL p(3, 0, 0, 0);
