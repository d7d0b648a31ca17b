CREATE PROCEDURE p(n integer, INOUT steps integer) LANGUAGE plpgsql AS $$
BEGIN
  steps := 0;
  WHILE n <> 1 LOOP
    IF n % 2 = 0 THEN
      n := n / 2;
    ELSE
      n := 3 * n + 1;
    END IF;
    steps := steps + 1;
  END LOOP;
END;
$$;
CALL p(1, NULL);
CALL p(27, NULL);
