CREATE PROCEDURE p(n integer, INOUT r text) LANGUAGE plpgsql AS $$
BEGIN
  r := 'start';
  <<checked>>
  BEGIN
    IF n > 5 THEN
      EXIT checked;
    END IF;
    r := r || ' small';
    EXIT checked WHEN n = 5;
    r := r || ' less';
  END checked;
  r := r || ' end';
END;
$$;
CALL p(4, NULL);
CALL p(5, NULL);
CALL p(6, NULL);
