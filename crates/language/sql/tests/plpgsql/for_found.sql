CREATE TABLE t (k integer PRIMARY KEY);
INSERT INTO t VALUES (1), (2);
CREATE PROCEDURE p(INOUT r text) LANGUAGE plpgsql AS $$
DECLARE
  x integer;
BEGIN
  r := '';
  FOR i IN 1..0 LOOP NULL; END LOOP;
  r := r || FOUND || ' ';
  FOR i IN 1..2 LOOP
    PERFORM 1 FROM t WHERE k = 99;
    r := r || FOUND || ' ';
  END LOOP;
  r := r || FOUND || ' ';
  FOR x IN SELECT k FROM t WHERE k > 5 LOOP NULL; END LOOP;
  r := r || FOUND || ' ';
  FOR x IN SELECT k FROM t ORDER BY k LOOP
    PERFORM 1 FROM t WHERE k = 99;
    EXIT;
  END LOOP;
  r := r || FOUND || ' ' || x;
END;
$$;
CALL p('');
