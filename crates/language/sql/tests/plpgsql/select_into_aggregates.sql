CREATE TABLE t (k integer PRIMARY KEY, v integer);
INSERT INTO t VALUES (1, 5), (2, NULL), (3, 7);
CREATE PROCEDURE p(lowest integer, INOUT n bigint, INOUT total bigint, INOUT most integer, INOUT mean numeric) LANGUAGE plpgsql AS $$
BEGIN
  SELECT count(*), sum(v), max(v), avg(v) INTO n, total, most, mean FROM t WHERE k >= lowest;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'an aggregate has a row';
  END IF;
END;
$$;
CALL p(1, NULL, NULL, NULL, NULL);
CALL p(9, NULL, NULL, NULL, NULL);
