use crate::StoreError;
use arrow_array::ArrayRef;
use arrow_schema::DataType as ArrowType;
use types::{DataType, Key};

/// Values of some columns of some rows.
#[derive(Clone, Debug)]
pub struct ColumnBatch {
    /// How many rows.
    pub rows: usize,
    /// One array for each column that was asked for, with so many values of [`column_type`].
    pub columns: Vec<ArrayRef>,
}

/// Columns of a table that nobody keeps: they are made of its rows, piece by piece, for whoever reads them.
pub trait ReadColumns: Send + Sync {
    /// The rows that come behind a key, or the first ones. `None`: there are no more.
    ///
    /// # Errors
    /// As [`Snapshot::get`](crate::Snapshot::get).
    fn piece(&self, behind: Option<&Key>) -> Result<Option<ColumnPiece>, StoreError>;
}

/// Some rows of a table, in the order of their keys.
pub struct ColumnPiece {
    /// The key of the last one, where there may be more rows behind it.
    pub last: Option<Key>,
    /// Their values; `None` where one does not fit in [`column_type`], so that rows have to be read.
    pub batch: Option<ColumnBatch>,
}

/// How the values of a column stand in arrays; `None`: such columns are not kept.
///
/// | SQL | array |
/// | --- | --- |
/// | `boolean`, `smallint`, `integer`, `bigint`, `real`, `double precision` | the same |
/// | `date` | `Int32`: days since 2000-01-01 |
/// | `time`, `timestamp`, `timestamptz` | `Int64`: microseconds, as [`types::Value`] has them |
/// | `numeric(p, s)` with p up to 38 | `Decimal128(p, s)` |
/// | `text`, `varchar` | `Utf8View` |
/// | `char(n)` | `Utf8View`, filled up with spaces as [`types::Value`] has it |
pub fn column_type(data_type: DataType) -> Option<ArrowType> {
    Some(match data_type.unrounded() {
        DataType::Boolean => ArrowType::Boolean,
        DataType::SmallInt => ArrowType::Int16,
        DataType::Integer | DataType::Date => ArrowType::Int32,
        DataType::BigInt | DataType::Time | DataType::Timestamp | DataType::TimestampTz => ArrowType::Int64,
        DataType::Real => ArrowType::Float32,
        DataType::Double => ArrowType::Float64,
        DataType::Text(_) | DataType::Char(_) => ArrowType::Utf8View,
        DataType::Numeric(Some((precision @ ..=38, scale @ 0..)))
            if i32::from(scale) <= i32::from(precision) =>
        {
            ArrowType::Decimal128(precision as u8, scale as i8)
        }
        _ => return None,
    })
}
