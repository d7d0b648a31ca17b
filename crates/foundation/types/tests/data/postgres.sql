-- Makes postgres.tsv, the results that tests/postgres.rs compares with. Run it on PostgreSQL 15:
--   psql --quiet --no-psqlrc --file postgres.sql --output postgres.tsv
-- Columns: operation, type and text of the left operand, type and text of the right operand, type and text of the
-- result; for an error SQLSTATE and message.
\ir functions.sql

-- Input functions.
INSERT INTO results (operation, left_type, left_text, result)
SELECT 'parse', type, input, pg_temp.evaluate(format('%L::%s', input, type))
FROM (VALUES
    ('boolean', ARRAY['t', 'T', 'tr', 'true', 'TRUE', ' true ', 'y', 'yes', 'yess', 'on', 'o', 'of', 'off', 'f', 'fals', 'n', 'no',
        '1', '0', '2', '10', '', 'truee', E'\ttrue\n', 'x']),
    ('integer', ARRAY['0', '1', '-1', '+1', ' 12 ', E'\n12\t', '-0', '007', '2147483647', '2147483648', '-2147483648', '-2147483649',
        '99999999999', '99999999999x', '99999999999999999999999', '', ' ', '-', '+', '1.0', '1e3', 'abc', '1 2', '--1', '0x10',
        '1_000', '- 1', '٣']),
    ('bigint', ARRAY['0', '-1', '+1', ' 12 ', '9223372036854775807', '9223372036854775808', '-9223372036854775808',
        '-9223372036854775809', '99999999999999999999999', '', '-', '1.0', 'abc', '1 2']),
    ('numeric', ARRAY['0', '-0', '0.0', '-0.0', '1', '+1', '-1', '1.50', '.5', '-.5', '5.', '.', '+', '-', '', ' ', ' 1.5 ', E'\n1\t',
        '1e3', '1E3', '1.5e3', '1.50e1', '1.5e-3', '1e-5', '15e-1', '150e-1', '1e', '1e+', '1e-', '1e+2', '1ee2', '1e2.5', '1.2.3',
        '0e5', '0e-5', '0.00e1', '0.00e5', '00012.500', '12345678901234567890123456789012345678',
        '99999999999999999999999999999999999999', '100000000000000000000000000000000000000', '0.12345678901234567890123456789012345678',
        '0.123456789012345678901234567890123456789', '1234567890123456789.0123456789012345678',
        '1234567890123456789.01234567890123456789', '1e37', '1e38', '1e-38', '1e-76', '1e-77', '1e-200', '1e200', 'NaN', 'nan',
        'Infinity', '-Infinity', 'inf', '+inf', '-nan', 'infin', 'abc', '1a', '1 2', '0x10', '1_000', '--1', '1e99999999999']),
    ('numeric(5,2)', ARRAY['0', '1', '1.005', '1.004', '-1.005', '999.99', '999.994', '999.995', '-999.995', '1000', '1e2', '1e3', '0.0001',
        '1e-100', '12345678901234567890123456789012345678901234567890', '1.23456789012345678901234567890123456789012345678901', 'NaN',
        'Infinity', 'x']),
    ('numeric(3,0)', ARRAY['0.5', '0.4', '1.5', '2.5', '-0.5', '-0.4', '999.4', '999.5']),
    ('numeric(2,2)', ARRAY['0.5', '0.994', '0.995', '1', '-0.99', '-1']),
    ('numeric(2,4)', ARRAY['0.001', '0.0099', '0.00994', '0.00999', '0.01', '1']),
    ('numeric(38,10)', ARRAY['1234567890123456789012345678.12345678901234567890', '9999999999999999999999999999.99999999995', '1e27', '1e28',
        '0.00000000005', '0.000000000049999']),
    ('double precision', ARRAY['0', '-0', '1', '+1', '-1', '1.5', '.5', '5.', '.', '', ' ', ' 1.5 ', '1e3', '1e', '1e+', '1e400', '-1e400', '1e-400',
        '0e-400', '0.000e-999', '1e308', '1.7976931348623157e308', '1.7976931348623159e308', '4.9e-324', '5e-324', '2e-324',
        '2.2250738585072014e-308', '2.2250738585072011e-308', 'NaN', 'nan', '-NaN', 'Infinity', '-Infinity', '+Infinity', 'inf', '-inf',
        'infinit', 'abc', '1a', '1 2', '--1', '0.1', '0.30000000000000004', '123456789012345678', '100000000000000', '999999999999999',
        '1000000000000000', '1234567890123456', '0.0001', '0.00001', '0.00012345', '0.000012345', '1e15', '1e-4', '1e-5', '1e100',
        '1e-100', '1e22', '1e23', '9007199254740993', '9007199254740992', '123456.789']),
    ('text', ARRAY['', ' ', 'abc', 'naïve', E'a\tb\nc\\d', 'NULL']),
    ('timestamp with time zone', ARRAY['2026-11-20 23:01:02.123456+00', '2026-11-20 23:01:02', '2026-11-20T23:01:02Z', '2026-11-20t23:01:02z',
        '2026-11-20', ' 2026-11-20 ', '2026-11-20 23:01', '2026-11-20 23:01Z', '2026-11-20 23:01:02.5', '2026-11-20 23:01:02.',
        '2026-11-20 23:01:02.1234567', '2026-11-20 23:01:02.1234565', '2026-11-20 23:01:02.1234564999', '2026-11-20 23:01:02.9999999',
        '2026-11-20 23:59:59.9999999', '2026-11-20 23:01:02.000001', '2026-11-20 23:01:02.100000',
        '2026-11-20 23:01:02+02', '2026-11-20 23:01:02-02', '2026-11-20 23:01:02 +02', '2026-11-20 23:01:02+05:30',
        '2026-11-20 23:01:02-05:30', '2026-11-20 23:01:02+0530', '2026-11-20 23:01:02+530', '2026-11-20 23:01:02+05:30:15',
        '2026-11-20 23:01:02+5', '2026-11-20 23:01:02+15:59', '2026-11-20 23:01:02+15:59:59', '2026-11-20 23:01:02+16',
        '2026-11-20 23:01:02-16', '2026-11-20 23:01:02+02:60', '2026-11-20 23:01:02 UTC', '2026-11-20 23:01:02 utc',
        '2026-11-20 23:01:02UTC', '2026-11-20 23:01:02 GMT', '2026-11-20 23:01:02 Z', '2026-11-20 23:01:02 zulu', '2026-11-20 UTC', '2026-11-20 +02',
        '2026-11-20+02', '2026-11-20Z', '2026-11-20  23:01:02', '2026-1-5', '2026-1-5 1:2:3', '2026-01-05 1:2', '2024-02-29', '2023-02-29',
        '1900-02-29', '2000-02-29', '2026-13-01', '2026-00-01', '2026-01-00', '2026-01-32', '2026-04-31', '2026-11-20 24:00:00',
        '2026-11-20 24:00:01', '2026-11-20 24:00', '2026-11-20 25:00:00', '2026-11-20 23:60:00', '2026-11-20 23:59:60',
        '2026-11-20 23:59:61', '2026-11-20 23:59:60.5', '2026-12-31 23:59:60', '0001-01-01', '0000-01-01', '0001-01-01 BC', '0044-03-15 BC',
        '0044-03-15 12:00:00+00 BC', '0044-03-15 AD', '4714-11-24 BC', '4714-11-23 BC', '4714-11-24 00:00:00+00 BC',
        '4714-11-24 00:00:00+01 BC', '9999-12-31 23:59:59.999999', '10000-01-01', '99999-12-31', '294276-12-31 23:59:59.999999',
        '294277-01-01', '294276-12-31 23:59:59-01', '300000-01-01', '999999-12-31', '1999-12-31 23:59:59', '2000-01-01', '1970-01-01',
        '1969-12-31 23:59:59.999999', 'epoch', ' epoch ', 'Epoch', '2026/11/20', '2026/11/20 12:00', '999-01-01', 'abc', '', ' ', '2026', '2026-11',
        '2026-11-20 abc', '2026-11-20 12', '2026-11-20T', '2026-11-20 12:00 12:00', '12:00',
        '2026-11-20 12:00:00 +', '2026-11-20 12:00:00+0', '2026-11-20 12:00:00++02', '2026-11-20 12:00:00 x', '2026-11-20x',
        'infinity', '-infinity'])
) AS inputs (type, inputs), unnest(inputs) AS input;

