CREATE TABLE t (k integer PRIMARY KEY);
CREATE PROCEDURE fails() LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO t VALUES (2);
  RAISE EXCEPTION 'no further' USING DETAIL = 'some detail', HINT = 'some hint', ERRCODE = '22012';
END;
$$;
CREATE PROCEDURE p() LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO t VALUES (1);
  CALL fails();
  INSERT INTO t VALUES (3);
END;
$$;
CALL p();
SELECT count(*) FROM t;
