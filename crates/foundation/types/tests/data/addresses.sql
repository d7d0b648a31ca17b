-- Makes addresses.tsv, as postgres.sql makes postgres.tsv: addresses of networks, strings of bits, and times with zones.
\ir functions.sql

INSERT INTO results (operation, left_type, left_text, result)
SELECT 'parse', type, input, pg_temp.evaluate(format('%L::%s', input, type))
FROM (VALUES
    ('inet', ARRAY['192.168.1.5', '192.168.1.5/24', '192.168.1/24', '192.168/16', '10/8', '10.1/8', '1.2.3.4/32', '0.0.0.0/0', '1.2.3.4/33', '1.2.3.4/',
        '1.2.3', '10', '1.2.3.4.', '1.2.3/16.', '10./8', '1.2.3.4.5', '001.02.3.4', '256.1.1.1', '1..2.3/8', '.1.2.3', '1.2.3.4 ', ' 1.2.3.4', '', '/8',
        'a', '1.2.3.4/08', '1.2.3.4/024', '0x0a.1.1.1', '1.2.3.4/-1', '192/24', '192.168/24', '::', '::1', '::/0', '1::', '1::8', '1:2:3:4:5:6:7:8',
        '1:2:3:4:5:6:7:8:9', '1:2:3:4:5:6:7', '1:2:3:4:5:6:7::', '::2:3:4:5:6:7:8', '1::3:4:5:6:7:8', '1:2::3:4:5:6:7:8', ':1', ':::', '1:::2', '1::2::3',
        '1:', '12345::', 'ABCD::abcd', '::1/64', '::1/128', '::1/129', '::1/064', '::1/', 'fe80::1%eth0', '::ffff:1.2.3.4', '::1.2.3.4', '::1.2.3.4/96',
        '1:2:3:4:5:6:1.2.3.4', '1::1.2.3.4', '::1.2', '::1.2./64', '::1.', '::01.2.3.4', '::256.1.1.1', '::1.2.3.4.5', '::1.2.3.4/',
        '1:2:3:4:5:6:7:1.2.3.4', '0:0:0:0:0:0:0:0', '1:0:0:2:0:0:0:3', '1:0:2:0:3:0:4:0', '0:0:1::', '1:0:0:2:0:0:3:4', '::0001', '0:0:0:0:0:ffff:0:0',
        '::fffe:1.2.3.4', '2001:db8::ff00:42:8329/48']),
    ('cidr', ARRAY['192.168.1.5', '192.168.1.5/24', '192.168.1.0/24', '192.168.1/24', '192.168', '10', '10.1', '10.1.2', '10/8', '10/9', '128', '128.1',
        '192', '192.1', '224', '224.1', '239', '240', '255', '0', '127.0.0.1', '0x0a', '0x0a01', '0xA/4', '0xa0/3', '0xa0b0c0d0', '0xa0b0c0d0e', '0x',
        '0xg', '10/33', '10.', '10..1', '10/', '10/08', '1.2.3.4.5', '256', '::', '::1', '::1/64', '::/64', '::1/128', '2001:db8::/32', '2001:db8::1/32',
        '::ffff:1.2.3.0/120', '1:2:3:4:5:6:7:8/128', '1:2:3:4:5:6:7:8/127', '::1.2', '']),
    ('macaddr', ARRAY['08:00:2b:01:02:03', '08-00-2b-01-02-03', '08002b:010203', '08002b-010203', '0800.2b01.0203', '0800-2b01-0203', '08002b010203',
        '8:0:2b:1:2:3', '8-0-2b-1-2-3', ' 08:00:2b:01:02:03 ', '08:00:2b:01:02:03 x', '08:00:2b:01:02', '08:00:2b:01:02:03:04', '08:00:2b:01:02:0g',
        '08:00-2b:01:02:03', '100:00:2b:01:02:03', '0x8:0:0x2b:1:2:3', '0x:0:0:0:0:0', '+8:0:0:0:0:0', '-8:0:0:0:0:0', '100000008:0:0:0:0:0',
        'fffffffffffffffff:0:0:0:0:0', '0X0x0x:010101', '08002b0102', '8002b010203', '', '08: 00: 2b: 01: 02: 03', 'FF:FF:FF:FF:FF:FF', '08002b.010203']),
    ('time with time zone', ARRAY['23:01:02', '23:01:02+02', '23:01:02.5-08', '23:01:02 +05:30', '23:01:02-05:30:15', '23:01:02+15:59:59', '23:01:02+16',
        '23:01+0530', '23:01+530', '2301+02', '230102+02', '230102.25 -02', 'T230102+02', 'T23:01:02Z', 't 23:01', '11:01 pm PST', '11:01 PDT', '11:01 pm',
        '12:00 am', '13:00 pm', '23:01 cest', '23:01 z', '23:01 UTC', '23:01 gmt', '23:01 utc+3', '23:01 UTC+3', '23:01 America/New_York',
        '2003-03-07 15:36:39 America/New_York', '2003-07-07 15:36:39 America/New_York', '2003-07-07 15:36:39', '23:01 Etc/GMT+5', '23:01 Asia/Tokyo',
        '2003-07-07 23:01 asia/tokyo', '23:01 MET DST', '23:01 dst', '23:01 +02 dst', '23:01 dst met', '23:01 FOO', '23:01 Foo/Bar', '24:00:00',
        '24:00:01', '23:59:60', '23:59:59.9999999', '23:60:00', '25:00:00', '23:01:61', 'allballs', 'allballs +02', '2003-07-07', '2003-07-07 +02',
        'July 7 2003 23:01', '2003-Jul-07 23:01 PST', 'infinity', 'epoch', '', 'x', '23', '23:01:02 23:01', '23:01 +02 +02', 'h23m01s02', '-23:01',
        '23:01 BC', '1:02.5', '23:01:02.5.5', '12:00 at utc', '040506-08', '040506.789-08'])
) AS inputs (type, inputs), unnest(inputs) AS input;

