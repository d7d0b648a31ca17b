-- What is asked of every node behind the recorded ledger.

SELECT * FROM row ORDER BY id

SELECT * FROM keyed ORDER BY n

SELECT * FROM people ORDER BY name

SELECT * FROM posts ORDER BY id

SELECT * FROM club.accounts ORDER BY id

SELECT * FROM words ORDER BY id

SELECT height, transactions, committed, aborted, proposer, digest, previous, receipts_root, state_digest, bytes, certified_height FROM entente.blocks WHERE transactions > 0 ORDER BY height

SELECT height, index, id, organisation, client, request, call, outcome, sqlstate, message FROM entente.transactions ORDER BY height, index

SELECT number, effective_height, governance, organisations, charter FROM entente.charters ORDER BY number
