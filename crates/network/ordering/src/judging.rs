//! What every service asks about a block of another node, beside what follows from its parent ([`crate::cutting`]): its
//! transactions and its certificates. Both verify signatures, so both run where they may hold their thread.

use crate::Admission;
use crate::cutting::Fault;
use crate::members::Epochs;
use bytes::Bytes;
use types::{Attested, Place, TransactionId};

/// The ids of a block's transactions, or why one of them is refused.
pub(crate) fn check_transactions(
    admission: &dyn Admission,
    place: Place<'_>,
    transactions: &[Bytes],
) -> Result<Vec<TransactionId>, Fault> {
    let verdicts = admission.check(place, transactions);
    assert_eq!(verdicts.len(), transactions.len(), "admission gives a verdict per transaction");
    let fault = |(position, reason)| Fault::Transaction { position, reason };
    verdicts
        .into_iter()
        .enumerate()
        .map(|(position, verdict)| verdict.map_err(|reason| fault((position, reason))))
        .collect()
}

/// Checks the signatures of a block's certificates.
pub(crate) fn check_certificates(epochs: &Epochs, attested: &Attested) -> Result<(), Fault> {
    let Attested { outcome, checkpoint, .. } = attested;
    let fault = |of, height| move |reason| Fault::Certificate { of, height, reason };
    if let Some(certificate) = outcome {
        let height = certificate.statement.height;
        let checked = epochs.rules_at(height).check_certificate(certificate);
        checked.map_err(fault("outcome", height))?;
    }
    match checkpoint {
        Some(certificate) => {
            let height = certificate.statement.height;
            let checked = epochs.rules_at(height).check_certificate(certificate);
            checked.map_err(fault("checkpoint", height))
        }
        None => Ok(()),
    }
}
