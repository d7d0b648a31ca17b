CREATE PROCEDURE p(a integer, b text, c boolean) LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'a=% b=% c=% 100%% %', a, b, c, a + 1;
END;
$$;
CALL p(1, 'x', true);
CALL p(NULL, NULL, NULL);
CREATE PROCEDURE few() LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'a=% b=%', 1; END; $$;
CREATE PROCEDURE many() LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'a=%', 1, 2; END; $$;
CREATE PROCEDURE numbers() LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% % % %', 1.50::numeric(6,3), 1e10::double precision, -0.5, 10000000000;
END;
$$;
CALL numbers();
