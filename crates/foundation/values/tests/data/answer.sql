-- What a call answers, as a line of a file of answers (tests/support).
CREATE FUNCTION pg_temp.answer(name text, types text[], arguments text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  operands text[] := ARRAY(SELECT format('%L::%s', argument, type) FROM unnest(types, arguments) AS given(type, argument));
  call text := CASE
    WHEN name ~ '^[a-z]' THEN format('%s(%s)', name, array_to_string(operands, ', '))
    WHEN cardinality(operands) = 1 THEN format('%s %s', name, operands[1])
    ELSE format('%s %s %s', operands[1], name, operands[2]) END;
  result_type text;
  result text;
BEGIN
  EXECUTE format('SELECT pg_typeof(x), x::text FROM (SELECT %s AS x) AS called', call) INTO result_type, result;
  RETURN concat_ws(E'\t', name, result_type, pg_temp.written(coalesce(result, '\N')), pg_temp.listed(types, arguments));
EXCEPTION WHEN others THEN
  RETURN concat_ws(E'\t', name, SQLSTATE, pg_temp.written(SQLERRM), pg_temp.listed(types, arguments));
END $$;
CREATE FUNCTION pg_temp.written(value text) RETURNS text LANGUAGE sql AS $$
  SELECT replace(replace(replace(value, '\', '\\'), E'\t', '\t'), E'\n', '\n') $$;
CREATE FUNCTION pg_temp.listed(types text[], arguments text[]) RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(type || E'\t' || pg_temp.written(argument), E'\t' ORDER BY place)
  FROM unnest(types, arguments) WITH ORDINALITY AS given(type, argument, place) $$;
