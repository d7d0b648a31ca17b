CREATE TABLE t (k integer PRIMARY KEY, v integer);
INSERT INTO t VALUES (1, 10), (2, 20), (3, NULL);
CREATE PROCEDURE p(key integer, INOUT r text) LANGUAGE plpgsql AS $$
DECLARE
  x integer := (SELECT max(v) FROM t);
  n integer;
BEGIN
  r := x || ' ';
  x := (SELECT v FROM t WHERE k = key);
  r := r || coalesce(x, -1) || ' ';
  IF EXISTS (SELECT 1 FROM t WHERE k = key) THEN
    r := r || 'there ';
  END IF;
  IF NOT EXISTS (SELECT 1 FROM t WHERE k = key AND v IS NOT NULL) AND key > 0 THEN
    r := r || 'no value ';
  END IF;
  GET DIAGNOSTICS n = ROW_COUNT;
  r := r || n || ' ' || FOUND || ' ' || coalesce((SELECT sum(v) FROM t WHERE k > key), 0) + 1;
  WHILE (SELECT count(*) FROM t) < 5 LOOP
    INSERT INTO t VALUES ((key * 100) + (r <> '')::integer + length(r));
    r := r || '.';
  END LOOP;
END;
$$;
CALL p(2, '');
SELECT count(*) FROM t;
CALL p(3, '');
CALL p(9, '');
CREATE PROCEDURE several(INOUT r integer) LANGUAGE plpgsql AS $$
BEGIN
  r := (SELECT v FROM t);
END;
$$;
CALL several(0);
