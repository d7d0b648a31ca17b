CREATE PROCEDURE p(INOUT turns integer, INOUT last integer) LANGUAGE plpgsql AS $$
BEGIN
  turns := 0;
  FOR i IN 2147483645..2147483647 LOOP
    turns := turns + 1;
    last := i;
  END LOOP;
  FOR i IN REVERSE -2147483646..(-2147483647 - 1) BY 5 LOOP
    turns := turns + 1;
    last := i;
  END LOOP;
END;
$$;
CALL p(0, 0);
