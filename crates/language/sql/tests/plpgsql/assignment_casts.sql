CREATE PROCEDURE p(INOUT a integer, INOUT b numeric, INOUT c text, INOUT d double precision) LANGUAGE plpgsql AS $$
DECLARE
  x integer := 2.5;
  y numeric(6,2) := 3.14159;
  z varchar(5) := 'abc  ';
  w integer = '42';
BEGIN
  a := x + w;
  a = a + 0.5;
  b := y;
  c := z || '|' || w;
  d := b;
END;
$$;
CALL p(NULL, NULL, NULL, NULL);
CREATE PROCEDURE long_text(t text) LANGUAGE plpgsql AS $$
DECLARE v varchar(3);
BEGIN
  v := t;
END;
$$;
CALL long_text('abc');
CALL long_text('abc   ');
CALL long_text('abcd');
CREATE PROCEDURE number(t text, INOUT n integer) LANGUAGE plpgsql AS $$
BEGIN
  n := t;
END;
$$;
CALL number('17', NULL);
CALL number(' 17 ', NULL);
CALL number('x', NULL);
CALL number('99999999999', NULL);
