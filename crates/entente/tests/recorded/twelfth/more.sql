-- What a later program does behind what was recorded.

CALL ask(11, 'SELECT said FROM t GROUP BY k ORDER BY n LIMIT 1');
CALL ask(12, 'SELECT (WITH w (x) AS (SELECT t.n) SELECT max(x) FROM w) FROM t WHERE k = 3');
CALL ask(14, 'SELECT round(cos(k::numeric)::numeric, 3) FROM t WHERE k = 1')

--@ fails 42803
SELECT k, said, count(*) FROM t GROUP BY k

INSERT INTO words SELECT 100 + nextval('counter'), 'counted' FROM generate_series(1, 3)

CREATE SEQUENCE forgetful CACHE 7

CALL club.pay(6, 1)

-- And the network goes over to the next execution version.

SELECT entente.set_charter('execution_version', '13')

--@ wait 25
CALL club.pay(12, 2)

SELECT k, said, count(*) FROM t GROUP BY k

CALL ask(21, 'SELECT said FROM t GROUP BY k ORDER BY n LIMIT 1');
CALL ask(22, 'SELECT (WITH w (x) AS (SELECT t.n) SELECT max(x) FROM w) FROM t WHERE k = 3');
CALL ask(24, 'SELECT round(cos(k::numeric)::numeric, 3) FROM t WHERE k = 1');
CALL ask(28, 'SELECT sin(2::numeric)')

CREATE SEQUENCE mindful CACHE 7

ALTER SEQUENCE counter CACHE 3

INSERT INTO words SELECT 100 + nextval('counter'), 'counted' FROM generate_series(1, 3)

CREATE VIEW later AS SELECT t.k, t.said, count(*) AS amount FROM t JOIN u ON u.t = t.k GROUP BY t.k

CALL club.pay(19, 90)
