-- What is asked of every node behind the recorded ledger.

SELECT count(*), sum(amount), sum(weight) FROM stock

SELECT * FROM stock WHERE id BETWEEN 880 AND 910 ORDER BY id

SELECT shelf, count(*), sum(length(item)) FROM places GROUP BY shelf ORDER BY shelf

SELECT * FROM log ORDER BY id

SELECT * FROM unkeyed ORDER BY note

SELECT height, transactions, committed, aborted, proposer, digest, previous, receipts_root, state_digest, bytes, certified_height FROM entente.blocks WHERE transactions > 0 ORDER BY height

SELECT height, index, id, organisation, client, request, call, outcome, sqlstate, message FROM entente.transactions ORDER BY height, index

SELECT * FROM entente.history('stock', 5)

SELECT number, effective_height, governance, organisations, charter FROM entente.charters ORDER BY number
