-- What a later program does behind what was recorded.

CALL ask(31, 'SELECT ''{{1,2},{3,4}}''::integer[]');
CALL ask(32, 'SELECT far()');
CALL ask(33, 'SELECT max(n) FROM keyed WHERE k < ARRAY[1]');
CALL ask(34, 'SELECT more[1][''a''] FROM row WHERE id = 1')

--@ fails 0A000
INSERT INTO row (id, cells) VALUES (20, '{{1,2}}')

CALL club.pay(6, 1)

-- And the network goes over to the next execution version.

SELECT entente.set_charter('execution_version', '16')

--@ wait 25
CALL club.pay(12, 2)

CALL ask(41, 'SELECT ''{{1,2},{3,4}}''::integer[]');
CALL ask(42, 'SELECT far()');
CALL ask(43, 'SELECT max(n) FROM keyed WHERE k < ARRAY[1]');
CALL ask(44, 'SELECT n FROM keyed ORDER BY k DESC LIMIT 1');
CALL ask(45, 'SELECT (ARRAY[[1,2],[3,4]])[2][1]');
CALL ask(46, 'SELECT array_agg(cells) FROM row WHERE id IN (4, 5)');
CALL ask(47, 'SELECT count(*) FROM generate_subscripts(ARRAY[[1,2]], 2)');
CALL ask(48, 'SELECT max(id) FROM row WHERE cells > ARRAY[5] AND cells < ARRAY[9]');
CALL ask(49, 'SELECT unaccent(''café'')');
CALL ask(50, 'SELECT count(*) FROM people WHERE name = ''ANNA''')

INSERT INTO row (id, cells, names) VALUES (20, '{{1,2},{3,4}}', '[0:1]={a,b}')

UPDATE row SET cells[2][2] = 44, names[-1] = 'z' WHERE id = 20

INSERT INTO keyed VALUES ('{{0,3}}', 200)

UPDATE keyed SET n = n + 1 WHERE k > ARRAY[0, 2]

INSERT INTO people VALUES ('berta', 'still a domain')

CALL club.pay(19, 90)
