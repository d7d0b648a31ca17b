//! What a member says of a part: that it is what its client has committed to, and that it holds it.

use super::part_store::HeldPart;
use super::schemas::PrivateSchemas;
use crate::Defence;
use crypto::{Digest, Signature, SignedMessage};
use rustc_hash::FxHashSet;
use types::{
    EndorsedEffects, Endorsement, HeldParts, PartCommitment, PartFault, Payload, SignedTransaction, SqlError,
    SqlState, TransactionId, endorse, endorsement_leaf, endorsement_message, limits,
};

/// Signatures of members that were verified: who, root, signature.
pub(super) type Verified = FxHashSet<(u16, Digest, Signature)>;

/// Transactions with parts in several schemas that may wait for votes in one of them.
const UNDECIDED_MAX: usize = 4_096;

/// What somebody hears who asks for a schema at the node of another organisation.
pub(crate) fn no_member(schema: &str) -> SqlError {
    let message = format!("this node's organisation is no member of schema \"{schema}\"");
    SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
}

impl PrivateSchemas {
    /// What somebody hears who asks this node for a schema that it does not hold.
    pub(super) fn not_here(&self, schema: &str) -> SqlError {
        if !self.is_held_elsewhere(schema) {
            return no_member(schema);
        }
        let message = format!("this node does not hold schema \"{schema}\"");
        SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message).hint(
            "`schemas` in its node.toml says which schemas it holds. Connect to another node of the organisation, or add the schema there \
             and start the node again.",
        )
    }

    /// This member's word that it holds transactions' parts: one signature for all of them. None of whoever the charter has removed.
    pub(super) fn sign(&self, ids: &[TransactionId], height: u64) -> Vec<Endorsement> {
        let ledger = self.node.charters.ledger();
        let effects = EndorsedEffects::held().digest();
        let Some(organisation) = self.node.organisation() else { return Vec::new() };
        let held: Vec<(TransactionId, Digest)> = ids.iter().map(|id| (*id, effects)).collect();
        endorse(&self.node.node_key, organisation, &ledger, height, &held)
    }

    /// The same with one signature under the list, as version 5 has it. `None` for whoever the charter has removed.
    pub(super) fn sign_together(&self, ids: Vec<TransactionId>, height: u64) -> Option<HeldParts> {
        let ledger = self.node.charters.ledger();
        let organisation = self.node.organisation()?;
        Some(HeldParts::sign(ids, (organisation, height), (&ledger, &self.node.node_key)))
    }

    /// Whether a member has signed that it holds the parts of all these, and nobody else has.
    pub(super) fn is_word_of(&self, member: u16, word: &HeldParts) -> bool {
        let HeldParts { transactions, holders } = word;
        let [holder] = &holders[..] else { return false };
        let charter = self.node.charters.newest();
        let Some(organisation) = charter.organisations.get(usize::from(member)) else { return false };
        let message =
            endorsement_message(&self.node.charters.ledger(), &HeldParts::root(transactions, holder.height));
        let (key, signature) = (organisation.node_key, holder.signature);
        holder.organisation == member && crypto::verify(&SignedMessage { key, signature, message: &message })
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
        let message = endorsement_message(&self.node.charters.ledger(), &root);
        let (key, signed) = (organisation.node_key, endorsement.signature);
        let is_its = crypto::verify(&SignedMessage { key, signature: signed, message: &message });
        if is_its {
            verified.insert(signature);
        }
        is_its
    }

    /// Whether parts are what a transaction's client has committed to, all of those of this organisation's schemas, and the client's
    /// organisation a member. Who has signed it is for somebody else to say.
    ///
    /// # Errors
    /// `42501` for strangers, `54000` for what is too large, `22023` for other parts than the client's.
    pub(super) fn check_content(
        &self,
        signed: &SignedTransaction,
        held: &[HeldPart],
    ) -> Result<(), SqlError> {
        let ledger = self.node.charters.ledger();
        let wrong = |message: String| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
        let id = signed.transaction.id();
        if signed.transaction.ledger != ledger || held.iter().any(|part| part.transaction != id) {
            return Err(wrong("the transaction is of another ledger, or another one".to_string()));
        }
        let Payload::Parts { parts } = &signed.transaction.payload else {
            return Err(wrong("the transaction has no parts".to_string()));
        };
        let limit = |what: &str, found: usize, limit: usize, name: &str| {
            let message = format!("{what} {found}, the limit is {limit} ({name})");
            Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message))
        };
        if parts.len() > limits::PARTS_MAX {
            return limit(
                "the number of the transaction's parts is",
                parts.len(),
                limits::PARTS_MAX,
                "PARTS_MAX",
            );
        }
        for part in held {
            self.check_part(signed, part, parts)?;
        }
        for PartCommitment { schema, .. } in parts {
            let is_given = held.iter().any(|part| part.schema == *schema);
            // Whoever says that it holds a transaction's parts holds those of all its schemas.
            if !is_given && self.members(schema).is_some() {
                return Err(wrong(format!("the part for schema \"{schema}\" is missing")));
            }
            if self.is_held_elsewhere(schema) {
                return Err(self.not_here(schema));
            }
            let undecided = self.undecided(schema);
            if parts.len() > 1 && undecided >= UNDECIDED_MAX {
                let what = format!("transactions that wait for votes in schema \"{schema}\":");
                return limit(&what, undecided, UNDECIDED_MAX, "UNDECIDED_MAX");
            }
        }
        Ok(())
    }

    /// Whether it is the part that a transaction's client has committed to.
    fn check_part(
        &self,
        signed: &SignedTransaction,
        held: &HeldPart,
        parts: &[PartCommitment],
    ) -> Result<(), SqlError> {
        let ledger = self.node.charters.ledger();
        let members = self.members(&held.schema).ok_or_else(|| self.not_here(&held.schema))?;
        if !members.has(signed.credential.organisation) {
            let message = format!("its client's organisation is no member of schema \"{}\"", held.schema);
            return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
        }
        if matches!(held.part.payload, Payload::Agreed(_)) && !self.has_assets() {
            let message =
                "a part with signatures, or with what it shares with others, before execution version 6";
            return Err(SqlError::unsupported(message));
        }
        let checked = held.part.check(&ledger, &held.schema, &signed.client_id(), parts);
        if self.node.lacks(Defence::PartCommitments) {
            return Ok(());
        }
        checked.map_err(|fault| match fault {
            PartFault::TooLarge { .. } => SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, fault.to_string()),
            PartFault::Nested => SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, fault.to_string()),
            PartFault::Commitment { .. } | PartFault::Stranger(_) => {
                SqlError::new(SqlState::INVALID_PARAMETER_VALUE, fault.to_string())
            }
        })
    }
}
