CREATE PROCEDURE p(n integer, INOUT r text) LANGUAGE plpgsql AS $$
BEGIN
  CASE
    WHEN n < 0 THEN r := 'negative';
    WHEN n = 0 THEN r := 'zero';
    WHEN n < 10 THEN
      r := 'small';
    ELSE r := 'large';
  END CASE;
END;
$$;
CALL p(-1, NULL);
CALL p(0, NULL);
CALL p(5, NULL);
CALL p(50, NULL);
CALL p(NULL, NULL);
