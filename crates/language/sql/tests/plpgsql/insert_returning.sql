CREATE TABLE t (k integer PRIMARY KEY, v integer NOT NULL DEFAULT 7, note text);
CREATE PROCEDURE p(key integer, INOUT a integer, INOUT b text) LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO t (k, note) VALUES (key, 'new') RETURNING v, note || '!' INTO a, b;
  UPDATE t SET v = v + 1 WHERE k = key RETURNING v INTO a;
  DELETE FROM t WHERE k = key + 1 RETURNING k INTO b;
END;
$$;
CALL p(2, 0, 'x');
CALL p(1, 0, 'x');
CALL p(1, 0, 'x');
SELECT * FROM t ORDER BY k;
CREATE PROCEDURE many() LANGUAGE plpgsql AS $$
DECLARE x integer;
BEGIN
  INSERT INTO t (k) VALUES (10), (11) RETURNING k INTO x;
END;
$$;
CALL many();
CREATE PROCEDURE strict_one(key integer, INOUT x integer) LANGUAGE plpgsql AS $$
BEGIN
  UPDATE t SET v = 0 WHERE k = key RETURNING v INTO STRICT x;
END;
$$;
CALL strict_one(1, 5);
CALL strict_one(99, 5);
