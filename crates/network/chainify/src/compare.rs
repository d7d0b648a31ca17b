//! Compares a copy with the state that it must be: digests of ranges of keys, and rows where two digests differ.
//!
//! ```text
//!  state at a height ─▶ chunks of some thousand rows ─▶ SHA-256 ─┐
//!                                                                ├─ equal: next chunk
//!  database, one snapshot ─▶ the same interval of keys ─▶ SHA-256 ┘  differ: the rows of both, key by key
//! ```

use crate::DatabaseError;
use crate::error::ErrorKind;
use crate::session::{Session, TextRow};
use crate::shared_table::SharedTable;
use crypto::sha256;
use state::{KeyRange, Snapshot, StoreError};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::{Bound, ControlFlow};
use types::{Key, Row};

/// Rows of a chunk.
const CHUNK_ROWS: usize = 4096;
/// Bytes of a chunk's rows, about.
const CHUNK_BYTES: usize = 1024 * 1024;

/// A row as it must be; `None`: it must not be there.
#[derive(Clone, Debug)]
pub(crate) struct RowAt {
    pub(crate) key: TextRow,
    pub(crate) row: Option<Row>,
}

/// What is done with rows that the database has otherwise.
pub(crate) type Differ<'a> =
    dyn FnMut(&mut dyn Session, Vec<RowAt>) -> Result<ControlFlow<()>, DatabaseError> + 'a;

/// Compares a table, whose rows the session shows as they are at one point or as this connection alone changes them. `differ` gets
/// rows that the database has otherwise, some thousand at once. Gives the number of the state's rows. Ends early where `is_over`.
pub(crate) fn compare(
    session: &mut dyn Session,
    table: &SharedTable,
    agreed: &dyn Snapshot,
    is_over: &dyn Fn() -> bool,
    differ: &mut Differ<'_>,
) -> Result<u64, DatabaseError> {
    let mut rows = 0;
    let mut chunk = next_chunk(table, agreed, Bound::Unbounded)?;
    let mut from: Option<TextRow> = None;
    loop {
        let to = chunk.next.as_ref().map(|row| table.key_of(&table.texts(row)));
        let sql = table.select_digest(from.as_ref(), to.as_ref(), chunk.rows.len() + 1);
        let found = session.query(&sql)?.into_iter().next().unwrap_or_default();
        let digest = sha256(&[chunk.text.as_bytes()]).to_string();
        rows += chunk.rows.len() as u64;
        let is_same = found == [Some(chunk.rows.len().to_string()), Some(digest)];
        if !is_same && differences(session, table, &chunk, (from, to.as_ref()), differ)?.is_break() {
            return Ok(rows);
        }
        let Some(next) = chunk.next else { return Ok(rows) };
        if is_over() {
            return Ok(rows);
        }
        let key = Key::encode(table.key.iter().map(|ordinal| &next[*ordinal]));
        let key = key.map_err(|error| DatabaseError::new(ErrorKind::Other, error.message))?;
        chunk = next_chunk(table, agreed, Bound::Included(key))?;
        from = to;
    }
}

/// Compares an interval row by row, as many of the database's rows at a time as a chunk has.
fn differences(
    session: &mut dyn Session,
    table: &SharedTable,
    chunk: &Chunk,
    (mut from, to): (Option<TextRow>, Option<&TextRow>),
    differ: &mut Differ<'_>,
) -> Result<ControlFlow<()>, DatabaseError> {
    let by_key = |row: &Row| {
        let texts = table.texts(row);
        (table.key_of(&texts), (row.clone(), texts))
    };
    let mut expected: BTreeMap<TextRow, (Row, TextRow)> = chunk.rows.iter().map(by_key).collect();
    // The first row of all pages but the first is the last one of the page before.
    let mut known: Option<TextRow> = None;
    loop {
        let page = session.query(&table.select_rows(from.as_ref(), to, CHUNK_ROWS))?;
        let (count, last) = (page.len(), page.last().map(|row| table.key_of(row)));
        let mut different = Vec::new();
        for row in page {
            let key = table.key_of(&row);
            if known.as_ref() == Some(&key) {
                continue;
            }
            match expected.remove(&key) {
                Some((_, texts)) if texts == row => {}
                Some((agreed, _)) => different.push(RowAt { key, row: Some(agreed) }),
                None => different.push(RowAt { key, row: None }),
            }
        }
        if !different.is_empty() && differ(session, different)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        if count < CHUNK_ROWS {
            break;
        }
        (from, known) = (last.clone(), last);
    }
    let missing = expected.into_iter().map(|(key, (row, _))| RowAt { key, row: Some(row) });
    let missing: Vec<RowAt> = missing.collect();
    if missing.is_empty() { Ok(ControlFlow::Continue(())) } else { differ(session, missing) }
}

/// All rows of a table of the state as text, chunk by chunk.
pub(crate) struct StateRows<'a> {
    table: &'a SharedTable,
    agreed: &'a dyn Snapshot,
    rows: std::vec::IntoIter<Row>,
    /// Where the next chunk begins; `None`: there is none.
    start: Option<Bound<Key>>,
    /// Why it has ended too early.
    pub(crate) failure: Option<DatabaseError>,
}

impl<'a> StateRows<'a> {
    pub(crate) fn new(table: &'a SharedTable, agreed: &'a dyn Snapshot) -> StateRows<'a> {
        StateRows {
            table,
            agreed,
            rows: Vec::new().into_iter(),
            start: Some(Bound::Unbounded),
            failure: None,
        }
    }
}

