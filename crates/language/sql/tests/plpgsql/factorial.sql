CREATE PROCEDURE factorial(n integer, INOUT result bigint) LANGUAGE plpgsql AS $$
BEGIN
  IF n <= 1 THEN
    result := 1;
  ELSE
    CALL factorial(n - 1, result);
    result := result * n;
  END IF;
END;
$$;
CALL factorial(1, NULL);
CALL factorial(10, NULL);
CALL factorial(20, NULL);
CALL factorial(21, NULL);
