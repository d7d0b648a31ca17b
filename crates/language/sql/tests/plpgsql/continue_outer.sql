CREATE PROCEDURE p(INOUT r text) LANGUAGE plpgsql AS $$
BEGIN
  r := '';
  <<rows>>
  FOR i IN 1..4 LOOP
    <<columns>>
    FOR j IN 1..4 LOOP
      CONTINUE rows WHEN j > i;
      EXIT rows WHEN i = 4;
      r := r || i || j || ' ';
    END LOOP columns;
  END LOOP rows;
END;
$$;
CALL p('');
