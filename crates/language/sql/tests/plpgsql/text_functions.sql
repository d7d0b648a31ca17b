CREATE PROCEDURE p(word text, INOUT r text) LANGUAGE plpgsql AS $$
DECLARE
  n integer := length(word);
BEGIN
  r := '';
  WHILE n > 0 LOOP
    r := r || substr(word, n, 1);
    n := n - 1;
  END LOOP;
  r := upper(r) || ' ' || lower(word);
END;
$$;
CALL p('Stressed', NULL);
CALL p('', NULL);
CALL p(NULL, NULL);