-- Arithmetic within one type.
INSERT INTO results (operation, left_type, left_text, right_type, right_text, result)
SELECT op, type, a, type, b, pg_temp.evaluate(format('%L::%s %s %L::%s', a, type, op, b, type))
FROM (VALUES
    ('integer', ARRAY['0', '1', '-1', '7', '-7', '3', '-3', '46341', '2147483647', '-2147483648']),
    ('bigint', ARRAY['0', '1', '-1', '7', '-3', '3037000500', '9223372036854775807', '-9223372036854775808']),
    ('double precision', ARRAY['0', '-0', '1', '-1.5', '0.1', '0.2', '3', '1e308', '-1e308', '1e-308', '5e-324', 'Infinity', '-Infinity', 'NaN']),
    ('numeric', ARRAY['0', '0.00', '1', '-1', '7', '7.0', '3', '10', '100.0', '1e10', '0.001', '0.00010', '-2.50', '9999', '10000', '9999.9999',
        '10000.0001', '0.1234567890123456', '123456789.123456789', '-0.00000000012345', '1234567890123456789012', '1e25',
        '0.00000000000000000001', '99999999999999999999999999999999999999', '-1e37', '5e-38'])
) AS operands (type, operands), unnest(operands) AS a, unnest(operands) AS b, unnest(ARRAY['+', '-', '*', '/', '%']) AS op;

