CREATE TABLE t (k integer PRIMARY KEY, v integer);
INSERT INTO t VALUES (1, 1);
CREATE PROCEDURE inner_call(INOUT seen boolean) LANGUAGE plpgsql AS $$
BEGIN
  seen := FOUND;
  DELETE FROM t WHERE k = 99;
END;
$$;
CREATE PROCEDURE outer_call(INOUT before boolean, INOUT seen boolean, INOUT after boolean) LANGUAGE plpgsql AS $$
BEGIN
  UPDATE t SET v = v WHERE k = 1;
  before := FOUND;
  CALL inner_call(seen);
  after := FOUND;
END;
$$;
CALL outer_call(NULL, NULL, NULL);
