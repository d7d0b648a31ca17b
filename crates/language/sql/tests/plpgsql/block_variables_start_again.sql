CREATE PROCEDURE p(INOUT r text) LANGUAGE plpgsql AS $$
BEGIN
  r := '';
  FOR i IN 1..3 LOOP
    DECLARE
      fresh integer;
      counted integer := i * 10;
    BEGIN
      r := r || coalesce(fresh, -1) || ':' || counted || ' ';
      fresh := i;
      counted := 0;
    END;
  END LOOP;
END;
$$;
CALL p(NULL);