-- Quotients, whose scale depends on the operands.
CREATE TEMPORARY TABLE random_numerics AS
SELECT row_number() OVER () AS number, round((random() * 10 - 5)::numeric, (random() * 12)::int)
    * (10::numeric ^ (random() * 20 - 10)::int)::numeric(30, 10)::text::numeric AS value
FROM generate_series(1, 600);
INSERT INTO results (operation, left_type, left_text, right_type, right_text, result)
SELECT op, 'numeric', a.value, 'numeric', b.value, pg_temp.evaluate(format('%L::numeric %s %L::numeric', a.value, op, b.value))
FROM random_numerics AS a JOIN random_numerics AS b ON b.number = a.number + 300, unnest(ARRAY['/', '%', '+', '-']) AS op;

-- Arithmetic between types.
INSERT INTO results (operation, left_type, left_text, right_type, right_text, result)
SELECT op, a.type, a.value, b.type, b.value, pg_temp.evaluate(format('%L::%s %s %L::%s', a.value, a.type, op, b.value, b.type))
FROM (VALUES ('integer', '7'), ('integer', '-2147483648'), ('bigint', '-3'), ('bigint', '9223372036854775807'), ('numeric', '2.50'),
        ('double precision', '0.1')) AS a (type, value),
    (VALUES ('integer', '-1'), ('integer', '2147483647'), ('bigint', '2'), ('bigint', '0'), ('numeric', '0.30'),
        ('double precision', '2.5')) AS b (type, value),
    unnest(ARRAY['+', '-', '*', '/', '%']) AS op
WHERE a.type <> b.type;

