CREATE PROCEDURE p(n integer, INOUT r integer) LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE 'n is %', n;
  RAISE DEBUG 'n is %', n;
  RAISE LOG 'n is %', n;
  RAISE INFO 'n is %', n;
  RAISE WARNING 'one through n is %', 1 / n;
  r := n;
END;
$$;
CALL p(5, 0);
CALL p(0, 0);
