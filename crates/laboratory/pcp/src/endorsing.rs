//! How transactions come about and are checked: proposals, pre-images, hashes and signatures (5.3.2), with real signatures.

use crate::case::{CasePart, CaseTransaction};
use crate::message::{Message, Number, ShardId};
use crate::part::OwnPart;
use crate::rules::Rules;
use crate::shard::Shard;
use crypto::{Digest, PublicKey, SecretKey, Signature, SignedMessage, leaf_hash, merkle_root, verify};
use std::collections::{BTreeMap, VecDeque};

/// Accounts of a shard: a proposal moves coins between two of them that nobody else uses at the moment.
const ACCOUNTS: u64 = 1 << 40;

fn key(number: u8) -> SecretKey {
    SecretKey::from_bytes([number; 32])
}

fn is_signed(key: PublicKey, signature: Signature, message: &[u8]) -> bool {
    verify(&SignedMessage { key, signature, message })
}

/// What a shard keeps until the hash stands in a transaction.
struct PreImage {
    part: CasePart,
    transaction: Number,
}

/// A transaction as it stands in the ledger.
pub(crate) struct TngTransaction {
    hashes: Vec<Digest>,
    /// Of both stakeholders, over the root of the hashes.
    signatures: [Signature; 2],
}

/// A transaction that everybody reads: the client's signature, the endorser's, and what it does.
pub(crate) struct PlainTransaction {
    signatures: [Signature; 2],
    content: Vec<u8>,
    reads: [(u64, u64); 2],
}

/// Shards with their transient stores, and two stakeholders.
pub(crate) struct World {
    stakeholders: [SecretKey; 2],
    /// Their public keys.
    known: [PublicKey; 2],
    shard_keys: Vec<SecretKey>,
    transient: Vec<BTreeMap<Digest, PreImage>>,
    shards: Vec<Shard>,
    versions: BTreeMap<u64, u64>,
}

/// How parts of a transaction come to one decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Commit {
    /// pCP.
    Pcp,
    /// A coordinator collects what all say, and tells them.
    TwoPhase,
}

impl World {
    pub(crate) fn new(shards: u32) -> World {
        let stakeholders = [key(1), key(2)];
        World {
            known: [stakeholders[0].public_key(), stakeholders[1].public_key()],
            stakeholders,
            shard_keys: (0..shards).map(|shard| key(shard as u8 + 3)).collect(),
            transient: (0..shards).map(|_| BTreeMap::new()).collect(),
            shards: (0..shards).map(|shard| Shard::new(ShardId(shard), Rules::CORRECTED)).collect(),
            versions: BTreeMap::new(),
        }
    }

    /// The stakeholders get one proposal after the other endorsed, as the thesis's client does: a chain, in which each shard depends
    /// on the one before it.
    pub(crate) fn endorse(&mut self, number: Number, proposals: u32) -> Option<TngTransaction> {
        let mut hashes = Vec::new();
        for shard in (0..proposals).map(ShardId) {
            let proposal = [b"proposal".as_slice(), &number.to_be_bytes(), &shard.0.to_be_bytes()].concat();
            let signatures = self.stakeholders.each_ref().map(|key| key.sign(&proposal));
            let (hash, signature) = self.propose(number, shard, &proposal, signatures)?;
            if !is_signed(self.shard_keys[shard.0 as usize].public_key(), signature, &hash.0) {
                return None;
            }
            hashes.push(hash);
        }
        let root = merkle_root(&hashes);
        Some(TngTransaction { signatures: self.stakeholders.each_ref().map(|key| key.sign(&root.0)), hashes })
    }

    /// A shard checks a proposal, simulates it, and gives away the hash of what it found alone.
    fn propose(
        &mut self,
        number: Number,
        shard: ShardId,
        proposal: &[u8],
        signatures: [Signature; 2],
    ) -> Option<(Digest, Signature)> {
        if !self.known.iter().zip(signatures).all(|(known, signature)| is_signed(*known, signature, proposal))
        {
            return None;
        }
        let at = shard.0 as usize;
        let accounts = [2 * number % ACCOUNTS, (2 * number + 1) % ACCOUNTS];
        let reads: BTreeMap<u64, u64> =
            accounts.iter().map(|account| (*account, self.shards[at].version(*account))).collect();
        let mut image = proposal.to_vec();
        for (account, version) in &reads {
            image.extend([account.to_be_bytes(), version.to_be_bytes()].concat());
        }
        let hash = leaf_hash(&image);
        let depends_on = shard.0.checked_sub(1).map(ShardId).into_iter().collect();
        let part = CasePart { depends_on, is_endorsed: true, writes: accounts.into(), reads };
        self.transient[at].insert(hash, PreImage { part, transaction: number });
        Some((hash, self.shard_keys[at].sign(&hash.0)))
    }

