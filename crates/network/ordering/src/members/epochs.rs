//! Who orders which heights: an epoch is the reign of one version of the charter, with its own members and its own
//! instance of consensus.
//!
//! Blocks say when an epoch ends: an amended charter stands in a block several heights before it takes effect
//! ([`types::Handover`]). It is certified by a quorum that has executed the block which decided on it, so wherever a
//! member learns of it, from a block that is not final yet or from its own node, it is the truth.
//!
//! ```text
//!  d: a block decides on an amendment          e = d + outcome_lag_blocks + 10: it takes effect
//!  ├── outcome header of d names it ──▶ certified ──▶ stands in a block, with its text ──▶ e − 1 │ e
//!  │   (old members sign)                              (at e − 4 at the latest)      old members │ new members vote
//! ```
//!
//! - **Every voter knows where an epoch ends**, because ordering never runs further ahead of certified outcomes than
//!   the lag allows. The last block of an epoch is proposed again until it is final; the next epoch builds on it.
//! - **A node learns of an amendment from whatever comes first**: its own certificates, blocks that are not final
//!   yet, or final ones. After a restart it reads the blocks in its own archive.
//! - **Who is behind asks.** The word about work says in which epoch its sender is. Whoever is further says where
//!   that epoch ended. An epoch whose beginning a node does not have starts from the newest block that was finalized
//!   by itself.
//! - **A node whose key is no member's follows without voting**: one that will come in, one that has left, one whose
//!   key was replaced. Peers are the members of the epoch, of the one before, and of those to come.
//! - **The folder of votes goes from a key to the one that replaces it.** Each key has its own journal of votes.

use super::committee;
use commonware_consensus::simplex::scheme::ed25519::Scheme;
use commonware_cryptography::ed25519::PublicKey;
use commonware_utils::ordered::Set;
use crypto::{Digest, SecretKey};
use parking_lot::RwLock;
use std::sync::Arc;
use tokio::sync::Notify;
use types::{Attested, CertificateRules, Charter, Charters, HandoverError};

/// What the parts of a member know of its ledger's epochs.
#[derive(Clone)]
pub(crate) struct Epochs(Arc<Shared>);

struct Shared {
    key: SecretKey,
    own: PublicKey,
    known: RwLock<Known>,
    changed: Notify,
}

struct Known {
    charters: Charters,
    /// By version of the charter.
    committees: Vec<Committee>,
}

/// The members of an epoch.
struct Committee {
    /// Keys by position in the charter; none of those who have left.
    keys: Vec<Option<PublicKey>>,
    /// Signs, if this node is a member, and verifies.
    scheme: Arc<Scheme>,
}

impl Committee {
    fn new(charter: &Charter, key: &SecretKey) -> Committee {
        // Charters are checked before they are used.
        let keys = committee::keys(charter).expect("the keys of a charter are good");
        let members = Set::from_iter_dedup(keys.iter().flatten().cloned());
        let (namespace, private) = (committee::namespace(charter), committee::private_key(key));
        let signer = Scheme::signer(&namespace, members.clone(), private);
        let scheme = signer.unwrap_or_else(|| Scheme::verifier(&namespace, members));
        Committee { keys, scheme: Arc::new(scheme) }
    }

    fn position(&self, key: &PublicKey) -> Option<u16> {
        let found = self.keys.iter().position(|member| member.as_ref() == Some(key));
        found.map(|position| position as u16)
    }
}

impl Epochs {
    /// `key`: this node's, whether it is that of a member or not.
    pub(crate) fn new(charters: Charters, key: SecretKey) -> Epochs {
        let committee = |reign: &types::Reign| Committee::new(&reign.charter, &key);
        let committees = charters.reigns().iter().map(committee).collect();
        let own = committee::public_key(&key.public_key()).expect("a secret key has a good public key");
        let known = RwLock::new(Known { charters, committees });
        Epochs(Arc::new(Shared { key, own, known, changed: Notify::new() }))
    }

    /// This node's key.
    pub(crate) fn own_key(&self) -> &PublicKey {
        &self.0.own
    }

    /// The charters that are known.
    pub(crate) fn charters(&self) -> Charters {
        self.0.known.read().charters.clone()
    }

    /// Whether headers that name `digest` name only charters that are known here.
    pub(crate) fn knows(&self, digest: &Digest) -> bool {
        self.0.known.read().charters.knows(digest)
    }