-- Functions of one number, and of a number and digits.
INSERT INTO results (operation, left_type, left_text, result)
SELECT function, type, value, pg_temp.evaluate(format('%s(%L::%s)', function, value, type))
FROM (VALUES
    ('integer', ARRAY['-', 'abs'], ARRAY['0', '5', '-5', '2147483647', '-2147483648']),
    ('bigint', ARRAY['-', 'abs'], ARRAY['0', '5', '-5', '9223372036854775807', '-9223372036854775808']),
    ('double precision', ARRAY['-', 'abs'], ARRAY['0', '-0', '1.5', '-1.5', 'Infinity', '-Infinity']),
    ('numeric', ARRAY['-', 'abs', 'sign', 'ceil', 'floor', 'round', 'trunc'], ARRAY['0', '0.00', '-0.0', '1.5', '-1.5', '2.5', '-2.5', '0.4', '-0.4',
        '0.5', '-0.5', '1.000', '-1.000', '99.99', '-99.99', '0.00000000000000000000000000000000000001', '-1e-40', '1e37'])
) AS operands (type, functions, operands), unnest(functions) AS function, unnest(operands) AS value;
INSERT INTO results (operation, left_type, left_text, right_type, right_text, result)
SELECT function, 'numeric', value, 'integer', digits, pg_temp.evaluate(format('%s(%L::numeric, %s)', function, value, digits))
FROM unnest(ARRAY['0', '0.00', '1234.5678', '-1234.5678', '1250', '-1250', '5', '4.9999', '49.5', '-0.005', '1e37', '9.5e37', '1e-40']) AS value,
    unnest(ARRAY[0, 1, 2, 3, 4, 6, 20, 37, 40, -1, -2, -3, -4, -38]) AS digits, unnest(ARRAY['round', 'trunc']) AS function;

-- Casts and assignments.
CREATE TEMPORARY TABLE cast_values AS SELECT type, value FROM (VALUES
    ('boolean', ARRAY['t', 'f']),
    ('integer', ARRAY['0', '1', '-5', '12345', '2147483647']),
    ('bigint', ARRAY['0', '-5', '2147483647', '2147483648', '-2147483649', '9007199254740993', '9223372036854775807']),
    ('numeric', ARRAY['0', '0.5', '1.5', '2.5', '-0.5', '-1.5', '2.49999', '123.456', '2147483647.4', '2147483647.5', '-2147483648.5',
        '9223372036854775807.4', '9223372036854775807.5', '-9223372036854775808.5', '1e30', '0.1', '0.3333333333333333333333',
        '12345678901234567890123456789012345678', '1e-30', '9007199254740993', '1.7976931348623157']),
    ('double precision', ARRAY['0', '-0', '0.5', '1.5', '2.5', '-0.5', '-1.5', '2147483647.4', '2147483647.5', '-2147483648.5', '-2147483649',
        '9223372036854774784', '9223372036854775808', '-9223372036854775808', '1e20', '1e30', '1e300', '1e-30', '1e-300', '0.1',
        '0.30000000000000004', '123456789012345.678', '1234567890123456789', '0.1234567890123456', '1.005', '2.675', '1e15', '1e-5',
        '0.000012345', 'Infinity', '-Infinity', 'NaN', '1234567890123.125', '1234567890123.375', '123456789012.0625', '0.5000000000000005']),
    ('text', ARRAY['', '1', ' 2147483647 ', 'abc', 'abcd', 'abc  ', 'naïve', 'true', 't', '1.5', '1e3', '2147483648', '2026-11-20']),
    ('timestamp with time zone', ARRAY['2026-11-20 23:01:02.5+00', '0044-03-15 BC'])
) AS inputs (type, inputs), unnest(inputs) AS value;
INSERT INTO results (operation, left_type, left_text, right_type, result)
SELECT 'cast', type, value, target, pg_temp.evaluate(format('CAST(%L::%s AS %s)', value, type, target))
FROM cast_values, unnest(ARRAY['boolean', 'integer', 'bigint', 'numeric', 'numeric(5,2)', 'numeric(30,4)', 'double precision', 'text',
    'character varying(3)', 'timestamp with time zone']) AS target;