    /// Every shard validates the transaction, which all of them commit or none. `None`: some shard does not decide.
    pub(crate) fn validate(
        &mut self,
        number: Number,
        transaction: &TngTransaction,
        commit: Commit,
    ) -> Option<bool> {
        let root = merkle_root(&transaction.hashes);
        let mut parts = BTreeMap::new();
        for (shard, transient) in (0..).map(ShardId).zip(&mut self.transient) {
            let known = transaction.hashes.iter().filter_map(|hash| transient.remove(hash));
            let Some(image) = known.filter(|image| image.transaction == number).last() else { continue };
            // Each shard checks the stakeholders' signatures by itself.
            let mut signed = self.known.iter().zip(transaction.signatures);
            let is_endorsed = signed.all(|(known, signature)| is_signed(*known, signature, &root.0));
            parts.insert(shard, CasePart { is_endorsed, ..image.part });
        }
        let case = CaseTransaction { hashes: transaction.hashes.len() as u32, parts };
        match commit {
            Commit::Pcp => self.commit_by_pcp(number, &case),
            Commit::TwoPhase => Some(self.commit_in_two_phases(number, &case)),
        }
    }

    fn commit_by_pcp(&mut self, number: Number, case: &CaseTransaction) -> Option<bool> {
        let mut messages = VecDeque::new();
        for (shard, id) in self.shards.iter_mut().zip((0..).map(ShardId)) {
            shard.receive(case.own_part(number, id));
            shard.validate(number);
            messages.extend(shard.take_sent());
        }
        while let Some(message) = messages.pop_front() {
            let to = match message {
                Message::Ask(request) => request.to,
                Message::Say(answer) => answer.to,
            };
            let shard = self.shards.get_mut(to.0 as usize)?;
            shard.hear(&message);
            messages.extend(shard.take_sent());
        }
        let mut decisions = case.parts.keys().map(|shard| self.shards[shard.0 as usize].decision(number));
        decisions.try_fold(true, |all, decision| Some(all & decision?))
    }

    fn commit_in_two_phases(&mut self, number: Number, case: &CaseTransaction) -> bool {
        // The same state machines, without dependencies: the coordinator's word is what they find endorsed.
        let says = |(shard, part): (&ShardId, &CasePart)| {
            let at = &self.shards[shard.0 as usize];
            part.is_endorsed && part.reads.iter().all(|(key, version)| at.version(*key) == *version)
        };
        let commits = case.parts.iter().all(says);
        for (shard, id) in self.shards.iter_mut().zip((0..).map(ShardId)) {
            let part = case.own_part(number, id).map(|part| OwnPart {
                dependencies: BTreeMap::new(),
                is_endorsed: commits,
                ..part
            });
            shard.receive(part);
            shard.validate(number);
        }
        commits
    }

    /// The same for a transaction that everybody reads, as in Fabric: one endorser simulates, and everybody validates.
    pub(crate) fn endorse_plain(&self, number: Number) -> Option<PlainTransaction> {
        let proposal = [b"proposal".as_slice(), &number.to_be_bytes()].concat();
        let signature = self.stakeholders[0].sign(&proposal);
        if !is_signed(self.known[0], signature, &proposal) {
            return None;
        }
        let reads = [2 * number % ACCOUNTS, (2 * number + 1) % ACCOUNTS]
            .map(|account| (account, self.versions.get(&account).copied().unwrap_or(0)));
        let mut content = proposal;
        for (account, version) in reads {
            content.extend([account.to_be_bytes(), version.to_be_bytes()].concat());
        }
        let endorsed = self.shard_keys[0].sign(&content);
        if !is_signed(self.shard_keys[0].public_key(), endorsed, &content) {
            return None;
        }
        Some(PlainTransaction { signatures: [self.stakeholders[0].sign(&content), endorsed], content, reads })
    }

    pub(crate) fn validate_plain(&mut self, number: Number, transaction: &PlainTransaction) -> bool {
        let PlainTransaction { signatures, content, reads } = transaction;
        let keys = [self.known[0], self.shard_keys[0].public_key()];
        let mut signed = keys.into_iter().zip(signatures);
        let version = |account| self.versions.get(account).copied().unwrap_or(0);
        let commits = signed.all(|(key, signature)| is_signed(key, *signature, content))
            && reads.iter().all(|(account, read)| version(account) == *read);
        if commits {
            self.versions.extend(reads.iter().map(|(account, _)| (*account, number + 1)));
        }
        commits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_commits_once_and_only_with_the_stakeholders_signatures() {
        for commit in [Commit::Pcp, Commit::TwoPhase] {
            let mut world = World::new(3);
            let transaction = world.endorse(0, 3).expect("signed");
            assert_eq!(world.validate(0, &transaction, commit), Some(true));
            let mut forged = world.endorse(1, 3).expect("signed");
            forged.signatures[1] = transaction.signatures[1];
            assert_eq!(world.validate(1, &forged, commit), Some(false));
            assert!(world.transient.iter().all(BTreeMap::is_empty), "pre-images go with their transaction");
        }
        let mut world = World::new(1);
        let mut plain = world.endorse_plain(0).expect("signed");
        assert!(
            world.validate_plain(0, &plain) && !world.validate_plain(1, &plain),
            "its reads are old by then"
        );
        plain = world.endorse_plain(2).expect("signed");
        plain.content.push(0);
        assert!(!world.validate_plain(2, &plain));
    }
}