-- A cast fills up and cuts off; what is stored must have the length.
INSERT INTO results (operation, left_type, left_text, result)
SELECT 'parse', type, input, pg_temp.assign(format('%L', input), type)
FROM unnest(ARRAY['bit(1)', 'bit(4)', 'bit varying', 'bit varying(4)']) AS type, unnest(ARRAY['', 'b', 'x', '0', '1', '101', '1010', '10101', 'b101',
        'B1011', 'x1F', 'XaBc', '102', 'x1g', 'b1b1', ' 1', '1 ', 'b 1', 'xé', '1é', '00000000', '000000001']) AS input;
INSERT INTO results (operation, left_type, left_text, right_type, result)
SELECT 'cast', 'text', input, target, pg_temp.evaluate(format('%L::text::%s', input, target))
FROM unnest(ARRAY['', 'b', 'x', '0', '1', '101', '1010', '10101', 'b101', 'B1011', 'x1F', 'XaBc', '102', 'x1g', 'b1b1', ' 1', '1 ', 'b 1', 'xé', '1é',
        '00000000', '000000001']) AS input, unnest(ARRAY['bit(4)', 'bit varying', 'bit varying(4)']) AS target;

CREATE TEMPORARY TABLE cast_values AS SELECT type, value FROM (VALUES
    ('inet', ARRAY['1.2.3.4', '1.2.3.4/24', '1.2.3.0/24', '::1', '::1/64']),
    ('cidr', ARRAY['1.2.3.4', '1.2.3.0/24', '::1', '::/64']),
    ('macaddr', ARRAY['08:00:2b:01:02:03']),
    ('bit(4)', ARRAY['1010']),
    ('bit varying', ARRAY['', '1', '1010', '10101', '11111111111111111111111111111111', '111111111111111111111111111111111']),
    ('time with time zone', ARRAY['00:00:00+00', '23:59:59.999999-15:59:59', '24:00:00+05:30', '12:34:56.789+02']),
    ('time without time zone', ARRAY['12:34:56.789', '24:00:00']),
    ('timestamp with time zone', ARRAY['2026-11-20 23:01:02.5+02']),
    ('timestamp without time zone', ARRAY['2026-11-20 23:01:02.5']),
    ('interval', ARRAY['1 day 02:00:00']),
    ('smallint', ARRAY['5']),
    ('integer', ARRAY['0', '5', '-5', '-2147483648']),
    ('bigint', ARRAY['5', '-5', '9223372036854775807']),
    ('boolean', ARRAY['t']),
    ('text', ARRAY['1.2.3.4', 'b1010', '12:00+01', 'x'])
) AS inputs (type, inputs), unnest(inputs) AS value;
CREATE TEMPORARY TABLE targets AS SELECT unnest(ARRAY['inet', 'cidr', 'macaddr', 'bit(3)', 'bit(4)', 'bit(40)', 'bit(70)', 'bit varying', 'bit varying(3)',
    'time with time zone', 'time without time zone', 'timestamp with time zone', 'text', 'character varying(12)', 'character(5)', 'smallint', 'integer',
    'bigint', 'boolean']) AS target;
