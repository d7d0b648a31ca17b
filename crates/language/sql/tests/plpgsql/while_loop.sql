CREATE PROCEDURE gcd(a integer, b integer, INOUT r integer) LANGUAGE plpgsql AS $$
DECLARE
  rest integer;
BEGIN
  WHILE b <> 0 LOOP
    rest := a % b;
    a := b;
    b := rest;
  END LOOP;
  r := abs(a);
END;
$$;
CALL gcd(48, 36, NULL);
CALL gcd(17, 5, NULL);
CALL gcd(0, 9, NULL);
CALL gcd(NULL, 9, NULL);