impl Iterator for StateRows<'_> {
    type Item = TextRow;

    fn next(&mut self) -> Option<TextRow> {
        loop {
            if let Some(row) = self.rows.next() {
                let row = self.table.texts(&row);
                let Some(unfit) = self.table.unfit(&row) else { return Some(row) };
                self.failure = Some(DatabaseError::new(ErrorKind::Value, unfit));
                return None;
            }
            let range = KeyRange { start: self.start.take()?, end: Bound::Unbounded };
            let (mut rows, mut last) = (Vec::new(), None);
            let scanned = self.agreed.scan(self.table.table.id, &range, false, &mut |key, row| {
                rows.push(row.clone());
                if rows.len() < CHUNK_ROWS {
                    return ControlFlow::Continue(());
                }
                last = Some(Bound::Excluded(key.clone()));
                ControlFlow::Break(())
            });
            if let Err(failure) = scanned {
                self.failure = Some(unreadable(&failure));
                return None;
            }
            (self.rows, self.start) = (rows.into_iter(), last);
        }
    }
}

fn unreadable(failure: &StoreError) -> DatabaseError {
    DatabaseError::new(ErrorKind::Other, format!("this node's state: {failure}"))
}

/// Rows of the state that follow one another.
struct Chunk {
    rows: Vec<Row>,
    /// The rows as the database is asked to write them.
    text: String,
    /// The row behind them.
    next: Option<Row>,
}

fn next_chunk(table: &SharedTable, agreed: &dyn Snapshot, start: Bound<Key>) -> Result<Chunk, DatabaseError> {
    let mut chunk = Chunk { rows: Vec::new(), text: String::new(), next: None };
    let range = KeyRange { start, end: Bound::Unbounded };
    let scanned = agreed.scan(table.table.id, &range, false, &mut |_, row| {
        if chunk.rows.len() == CHUNK_ROWS || chunk.text.len() >= CHUNK_BYTES {
            chunk.next = Some(row.clone());
            return ControlFlow::Break(());
        }
        for text in table.texts(row) {
            match text {
                None => chunk.text.push('N'),
                Some(text) => {
                    let _ = write!(chunk.text, "V{}:{text}", text.len());
                }
            }
        }
        chunk.rows.push(row.clone());
        ControlFlow::Continue(())
    });
    scanned.map_err(|failure| unreadable(&failure))?;
    Ok(chunk)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;
    use crate::samples::{self, Servers};
    use crate::session;
    use memory::Memory;
    use state::{AfterImage, RowId, Stores, Version};
    use std::sync::Arc;
    use std::time::Instant;
    use types::{Catalog, Table};

    /// A state with `rows` rows of two numbers, and its table.
    fn state(rows: i64) -> (Arc<dyn Snapshot>, Arc<Table>) {
        let table = samples::table();
        let store = Memory.create(Arc::default()).expect("memory");
        let catalog = Catalog { tables: [(table.name.clone(), table.clone())].into(), ..Catalog::default() };
        let image = |id: i64| AfterImage {
            row: RowId { table: table.id, key: samples::key(id) },
            value: Some(samples::row(id, 1000 + id % 7)),
        };
        let images: Vec<AfterImage> = (0..rows).map(image).collect();
        store.apply(Version::after_batch(1, 0), &images, Some(Arc::new(catalog))).expect("memory");
        (store.snapshot(), table)
    }

    /// Compares copies in both kinds of databases before and after rows are changed there.
    fn compared(rows: i64) {
        let (agreed, table) = state(rows);
        let servers = Servers::start();
        for address in servers.addresses() {
            let dialect = Dialect::from(address.kind);
            let shared = SharedTable::new(table.clone(), dialect).expect("fits");
            let mut session = session::connect(&address).expect("it answers");
            session.execute(&shared.create(&[])).expect("made");
            let start = Instant::now();
            let mut all = StateRows::new(&shared, &*agreed);
            session.load(&shared.name, &shared.columns.clone(), &mut all).expect("loaded");
            let loaded = start.elapsed();
            let look = |session: &mut dyn Session| {
                let (start, mut found) = (Instant::now(), Vec::new());
                let count = compare(session, &shared, &*agreed, &|| false, &mut |_, rows| {
                    found.extend(rows);
                    Ok(ControlFlow::Continue(()))
                });
                assert_eq!(count.expect("compared"), rows as u64);
                (start.elapsed(), found)
            };
            let (clean, found) = look(&mut *session);
            assert!(found.is_empty(), "{found:?}");
            let id = |number: i64| vec![Some(number.to_string())];
            session
                .execute(&format!("UPDATE {} SET balance = 5 WHERE customer_id = {}", shared.name, rows / 2))
                .expect("changed");
            session.execute(&format!("DELETE FROM {} WHERE customer_id = 0", shared.name)).expect("changed");
            session
                .execute(&format!("INSERT INTO {} VALUES ({}, 1), (-3, 1)", shared.name, rows + 5))
                .expect("changed");
            let (strange, found) = look(&mut *session);
            let mut keys: Vec<_> = found.iter().map(|row| (row.key.clone(), row.row.is_some())).collect();
            keys.sort();
            let mut expected =
                vec![(id(rows / 2), true), (id(0), true), (id(rows + 5), false), (id(-3), false)];
            expected.sort();
            assert_eq!(keys, expected);
            println!(
                "{}: {rows} rows loaded in {loaded:.2?}, compared in {clean:.2?}, and in {strange:.2?} where four differ",
                address.kind.name()
            );
        }
    }

    #[test]
    fn rows_that_differ_are_found_wherever_they_stand() {
        compared(20_000);
    }

    #[test]
    #[ignore = "measures: cargo test -p chainify a_million -- --ignored --nocapture"]
    fn a_million_rows() {
        compared(1_000_000);
    }
}
