CREATE PROCEDURE p(INOUT r text) LANGUAGE plpgsql AS $$
<<outer_block>>
DECLARE
  x integer := 1;
  y integer := 10;
BEGIN
  r := '';
  DECLARE
    x integer := x + 1;
  BEGIN
    r := r || x || ',' || outer_block.x || ';';
    outer_block.x := 7;
    x := 9;
    y := y + x;
  END;
  r := r || x || ',' || y;
END outer_block;
$$;
CALL p('');
