-- What a later program does behind what was recorded.

CALL ask(31, 'SELECT hashtext(''jobs'')');
CALL ask(32, 'SELECT hashtextextended(''jobs'', 7)');
CALL ask(33, 'SELECT id FROM job ORDER BY id DESC LIMIT 1 FOR UPDATE SKIP LOCKED')

--@ fails 42883
SELECT hashtext('jobs'), nextval('counter')

--@ fails 0A000
CREATE TABLE posts (id integer PRIMARY KEY, words tsvector)

CALL ask(34, 'SELECT to_tsvector(''english'', ''cats'')')

INSERT INTO job (id) SELECT g FROM generate_series(31, 40) AS s (g)

SELECT next_job('emil')

INSERT INTO words SELECT 100 + nextval('counter'), 'counted' FROM generate_series(1, 3)

CALL club.pay(6, 1)

-- And the network goes over to the next execution version.

SELECT entente.set_charter('execution_version', '15')

--@ wait 25
CALL club.pay(12, 2)

CALL ask(41, 'SELECT hashtext(''jobs'')');
CALL ask(42, 'SELECT hashtextextended(''jobs'', 7)');
CALL ask(43, 'SELECT id FROM job ORDER BY id DESC LIMIT 1 FOR UPDATE SKIP LOCKED');
CALL ask(44, 'SELECT next_job(''fritz'')')

UPDATE job SET state = 'taken', worker = 'gerd' WHERE id = (SELECT id FROM job WHERE state = 'waiting' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)

SELECT pg_advisory_lock(hashtext('jobs')), nextval('counter')

INSERT INTO words SELECT 100 + nextval('counter'), 'counted' FROM generate_series(1, 3)

CALL club.pay(19, 90)

CREATE TABLE posts (id integer PRIMARY KEY, body text, words tsvector GENERATED ALWAYS AS (to_tsvector('english', body)) STORED)

CREATE INDEX ON posts USING gin (words)

INSERT INTO posts (id, body) VALUES (1, 'The fat cats'), (2, 'Running dogs'), (3, 'A cat ran')

UPDATE posts SET body = body || ' away' WHERE words @@ to_tsquery('english', 'cat & run')

CALL ask(45, 'SELECT max(id) FROM posts WHERE words @@ ''cat & !fat''')
