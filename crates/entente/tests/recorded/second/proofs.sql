-- Proofs that the recorded network gave, in `proofs.txt`.

SELECT entente.proof('stock', 899)

SELECT entente.proof('stock', 907)

SELECT entente.proof('stock', 5000)

SELECT entente.proof('stock', 0)

SELECT entente.proof('places', 'shelf 3', 17)

SELECT entente.proof('nothing', 1)
