//! Transactions over several shards, random ones among them, and what must become of them: the serial truth.

use crate::message::{Number, Secret, ShardId};
use crate::part::OwnPart;
use crypto::sha256;
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IteratorRandom;
use std::collections::{BTreeMap, BTreeSet};

/// What one shard has to do in a transaction.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CasePart {
    /// The shards that its proposals name, as the stakeholders wrote them.
    pub depends_on: BTreeSet<ShardId>,
    /// Whether signatures and program agree.
    pub is_endorsed: bool,
    /// Keys that were read, with their versions.
    pub reads: BTreeMap<u64, u64>,
    /// Keys that are written.
    pub writes: BTreeSet<u64>,
}

/// A transaction.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CaseTransaction {
    /// Its hashes, bogus ones among them.
    pub hashes: u32,
    /// Its parts.
    pub parts: BTreeMap<ShardId, CasePart>,
}

/// A ledger for a number of shards.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Case {
    /// Shards are numbered from 0.
    pub shards: u32,
    /// The transactions, in the order of the ledger.
    pub transactions: Vec<CaseTransaction>,
}

/// What the transactions of a case must come to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Truth {
    /// By transaction, whether each part commits.
    pub commits: Vec<BTreeMap<ShardId, bool>>,
    /// By shard, the versions of the keys that were written.
    pub versions: BTreeMap<ShardId, BTreeMap<u64, u64>>,
}

impl CaseTransaction {
    /// A shard and all that it depends on, directly or not.
    pub fn reachable(&self, shard: ShardId) -> BTreeSet<ShardId> {
        let (mut seen, mut next) = (BTreeSet::from([shard]), vec![shard]);
        while let Some(shard) = next.pop() {
            let dependencies = self.parts.get(&shard).into_iter().flat_map(|part| &part.depends_on);
            next.extend(dependencies.filter(|dependency| seen.insert(**dependency)));
        }
        seen
    }

    /// What a shard knows of it. Each dependency has a secret, which the stakeholders have put into the proposals at both of its ends.
    pub fn own_part(&self, number: Number, shard: ShardId) -> Option<OwnPart> {
        let part = self.parts.get(&shard)?;
        let secret = |from: ShardId, to: ShardId| {
            let numbers =
                [number.to_be_bytes().as_slice(), &from.0.to_be_bytes(), &to.0.to_be_bytes()].concat();
            Secret(sha256(&[b"entente pcp secret\0", &numbers]))
        };
        let callers = self.parts.iter().filter(|(_, other)| other.depends_on.contains(&shard));
        Some(OwnPart {
            hashes: self.hashes,
            dependencies: part.depends_on.iter().map(|to| (*to, secret(shard, *to))).collect(),
            callers: callers.map(|(from, _)| secret(*from, shard)).collect(),
            is_endorsed: part.is_endorsed,
            reads: part.reads.clone(),
            writes: part.writes.clone(),
        })
    }
}

impl Case {
    /// One transaction after the other: a part commits if it, and all that it depends on, is valid.
    pub fn truth(&self) -> Truth {
        let mut truth = Truth::default();
        for (transaction, number) in self.transactions.iter().zip(1u64..) {
            let is_valid = |shard: &ShardId| {
                let versions = truth.versions.get(shard);
                let version = |key| versions.and_then(|versions| versions.get(key)).copied().unwrap_or(0);
                let part = transaction.parts.get(shard);
                part.is_some_and(|part| {
                    part.is_endorsed && part.reads.iter().all(|(key, read)| version(key) == *read)
                })
            };
            let commits: BTreeMap<ShardId, bool> = transaction
                .parts
                .keys()
                .map(|shard| (*shard, transaction.reachable(*shard).iter().all(is_valid)))
                .collect();
            for (shard, part) in transaction.parts.iter().filter(|(shard, _)| commits[shard]) {
                let versions = truth.versions.entry(*shard).or_default();
                versions.extend(part.writes.iter().map(|key| (*key, number)));
            }
            truth.commits.push(commits);
        }
        truth
    }

    /// A random case as the model makes them.
    pub fn random(rng: &mut StdRng, is_malformed: bool) -> Case {
        let shards = rng.random_range(2..=5);
        let count = *[1, 1, 2, 3].iter().choose(rng).unwrap_or(&1);
        let mut case = Case { shards, transactions: Vec::new() };
        let mut states = vec![BTreeMap::new()];
        for _ in 0..count {
            let seen = states.iter().choose(rng).cloned().unwrap_or_default();
            case.transactions.push(random_transaction(rng, shards, is_malformed, &seen));
            states.push(case.truth().versions);
        }
        case
    }
}

type Versions = BTreeMap<ShardId, BTreeMap<u64, u64>>;

fn random_transaction(rng: &mut StdRng, shards: u32, is_malformed: bool, seen: &Versions) -> CaseTransaction {
    let count = rng.random_range(2..=shards) as usize;
    let members: Vec<ShardId> = (0..shards).map(ShardId).sample(rng, count);
    let bogus = *[0, 0, 1, 2].iter().choose(rng).unwrap_or(&0);
    let shape = rng.random_range(0..4);
    let odd = (is_malformed && rng.random_bool(0.6)).then(|| rng.random_range(0..count));
    let mut parts = BTreeMap::new();
    for (at, shard) in members.iter().enumerate() {
        let others = || members.iter().copied().filter(|other| other != shard);
        let mut depends_on: BTreeSet<ShardId> = match shape {
            0 | 1 => {
                let some = rng.random_range(0..=2.min(count - 1));
                others().sample(rng, some).into_iter().collect()
            }
            2 if at + 1 == count => BTreeSet::new(),
            _ => others().filter(|other| *other == members[(at + 1) % count]).collect(),
        };
        if odd == Some(at) {
            let strange = if rng.random_bool(0.4) { *shard } else { ShardId(rng.random_range(0..shards)) };
            depends_on.insert(strange);
            let some = rng.random_range(0..=2);
            depends_on.extend((0..shards).map(ShardId).sample(rng, some));
        }
        let version = |key| seen.get(shard).and_then(|versions| versions.get(&key)).copied().unwrap_or(0);
        let reads = (0..2).filter(|_| rng.random_bool(0.4)).map(|key| (key, version(key))).collect();
        let writes = (0..2).filter(|_| rng.random_bool(0.5)).collect();
        parts.insert(*shard, CasePart { depends_on, is_endorsed: rng.random_bool(0.8), reads, writes });
    }
    CaseTransaction { hashes: (count + bogus) as u32, parts }
}
