//! Entries of indexes in the files: those of an index that is made over many rows, and those that are removed because no index has
//! them.
//!
//! They are written in sorted pieces, so that no table is too large for an index. Nobody looks for them before a version has the
//! index; where a process ends before that, the next one removes them.

use crate::cache::row_memory;
use crate::core::Core;
use crate::files::{Files, WriteError};
use crate::layout::{behind_table, row_bytes, row_key, table_key, table_of};
use crate::merged::whole_table;
use crate::view::View;
use state::{KeyRange, StoreError, entries_of_row};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use types::{Index, Row, TableId};

/// Removes the entries of all indexes but those with these numbers.
pub(crate) fn remove_entries_but(files: &Arc<Files>, known: &BTreeSet<TableId>) -> Result<(), StoreError> {
    let (owner, now) = (files.take_over(), files.now());
    let mut first = table_key(TableId::FIRST_UNIQUE);
    loop {
        let rest = (Bound::Included(first), whole_table(TableId(u32::MAX)).1);
        let Some((key, _)) = now.range(rest, false).next().transpose()? else { return Ok(()) };
        let damaged = || StoreError::damaged(files.folder().display(), "a key of it is that of no row");
        let table = table_of(&key).ok_or_else(damaged)?;
        if !known.contains(&table) {
            let left = now.range(whole_table(table), false);
            let gone = left.map(|item| item.map(|(key, _)| (key.to_vec(), None)));
            files.write(owner, gone).map(drop).map_err(WriteError::into_store_error)?;
        }
        first = behind_table(table);
    }
}

