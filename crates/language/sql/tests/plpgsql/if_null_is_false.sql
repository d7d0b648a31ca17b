CREATE PROCEDURE p(a integer, INOUT r text) LANGUAGE plpgsql AS $$
BEGIN
  r := '';
  IF a > 1 THEN r := r || 'greater '; ELSE r := r || 'not greater '; END IF;
  IF NOT (a > 1) THEN r := r || 'less '; ELSIF a IS NULL THEN r := r || 'null '; END IF;
  WHILE a > 1 LOOP
    r := r || a || ' ';
    a := a - 1;
  END LOOP;
  IF NULL THEN r := 'never'; END IF;
END;
$$;
CALL p(3, '');
CALL p(0, '');
CALL p(NULL, '');
