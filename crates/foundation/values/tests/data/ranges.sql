-- Makes ranges.tsv, the results that tests/ranges.rs compares with. Run it on PostgreSQL 15:
--   psql --quiet --no-psqlrc --set of=31 --file ranges.sql --output ranges.tsv
-- Of pairs one of so many is taken; with `--set of=1` it is all of them, for `RANGES=… cargo test -p values --test ranges`.
-- Columns: operation, type and text of the left operand, type and text of the right operand, type and text of the result; for an
-- error SQLSTATE and message, detail and hint. A text that is missing is NULL.
SET timezone TO 'UTC';
SET datestyle TO 'ISO, MDY';
SET client_min_messages TO warning;

CREATE FUNCTION pg_temp.evaluate(expression text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    result text[];
    detail text;
    hint text;
BEGIN
    EXECUTE format('SELECT ARRAY[pg_typeof(x)::text, x::text] FROM (SELECT %s AS x) AS expression', expression)
        INTO result;
    RETURN result;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN ARRAY[SQLSTATE, concat_ws(' / ', SQLERRM, nullif(detail, ''), nullif(hint, ''))];
END $$;

CREATE TEMPORARY TABLE results (
    number serial, operation text, left_type text, left_text text, right_type text, right_text text, result text[]
);

-- Pools of values: of each type of ranges, by their elements.
CREATE TEMPORARY TABLE pools (element text, range text, multirange text, elements text[], ranges text[], multiranges text[]);
INSERT INTO pools VALUES
    ('integer', 'int4range', 'int4multirange', ARRAY['-2147483648', '0', '1', '2', '3', '5', '7', '8', '2147483647'],
        ARRAY['empty', '(,)', '(,3)', '(,3]', '[3,)', '(3,)', '[1,5)', '[1,5]', '(1,5)', '[5,8)', '[5,6)', '[2,3]', '[3,3]', '[6,8)', '[1,8]',
            '[-7,-1)', '[2147483646,2147483647)', '[2147483647,)'],
        ARRAY['{}', '{(,)}', '{[1,5)}', '{[1,3),[5,8)}', '{[1,3),[5,6),[7,9)}', '{(,1),[3,4),[8,)}', '{[2,3),[6,8)}', '{[3,5),[8,9)}', '{(,5)}',
            '{[8,12)}', '{[-7,-1),[2,5)}', '{[5,8),[1,5)}', '{(,3),[5,)}', '{[2147483646,2147483647)}']),
    ('numeric', 'numrange', 'nummultirange', ARRAY['-Infinity', '1', '1.0', '1.5', '3', '5.00', 'NaN', 'Infinity'],
        ARRAY['empty', '(,)', '(,3)', '(,3.0]', '[3,)', '(3.00,)', '[1,5)', '[1.0,5.00]', '(1,5)', '(1,5.0]', '[5,8)', '(5,8)', '[5.0,5]', '[2,3]', '[1.5,3)',
            '[-7,-1)', '[1,NaN]', '[-Infinity,1]', '(1,Infinity)', '[Infinity,Infinity]'],
        ARRAY['{}', '{(,)}', '{[1,5)}', '{(1.0,5.0]}', '{[1,3),(3,8)}', '{[1,3),[3,8)}', '{[1,1],[3,3.0],[5,5]}', '{(,1],[3,4),(8,)}', '{(2,3),(6,8]}',
            '{[3,5),[8,9)}', '{(,5)}', '{[5,5]}', '{[-7,-1),[2,5)}', '{(5,8]}']),
    ('date', 'daterange', 'datemultirange', ARRAY['-infinity', '2020-01-01', '2020-01-02', '2020-01-05', 'infinity', '5874897-12-31'],
        ARRAY['empty', '(,)', '(,2020-01-03]', '[2020-01-03,)', '[2020-01-01,2020-01-05)', '[2020-01-01,2020-01-05]', '(2020-01-01,2020-01-05)',
            '[2020-01-05,infinity]', '[2020-01-05,infinity)', '[infinity,infinity]', '(infinity,)', '(-infinity,2020-01-01)', '[-infinity,2020-01-01]',
            '[-infinity,-infinity]', '[5874897-12-31,)', '[2020-01-02,2020-01-02]'],
        ARRAY['{}', '{(,)}', '{[2020-01-01,2020-01-05)}', '{[2020-01-01,2020-01-02),[2020-01-03,infinity)}', '{[-infinity,2020-01-01],[infinity,infinity]}',
            '{(-infinity,2020-01-03)}', '{[2020-01-05,infinity]}', '{(,2020-01-01),[2020-01-05,)}']),
    ('timestamp without time zone', 'tsrange', 'tsmultirange', ARRAY['-infinity', '2020-01-01 00:00:00', '2020-01-02 12:00:00', 'infinity'],
        ARRAY['empty', '(,)', '(,"2020-01-03 10:00:00"]', '[2020-01-03,)', '["2020-01-01 00:00:00","2020-01-02 12:00:00")', '[2020-01-01,2020-01-02 12:00]',
            '(2020-01-02 12:00,infinity]', '[infinity,infinity]', '(-infinity,2020-01-01)', '["2020-01-02 12:00:00.5","2020-01-02 12:00:00.5"]'],
        ARRAY['{}', '{(,)}', '{[2020-01-01,2020-01-02 12:00)}', '{[2020-01-01,2020-01-02),(2020-01-02,infinity)}', '{(,2020-01-01],[2020-01-05,)}']),
    ('timestamp with time zone', 'tstzrange', 'tstzmultirange', ARRAY['-infinity', '2020-01-01 00:00:00+00', '2020-01-02 12:00:00+02'],
        ARRAY['empty', '(,)', '(,"2020-01-03 10:00:00+02"]', '[2020-01-01 00:00+00,2020-01-02 12:00+02]', '(2020-01-02 10:00+00,infinity]'],
        ARRAY['{}', '{[2020-01-01 00:00+00,2020-01-02 12:00+02)}', '{(,2020-01-01 00:00+00],[2020-01-05 00:00+00,)}']),
    ('bigint', 'int8range', 'int8multirange', ARRAY['0', '9223372036854775807'],
        ARRAY['empty', '(,)', '[1,5)', '(3000000000,6000000000]', '[9223372036854775806,9223372036854775807)'],
        ARRAY['{}', '{[1,5),[3000000000,6000000000]}', '{(,5]}']);

CREATE TEMPORARY VIEW operands AS
    SELECT element, range AS type, unnest(ranges) AS input FROM pools
    UNION ALL SELECT element, multirange, unnest(multiranges) FROM pools
    UNION ALL SELECT element, element, unnest(elements) FROM pools;

-- Input functions.
INSERT INTO results (operation, left_type, left_text, result)
SELECT 'parse', type, input, pg_temp.evaluate(format('%L::%s', input, type)) FROM operands;
INSERT INTO results (operation, left_type, left_text, result)
SELECT 'parse', type, input, pg_temp.evaluate(format('%L::%s', input, type))
FROM unnest(ARRAY['int4range', 'numrange', 'int4multirange', 'nummultirange']) AS type, unnest(ARRAY[
    '', ' ', '[', '(', '[1', '[1,', '[1,2', '[1,2)', ' ( 1 , 2 ] ', '[1,2)x', '[1,2) x', '[1,2,3)', '1,2)', '{1,2}', 'empty', ' EMPTY ', 'emptyx', 'empt',
    'empty[', '[,]', '(,)', '[,1)', '[1,]', '["1",2)', '["1,2)', '[1"",2)', '["",2)', '[\1,2)', '[1\,2)', '[1,2\)', '[""1"",2)', '["1""",2)', '[1 ,"2" )',
    '[5,1)', '(1,1)', '[1,1]', '[1,2147483647]', '[1,2147483648)', '[a,2)', '[1,b)', '[1,', '[1)', '[1]', E'[1\t,2)', '[(1),2)', '[1,2))', '[1,(2)',
    '{', '}', '{}', ' { } ', '{}x', '{} x', '{,}', '{[1,2)}', '{[1,2),}', '{,[1,2)}', '{[1,2) , [3,4]}', '{[1,2)[3,4)}', '{[1,2) x}', '{empty}', '{empty,}',
    '{emptyx}', '{ Empty , [1,2) , empty }', '{[1,2)', '{[1,2', '{[1,2),', '{[1', '{["1)",2)}', '{["1"",2)}', '{[1\),2)}', '{[1,2\)}', '{["1\"",2)}', '{["1" "",2)}',
    '{[1\ ),2)}', '{[5,1)}', '{[1,x)}', '{[1,2,3)}', '{(1,2)}', '{(1,2],[3,4)}', '{[1,2],[3,4)}', '{[5,6),[1,2),[2,3)}', '{{[1,2)}}', '{[1.50,1.5]}', '{1}',
    '{[1,2)},', '{[1,5),[2,3),[4,9),[20,)}', '{(,)}', '{(,1),(0,)}']) AS input;

-- Operators and functions of two.
INSERT INTO results (operation, left_type, left_text, right_type, right_text, result)
SELECT operation, one.type, one.input, other.type, other.input,
    pg_temp.evaluate(format(CASE WHEN operation ~ '^[a-z]' THEN '%5$s(%1$L::%2$s, %3$L::%4$s)' ELSE '%1$L::%2$s %5$s %3$L::%4$s' END,
        one.input, one.type, other.input, other.type, operation))
FROM operands AS one JOIN operands AS other USING (element),
    unnest(ARRAY['@>', '<@', '&&', '<<', '>>', '&<', '&>', '-|-', '+', '-', '*', 'range_merge', 'range_cmp', 'multirange_cmp']) AS operation
WHERE (one.type <> element OR other.type <> element)
    AND (operation <> 'range_cmp' OR one.type = other.type AND one.type NOT LIKE '%multirange')
    AND (operation <> 'multirange_cmp' OR one.type = other.type AND one.type LIKE '%multirange')
    AND ('x' || substr(md5(operation || one.input || one.type || other.input || other.type), 1, 7))::bit(28)::integer % :of = 0;

-- With a literal, and with types that do not go together.
INSERT INTO results (operation, left_type, left_text, right_type, right_text, result)
SELECT operation, left_type, left_text, 'unknown', right_text, pg_temp.evaluate(format('%L::%s %s %L', left_text, left_type, operation, right_text))
FROM (VALUES ('int4range', '[1,5)'), ('int4multirange', '{[1,5)}')) AS one (left_type, left_text),
    unnest(ARRAY['@>', '<@', '&&', '<<', '-|-', '+', '-', '*']) AS operation, unnest(ARRAY['[2,5)', '{[2,5)}', '3']) AS right_text;
INSERT INTO results (operation, left_type, left_text, right_type, right_text, result)
SELECT operation, left_type, left_text, right_type, right_text, pg_temp.evaluate(format('%L::%s %s %L::%s', left_text, left_type, operation, right_text, right_type))
FROM (VALUES ('int4range', '[1,5)', 'bigint', '3'), ('int4range', '[1,5)', 'smallint', '3'), ('int4range', '[1,5)', 'int8range', '[1,5)'),
        ('numrange', '[1,5)', 'integer', '3'), ('tsrange', '[2020-01-01,)', 'date', '2020-01-01'), ('int4range', '[1,5)', 'int8multirange', '{}'),
        ('integer', '3', 'int8range', '[1,5)'), ('int4range', '[1,5)', 'text', '3'), ('int4multirange', '{}', 'bigint', '3'))
        AS pair (left_type, left_text, right_type, right_text),
    unnest(ARRAY['@>', '<@', '&&', '+']) AS operation;

-- Functions of one.
INSERT INTO results (operation, left_type, left_text, result)
SELECT operation, type, input, pg_temp.evaluate(format('%s(%L::%s)', operation, input, type))
FROM operands, unnest(ARRAY['lower', 'upper', 'isempty', 'lower_inc', 'upper_inc', 'lower_inf', 'upper_inf', 'range_merge', 'multirange']) AS operation
WHERE type <> element;

-- Constructors: the type of the left operand is that of the range, the type of the right one says which bounds are in it.
INSERT INTO results (operation, left_type, left_text, right_type, right_text, result)
SELECT 'construct', range, one, coalesce(flags, 'NULL'), other,
    pg_temp.evaluate(format('%s(%L::%s, %L::%s, %L::text)', range, one, element, other, element, flags))
FROM pools, unnest(elements || ARRAY[NULL]) AS one, unnest(elements || ARRAY[NULL]) AS other,
    unnest(ARRAY['[]', '[)', '(]', '()', NULL, '', '[', '[))', 'x)']) AS flags
WHERE ('x' || substr(md5(concat(range, one, other, flags)), 1, 7))::bit(28)::integer % least(:of, 5) = 0;

-- Aggregates: the left operand is an array of what comes in.
INSERT INTO results (operation, left_type, left_text, result)
SELECT operation, type || '[]', inputs::text, pg_temp.evaluate(format('(SELECT %s(x) FROM unnest(%L::%s[]) AS x)', operation, inputs, type))
FROM (SELECT type, (array_agg(input ORDER BY md5(input || turn)))[1 : turn % 5 + 1] AS inputs FROM operands, generate_series(1, 12) AS turn
        WHERE type <> element GROUP BY type, turn
        UNION ALL SELECT 'int4range', '{NULL}' UNION ALL SELECT 'int4range', '{}' UNION ALL SELECT 'int4range', '{NULL,"[1,2)",NULL}'
        UNION ALL SELECT 'int4multirange', '{NULL}' UNION ALL SELECT 'int4multirange', '{NULL,"{}"}') AS groups,
    unnest(ARRAY['range_agg', 'range_intersect_agg']) AS operation;

-- Casts.
INSERT INTO results (operation, left_type, left_text, right_type, result)
SELECT 'cast', one.type, one.input, target, pg_temp.evaluate(format('%L::%s::%s', one.input, one.type, target))
FROM (VALUES ('int4range', '[1,5)'), ('int4range', 'empty'), ('numrange', '(1.0,)'), ('int4multirange', '{[1,5),[7,9)}'), ('text', '[1,5)'), ('text', '{[1,5)}'),
        ('int4range[]', '{"[1,5)",NULL}')) AS one (type, input),
    unnest(ARRAY['int4range', 'int4multirange', 'numrange', 'nummultirange', 'text', 'integer', 'int4multirange[]', 'text[]']) AS target
WHERE one.type <> 'text' OR target NOT LIKE '%[]';

COPY (SELECT operation, left_type, left_text, right_type, right_text, result[1], result[2] FROM results ORDER BY number) TO STDOUT;
