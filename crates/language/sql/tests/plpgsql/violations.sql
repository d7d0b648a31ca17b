CREATE TABLE t (k integer PRIMARY KEY, v integer NOT NULL CHECK (v > 0));
CREATE PROCEDURE p(key integer, value integer) LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO t VALUES (key, value);
END;
$$;
CALL p(1, 1);
CALL p(1, 2);
CALL p(2, 0);
CALL p(2, NULL);
CALL p(NULL, 1);
CREATE PROCEDURE lower_all(amount integer) LANGUAGE plpgsql AS $$
BEGIN
  UPDATE t SET v = v - amount;
END;
$$;
CALL lower_all(1);
SELECT * FROM t ORDER BY k;