INSERT INTO results (operation, left_type, left_text, right_type, result)
SELECT 'assign', type, value, target, pg_temp.assign(format('%L::%s', value, type), target)
FROM cast_values, unnest(ARRAY['boolean', 'integer', 'bigint', 'numeric', 'numeric(5,2)', 'double precision', 'text', 'character varying(3)',
    'timestamp with time zone']) AS target;
INSERT INTO results (operation, left_type, left_text, right_type, result)
SELECT 'assign', 'unknown', value, target, pg_temp.assign(format('%L', value), target)
FROM unnest(ARRAY['', '1', 'abc', 'abcd', 'abc  ', 'ab   ', 'naïve', 'naï  ', 't', '1.5', '1000', '2026-11-20']) AS value,
    unnest(ARRAY['boolean', 'integer', 'bigint', 'numeric(5,2)', 'double precision', 'text', 'character varying(3)',
        'timestamp with time zone']) AS target;

-- The type that several types have together; the left operand lists them.
INSERT INTO results (operation, left_text, result)
SELECT 'common', concat_ws(',', a, b, c),
    pg_temp.evaluate(format('COALESCE(%s, %s, %s)', replace('NULL::' || a, '::unknown', ''), replace('NULL::' || b, '::unknown', ''),
        replace('NULL::' || c, '::unknown', '')))
FROM (SELECT unnest(ARRAY['boolean', 'integer', 'bigint', 'numeric', 'double precision', 'text', 'character varying', 'timestamp with time zone',
        'unknown'])) AS types (a), LATERAL (SELECT unnest(ARRAY['integer', 'numeric', 'text', 'timestamp with time zone', 'unknown'])) AS second (b),
    LATERAL (SELECT unnest(ARRAY['bigint', 'double precision', 'character varying', 'boolean', 'unknown'])) AS third (c);

-- Concatenation.
INSERT INTO results (operation, left_type, left_text, right_type, right_text, result)
SELECT '||', a.type, a.value, b.type, b.value, pg_temp.evaluate(format('%L::%s || %L::%s', a.value, a.type, b.value, b.type))
FROM (VALUES ('text', 'a'), ('text', 'naïve'), ('integer', '-1')) AS a (type, value),
    (VALUES ('text', ''), ('text', 'b '), ('boolean', 't'), ('numeric', '1.50'), ('double precision', '1e20'),
        ('timestamp with time zone', '2026-11-20')) AS b (type, value)
WHERE a.type = 'text' OR b.type = 'text';

-- Doubles, given by their bits.
INSERT INTO results (operation, left_type, left_text, result)
SELECT 'bits', 'double precision', encode(float8send(value), 'hex'), ARRAY['double precision', value::text]
FROM (
    SELECT power(2::float8, exponent) * factor FROM generate_series(-1070, 1021, 7) AS exponent, unnest(ARRAY[1, 3, -5]) AS factor
    UNION ALL
    SELECT power(2::float8, exponent) FROM generate_series(40, 130) AS exponent
    UNION ALL
    SELECT ('1e' || exponent)::float8 FROM generate_series(-30, 30) AS exponent
    UNION ALL
    SELECT (digit || 'e' || exponent)::float8 FROM generate_series(20, 24) AS exponent, generate_series(1, 99) AS digit
    UNION ALL
    SELECT unnest(ARRAY[123456789012345.125, 123456789012345.375, 1125899906842624.125, 9007199254740991.5, 4503599627370497.5, 1e23])
    UNION ALL
    SELECT power(2::float8, -exponent) FROM generate_series(1, 60) AS exponent
    UNION ALL
    SELECT random() * ('1e' || exponent)::float8 FROM generate_series(-30, 30) AS exponent, generate_series(1, 5)
) AS doubles (value);

