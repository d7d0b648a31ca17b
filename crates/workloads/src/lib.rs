//! Smallbank and the papers' other workloads: schema, contracts, generators, invariants
