//! Tables: named columns with a fixed number of places.

use crate::AnkerError;
use crate::column::Column;
use crate::system::Storage;

/// Tables that an engine may have.
pub const TABLES_MAX: usize = 16;
/// Columns that a table may have.
pub const COLUMNS_MAX: usize = 64;
/// Rows that a table may have.
pub const ROWS_MAX: usize = u32::MAX as usize;

/// What a table looks like.
#[derive(Clone, Copy, Debug)]
pub struct TableShape {
    /// Its name.
    pub name: &'static str,
    /// Names of its columns, each of 64-bit integers.
    pub columns: &'static [&'static str],
    /// How many columns at the front never change once a row is there. Precision locking knows their values for every write.
    pub keys: usize,
    /// Places for rows.
    pub rows_max: usize,
}

#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) shape: TableShape,
    pub(crate) columns: Vec<Column>,
}

impl Table {
    pub(crate) fn new(shape: TableShape, storage: Storage) -> Result<Table, AnkerError> {
        if !(1..=COLUMNS_MAX).contains(&shape.columns.len()) || shape.keys > shape.columns.len() {
            let expected =
                format!("a table with 1 to {COLUMNS_MAX} columns (COLUMNS_MAX), of which some are keys");
            return Err(AnkerError::unknown(
                expected,
                format_args!("{} and {} keys", shape.columns.len(), shape.keys),
            ));
        }
        if !(1..=ROWS_MAX).contains(&shape.rows_max) {
            let expected = format!("a table with places for 1 to {ROWS_MAX} rows (ROWS_MAX)");
            return Err(AnkerError::unknown(expected, shape.rows_max));
        }
        let column = |_: &&str| Column::new(storage, shape.rows_max);
        Ok(Table { shape, columns: shape.columns.iter().map(column).collect::<Result<_, _>>()? })
    }
}
