CREATE TABLE t (k integer PRIMARY KEY, amount numeric(6,1), name varchar(4));
CREATE PROCEDURE p(v numeric, w text, INOUT r text) LANGUAGE plpgsql AS $$
DECLARE
  a t.amount%TYPE := v;
  n t.name%TYPE;
  other a%TYPE;
BEGIN
  n := w;
  other := a / 3;
  r := a || ' ' || n || ' ' || other;
END;
$$;
CALL p(12.34, 'abcd', NULL);
CALL p(12.36, 'abc', NULL);
CALL p(1, 'abcde', NULL);
CALL p(123456, 'abc', NULL);
