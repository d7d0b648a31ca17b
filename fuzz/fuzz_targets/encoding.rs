//! Any bytes as a transaction: what is read is written again as the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use types::SignedTransaction;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(transaction) = SignedTransaction::from_bytes(bytes) {
        assert_eq!(transaction.to_bytes(), bytes);
    }
    let _ = SignedTransaction::contract_of(bytes);
});
