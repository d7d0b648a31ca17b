CREATE PROCEDURE p(n integer, INOUT r text) LANGUAGE plpgsql AS $$
BEGIN
  IF n THEN
    r := 'yes';
  ELSE
    r := 'no';
  END IF;
END;
$$;
CALL p(1, NULL);
CALL p(0, NULL);
CALL p(2, NULL);
