CREATE PROCEDURE divide(a integer, b integer, OUT quotient integer, OUT rest integer, INOUT note text) LANGUAGE plpgsql AS $$
BEGIN
  quotient := a / b;
  rest := a % b;
  note := note || ' done';
END;
$$;
CALL divide(17, 5, NULL, NULL, 'division');
CALL divide(1, 0, NULL, NULL, 'division');
CREATE PROCEDURE unset(OUT x integer) LANGUAGE plpgsql AS $$
BEGIN
  NULL;
END;
$$;
CALL unset(5);