INSERT INTO results (operation, left_type, left_text, right_type, result)
SELECT 'cast', type, value, target, pg_temp.evaluate(format('CAST(%L::%s AS %s)', value, type, target))
FROM cast_values, targets WHERE NOT (type = 'text' AND target LIKE 'time%');
INSERT INTO results (operation, left_type, left_text, right_type, result)
SELECT 'assign', type, value, target, pg_temp.assign(format('%L::%s', value, type), target)
FROM cast_values, targets WHERE type <> 'text';
-- Bits of one length, of which the number is what they all are.
INSERT INTO results (operation, left_type, left_text, right_type, result)
SELECT 'cast', format('bit(%s)', length(value)), value, target, pg_temp.evaluate(format('CAST(%L::bit(%s) AS %s)', value, length(value), target))
FROM unnest(ARRAY['1', '0', '101', '11111111', '111111111', repeat('1', 32), repeat('1', 33), '1' || repeat('0', 31), repeat('1', 64), '1' || repeat('0', 63),
    repeat('1', 65)]) AS value, unnest(ARRAY['integer', 'bigint', 'bit varying', 'bit(2)', 'bit varying(2)']) AS target;

INSERT INTO results (operation, left_text, result)
SELECT 'common', concat_ws(',', a, b), pg_temp.evaluate(format('COALESCE(%s, %s)', 'NULL::' || a, 'NULL::' || b))
FROM (SELECT unnest(ARRAY['inet', 'cidr', 'macaddr', 'bit(3)', 'bit varying', 'time with time zone', 'time without time zone', 'timestamp with time zone',
        'interval', 'text',
    'integer'])) AS first (a),
    (SELECT unnest(ARRAY['inet', 'cidr', 'macaddr', 'bit(4)', 'bit varying', 'time with time zone', 'time without time zone', 'timestamp with time zone',
        'text'])) AS second (b);

INSERT INTO results (operation, left_type, left_text, right_type, right_text, result)
SELECT '||', 'text', 'a', type, value, pg_temp.evaluate(format('%L::text || %L::%s', 'a', value, type))
FROM (VALUES ('inet', '1.2.3.4'), ('cidr', '10.0.0.0/8'), ('macaddr', '08:00:2b:01:02:03'), ('bit varying', '101'), ('time with time zone', '12:00+02'))
    AS operands (type, value);

COPY (SELECT operation, coalesce(left_type, ''), coalesce(left_text, ''), coalesce(right_type, ''), coalesce(right_text, ''), result[1], result[2]
    FROM results ORDER BY number) TO STDOUT;
