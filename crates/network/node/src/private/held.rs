//! What a member says of a part: that it is what its client has committed to, and that it holds it.

use super::part_store::HeldPart;
use super::schemas::PrivateSchemas;
use crypto::{Digest, Signature, SignedMessage};
use rustc_hash::FxHashSet;
use types::{
    EndorsedEffects, Endorsement, PartFault, Payload, SignedTransaction, SqlError, SqlState, TransactionId,
    endorse, endorsement_leaf, endorsement_message, limits,
};

/// Signatures of members that were verified: who, root, signature.
pub(super) type Verified = FxHashSet<(u16, Digest, Signature)>;

/// What somebody hears who asks for a schema at the node of another organisation.
pub(crate) fn no_member(schema: &str) -> SqlError {
    let message = format!("this node's organisation is no member of schema \"{schema}\"");
    SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
}

impl PrivateSchemas {
    /// This member's word that it holds transactions' parts: one signature for all of them. None of whoever the charter has removed.
    pub(super) fn sign(&self, ids: &[TransactionId], height: u64) -> Vec<Endorsement> {
        let ledger = self.node.charters.newest().ledger();
        let effects = EndorsedEffects::held().digest();
        let Some(organisation) = self.node.organisation() else { return Vec::new() };
        let held: Vec<(TransactionId, Digest)> = ids.iter().map(|id| (*id, effects)).collect();
        endorse(&self.node.node_key, organisation, &ledger, height, &held)
    }

    /// Whether it is this member's word. A signature that covers many transactions is verified once.
    pub(super) fn is_held(
        &self,
        id: &TransactionId,
        member: u16,
        endorsement: &Endorsement,
        verified: &mut Verified,
    ) -> bool {
        let leaf = endorsement_leaf(id, endorsement.snapshot, &EndorsedEffects::held().digest());
        let Some(root) = endorsement.proof.root(leaf) else { return false };
        if endorsement.organisation != member {
            return false;
        }
        let signature = (member, root, endorsement.signature);
        if verified.contains(&signature) {
            return true;
        }
        let charter = self.node.charters.newest();
        let Some(organisation) = charter.organisations.get(usize::from(member)) else { return false };
        let message = endorsement_message(&charter.ledger(), &root);
        let (key, signed) = (organisation.node_key, endorsement.signature);
        let is_its = crypto::verify(&SignedMessage { key, signature: signed, message: &message });
        if is_its {
            verified.insert(signature);
        }
        is_its
    }

    /// Whether a part is what a transaction's client has committed to, and the client's organisation a member. Who has signed it is
    /// for somebody else to say.
    ///
    /// # Errors
    /// `42501` for strangers, `54000` for what is too large, `22023` for another part than the client's.
    pub(super) fn check_content(&self, signed: &SignedTransaction, held: &HeldPart) -> Result<(), SqlError> {
        let ledger = self.node.charters.newest().ledger();
        let wrong = |message: String| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
        if signed.transaction.ledger != ledger || signed.transaction.id() != held.transaction {
            return Err(wrong("the transaction is of another ledger, or another one".to_string()));
        }
        let members = self.members(&held.schema).ok_or_else(|| no_member(&held.schema))?;
        if !members.has(signed.credential.organisation) {
            let message = format!("its client's organisation is no member of schema \"{}\"", held.schema);
            return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
        }
        let Payload::Parts { parts } = &signed.transaction.payload else {
            return Err(wrong("the transaction has no parts".to_string()));
        };
        if parts.len() > limits::PARTS_MAX {
            let (found, limit) = (parts.len(), limits::PARTS_MAX);
            let message = format!("the transaction has {found} parts, the limit is {limit} (PARTS_MAX)");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        let checked = held.part.check(&ledger, &held.schema, &signed.client_id(), parts);
        checked.map_err(|fault| match fault {
            PartFault::TooLarge { .. } => SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, fault.to_string()),
            PartFault::Nested => SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, fault.to_string()),
            PartFault::Commitment { .. } | PartFault::Stranger(_) => wrong(fault.to_string()),
        })
    }
}
