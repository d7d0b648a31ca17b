CREATE PROCEDURE p(INOUT r text) LANGUAGE plpgsql AS $$
DECLARE
  first integer := 1;
  last integer := 3;
BEGIN
  r := '';
  FOR i IN first..last LOOP
    last := 100;
    first := 50;
    r := r || i || ' ';
    i := i + 10;
    r := r || i || ' ';
  END LOOP;
  r := r || first || ' ' || last;
END;
$$;
CALL p('');
