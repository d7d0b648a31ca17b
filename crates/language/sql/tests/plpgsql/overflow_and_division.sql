CREATE PROCEDURE p(a integer, b integer, INOUT r integer) LANGUAGE plpgsql AS $$
BEGIN
  IF b = 0 THEN
    r := a / b;
  END IF;
  r := a * b;
END;
$$;
CALL p(3, 4, 0);
CALL p(2147483647, 2, 0);
CALL p(1, 0, 0);
CREATE PROCEDURE narrow(a bigint, INOUT r integer) LANGUAGE plpgsql AS $$
BEGIN
  r := a;
END;
$$;
CALL narrow(2147483647, 0);
CALL narrow(2147483648, 0);
