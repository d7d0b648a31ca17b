CREATE PROCEDURE p(a integer, b integer, c integer) LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN a..b BY c LOOP
    NULL;
  END LOOP;
END;
$$;
CALL p(1, 2, 1);
CALL p(NULL, 2, 1);
CALL p(1, NULL, 1);
CALL p(1, 2, NULL);
CALL p(1, 2, 0);
CALL p(1, 2, -1);
