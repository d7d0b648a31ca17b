//! Comparing a snapshot with the plain map.

use super::world::{KEYS, World, key};
use crate::{CheckpointHeader, KeyRange, PlainState, RowId, Snapshot};
use crypto::{Digest, SecretKey};
use rand::RngExt;
use std::ops::{Bound, ControlFlow};
use types::{
    Attestation, Certificate, Charter, CheckpointCertificate, CheckpointRoot, Key, Organisation, Row, TableId,
};

/// What a checkpoint of this height says of itself.
pub(super) fn header(height: u64) -> CheckpointHeader {
    CheckpointHeader {
        ledger: Digest([1; 32]),
        height,
        state_digest: Digest([2; 32]),
        outcome: Digest([3; 32]),
    }
}

fn collect(
    snapshot: &dyn Snapshot,
    table: TableId,
    range: &KeyRange,
    reverse: bool,
    limit: usize,
) -> Vec<(Key, Row)> {
    let mut rows = Vec::new();
    let scanned = snapshot.scan(table, range, reverse, &mut |key, row| {
        rows.push((key.clone(), row.clone()));
        if rows.len() >= limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    scanned.expect("nothing fails here");
    rows
}

/// Everything under these numbers, both ways.
pub(super) fn assert_same(snapshot: &dyn Snapshot, model: &PlainState, numbers: &[TableId]) {
    assert_eq!(snapshot.catalog(), &model.catalog);
    for table in numbers {
        let expected = collect(model, *table, &KeyRange::ALL, false, usize::MAX);
        assert_eq!(
            collect(snapshot, *table, &KeyRange::ALL, false, usize::MAX),
            expected,
            "table {}",
            table.0
        );
        let mut found = collect(snapshot, *table, &KeyRange::ALL, true, usize::MAX);
        found.reverse();
        assert_eq!(found, expected, "table {} from behind", table.0);
    }
}

impl World {
    /// The same, and random reads and scans.
    pub(super) fn check(&mut self, snapshot: &dyn Snapshot, model: &PlainState) {
        let numbers = self.numbers();
        assert_same(snapshot, model, &numbers);
        let tables: Vec<TableId> = numbers.into_iter().filter(|table| !table.is_index()).collect();
        let asked: Vec<RowId> = (0..60)
            .map(|_| RowId {
                table: tables[self.random.random_range(0..tables.len())],
                key: key(self.random.random_range(-1..=KEYS)),
            })
            .collect();
        let expected: Vec<Option<Row>> = asked.iter().map(|row| model.get(row.table, &row.key)).collect();
        for (row, expected) in asked.iter().zip(&expected) {
            assert_eq!(snapshot.get(row.table, &row.key).as_ref(), Ok(expected));
        }
        assert_eq!(snapshot.get_many(&asked), Ok(expected));
        for _ in 0..12 {
            let table = tables[self.random.random_range(0..tables.len())];
            let mut bound = || {
                let key = key(self.random.random_range(-1..=KEYS));
                match self.random.random_range(0..3) {
                    0 => Bound::Included(key),
                    1 => Bound::Excluded(key),
                    _ => Bound::Unbounded,
                }
            };
            let range = KeyRange { start: bound(), end: bound() };
            let (reverse, limit) = (self.random.random_bool(0.5), self.random.random_range(1..80));
            let found = collect(snapshot, table, &range, reverse, limit);
            assert_eq!(found, collect(model, table, &range, reverse, limit), "{range:?}");
        }
    }
}

fn node_key() -> SecretKey {
    SecretKey::from_bytes([101; 32])
}

/// Of a ledger of one organisation.
pub(super) fn charter() -> Charter {
    let mut charter = Charter::with_defaults("test", 1);
    charter.organisations.push(Organisation {
        name: "org1".to_string(),
        root_key: SecretKey::from_bytes([1; 32]).public_key(),
        node_key: node_key().public_key(),
        address: "127.0.0.1:7000".to_string(),
        gateway: String::new(),
        removed: false,
        node_key_expires: None,
    });
    charter
}

/// Says that the state has this root.
pub(super) fn certificate(charter: &Charter, height: u64, state_root: Digest) -> CheckpointCertificate {
    let statement = CheckpointRoot { ledger: charter.ledger(), height, outcome: Digest([7; 32]), state_root };
    let signature = Attestation::sign(statement.clone(), 0, &node_key()).signature;
    Certificate { signatures: vec![(0, signature)], statement }
}
