use crate::endorsing::Proposer;
use bytes::Bytes;
use crypto::Sha256Batch;
use engine::{Judged, Verifier};
use ordering::{Admission, Arrangement};
use std::sync::Arc;
use types::{Place, RejectReason, SignedTransaction, TransactionId};

/// Answers ordering's question with the verifier that the pipeline uses too, so that a signature is verified once.
pub(crate) struct VerifierAdmission {
    pub(crate) verifier: Arc<Verifier>,
    /// What this node does as proposer, if not what everybody does.
    pub(crate) proposer: Option<Arc<Proposer>>,
}

impl Admission for VerifierAdmission {
    fn check(&self, place: Place<'_>, transactions: &[Bytes]) -> Vec<Result<TransactionId, RejectReason>> {
        let judged = self.verifier.check(place, transactions);
        let names = ordering_names(&judged, transactions);
        judged
            .into_iter()
            .zip(names)
            .map(|(judged, name)| judged.map(|_| name).map_err(|(_, why)| why))
            .collect()
    }

    fn arrange(&self, transactions: &[Bytes]) -> Arrangement {
        match &self.proposer {
            Some(proposer) => proposer.arrange(transactions),
            None => Arrangement::all(transactions.len()),
        }
    }

    fn may_drop(&self) -> bool {
        self.proposer.is_some()
    }
}

/// What ordering knows a transaction by. It covers endorsements, which the id does not: a request that came with too few of
/// them, and was ordered and rejected or dropped, must not keep out the same request with enough. Without any of its own it is the id,
/// whatever the block says of it.
pub(crate) fn ordering_name(id: TransactionId, bytes: &[u8]) -> TransactionId {
    match SignedTransaction::has_endorsements(bytes) && SignedTransaction::from_bytes(bytes).is_ok() {
        true => TransactionId(crypto::sha256(&[&id.0.0, SignedTransaction::uncovered(bytes)])),
        false => id,
    }
}

/// [`ordering_name`] of many where they are endorsed, the id where not.
pub(crate) fn ordering_names(judged: &[Judged], transactions: &[Bytes]) -> Vec<TransactionId> {
    let mut names = Sha256Batch::new();
    for (judged, bytes) in judged.iter().zip(transactions) {
        if let Ok(transaction) = judged
            && SignedTransaction::has_endorsements(bytes)
        {
            names.push(&[&transaction.id.0.0, SignedTransaction::uncovered(bytes)]);
        }
    }
    let mut names = names.finish().into_iter();
    let mut name = |(judged, bytes): (&Judged, &Bytes)| match judged {
        Ok(_) if SignedTransaction::has_endorsements(bytes) => {
            TransactionId(names.next().expect("one for every endorsed transaction"))
        }
        Ok(transaction) => transaction.id,
        Err((id, _)) => *id,
    };
    judged.iter().zip(transactions).map(&mut name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypto::SecretKey;
    use types::{
        Charter, EndorsedEffects, EndorsedSimulation, ExecutionModel, Identity, Organisation, Payload,
        endorse,
    };

    #[test]
    fn a_request_with_other_endorsements_is_another_one_for_ordering() {
        let (root, node) = (SecretKey::from_bytes([1; 32]), SecretKey::from_bytes([2; 32]));
        let mut charter = Charter::with_defaults("test", 1);
        charter.execution = ExecutionModel::ExecuteOrderValidate;
        charter.organisations.push(Organisation {
            name: "one".into(),
            root_key: root.public_key(),
            node_key: node.public_key(),
            address: String::new(),
            gateway: String::new(),
            removed: false,
            node_key_expires: None,
        });
        let identity = Identity::issue(charter.ledger(), &root, 0);
        let payload = Payload::Call { procedure: "p".into(), arguments: vec![] };
        let mut signed = identity.sign(payload, 9);
        let (id, effects) = (signed.transaction.id(), EndorsedEffects::default());
        let mut with = |endorsements| {
            signed.endorsed = Some(Box::new(EndorsedSimulation { effects: effects.clone(), endorsements }));
            Bytes::from(signed.to_bytes())
        };
        let none = with(vec![]);
        let one = with(endorse(&node, 0, &charter.ledger(), 0, &[(id, effects.digest())]));
        let admission = VerifierAdmission { verifier: Arc::new(Verifier::new(&charter)), proposer: None };
        let charters = types::Charters::new(Arc::new(charter));
        let place = Place { charters: &charters, height: 1 };
        let names: Vec<TransactionId> = admission
            .check(place, &[none, one.clone(), one.clone()])
            .into_iter()
            .map(|name| name.expect("signed by the client"))
            .collect();
        assert_ne!(names[0], names[1]);
        assert_eq!(names[1], names[2]);
        assert_eq!(names[1], ordering_name(id, &one));
        let unendorsed = Bytes::from(
            identity.sign(Payload::Call { procedure: "p".into(), arguments: vec![] }, 9).to_bytes(),
        );
        let id = SignedTransaction::id_of(&unendorsed);
        assert_eq!(ordering_name(id, &unendorsed), id, "as who waits for it is known by");
    }
}
