//! Where each transaction was simulated on the state of one height, and nothing that was deleted comes back, sparse peers come to
//! the verdicts of our validator of whole transactions (`concurrency::endorsed`, protocol `occ`), for which a version is a height.

use super::durable::{Build, INITIAL, POLICY, contracts, row, transaction};
use super::network::Network;
use crate::endorsed::Newest;
use concurrency::parts::LedgerPosition;
use concurrency::sparse::{SparseTransaction, Version};
use concurrency::{Batch, ProtocolOptions, TransactionOutcome, validation};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use state::{
    AfterImage, Effects, Endorsed, KeyRange, PlainState, Read, RowId, Scan, Simulate, Snapshot, StoreError,
    write_command,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use types::{ColumnSet, EndorsedWrite, Key, Pipeline, RowWrite, TableId, Value};

const CONTRACTS: u32 = 3;
const KEYS: u8 = 4;

/// A transaction with the effects that endorsers found.
struct EndorsedEffects(Endorsed);

impl Simulate for EndorsedEffects {
    fn simulate(&self, _: &dyn Snapshot) -> Result<Effects, StoreError> {
        Ok((*self.0.effects).clone())
    }

    fn endorsed(&self) -> Option<&Endorsed> {
        Some(&self.0)
    }
}

/// The same transaction for sparse peers and for the validator.
struct Both {
    sparse: SparseTransaction,
    whole: Arc<dyn Simulate>,
}

/// Rows and their versions after each block.
type States = Vec<BTreeMap<RowId, Version>>;

fn random(rng: &mut StdRng, position: LedgerPosition, states: &States) -> Both {
    let invoked: Vec<u32> = (0..CONTRACTS).filter(|_| rng.random_bool(0.5)).collect();
    let invoked = if invoked.is_empty() { vec![rng.random_range(0..CONTRACTS)] } else { invoked };
    let snapshot = (states.len() - 1).saturating_sub(rng.random_range(0..3));
    let seen = &states[snapshot];
    let (mut reads, mut scans, mut commands): (Vec<Read>, Vec<Scan>, Vec<_>) = Default::default();
    let mut built = transaction(position, &invoked);
    let columns = ColumnSet::ALL;
    for contract in invoked {
        let version = |key| seen.get(&row(contract, key)).copied();
        built = built.policy(contract, version(POLICY));
        reads.push(Read { row: row(contract, POLICY), columns });
        for key in 1..=KEYS {
            if rng.random_bool(0.3) {
                built = built.reads(contract, key, version(key));
                reads.push(Read { row: row(contract, key), columns });
            }
        }
        if rng.random_bool(0.3) {
            let (next, scan) = scanned(built, contract, rng, seen);
            built = next;
            scans.push(scan);
        }
        for key in 0..=KEYS {
            if rng.random_bool(if key == POLICY { 0.05 } else { 0.25 }) {
                built = built.writes(contract, key);
                let write = RowWrite::Put([Value::Boolean(true)].into_iter().collect());
                let row = row(contract, key);
                commands.push(write_command(&EndorsedWrite {
                    table: row.table,
                    key: row.key,
                    guard: None,
                    write,
                }));
            }
        }
    }
    let effects = Effects { reads, scans, commands, result: Ok(vec![]), steps: 1, catalog: None };
    let endorsed = Endorsed { snapshot: snapshot as u64, effects: Arc::new(effects), may_run_again: false };
    Both { sparse: built.done(), whole: Arc::new(EndorsedEffects(endorsed)) }
}

fn scanned(built: Build, contract: u32, rng: &mut StdRng, seen: &BTreeMap<RowId, Version>) -> (Build, Scan) {
    let first = rng.random_range(1..=KEYS);
    let last = rng.random_range(first..=KEYS);
    let found: Vec<(u8, Version)> =
        (first..=last).filter_map(|key| Some((key, *seen.get(&row(contract, key))?))).collect();
    let key = |key: u8| Key::from_bytes(&[key]);
    let bound = |number| std::ops::Bound::Included(key(number));
    let scan = Scan {
        table: TableId(contract),
        range: KeyRange { start: bound(first), end: bound(last) },
        columns: ColumnSet::ALL,
        predicate_columns: ColumnSet::EMPTY,
        predicate: None,
        result: found.iter().map(|(number, _)| key(*number)).collect(),
    };
    (built.scans(contract, first, last, &found), scan)
}

#[test]
fn sparse_peers_come_to_the_verdicts_of_the_validator_of_whole_transactions() {
    let (mut valid, mut invalid) = (0, 0);
    for seed in 0..400 {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut occ = validation("occ", ProtocolOptions::default(), Pipeline::Graph).expect("a validation");
        let at_first: Vec<RowId> = (0..CONTRACTS)
            .flat_map(|contract| (0..=KEYS).map(move |key| row(contract, key)))
            .filter(|row| row.key.as_bytes() == [POLICY] || rng.random_bool(0.7))
            .collect();
        let mut plain = PlainState::default();
        let value = Some([Value::Boolean(true)].into());
        at_first.iter().for_each(|row| plain.apply(&AfterImage { row: row.clone(), value: value.clone() }));
        let mut states: States = vec![at_first.iter().map(|row| (row.clone(), INITIAL)).collect()];
        let (mut blocks, mut expected) = (Vec::new(), BTreeMap::new());
        for height in 1..=rng.random_range(2..=5u64) {
            let count = rng.random_range(1..=4);
            let block: Vec<Both> =
                (0..count).map(|index| random(&mut rng, LedgerPosition { height, index }, &states)).collect();
            let transactions = block.iter().map(|both| both.whole.clone()).collect();
            let (steps_left, forget, oldest_snapshot) = (u64::MAX, false, 0);
            occ.offer(Batch { height, number: 0, transactions, steps_left, forget, oldest_snapshot });
            let result = occ.poll(&Newest(&plain)).expect("memory").expect("a block was offered");
            result.changes.iter().for_each(|change| plain.apply(change));
            let mut state = states.last().expect("the first").clone();
            for (both, outcome) in block.iter().zip(&result.outcomes) {
                let is_valid = *outcome != TransactionOutcome::Conflict;
                expected.insert(both.sparse.position, is_valid);
                let writes = both.sparse.parts.values().flat_map(|part| &part.writes).filter(|_| is_valid);
                state.extend(writes.map(|write| (write.row.clone(), both.sparse.position)));
            }
            states.push(state);
            blocks.push(block.into_iter().map(|both| both.sparse).collect());
        }
        let filters = [contracts(&[0]), contracts(&[1, 2]), contracts(&[2])];
        let mut network = Network::new(seed, blocks, &filters, &at_first);
        network.run();
        for peer in network.peers.iter().flatten() {
            let own = peer.store().verdicts.iter().all(|(position, verdict)| expected[position] == *verdict);
            assert!(own, "seed {seed}: expected {expected:?}, found {:?}", peer.store().verdicts);
            let held = |row: &RowId| contracts(&[row.table.0]).is_subset(peer.filter());
            let rows = states.last().expect("the last").iter().filter(|(row, _)| held(row));
            assert!(peer.store().rows.iter().eq(rows), "seed {seed}");
        }
        valid += expected.values().filter(|valid| **valid).count();
        invalid += expected.values().filter(|valid| !**valid).count();
    }
    println!("{valid} valid, {invalid} invalid");
    assert!(valid > 1_000 && invalid > 1_000);
}
