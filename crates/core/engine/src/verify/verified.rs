//! What is known of transactions and blocks whose signatures were verified.

use super::memory::ClientSignature;
use crypto::{Digest, Signature};
use std::sync::Arc;
use types::{
    BlockHeader, ClientId, Credential, EndorsedEffects, EndorsedSimulation, Payload, Principal, RejectReason,
    SignedTransaction, TransactionId,
};

/// A transaction that is this ledger's and that its client has signed.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifiedTransaction {
    /// Its id.
    pub id: TransactionId,
    /// Who signed it, and what the client calls it.
    pub client: ClientId,
    /// The last height at which it may stand.
    pub expires_at: u64,
    /// In whose name it runs.
    pub principal: Principal,
    /// What it does.
    pub payload: Arc<Payload>,
    /// Which organisation vouches for the client.
    pub credential: Credential,
    /// The client's signature under the id.
    pub signature: Signature,
    /// What it does according to those who have signed that, where transactions are executed before they are ordered.
    pub endorsed: Option<VerifiedEndorsement>,
}

/// Effects whose endorsements are signatures of the organisations that they name.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifiedEndorsement {
    /// What was signed.
    pub effects: Arc<EndorsedEffects>,
    /// The least height among the endorsements: on the state after that block the effects are what all of them say.
    pub snapshot: u64,
    /// Who has signed, by position in the charter, ascending.
    pub endorsers: Arc<[u16]>,
    /// The height that each of them names.
    pub heights: Arc<[u64]>,
}

impl From<EndorsedSimulation> for VerifiedEndorsement {
    /// Takes endorsements that somebody has verified, or need not.
    fn from(simulation: EndorsedSimulation) -> VerifiedEndorsement {
        let EndorsedSimulation { effects, endorsements } = simulation;
        let signed = endorsements.iter().map(|one| (one.organisation, one.snapshot));
        VerifiedEndorsement::new(Arc::new(effects), signed.collect())
    }
}

impl VerifiedEndorsement {
    /// Endorsed by these organisations, each of which names a height.
    pub(crate) fn new(effects: Arc<EndorsedEffects>, mut signed: Vec<(u16, u64)>) -> VerifiedEndorsement {
        signed.sort_unstable();
        let snapshot = signed.iter().map(|(_, height)| *height).min().unwrap_or(0);
        let endorsers = signed.iter().map(|(endorser, _)| *endorser).collect();
        let heights = signed.iter().map(|(_, height)| *height).collect();
        VerifiedEndorsement { effects, snapshot, endorsers, heights }
    }
}

impl From<SignedTransaction> for VerifiedTransaction {
    /// Takes the parts of a transaction whose signature somebody has verified, or need not.
    fn from(signed: SignedTransaction) -> VerifiedTransaction {
        VerifiedTransaction::new(signed.transaction.id(), signed)
    }
}

impl VerifiedTransaction {
    pub(super) fn new(id: TransactionId, signed: SignedTransaction) -> VerifiedTransaction {
        VerifiedTransaction {
            id,
            client: signed.client_id(),
            expires_at: signed.transaction.expires_at,
            principal: Principal::new(signed.credential.organisation, signed.transaction.role),
            payload: Arc::new(signed.transaction.payload),
            credential: signed.credential,
            signature: signed.signature,
            endorsed: signed.endorsed.map(|simulation| (*simulation).into()),
        }
    }

    pub(super) fn client_signature(&self) -> ClientSignature {
        (self.id, self.signature, self.credential)
    }
}

/// A block whose transactions are decoded and judged.
#[derive(Clone, Debug)]
pub struct VerifiedBlock {
    /// The header.
    pub header: BlockHeader,
    /// Digest of the header.
    pub digest: Digest,
    /// Per transaction, in block order: itself, or its id and why it is none.
    pub transactions: Vec<Judged>,
}

/// A verdict: the transaction, or its id and what is wrong with it.
pub type Judged = Result<Arc<VerifiedTransaction>, (TransactionId, RejectReason)>;