/// Writes the entries of these rows, a piece whenever so many bytes of memory are taken. Nobody else writes rows meanwhile. Gives
/// how many entries there are, by the number under which they stand.
pub(crate) fn write_entries(
    core: &Core,
    rows: &View,
    (table, index): (TableId, &Index),
    piece_bytes: u64,
) -> Result<BTreeMap<TableId, i64>, StoreError> {
    let mut counts: BTreeMap<TableId, i64> = BTreeMap::new();
    let (mut piece, mut memory, mut written) = (Vec::new(), 0, Ok(()));
    rows.scan(table, &KeyRange::ALL, false, &mut |key, row| {
        entries_of_row(index, key, row, |entry| {
            memory += row_memory(&entry.key, 0);
            *counts.entry(entry.table).or_default() += 1;
            piece.push(row_key(entry.table, &entry.key));
        });
        if memory > piece_bytes {
            memory = 0;
            written = write_piece(core, &mut piece);
        }
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    written?;
    write_piece(core, &mut piece)?;
    Ok(counts)
}

fn write_piece(core: &Core, piece: &mut Vec<Vec<u8>>) -> Result<(), StoreError> {
    if piece.is_empty() {
        return Ok(());
    }
    piece.sort_unstable();
    let value = row_bytes(&Row::default());
    let bytes: usize = piece.iter().map(|key| key.len() + value.len()).sum();
    write(core, &|| {
        let items = piece.iter().map(|key| Ok((key.clone(), Some(value.clone()))));
        core.files.write(core.owner, items).map(drop)
    })?;
    core.changed_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    piece.clear();
    match core.files.merge() {
        // What cannot be merged now is merged later.
        Ok(()) | Err(WriteError::NoRoom(_)) => Ok(()),
        Err(error) => Err(error.into_store_error()),
    }
}

fn write(core: &Core, write: &dyn Fn() -> Result<(), WriteError>) -> Result<(), StoreError> {
    let closing = || StoreError::write(core.files.folder().display(), "the store is being closed");
    core.when_there_is_room(write).map_err(WriteError::into_store_error)?.ok_or_else(closing)
}

#[cfg(test)]
mod tests {
    use crate::{Disk, DiskOptions};
    use state::{
        AfterImage, BlockEnd, CheckpointHeader, CheckpointProgress, KeyRange, ResumePoint, RowId, Snapshot,
        Store, Stores, Version, entries_of_row,
    };
    use std::collections::BTreeSet;
    use std::ops::ControlFlow;
    use std::path::Path;
    use std::sync::Arc;
    use types::{Catalog, Column, DataType, Deferral, Index, Key, Row, Table, TableId, Value};

    const TABLE: TableId = TableId(1);
    const ROWS: i64 = 3_000;

    fn catalog(index: Option<Index>) -> Arc<Catalog> {
        let column = |name: &str| Column {
            name: name.into(),
            data_type: DataType::BigInt,
            not_null: false,
            default: None,
            generated: false,
        };
        let table = Table {
            id: TABLE,
            name: "t".into(),
            columns: vec![column("id"), column("one"), column("two")],
            primary_key: vec![0],
            primary_key_name: "t_pkey".into(),
            checks: Vec::new(),
            endorsement: None,
            row_security: types::RowSecurity::default(),
            partitioning: None,
            materialized: None,
        };
        let mut catalog = Catalog::default();
        catalog.tables.insert(table.name.clone(), Arc::new(table));
        catalog.indexes.extend(index.map(|index| (TABLE, vec![index])));
        Arc::new(catalog)
    }

    fn index(column: u16, unique: bool) -> Index {
        Index {
            number: 2,
            name: "i".into(),
            columns: vec![column],
            unique,
            constraint: false,
            details: Default::default(),
            deferral: Deferral::Never,
            primary: false,
            method: types::IndexMethod::Ordered,
        }
    }

    fn image(number: i64) -> AfterImage {
        let key = Key::encode([&Value::BigInt(number)]).expect("a number is a key");
        let row = [number, number * 7_919 % ROWS, -number].map(Value::BigInt);
        AfterImage { row: RowId { table: TABLE, key }, value: Some(Arc::from(row)) }
    }

    fn scanned(snapshot: &dyn Snapshot, table: TableId) -> Vec<(Key, Row)> {
        let mut found = Vec::new();
        let visit = &mut |key: &Key, row: &Row| {
            found.push((key.clone(), row.clone()));
            ControlFlow::Continue(())
        };
        snapshot.scan(table, &KeyRange::ALL, false, visit).expect("nothing is damaged");
        found
    }

    /// What is in the index is what its rows say.
    fn check(snapshot: &dyn Snapshot, index: &Index) {
        let mut expected = BTreeSet::new();
        for (key, row) in scanned(snapshot, TABLE) {
            entries_of_row(index, &key, &row, |entry| {
                expected.insert(entry);
            });
        }
        let found = [index.entries(), index.unique_entries()].into_iter().flat_map(|table| {
            let entries = scanned(snapshot, table).into_iter();
            entries.map(move |(key, _)| RowId { table, key })
        });
        let found: BTreeSet<RowId> = found.collect();
        let differing: Vec<&RowId> = found.symmetric_difference(&expected).collect();
        assert!(
            differing.is_empty(),
            "{} of {}, first {:?}",
            differing.len(),
            expected.len(),
            differing.first()
        );
    }

    fn open(folder: &Path, memory_bytes: u64) -> Disk {
        Disk::open(folder, DiskOptions { memory_bytes, ..DiskOptions::default() }).expect("it opens")
    }

    fn end_block(store: &dyn Store) {
        let header = CheckpointHeader { height: store.version().height(), ..CheckpointHeader::default() };
        let point = ResumePoint { header, progress: CheckpointProgress::at(header.height) };
        let end =
            BlockEnd { point, admitted: Vec::new(), is_resumable: true, is_checkpoint: false, is_due: false };
        store.end_block(end).expect("there is room");
    }

    #[test]
    fn an_index_has_an_entry_of_every_row_wherever_rows_are_and_however_many() {
        for (memory, unique) in [(4 << 20, false), (4 << 20, true), (1 << 30, false), (1 << 30, true)] {
            let folder = tempfile::tempdir().expect("a folder");
            let stores = open(folder.path(), memory);
            let mut filling = stores.begin(Version::GENESIS, catalog(None)).expect("it begins");
            filling.add(&(0..ROWS).map(image).collect::<Vec<_>>()).expect("there is room");
            let store = filling.finish().expect("there is room");
            // Some rows are in memory only, some have gone from there.
            let gone = |number| AfterImage { value: None, ..image(number) };
            let changes: Vec<AfterImage> = (0..30).map(gone).chain((ROWS..ROWS + 30).map(image)).collect();
            store.apply(Version::after_batch(1, 0), &changes, None).expect("there is room");
            let before = store.snapshot();
            let (made, written) = (index(1, unique), store.statistics().written_bytes);
            store
                .apply(Version::after_batch(1, 1), &[], Some(catalog(Some(made.clone()))))
                .expect("there is room");
            let pieces = store.statistics().written_bytes - written;
            assert_eq!(
                pieces > ROWS as u64,
                memory == 4 << 20,
                "{pieces} bytes of entries went to the files at once"
            );
            let after = store.snapshot();
            check(after.as_ref(), &made);
            assert_eq!(scanned(after.as_ref(), made.entries()).len(), ROWS as usize);
            assert_eq!(store.rows(made.entries()), ROWS as u64);
            assert_eq!(scanned(before.as_ref(), made.entries()), [], "nobody has it before");
            if !unique {
                // It follows rows from here on, in front of the files and in them; who writes rows says which keys they take.
                let gone = (30..90).map(gone);
                let changes: Vec<AfterImage> = gone.chain((ROWS + 30..ROWS + 90).map(image)).collect();
                store.apply(Version::after_batch(1, 2), &changes, None).expect("there is room");
                check(store.snapshot().as_ref(), &made);
            }
            end_block(store.as_ref());
            assert_eq!(store.durable_point(), Ok(Some(1)));
            check(store.snapshot().as_ref(), &made);
            drop((before, after, store, stores));
            let stores = open(folder.path(), memory);
            let back = stores.reopen(1).expect("nothing is damaged").expect("it was durable");
            check(back.state.snapshot().as_ref(), &made);
            assert_eq!(back.state.rows(made.entries()), ROWS as u64);
        }
    }

    #[test]
    fn an_index_that_came_to_nothing_leaves_nothing_to_its_successor() {
        // The second one is made over many rows, or, with more memory, over few.
        for memory in [4 << 20, 1 << 30] {
            let folder = tempfile::tempdir().expect("a folder");
            let stores = open(folder.path(), 4 << 20);
            let mut filling = stores.begin(Version::GENESIS, catalog(None)).expect("it begins");
            filling.add(&(0..ROWS).map(image).collect::<Vec<_>>()).expect("there is room");
            let store = filling.finish().expect("there is room");
            store.apply(Version::after_batch(1, 0), &[], None).expect("there is room");
            end_block(store.as_ref());
            assert_eq!(store.durable_point(), Ok(Some(1)));
            let lost = catalog(Some(index(1, true)));
            store.apply(Version::after_batch(2, 0), &[], Some(lost)).expect("there is room");
            drop((store, stores));
            let stores = open(folder.path(), memory);
            let back = stores.reopen(1).expect("nothing is damaged").expect("it was durable").state;
            let made = index(2, false);
            back.apply(Version::after_batch(2, 0), &[], Some(catalog(Some(made.clone()))))
                .expect("there is room");
            check(back.snapshot().as_ref(), &made);
            assert_eq!(scanned(back.snapshot().as_ref(), made.entries()).len(), ROWS as usize);
        }
    }
}