-- The types that came later: input, casts, arithmetic and common types.
INSERT INTO results (operation, left_type, left_text, result)
SELECT 'parse', type, input, pg_temp.evaluate(format('%L::%s', input, type))
FROM (VALUES
    ('smallint', ARRAY['0', '-1', '+1', ' 12 ', '32767', '32768', '-32768', '-32769', '99999999999', '', '-', '1.0', 'abc']),
    ('real', ARRAY['0', '-0', '1', '-1.5', '.5', '5.', '', ' 1.5 ', '1e39', '1e-46', '3.4028235e38', '1.4e-45', 'NaN', 'Infinity', '-inf', 'abc', '0.1',
        '123456', '1234567', '999999', '0.0001', '0.00001', '16777216', '16777217', '8589973000', '1e10', '0.3333333333', '33554432', '67108864']),
    ('date', ARRAY['2026-11-20', ' 2026-11-20 ', '2026-11-20 23:01:02', '2026-11-20 23:01:02+02', '2026-1-5', '2024-02-29', '2023-02-29', '2026-13-01',
        '2026-01-32', '0044-03-15 BC', '4714-11-24 BC', '4714-11-23 BC', '5874897-12-31', '5874898-01-01', '10000-01-01', '2026/11/20', 'abc', '',
        '0000-01-01', 'epoch', 'infinity', '-infinity']),
    ('timestamp without time zone', ARRAY['2026-11-20 23:01:02.123456', '2026-11-20 23:01:02+02', '2026-11-20', '2026-11-20T23:01:02Z',
        '2026-11-20 8:38 PM', '2026-11-20 12:00 AM', '2026-11-20 12:30 pm', '2026-11-20 13:00 PM', '294276-12-31 23:59:59.999999', '294277-01-01',
        '4714-11-24 BC', '0044-03-15 12:00:00 BC', 'epoch', 'abc', '', 'infinity']),
    ('time without time zone', ARRAY['23:01:02.123456', '23:01', '1:2:3', '24:00:00', '24:00:01', '23:60', '23:59:60', '23:59:61', '8:38 PM', '12:00 am',
        '2026-11-20 10:11:12', '10:11:12+02', '10:11:12 UTC', '00:00', 'abc', '', '2026-11-20', '25:00:00', '13:00 am']),
    ('interval', ARRAY['1 day', '1 year 2 months 3 days 04:05:06.789', '-1 days -04:00:00', '1 day -1 hour', '-1 year +2 days', '@ 1 minute ago', '1-2', '-1-2',
        '1-12', '1 2:03:04', '2:03', '2:03.5', '-2:03:04', '1.5 days', '1.5 months', '1.5 years', '0.7 weeks', '1.55 hours', '10 seconds', '10', '-10.5', '1 s 2 s',
        '3d12h', '1 decade', '2 centuries', '1 millennium', '1 us', '2.5 us', '1.5 ms', '5 fortnights', '', ' ', 'day', 'abc', '1 day 2 day', 'P1Y2M3DT4H5M6.5S',
        'P1W', 'PT0S', 'P1YT', 'P', 'PT', 'P1.5D', '1 mon 1 week', '99999999999 years', '2147483647 months', '2147483648 months', '100:00:00', '1 day 1:60', '1y 1m',
        '0', '0 days', '- 1 day', '+1 day', '1 year ago', '-1 mons 1 days', '1 mon -1 sec', '-00:00:00.5', '1 day 00:00:00.000001', '1.5', '.5 day', '5. day']),
    ('character(5)', ARRAY['', 'a', 'abcde', 'abcde  ', 'naïve', '  a']),
    ('bytea', ARRAY['', '\x', '\x0aFF', '\x0a ff', '\x0', '\xzz', 'abc', 'a\\b', 'a\001b', 'a\400', 'a\b', 'naïve', '\X00']),
    ('uuid', ARRAY['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}',
        'a0eebc999c0b4ef8bb6d6bb9bd380a11', 'a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11', '{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1',
        'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a111', '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'a-0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '', 'abc']),
    ('integer[]', ARRAY['{}', '{1,2,3}', ' { 1 , 2 } ', '{NULL,1}', '{null}', '{1,}', '{,1}', '{1', '1}', '', '{a}', '{1} x', '{"1"}']),
    ('text[]', ARRAY['{a,b}', '{"a b","c,d"}', '{a b}', '{"NULL",NULL,null}', '{"",a}', '{"q\"x\\"}', '{a\,b}', '{t,"{"}'])
) AS inputs (type, inputs), unnest(inputs) AS input;

