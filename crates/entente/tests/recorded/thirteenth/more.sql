-- What a later program does behind what was recorded.

CALL ask(31, 'SELECT length(repeat(''a'', 131073))');
CALL ask(32, 'SELECT length(said || said) FROM long WHERE id = 1');
CALL ask(34, 'SELECT length(jsonb_build_array(document, document, document)::text) FROM long WHERE id = 2');
CALL ask(35, 'SELECT cardinality(numbers || numbers) FROM long WHERE id = 2');
CALL ask(37, 'SELECT length(string_agg(repeat(''d'', 10000), '','')) FROM generate_series(1, 20)');
CALL ask(39, 'SELECT pg_notify(''orders'', ''42'')')

--@ fails 54000
INSERT INTO long VALUES (4, repeat('a', 131073))

INSERT INTO words SELECT 100 + nextval('counter'), 'counted' FROM generate_series(1, 3)

CALL club.pay(6, 1)

-- And the network goes over to the next execution version.

SELECT entente.set_charter('execution_version', '14')

--@ wait 25
CALL club.pay(12, 2)

CALL ask(41, 'SELECT length(repeat(''a'', 131073))');
CALL ask(42, 'SELECT length(said || said) FROM long WHERE id = 1');
CALL ask(43, 'SELECT length(raw || raw || raw || raw) FROM long WHERE id = 2');
CALL ask(44, 'SELECT length(jsonb_build_array(document, document, document)::text) FROM long WHERE id = 2');
CALL ask(45, 'SELECT cardinality(numbers || numbers) FROM long WHERE id = 2');
CALL ask(47, 'SELECT length(string_agg(repeat(''d'', 10000), '','')) FROM generate_series(1, 20)');
CALL ask(49, 'SELECT pg_notify(''orders'', ''42'')')

INSERT INTO long VALUES (4, repeat('a', 131073));
UPDATE long SET said = said || said || said || said WHERE id = 1

INSERT INTO words SELECT 100 + nextval('counter'), 'counted' FROM generate_series(1, 3)

CALL club.pay(19, 90)
