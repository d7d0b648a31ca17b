CREATE TABLE t (id integer PRIMARY KEY, v text);
INSERT INTO t VALUES (1, 'one'), (2, 'two');
CREATE PROCEDURE lookup(id integer, INOUT v text) LANGUAGE plpgsql AS $$
BEGIN
  SELECT t.v INTO lookup.v FROM t WHERE t.id = lookup.id;
END;
$$;
CALL lookup(2, NULL);
CALL lookup(3, 'gone');
