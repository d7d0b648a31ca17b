-- As ../ordered/queries.sql.

SELECT * FROM parent ORDER BY id

SELECT * FROM child ORDER BY id

SELECT * FROM cascaded ORDER BY id

SELECT * FROM t ORDER BY id

SELECT * FROM whole ORDER BY a

SELECT * FROM exact ORDER BY n

SELECT * FROM found ORDER BY how

SELECT * FROM one ORDER BY id

SELECT * FROM two ORDER BY id

SELECT * FROM tree ORDER BY id

SELECT height, index, id, call, outcome, sqlstate, message FROM entente.transactions ORDER BY height, index

SELECT height, transactions, committed, aborted, digest, receipts_root, state_digest FROM entente.blocks WHERE transactions > 0 ORDER BY height
