CREATE TABLE t (k integer PRIMARY KEY, a text, b integer);
INSERT INTO t VALUES (1, 'x', 10), (2, 'y', 20);
CREATE PROCEDURE p(INOUT r text) LANGUAGE plpgsql AS $$
DECLARE
  a1 text;
  b1 integer;
  c1 integer := 5;
  one record;
BEGIN
  r := '';
  SELECT INTO a1, b1 a, b FROM t WHERE k = 1;
  r := r || a1 || b1 || ' ';
  SELECT a, b INTO a1, b1 FROM t WHERE k = 2;
  r := r || a1 || b1 || ' ';
  SELECT a, b FROM t WHERE k = 1 INTO a1, b1;
  r := r || a1 || b1 || ' ';
  SELECT a INTO a1, c1 FROM t WHERE k = 2;
  r := r || a1 || coalesce(c1, -1) || ' ';
  SELECT a, b INTO a1 FROM t ORDER BY k DESC;
  r := r || a1 || ' ';
  SELECT k, a INTO one FROM t WHERE k = 2;
  r := r || one.k || one.a || ' ';
  SELECT k, a INTO one FROM t WHERE k = 9;
  r := r || coalesce(one.k, -1) || coalesce(one.a, 'none') || ' ';
  SELECT a, b INTO a1, b1 FROM t WHERE k = 9;
  r := r || coalesce(a1, 'null') || coalesce(b1, -1);
END;
$$;
CALL p('');
