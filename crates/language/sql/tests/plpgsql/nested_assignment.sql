CREATE TYPE pair AS (r integer, i integer);
CREATE TYPE holder AS (pairs pair[], one pair, texts text[]);
CREATE FUNCTION slices() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE a integer[] := ARRAY[1, 2]; k integer := 1;
BEGIN
  a[2:3] := ARRAY[7, 8]; RETURN NEXT a::text;
  a[:1] := ARRAY[0]; RETURN NEXT a::text;
  a[3:] := ARRAY[9, 10, 11]; RETURN NEXT a::text;
  a[:] := ARRAY[4, 5, 6, 7]; RETURN NEXT a::text;
  a[k:k + 1] := '{20,21}'; RETURN NEXT a::text;
  a[5:6] := ARRAY[30, NULL]; RETURN NEXT a::text;
  a[1:2] := NULL; RETURN NEXT a::text;
  a := NULL; a[1:2] := ARRAY[1, 2]; RETURN NEXT a::text;
  a := '{}'; a[1:1] := ARRAY[3.6]; RETURN NEXT a::text;
END;
$$;
SELECT * FROM slices();
CREATE FUNCTION inside() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE c pair[]; h holder; n integer := 0;
BEGIN
  c[1] := (1, 2); c[1].i := 11; RETURN NEXT c::text;
  c[2].r := 5; RETURN NEXT c::text;
  h.pairs[1].i := 7; RETURN NEXT h::text;
  h.one.r := h.pairs[1].i; RETURN NEXT h::text;
  h.texts[1:2] := ARRAY['a', 'b']; RETURN NEXT h::text;
  h.pairs[h.pairs[1].i - 5].r := 3; RETURN NEXT h::text;
END;
$$;
SELECT * FROM inside();
CREATE FUNCTION in_json() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE j jsonb := '{"a": {"b": [1, 2]}}';
BEGIN
  j['a']['b'][1] := '5'; RETURN NEXT j::text;
  j['c']['d'] := '"x"'; RETURN NEXT j::text;
END;
$$;
SELECT * FROM in_json();
CREATE FUNCTION wrong(what integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE a integer[]; four text := '4';
BEGIN
  CASE what
    WHEN 1 THEN a[:2] := ARRAY[1, 2];
    WHEN 2 THEN a := ARRAY[1]; a[2:1] := ARRAY[1];
    WHEN 3 THEN a := ARRAY[1]; a[1:3] := ARRAY[1];
    WHEN 4 THEN a[1:2] := four;
    ELSE a[NULL:2] := ARRAY[1, 2];
  END CASE;
  RETURN a;
END;
$$;
SELECT wrong(1);
SELECT wrong(2);
SELECT wrong(3);
SELECT wrong(4);
SELECT wrong(5);
