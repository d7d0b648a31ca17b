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
use std::collections::HashMap;
use std::fmt::Write;
use std::ops::{Bound, ControlFlow};
use types::{Key, Row};

/// Rows of a chunk.
const CHUNK_ROWS: usize = 4096;
/// Bytes of a chunk's rows, about.
const CHUNK_BYTES: usize = 1024 * 1024;
/// Rows of an interval that are read where somebody has filled it: those behind them are found by the next comparison.
const STRANGE_ROWS_READ: usize = 100_000;

/// A row as it must be; `None`: it must not be there.
#[derive(Clone, Debug)]
pub(crate) struct RowAt {
    pub(crate) key: TextRow,
    pub(crate) row: Option<Row>,
}

/// Compares a table, whose rows the session shows as they are at one point or as this connection alone changes them. `differ` gets
/// the rows of an interval that the database has otherwise. Gives the number of the state's rows.
pub(crate) fn compare(
    session: &mut dyn Session,
    table: &SharedTable,
    agreed: &dyn Snapshot,
    differ: &mut dyn FnMut(&mut dyn Session, Vec<RowAt>) -> Result<ControlFlow<()>, DatabaseError>,
) -> Result<u64, DatabaseError> {
    let mut rows = 0;
    let mut chunk = next_chunk(table, agreed, Bound::Unbounded)?;
    let mut from: Option<TextRow> = None;
    loop {
        let to = chunk.next.as_ref().map(|row| table.key_of(&table.texts(row)));
        let sql = table.select_digest(from.as_ref(), to.as_ref());
        let found = session.query(&sql)?.into_iter().next().unwrap_or_default();
        let digest = sha256(&[chunk.text.as_bytes()]).to_string();
        rows += chunk.rows.len() as u64;
        if found != [Some(chunk.rows.len().to_string()), Some(digest)] {
            let different = differences(session, table, &chunk, (from.as_ref(), to.as_ref()))?;
            if !different.is_empty() && differ(session, different)?.is_break() {
                return Ok(rows);
            }
        }
        let Some(next) = chunk.next else { return Ok(rows) };
        let key = Key::encode(table.key.iter().map(|ordinal| &next[*ordinal]));
        let key = key.map_err(|error| DatabaseError::new(ErrorKind::Other, error.message))?;
        chunk = next_chunk(table, agreed, Bound::Included(key))?;
        from = to;
    }
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

fn differences(
    session: &mut dyn Session,
    table: &SharedTable,
    chunk: &Chunk,
    (from, to): (Option<&TextRow>, Option<&TextRow>),
) -> Result<Vec<RowAt>, DatabaseError> {
    let found = session.query(&table.select_rows(from, to, STRANGE_ROWS_READ))?;
    let mut found: HashMap<TextRow, TextRow> =
        found.into_iter().map(|row| (table.key_of(&row), row)).collect();
    let mut different = Vec::new();
    for row in &chunk.rows {
        let texts = table.texts(row);
        let key = table.key_of(&texts);
        if found.remove(&key) != Some(texts) {
            different.push(RowAt { key, row: Some(row.clone()) });
        }
    }
    let mut strange: Vec<TextRow> = found.into_keys().collect();
    strange.sort();
    different.extend(strange.into_iter().map(|key| RowAt { key, row: None }));
    Ok(different)
}
