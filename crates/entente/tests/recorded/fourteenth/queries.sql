-- What is asked of every node behind the recorded ledger.

SELECT * FROM t ORDER BY k

SELECT * FROM job ORDER BY id

SELECT * FROM running ORDER BY k

SELECT id, length(said), md5(said) FROM long ORDER BY id

SELECT viewname, definition FROM pg_views WHERE schemaname = 'public' ORDER BY viewname

SELECT * FROM club.accounts ORDER BY id

SELECT * FROM words ORDER BY id

SELECT height, transactions, committed, aborted, proposer, digest, previous, receipts_root, state_digest, bytes, certified_height FROM entente.blocks WHERE transactions > 0 ORDER BY height

SELECT height, index, id, organisation, client, request, call, outcome, sqlstate, message FROM entente.transactions ORDER BY height, index

SELECT number, effective_height, governance, organisations, charter FROM entente.charters ORDER BY number
