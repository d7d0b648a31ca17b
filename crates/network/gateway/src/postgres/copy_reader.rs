//! Reading the rows of COPY FROM STDIN from its data, in either of two ways: lines (`copy_line_reader`), and fields with
//! their lengths (`copy_binary_reader`).

use super::copy::CopyStatement;
use super::copy_binary_reader::BinaryReader;
use super::copy_format::Layout;
use super::copy_line_reader::LineReader;
use std::sync::Arc;
use types::{CompositeTypes, SqlError, Value};

/// A row of the data as values, with its line.
#[derive(Debug)]
pub(super) struct CopyRow {
    /// Number of its first line, or of the row in binary data, from 1.
    pub(super) line: u64,
    /// One value per column of the statement.
    pub(super) values: Vec<Value>,
    /// Bytes that it takes in a transaction, roughly.
    pub(super) bytes: usize,
}

/// What is wrong with the data, and where.
#[derive(Debug)]
pub(super) struct CopyError {
    /// The error.
    pub(super) error: SqlError,
    /// PostgreSQL's CONTEXT: `COPY t, line 3, column a: "x"`; none where the head of binary data is wrong.
    pub(super) context: Option<String>,
}

/// Reads rows from the bytes of CopyData messages, which may end anywhere.
pub(super) enum CopyReader {
    Lines(LineReader),
    Binary(BinaryReader),
}

impl CopyReader {
    /// The reader of a statement's data. Values are read in the session's own way where it `has_format`.
    pub(super) fn new(
        statement: &Arc<CopyStatement>,
        has_format: bool,
        types: impl FnOnce() -> CompositeTypes,
    ) -> CopyReader {
        let statement = Arc::clone(statement);
        match statement.format.layout {
            Layout::Binary => CopyReader::Binary(BinaryReader::new(statement, types())),
            Layout::Text | Layout::Csv { .. } => {
                CopyReader::Lines(LineReader::new(statement, has_format.then(types)))
            }
        }
    }

    /// Takes the next bytes and appends the rows that are whole.
    pub(super) fn feed(&mut self, bytes: &[u8], rows: &mut Vec<CopyRow>) -> Result<(), CopyError> {
        match self {
            CopyReader::Lines(reader) => reader.feed(bytes, rows),
            CopyReader::Binary(reader) => reader.feed(bytes, rows),
        }
    }

    /// Takes what is left when the client has sent everything.
    pub(super) fn finish(&mut self, rows: &mut Vec<CopyRow>) -> Result<(), CopyError> {
        match self {
            CopyReader::Lines(reader) => reader.finish(rows),
            CopyReader::Binary(reader) => reader.finish(),
        }
    }
}
