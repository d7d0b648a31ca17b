-- As ../ordered/queries.sql.

SELECT * FROM account ORDER BY id

SELECT id, note FROM account WHERE owner = 'nobody' ORDER BY id

SELECT * FROM vault ORDER BY id

SELECT height, transactions, committed, aborted, proposer, digest, previous, receipts_root, state_digest, bytes, certified_height FROM entente.blocks WHERE transactions > 0 ORDER BY height

SELECT height, index, id, organisation, client, request, call, outcome, sqlstate, message FROM entente.transactions ORDER BY height, index

SELECT * FROM entente.history('account', 5)

SELECT * FROM entente.history('account', 51)

SELECT number, effective_height, governance, organisations, charter FROM entente.charters ORDER BY number

SELECT number, name, member, root_key, node_key, node_key_expires, address, gateway FROM entente.organisations ORDER BY number
