CREATE TABLE log (n integer PRIMARY KEY, line text NOT NULL);
CREATE PROCEDURE write_line(INOUT n integer, line text) LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO log VALUES (n, line);
  n := n + 1;
END;
$$;
CREATE PROCEDURE p(OUT lines integer) LANGUAGE plpgsql AS $$
DECLARE
  n integer := 1;
BEGIN
  CALL write_line(n, 'first');
  CALL write_line(n, 'second' || n);
  FOR i IN 1..2 LOOP
    CALL write_line(n, i::text);
  END LOOP;
  lines := n - 1;
END;
$$;
CALL p(NULL);
SELECT * FROM log ORDER BY n;
CREATE PROCEDURE not_writable() LANGUAGE plpgsql AS $$
BEGIN
  CALL write_line(100, 'x');
END;
$$;
CALL not_writable();
SELECT count(*) FROM log;
