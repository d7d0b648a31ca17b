CREATE PROCEDURE p(n numeric, d double precision, INOUT i integer, INOUT j integer) LANGUAGE plpgsql AS $$
BEGIN
  i := n;
  j := d;
END;
$$;
CALL p(0.5, 0.5, NULL, NULL);
CALL p(1.5, 1.5, NULL, NULL);
CALL p(2.5, 2.5, NULL, NULL);
CALL p(-2.5, -2.5, NULL, NULL);
CALL p(1e12, 1, NULL, NULL);
CALL p(1, 1e12, NULL, NULL);
