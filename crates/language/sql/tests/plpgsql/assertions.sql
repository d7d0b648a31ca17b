CREATE PROCEDURE p(n integer) LANGUAGE plpgsql AS $$
BEGIN
  ASSERT n > 0, 'n is ' || n;
  ASSERT n < 10;
END;
$$;
CALL p(5);
CALL p(0);
CALL p(10);
CALL p(NULL);
