//! What was found good, in bounded memory.

use super::VerifiedTransaction;
use super::signatures::EndorserSignature;
use crypto::{PublicKey, Signature};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::sync::Arc;
use types::{Credential, TransactionId};

/// Transactions whose positive verdict is remembered. Each takes about the memory of its decoded form.
pub(super) const REMEMBERED_TRANSACTIONS_MAX: usize = 32_768;
/// Clients whose credential is remembered as good.
pub(super) const REMEMBERED_CLIENTS_MAX: usize = 65_536;
/// Endorsers' signatures that are remembered as good.
pub(super) const REMEMBERED_ENDORSERS_MAX: usize = 65_536;
/// Proposals whose client's signature is remembered as good.
pub(super) const REMEMBERED_PROPOSALS_MAX: usize = 32_768;

/// A transaction with what stands behind it in the encoding that was verified.
#[derive(Clone)]
pub(super) struct Remembered {
    pub(super) transaction: Arc<VerifiedTransaction>,
    pub(super) uncovered: Box<[u8]>,
    /// [`Place::version`] of what it was judged for: another charter may have other organisations and keys.
    pub(super) version: u64,
}

/// What a client has signed: a transaction, with which signature, and who vouches for the client.
pub(super) type ClientSignature = (TransactionId, Signature, Credential);

/// Positive verdicts, and signatures that are good.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) transactions: FxHashMap<TransactionId, Remembered>,
    /// Good ones; a signature covers many transactions, which may stand in different blocks.
    pub(super) endorsers: FxHashSet<EndorserSignature>,
    pub(super) oldest: VecDeque<TransactionId>,
    pub(super) clients: FxHashSet<(PublicKey, Credential)>,
    /// Good ones under proposals: the transaction comes again with endorsements.
    pub(super) proposals: FxHashSet<ClientSignature>,
    pub(super) oldest_proposals: VecDeque<ClientSignature>,
}

impl Memory {
    pub(super) fn remember_proposal(&mut self, signature: ClientSignature) {
        while self.oldest_proposals.len() >= REMEMBERED_PROPOSALS_MAX {
            if let Some(oldest) = self.oldest_proposals.pop_front() {
                self.proposals.remove(&oldest);
            }
        }
        if self.proposals.insert(signature) {
            self.oldest_proposals.push_back(signature);
        }
    }

    pub(super) fn remember(
        &mut self,
        transaction: Arc<VerifiedTransaction>,
        uncovered: Box<[u8]>,
        version: u64,
    ) {
        while self.oldest.len() >= REMEMBERED_TRANSACTIONS_MAX {
            if let Some(oldest) = self.oldest.pop_front() {
                self.transactions.remove(&oldest);
            }
        }
        self.oldest.push_back(transaction.id);
        self.transactions.insert(transaction.id, Remembered { transaction, uncovered, version });
    }

    /// Remembers a credential and endorsers' signatures as good.
    pub(super) fn believe(
        &mut self,
        client: (PublicKey, Credential),
        signatures: impl IntoIterator<Item = EndorserSignature>,
    ) {
        if self.clients.len() >= REMEMBERED_CLIENTS_MAX {
            self.clients.clear();
        }
        self.clients.insert(client);
        if self.endorsers.len() >= REMEMBERED_ENDORSERS_MAX {
            self.endorsers.clear();
        }
        self.endorsers.extend(signatures);
    }
}
