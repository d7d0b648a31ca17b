-- What the other files compute their results with.
SET timezone TO 'UTC';
SET datestyle TO 'ISO, MDY';
SET client_min_messages TO warning;
DO 'BEGIN PERFORM setseed(0.5); END';

CREATE FUNCTION pg_temp.evaluate(expression text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    result text[];
BEGIN
    EXECUTE format('SELECT ARRAY[pg_typeof(x)::text, format(''%%s'', x)] FROM (SELECT %s AS x) AS expression', expression)
        INTO result;
    RETURN result;
EXCEPTION WHEN OTHERS THEN
    RETURN ARRAY[SQLSTATE, SQLERRM];
END $$;

CREATE FUNCTION pg_temp.assign(expression text, target text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    result text[];
BEGIN
    EXECUTE format('CREATE TEMPORARY TABLE assigned (x %s)', target);
    EXECUTE format('INSERT INTO assigned VALUES (%s)', expression);
    EXECUTE 'SELECT ARRAY[pg_typeof(x)::text, format(''%s'', x)] FROM assigned' INTO result;
    DROP TABLE assigned;
    RETURN result;
EXCEPTION WHEN OTHERS THEN
    RETURN ARRAY[SQLSTATE, SQLERRM];
END $$;

CREATE TEMPORARY TABLE results (
    number serial, operation text, left_type text, left_text text, right_type text, right_text text, result text[]
);
