//! Ed25519 with one verdict rule, SHA-256 and Merkle trees
