//! The cases of `sparse.py`: whatever the schedule, all peers come to the verdicts and rows of the serial peer.
//!
//! `tests/data/sparse.jsonl` has the first 300 seeds. More:
//!
//! ```sh
//! python3 sparse.py --emit 10000 > cases.jsonl
//! SPARSE_CASES=cases.jsonl cargo test -p concurrency --test behaviour sparse
//! ```

use super::durable::{INITIAL, POLICY, contracts, row, transaction};
use super::network::{Happened, Network};
use concurrency::parts::LedgerPosition;
use concurrency::sparse::{SparseTransaction, Version};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Case {
    seed: u64,
    initial: Vec<(u32, u8)>,
    filters: Vec<Vec<u32>>,
    transactions: Vec<CaseTransaction>,
    #[serde(rename = "final")]
    rows_at_the_end: Vec<(u32, u8, usize)>,
}

#[derive(Deserialize)]
struct CaseTransaction {
    block: u64,
    contracts: Vec<u32>,
    reads: Vec<(u32, u8, Option<usize>)>,
    scans: Vec<CaseScan>,
    writes: Vec<(u32, u8, bool)>,
    valid: bool,
}

/// Contract, first and last key, and the rows found: contract, key and version.
type CaseScan = (u32, u8, u8, Vec<(u32, u8, usize)>);

impl Case {
    /// The model numbers transactions from 1, the ledger has positions.
    fn positions(&self) -> Vec<LedgerPosition> {
        let mut positions: Vec<LedgerPosition> = vec![INITIAL];
        for transaction in &self.transactions {
            let last = *positions.last().expect("at least one");
            let index = if last.height == transaction.block { last.index + 1 } else { 0 };
            positions.push(LedgerPosition { height: transaction.block, index });
        }
        positions
    }

    fn blocks(&self, positions: &[Version]) -> Vec<Vec<SparseTransaction>> {
        let mut blocks: Vec<Vec<SparseTransaction>> = Vec::new();
        for (case, position) in self.transactions.iter().zip(&positions[1..]) {
            let mut built = transaction(*position, &case.contracts);
            for (contract, key, version) in &case.reads {
                let version = version.map(|version| positions[version]);
                built = match *key {
                    POLICY => built.policy(*contract, version),
                    key => built.reads(*contract, key, version),
                };
            }
            for (contract, first, last, found) in &case.scans {
                let found: Vec<(u8, Version)> =
                    found.iter().map(|(_, key, version)| (*key, positions[*version])).collect();
                built = built.scans(*contract, *first, *last, &found);
            }
            for (contract, key, exists) in &case.writes {
                built = if *exists { built.writes(*contract, *key) } else { built.deletes(*contract, *key) };
            }
            blocks.resize(case.block as usize, Vec::new());
            blocks.last_mut().expect("its block").push(built.done());
        }
        blocks
    }
}

fn cases() -> Vec<Case> {
    let text = std::env::var("SPARSE_CASES").map_or_else(
        |_| include_str!("../../data/sparse.jsonl").to_string(),
        |path| std::fs::read_to_string(path).unwrap_or_else(|error| panic!("SPARSE_CASES: {error}")),
    );
    text.lines().map(|line| serde_json::from_str(line).expect("a case of the model")).collect()
}

/// What is wrong at the end of a schedule.
fn difference(case: &Case, network: &mut Network, blocks: &[Vec<SparseTransaction>]) -> Option<String> {
    network.run();
    let positions = case.positions();
    for (number, peer) in network.peers.iter().enumerate() {
        let peer = peer.as_ref().expect("it runs");
        let (filter, store) = (peer.filter(), peer.store());
        if store.height != blocks.len() as u64 || peer.waiting() > 0 || !store.deferred.is_empty() {
            return Some(format!("peer {number} does not come to an end: {:?}", store.deferred.keys()));
        }
        for (transaction, position) in blocks.iter().flatten().zip(&positions[1..]) {
            let expected = case.transactions
                [positions[1..].iter().position(|other| other == position).expect("it is there")]
            .valid;
            let found = store.verdicts.get(position);
            if !transaction.contracts.is_disjoint(filter) && found != Some(&expected) {
                return Some(format!("peer {number}: expected {position:?} {expected}, found {found:?}"));
            }
        }
        let held =
            case.rows_at_the_end.iter().filter(|(contract, ..)| filter.iter().any(|id| id.0 == *contract));
        let expected: BTreeMap<_, _> =
            held.map(|(contract, key, version)| (row(*contract, *key), positions[*version])).collect();
        if store.rows != expected {
            return Some(format!("peer {number}: expected rows {expected:?}, found {:?}", store.rows));
        }
    }
    None
}

fn network(case: &Case, blocks: &[Vec<SparseTransaction>], schedule: u64) -> Network {
    let filters: Vec<_> = case.filters.iter().map(|filter| contracts(filter)).collect();
    let initial: Vec<_> = case.initial.iter().map(|(contract, key)| row(*contract, *key)).collect();
    Network::new(case.seed * 1_000 + schedule, blocks.to_vec(), &filters, &initial)
}

#[test]
fn all_peers_come_to_what_the_model_says_whatever_the_schedule() {
    let mut all = Happened::default();
    let cases = cases();
    for case in &cases {
        let blocks = case.blocks(&case.positions());
        for schedule in 0..3 {
            let mut network = network(case, &blocks, schedule);
            let found = difference(case, &mut network, &blocks);
            assert_eq!(found, None, "sparse.py, seed {}, schedule {schedule}", case.seed);
            all.deferred += network.happened.deferred;
            all.crashes += network.happened.crashes;
            all.lost += network.happened.lost;
            all.joined += network.happened.joined;
            all.asked += network.happened.asked;
        }
        let mut network = network(case, &blocks, 3).without_faults();
        assert_eq!(difference(case, &mut network, &blocks), None, "sparse.py, seed {}, no faults", case.seed);
        assert_eq!(network.happened.asked, 0, "where nothing is lost, nobody has to ask");
    }
    println!("{} cases, three schedules each, in which {all:?}", cases.len());
    let all = [all.deferred, all.crashes, all.lost, all.joined, all.asked];
    assert!(all.iter().all(|count| *count > cases.len() / 2), "the schedules are what they should be");
}
