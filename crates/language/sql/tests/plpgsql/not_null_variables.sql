CREATE PROCEDURE p(n integer) LANGUAGE plpgsql AS $$
DECLARE
  v integer NOT NULL := 1;
BEGIN
  v := n;
END;
$$;
CALL p(1);
CALL p(NULL);
CREATE PROCEDURE q(n integer) LANGUAGE plpgsql AS $$
DECLARE
  v integer NOT NULL := n;
BEGIN
  NULL;
END;
$$;
CALL q(1);
CALL q(NULL);
CREATE PROCEDURE bad() LANGUAGE plpgsql AS $$
DECLARE
  v integer NOT NULL;
BEGIN
  NULL;
END;
$$;
