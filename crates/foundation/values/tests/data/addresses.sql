-- Makes addresses.txt, the answers that tests/postgres.rs compares with. Run it on PostgreSQL 15:
--   psql --quiet --no-psqlrc --file addresses.sql --output addresses.txt
-- Parts of a line, with semicolons between: function or operator; type and text of the result, of an error SQLSTATE and message; type and text of each argument.
SET timezone TO 'UTC';
SET client_min_messages TO warning;

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

-- Types and texts of arguments, one behind the other.
CREATE FUNCTION pg_temp.call(name text, VARIADIC arguments text[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    given text[] := '{}';
BEGIN
    FOR at IN 1 .. array_length(arguments, 1) BY 2 LOOP
        given := given || format('%L::%s', arguments[at + 1], replace(arguments[at], 'bit', '"bit"'));
    END LOOP;
    given := ARRAY(SELECT replace(argument, '"bit" varying', 'bit varying') FROM unnest(given) AS argument);
    RETURN ARRAY[name] || pg_temp.evaluate(CASE
        WHEN name = 'strpos' THEN format('position(%s IN %s)', given[2], given[1])
        WHEN name = 'extract' THEN format('pg_catalog.extract(%s, %s)', given[1], given[2])
        WHEN name ~ '^[a-z]' THEN format('%s(%s)', name, array_to_string(given, ', '))
        WHEN array_length(given, 1) = 1 THEN format('%s (%s)', name, given[1])
        ELSE format('%s %s %s', given[1], name, given[2]) END) || arguments;
END $$;

CREATE TEMPORARY TABLE results (number serial, result text[]);
CREATE TEMPORARY TABLE addresses AS SELECT unnest(ARRAY['inet', 'inet', 'inet', 'inet', 'inet', 'inet', 'inet', 'cidr', 'cidr', 'cidr', 'inet', 'inet', 'inet',
        'cidr', 'inet', 'cidr']) AS type,
    unnest(ARRAY['0.0.0.0/0', '10.1.2.3/8', '10.1.2.3', '10.1.2.4/31', '192.168.1.255/24', '255.255.255.255', '1.2.3.4/0', '10.0.0.0/8', '10.1.0.0/16',
        '0.0.0.0/0', '::/0', '::1', '2001:db8::ff/64', '2001:db8::/32', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/127', '::ffff:1.2.3.0/120']) AS value;

INSERT INTO results (result)
SELECT pg_temp.call(name, type, value)
FROM addresses, unnest(ARRAY['~', 'abbrev', 'host', 'text', 'family', 'masklen', 'network', 'broadcast', 'netmask', 'hostmask']) AS name;
INSERT INTO results (result)
SELECT pg_temp.call(name, a.type, a.value, b.type, b.value)
FROM addresses AS a, addresses AS b,
    unnest(ARRAY['<<', '<<=', '>>', '>>=', '&&', '&', '|', '-', 'inet_same_family', 'inet_merge']) AS name;
INSERT INTO results (result)
SELECT pg_temp.call(name, type, value, 'bigint', distance)
FROM addresses, unnest(ARRAY['+', '-']) AS name,
    unnest(ARRAY['0', '1', '-1', '256', '4294967295', '-4294967295', '9223372036854775807', '-9223372036854775808']) AS distance;
INSERT INTO results (result)
SELECT pg_temp.call('+', 'integer', distance, type, value) FROM addresses, unnest(ARRAY['1', '-300']) AS distance;
INSERT INTO results (result)
SELECT pg_temp.call('set_masklen', type, value, 'integer', length)
FROM addresses, unnest(ARRAY['-2', '-1', '0', '1', '16', '31', '32', '33', '127', '128', '129', '300']) AS length;
INSERT INTO results (result)
SELECT pg_temp.call('abbrev', 'cidr', value)
FROM unnest(ARRAY['10.1.2.0/24', '10.1.2.128/25', '0.0.0.0/1', '10.0.0.0/7', '1::/16', '1::/20', '1:0:2::/48', '1:0:0:2::/64', '1:0:2::/47', '::/96', '::1/128',
    '::2/128', '::3:0/112', '::102:304/128', '::1:2:3/128', '::ffff:0:0/96', '::ffff:1.2.3.4/128', '::1.2.0.0/112', '::1.2.3.0/120', '0:0:1::/48', '0:0:1::/50',
    '1:0:0:2::/80', '1:0:2:0:0:3::/96', '1:2:0:0:3:0:0:4/128', '0:1::/32', '::/16', '::/33', '::/64', '::/127', '::/128', '::/112', '::/97', '1:0:0:2:0:3::/112',
    '1:0:0:2:0:3:0:0/128', '1:0:2:0:3:0:4:0/128', 'abcd:ef01:2345:6789:abcd:ef01:2345:6789/128', '::ffff:1.2.3.4/127']) AS value;
INSERT INTO results (result)
SELECT pg_temp.call(name, 'macaddr', value) FROM unnest(ARRAY['~', 'trunc']) AS name, unnest(ARRAY['08:00:2b:01:02:03', 'ff:ff:ff:ff:ff:ff']) AS value;
INSERT INTO results (result)
SELECT pg_temp.call(name, 'macaddr', a, 'macaddr', b)
FROM unnest(ARRAY['&', '|']) AS name, unnest(ARRAY['08:00:2b:01:02:03', 'f0:f0:f0:f0:f0:f0']) AS a, unnest(ARRAY['0f:ff:00:01:03:05', '00:00:00:00:00:00']) AS b;

CREATE TEMPORARY TABLE strings AS SELECT unnest(ARRAY['bit', 'bit varying', 'bit', 'bit', 'bit varying', 'bit', 'bit', 'bit varying']) AS type,
    unnest(ARRAY['', '', '1', '01', '10101', '11011011', '101010101010101', '00000000111111110000000011']) AS value;
INSERT INTO results (result)
SELECT pg_temp.call(name, type, value) FROM strings, unnest(ARRAY['~', 'length', 'bit_length', 'octet_length', 'bit_count']) AS name;
INSERT INTO results (result)
SELECT pg_temp.call(name, a.type, a.value, b.type, b.value) FROM strings AS a, strings AS b, unnest(ARRAY['||', '&', '|', '#', 'strpos']) AS name;
INSERT INTO results (result)
SELECT pg_temp.call(name, type, value, 'integer', number)
FROM strings, unnest(ARRAY['<<', '>>', 'get_bit', 'substring']) AS name,
    unnest(ARRAY['-2147483648', '-9', '-1', '0', '1', '2', '8', '9', '16', '2147483647']) AS number;
INSERT INTO results (result)
SELECT pg_temp.call('set_bit', type, value, 'integer', at, 'integer', bit)
FROM strings, unnest(ARRAY['-1', '0', '1', '7', '25', '26']) AS at, unnest(ARRAY['0', '1', '2', '-1']) AS bit;
INSERT INTO results (result)
SELECT pg_temp.call('substring', type, value, 'integer', a, 'integer', count)
FROM strings, unnest(ARRAY['-2147483648', '-3', '0', '1', '2', '9', '27', '2147483647']) AS a,
    unnest(ARRAY['-1', '0', '1', '5', '9', '2147483647']) AS count;
INSERT INTO results (result)
SELECT pg_temp.call('overlay', a.type, a.value, 'bit', b, 'integer', at) FROM strings AS a, unnest(ARRAY['', '1', '000']) AS b,
    unnest(ARRAY['-1', '0', '1', '3', '9', '100', '2147483647']) AS at;
INSERT INTO results (result)
SELECT pg_temp.call('overlay', a.type, a.value, 'bit', '000', 'integer', at, 'integer', count)
FROM strings AS a, unnest(ARRAY['0', '1', '3', '9', '2147483647']) AS at, unnest(ARRAY['-2147483648', '-2', '0', '1', '7', '2147483647']) AS count;

CREATE TEMPORARY TABLE times AS SELECT unnest(ARRAY['00:00:00+00', '24:00:00+00', '23:59:59.999999-15:59:59', '12:34:56.789+05:30', '01:02:03-08',
    '23:00:00+15:59:59']) AS value;
INSERT INTO results (result)
SELECT pg_temp.call(name, 'text', field, 'time with time zone', value)
FROM times, unnest(ARRAY['extract', 'date_part']) AS name,
    unnest(ARRAY['hour', 'minute', 'second', 'milliseconds', 'microseconds', 'epoch', 'timezone', 'timezone_hour', 'timezone_m', 'day', 'year', 'julian', 'x',
        'HOUR']) AS field;
INSERT INTO results (result)
SELECT pg_temp.call('timezone', 'text', zone, 'time with time zone', value)
FROM times, unnest(ARRAY['UTC', 'PST', 'Asia/Tokyo', 'Etc/GMT+5', 'cest', 'x', '+3']) AS zone;
INSERT INTO results (result)
SELECT pg_temp.call('timezone', 'interval', zone, 'time with time zone', value)
FROM times, unnest(ARRAY['02:00:00', '-15:59:59', '00:00:00.7', '1 day', '1 mon']) AS zone;
INSERT INTO results (result)
SELECT pg_temp.call(name, 'time with time zone', value, 'interval', duration)
FROM times, unnest(ARRAY['+', '-']) AS name, unnest(ARRAY['00:00:00', '01:00:00', '-25:00:00.000001', '1 mon 2 days 03:00:00', '1000000:00:00']) AS duration;
INSERT INTO results (result)
SELECT pg_temp.call('+', 'interval', '30:00:00', 'time with time zone', value) FROM times;
INSERT INTO results (result)
SELECT pg_temp.call('+', 'date', day, 'time with time zone', value)
FROM times, unnest(ARRAY['2026-11-20', 'infinity', '-infinity', '4714-11-24 BC', '294276-12-31', '294277-01-01']) AS day;
INSERT INTO results (result)
SELECT pg_temp.call('+', 'time with time zone', value, 'date', '2026-11-20') FROM times;

COPY (SELECT array_to_string(ARRAY(SELECT replace(part, '\', '\\') FROM unnest(result) WITH ORDINALITY AS parts (part, place) ORDER BY place), ';') FROM results
    ORDER BY number) TO STDOUT;
