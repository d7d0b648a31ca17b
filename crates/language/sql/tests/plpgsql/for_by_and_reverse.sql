CREATE PROCEDURE p(INOUT r text) LANGUAGE plpgsql AS $$
BEGIN
  r := '';
  FOR i IN 1..10 BY 4 LOOP r := r || i || ' '; END LOOP;
  FOR i IN REVERSE 10..1 BY 3 LOOP r := r || i || ' '; END LOOP;
  FOR i IN REVERSE 1..10 LOOP r := r || 'never'; END LOOP;
  FOR i IN 5..4 LOOP r := r || 'never'; END LOOP;
  FOR i IN -1 .. 1 LOOP r := r || i || ' '; END LOOP;
  FOR i IN 1.5..2.5 LOOP r := r || i || ' '; END LOOP;
END;
$$;
CALL p('');
