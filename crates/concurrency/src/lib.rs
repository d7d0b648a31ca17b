//! Deterministic concurrency control: effects of a batch in, outcomes and after-images out
