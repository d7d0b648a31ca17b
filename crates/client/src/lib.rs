//! Rust SDK: keys, signing, submitting in batches, receipts