CREATE TEMPORARY TABLE later_values AS SELECT type, value FROM (VALUES
    ('smallint', ARRAY['0', '-5', '32767']),
    ('real', ARRAY['0', '1.5', '2.5', '-1.5', '32767.4', '40000', '1e30', '0.1', '123456.79', 'NaN', '1e-30']),
    ('date', ARRAY['2026-11-20', '0044-03-15 BC', '5874897-12-31']),
    ('timestamp without time zone', ARRAY['2026-11-20 23:01:02.5', '0044-03-15 12:00:00 BC']),
    ('timestamp with time zone', ARRAY['2026-11-20 23:01:02.5+00', '2026-02-28 00:00:00+00']),
    ('time without time zone', ARRAY['23:01:02.5', '00:00:00']),
    ('interval', ARRAY['1 year 2 mons 3 days 04:05:06', '-1 days', '30:00:00', '1 mon']),
    ('character(5)', ARRAY['ab   ', '12   ']),
    ('bytea', ARRAY['\x0aff', '']),
    ('uuid', ARRAY['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11']),
    ('integer[]', ARRAY['{1,NULL,3}', '{}']),
    ('text[]', ARRAY['{1,2}']),
    ('text', ARRAY['12', '2026-11-20', '10:11:12', '1 day', '{1,2}', 'abcdefgh']),
    ('integer', ARRAY['5', '40000', '-3']), ('bigint', ARRAY['7', '40000']), ('numeric', ARRAY['2.5', '32767.5', '1e30']),
    ('double precision', ARRAY['0.5', '32767.5', '1e300', '1e-300', '1.1', 'NaN']),
    ('boolean', ARRAY['t'])
) AS inputs (type, inputs), unnest(inputs) AS value;
CREATE TEMPORARY TABLE later_targets AS SELECT unnest(ARRAY['smallint', 'integer', 'bigint', 'numeric', 'real', 'double precision', 'boolean', 'date',
    'timestamp without time zone', 'timestamp with time zone', 'time without time zone', 'interval', 'character(5)', 'bytea', 'uuid', 'text', 'character varying(3)',
    'integer[]', 'bigint[]', 'text[]']) AS target;
INSERT INTO results (operation, left_type, left_text, right_type, result)
SELECT 'cast', type, value, target, pg_temp.evaluate(format('CAST(%L::%s AS %s)', value, type, target)) FROM later_values, later_targets;
INSERT INTO results (operation, left_type, left_text, right_type, result)
SELECT 'assign', type, value, target, pg_temp.assign(format('%L::%s', value, type), target) FROM later_values, later_targets;

