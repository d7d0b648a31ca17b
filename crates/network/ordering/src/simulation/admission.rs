//! The simplest admission.

use crate::Admission;
use bytes::Bytes;
use crypto::sha256;
use types::{Place, RejectReason, TransactionId};

/// Admits any bytes as a transaction, but none that begin with `bad`. For tests of ordering alone.
pub struct AnyBytes;

impl Admission for AnyBytes {
    fn check(&self, _: Place<'_>, transactions: &[Bytes]) -> Vec<Result<TransactionId, RejectReason>> {
        let verdict = |bytes: &Bytes| match bytes.starts_with(b"bad") {
            true => Err(RejectReason::Malformed("it begins with `bad`".to_string())),
            false => Ok(TransactionId(sha256(&[bytes]))),
        };
        transactions.iter().map(verdict).collect()
    }
}
