CREATE TABLE items (id integer PRIMARY KEY, name text, price numeric(8,2));
INSERT INTO items VALUES (1, 'nail', 0.05), (2, 'hammer', 12.50), (3, NULL, NULL);
CREATE PROCEDURE p(INOUT report text, INOUT total numeric) LANGUAGE plpgsql AS $$
DECLARE
  item record;
BEGIN
  report := '';
  total := 0;
  FOR item IN SELECT id, name, price * 2 AS doubled FROM items ORDER BY id LOOP
    report := report || item.id || '=' || coalesce(item.name, '?') || ' ';
    total := total + coalesce(item.doubled, 0);
  END LOOP;
  report := report || coalesce(item.id, -1);
END;
$$;
CALL p('', 0);
DELETE FROM items;
CALL p('', 0);
