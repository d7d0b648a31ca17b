use bytes::Bytes;
use engine::Verifier;
use ordering::Admission;
use std::sync::Arc;
use types::{RejectReason, TransactionId};

/// Answers ordering's question with the verifier that the pipeline uses too, so that a signature is verified once.
pub(crate) struct VerifierAdmission(pub(crate) Arc<Verifier>);

impl Admission for VerifierAdmission {
    fn check(&self, transactions: &[Bytes]) -> Vec<Result<TransactionId, RejectReason>> {
        self.0
            .check(transactions)
            .into_iter()
            .map(|judged| judged.map(|transaction| transaction.id).map_err(|(_, reason)| reason))
            .collect()
    }
}
