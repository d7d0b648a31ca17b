CREATE PROCEDURE p(n integer, INOUT r text) LANGUAGE plpgsql AS $$
BEGIN
  CASE n * 2
    WHEN 2, 4 THEN r := 'one or two';
    WHEN 6 THEN r := 'three';
  END CASE;
END;
$$;
CALL p(1, NULL);
CALL p(2, NULL);
CALL p(3, NULL);
CALL p(4, NULL);
CALL p(NULL, NULL);
