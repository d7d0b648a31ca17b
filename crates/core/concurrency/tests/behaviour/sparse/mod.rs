//! Sparse peers: the cases of the reference model `sparse.py`, what goes wrong without each rule, and our validator of whole transactions.

mod cases;
mod durable;
mod network;
mod rules;
mod whole_transactions;
