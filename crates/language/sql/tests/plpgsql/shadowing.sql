CREATE PROCEDURE p(i integer, INOUT r text) LANGUAGE plpgsql AS $$
BEGIN
  r := i || ' ';
  FOR i IN i..i + 2 LOOP
    r := r || i || ' ';
    FOR i IN 8..9 LOOP
      r := r || '(' || i || ')';
    END LOOP;
  END LOOP;
  r := r || i || ' ' || p.i;
END;
$$;
CALL p(4, '');