INSERT INTO results (operation, left_type, left_text, right_type, right_text, result)
SELECT op, a.type, a.value, b.type, b.value, pg_temp.evaluate(format('%L::%s %s %L::%s', a.value, a.type, op, b.value, b.type))
FROM (VALUES ('smallint', '7'), ('smallint', '-32768'), ('smallint', '0'), ('integer', '-1'), ('integer', '30'), ('bigint', '3'), ('numeric', '2.50'), ('real', '0.1'),
        ('real', '3e38'), ('double precision', '0.1'), ('date', '2026-01-31'), ('date', '2024-02-29'), ('timestamp without time zone', '2026-01-31 12:00:00.5'),
        ('timestamp with time zone', '2026-03-01 00:00:00+00'), ('time without time zone', '23:30:00'), ('interval', '1 mon'), ('interval', '-1 mons 1 day 25:00:00'),
        ('interval', '1 year 40 days 00:00:00.000001')) AS a (type, value),
    (VALUES ('smallint', '-1'), ('smallint', '0'), ('smallint', '2'), ('integer', '30'), ('bigint', '2'), ('numeric', '0.30'), ('real', '0.3'), ('real', '0'),
        ('double precision', '1.5'), ('date', '2024-03-01'), ('timestamp without time zone', '2026-01-30 13:00:00'),
        ('timestamp with time zone', '2026-02-28 00:00:01+00'), ('time without time zone', '01:00:00.25'), ('interval', '1 mon'), ('interval', '-30:00:00'),
        ('interval', '1.5 years -3 days')) AS b (type, value),
    unnest(ARRAY['+', '-', '*', '/', '%']) AS op
-- PostgreSQL cannot choose between date + time and interval + time.
WHERE NOT (op = '+' AND a.type = b.type AND a.type = 'time without time zone');
INSERT INTO results (operation, left_type, left_text, right_type, right_text, result)
SELECT op, 'interval', a, 'double precision', b, pg_temp.evaluate(format('%L::interval %s %L::float8', a, op, b))
FROM unnest(ARRAY['1 mon', '1 day', '01:00:00', '1 year 2 mons 3 days 04:05:06.789', '-1 mons -1 days -00:00:01', '178000000 years', '1 mon -1 day']) AS a,
    unnest(ARRAY['0', '1', '0.1', '0.3', '-1.5', '2.7', '100', '1e9', '1e-3', 'NaN', 'Infinity']) AS b, unnest(ARRAY['*', '/']) AS op;
INSERT INTO results (operation, left_type, left_text, result)
SELECT function, type, value, pg_temp.evaluate(format('%s(%L::%s)', function, value, type))
FROM (VALUES ('smallint', ARRAY['-', 'abs'], ARRAY['0', '5', '-5', '-32768']), ('real', ARRAY['-', 'abs'], ARRAY['0', '-1.5', 'Infinity']),
    ('interval', ARRAY['-'], ARRAY['1 mon -1 day 00:00:01', '0'])) AS operands (type, functions, operands), unnest(functions) AS function, unnest(operands) AS value;

INSERT INTO results (operation, left_text, result)
SELECT 'common', concat_ws(',', a, b), pg_temp.evaluate(format('COALESCE(%s, %s)', 'NULL::' || a, 'NULL::' || b))
FROM (SELECT unnest(ARRAY['smallint', 'integer', 'bigint', 'numeric', 'real', 'double precision', 'date', 'timestamp without time zone', 'timestamp with time zone',
        'time without time zone', 'interval', 'character', 'text', 'bytea', 'uuid', 'integer[]', 'text[]'])) AS first (a),
    (SELECT unnest(ARRAY['smallint', 'integer', 'bigint', 'numeric', 'real', 'double precision', 'date', 'timestamp without time zone', 'timestamp with time zone',
        'time without time zone', 'interval', 'character', 'text', 'bytea', 'uuid', 'integer[]', 'text[]'])) AS second (b);
INSERT INTO results (operation, left_type, left_text, right_type, right_text, result)
SELECT '||', 'text', 'a', type, value, pg_temp.evaluate(format('%L::text || %L::%s', 'a', value, type))
FROM (VALUES ('smallint', '5'), ('real', '0.1'), ('date', '2026-11-20'), ('timestamp without time zone', '2026-11-20 10:00:00'), ('time without time zone', '10:00:00'),
    ('interval', '1 day'), ('character(5)', 'ab'), ('uuid', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11')) AS operands (type, value);

COPY (SELECT operation, coalesce(left_type, ''), coalesce(left_text, ''), coalesce(right_type, ''), coalesce(right_text, ''), result[1], result[2]
    FROM results ORDER BY number) TO STDOUT;
