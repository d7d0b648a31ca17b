//! What must hold of every state, whatever transactions have come to.

use state::{KeyRange, Snapshot};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use types::{Key, Row, TableId, Value};

/// The rows that stand under a number.
fn rows_of(state: &dyn Snapshot, table: TableId) -> Vec<(Key, Row)> {
    let mut rows = Vec::new();
    let read = state.scan(table, &KeyRange::ALL, false, &mut |key, row| {
        rows.push((key.clone(), row.clone()));
        ControlFlow::Continue(())
    });
    read.expect("memory can be read");
    rows
}

/// Constraints hold, and the entries of indexes are those of the rows.
pub fn check_constraints(state: &dyn Snapshot) {
    let catalog = state.catalog();
    let keys = |table| -> BTreeSet<Key> { rows_of(state, table).into_iter().map(|(key, _)| key).collect() };
    for (table, indexes) in &catalog.indexes {
        let rows = rows_of(state, *table);
        for index in indexes {
            let entries: BTreeSet<Key> = rows.iter().map(|(key, row)| index.entry(key, row)).collect();
            assert_eq!(keys(index.entries()), entries, "entries of {}", index.name);
            if index.unique {
                let taken = rows.iter().filter_map(|(_, row)| index.unique_entry(row).expect("short"));
                let taken: Vec<Key> = taken.collect();
                let distinct: BTreeSet<Key> = taken.iter().cloned().collect();
                assert_eq!(distinct.len(), taken.len(), "{} is unique", index.name);
                assert_eq!(keys(index.unique_entries()), distinct, "keys taken in {}", index.name);
            }
        }
    }
    for (child, foreign_keys) in &catalog.foreign_keys {
        for foreign_key in foreign_keys {
            let values = |row: &[Value], columns: &[u16]| -> Vec<Value> {
                columns.iter().map(|ordinal| row[usize::from(*ordinal)].clone()).collect()
            };
            let parents = rows_of(state, foreign_key.parent);
            let parents: Vec<_> =
                parents.iter().map(|(_, row)| values(row, &foreign_key.referenced)).collect();
            for (_, row) in rows_of(state, *child) {
                let values = values(&row, &foreign_key.columns);
                let nulls = values.iter().filter(|value| value.is_null()).count();
                let mixes = foreign_key.match_full && nulls > 0 && nulls < values.len();
                assert!(!mixes, "{}: {values:?}", foreign_key.name);
                assert!(nulls > 0 || parents.contains(&values), "{}: {values:?}", foreign_key.name);
            }
        }
    }
}
