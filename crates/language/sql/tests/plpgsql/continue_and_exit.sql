CREATE PROCEDURE p(INOUT r text) LANGUAGE plpgsql AS $$
DECLARE
  i integer := 0;
BEGIN
  r := '';
  LOOP
    i := i + 1;
    CONTINUE WHEN i % 2 = 0;
    EXIT WHEN i > 9;
    r := r || i || ' ';
  END LOOP;
  r := r || 'end ' || i;
END;
$$;
CALL p('');