    /// The charter that holds at a height.
    pub(crate) fn charter_at(&self, height: u64) -> Arc<Charter> {
        self.0.known.read().charters.at(height).charter.clone()
    }

    /// What makes certificates about a height good.
    pub(crate) fn rules_at(&self, height: u64) -> Arc<CertificateRules> {
        self.0.known.read().charters.at(height).rules.clone()
    }

    /// The epoch of a height.
    pub(crate) fn epoch_at(&self, height: u64) -> u64 {
        self.0.known.read().charters.version_at(height)
    }

    /// The first height of an epoch that is known.
    pub(crate) fn first_of(&self, epoch: u64) -> Option<u64> {
        let known = self.0.known.read();
        known.charters.reigns().get(usize::try_from(epoch).ok()?).map(|reign| reign.first)
    }

    /// The last height of an epoch, once it is known.
    pub(crate) fn last_of(&self, epoch: u64) -> Option<u64> {
        self.0.known.read().charters.last_of(epoch)
    }

    /// Votes of an epoch, of this node if it is a member.
    pub(crate) fn scheme(&self, epoch: u64) -> Option<Arc<Scheme>> {
        let known = self.0.known.read();
        known.committees.get(usize::try_from(epoch).ok()?).map(|committee| committee.scheme.clone())
    }

    /// The member after this one in the order of keys, in which members lead.
    pub(crate) fn after(&self, height: u64, key: &PublicKey) -> Option<PublicKey> {
        let known = self.0.known.read();
        let committee = &known.committees[known.charters.version_at(height) as usize];
        let members = committee.keys.iter().flatten();
        let later = members.clone().filter(|member| *member > key).min();
        later.or_else(|| members.min()).cloned()
    }

    /// Position in the charter of the member with this key at a height.
    pub(crate) fn member_at(&self, height: u64, key: &PublicKey) -> Option<u16> {
        let known = self.0.known.read();
        known.committees[known.charters.version_at(height) as usize].position(key)
    }

    /// Position of this node's organisation, if its key is that of a member at a height.
    pub(crate) fn own_at(&self, height: u64) -> Option<u16> {
        self.member_at(height, self.own_key())
    }

    /// Position of the organisation that has, had or will have this key.
    pub(crate) fn member(&self, key: &PublicKey) -> Option<usize> {
        let known = self.0.known.read();
        known.committees.iter().rev().find_map(|committee| committee.position(key)).map(usize::from)
    }

    /// The newest key of an organisation that has not left.
    pub(crate) fn key_of(&self, position: u16) -> Option<PublicKey> {
        let known = self.0.known.read();
        let newest =
            known.committees[known.charters.version_at(u64::MAX) as usize].keys.get(usize::from(position));
        newest.cloned().flatten()
    }

    /// Takes charters that are proved otherwise, if they are more than those that are known.
    pub(crate) fn adopt(&self, charters: &Charters) {
        let mut known = self.0.known.write();
        if known.charters.reigns().len() < charters.reigns().len() {
            known.charters = charters.clone();
            self.grow(&mut known);
        }
    }

    /// Takes the charters that a block carries, whose certificates are checked.
    pub(crate) fn learn(&self, attested: &Attested) -> Result<(), HandoverError> {
        if attested.charters.is_empty() {
            return Ok(());
        }
        let mut known = self.0.known.write();
        if known.charters.follow(attested)? {
            self.grow(&mut known);
        }
        Ok(())
    }

    /// Takes those of this node's own charters that a certificate of its own outcomes names.
    pub(crate) fn certified(&self, decided: &Charters, named: &Digest) {
        let mut known = self.0.known.write();
        if known.charters.knows(named) || !decided.knows(named) {
            return;
        }
        let before = known.charters.digest();
        let new = decided.between(&before, named).unwrap_or_default();
        for amended in new {
            if let Err(error) = known.charters.add(amended) {
                tracing::error!(%error, "this node's state has amended charters that cannot follow the known ones");
                break;
            }
        }
        self.grow(&mut known);
    }

    fn grow(&self, known: &mut Known) {
        let from = known.committees.len();
        let new = known.charters.reigns()[from..].iter();
        let new: Vec<Committee> = new.map(|reign| Committee::new(&reign.charter, &self.0.key)).collect();
        known.committees.extend(new);
        self.0.changed.notify_waiters();
    }

    /// Resolves when something is learned after the call.
    pub(crate) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.0.changed.notified()
    }
}
