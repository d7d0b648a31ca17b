CREATE PROCEDURE p(INOUT r integer) LANGUAGE plpgsql AS $$
DECLARE
  limit_value CONSTANT integer := 3;
  twice CONSTANT integer NOT NULL DEFAULT limit_value * 2;
BEGIN
  r := twice + limit_value;
END;
$$;
CALL p(0);
CREATE PROCEDURE bad(INOUT r integer) LANGUAGE plpgsql AS $$
DECLARE
  c CONSTANT integer := 3;
BEGIN
  c := 4;
END;
$$;
