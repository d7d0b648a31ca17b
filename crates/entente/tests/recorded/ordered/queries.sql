-- What is asked of every node behind the recorded ledger; the answers of the program that recorded it are in `answers.txt`.

SELECT * FROM accounts ORDER BY customer_id

SELECT * FROM savings ORDER BY customer_id

SELECT * FROM checking ORDER BY customer_id

SELECT * FROM every_type ORDER BY id

SELECT * FROM items ORDER BY id

SELECT id, number, item, quantity, placed, line FROM orders ORDER BY number

SELECT quantity, number FROM orders WHERE quantity >= 100 ORDER BY quantity

SELECT * FROM log

SELECT * FROM totals ORDER BY item

SELECT * FROM cheap

SELECT * FROM app.settings ORDER BY key

SELECT product(weight::numeric) FROM items

SELECT height, transactions, committed, aborted, proposer, digest, previous, receipts_root, state_digest, bytes, certified_height FROM entente.blocks WHERE transactions > 0 ORDER BY height

SELECT height, index, id, organisation, client, request, call, outcome, sqlstate, message FROM entente.transactions ORDER BY height, index

SELECT * FROM entente.history('checking', 2)

SELECT * FROM entente.history('savings', 15)

SELECT * FROM entente.history('accounts', 40)

SELECT * FROM entente.history('app.settings', 'colour')

SELECT number, effective_height, governance, organisations, charter FROM entente.charters ORDER BY number

SELECT number, name, member, root_key, node_key, node_key_expires, address, gateway FROM entente.organisations ORDER BY number

SELECT sequencename, start_value, increment_by FROM pg_sequences ORDER BY sequencename

SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname IN ('public', 'app') ORDER BY indexname

SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema IN ('public', 'app') ORDER BY table_name, ordinal_position

SELECT proname, pg_get_function_arguments(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY proname
