CREATE TABLE t (a integer PRIMARY KEY, b text);
INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'z');
CREATE PROCEDURE p(lowest integer, INOUT r text) LANGUAGE plpgsql AS $$
DECLARE
  a1 bigint;
  b1 varchar(10);
  more integer;
BEGIN
  r := '';
  more := 5;
  FOR a1, b1, more IN SELECT t.a, t.b FROM t WHERE t.a >= lowest ORDER BY t.a DESC LOOP
    r := r || a1 || b1 || coalesce(more, 0) || ' ';
  END LOOP;
  r := r || coalesce(a1, -1) || coalesce(b1, 'none');
END;
$$;
CALL p(2, '');
CALL p(9, '');
