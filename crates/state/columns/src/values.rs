//! What the values of one column in one chunk of rows can do, whatever their type is.

use arrow_array::ArrayRef;
use types::{Row, Value};

/// A value is none that the column's arrays can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DoesNotFit;

/// Rows and where they stand in their chunk, ascending: places that are there, and then those behind the last.
pub(crate) type Placed = [(usize, Row)];

/// The values of one column in one chunk of rows, as an array that can be lent and is then changed no more.
pub(crate) trait Values: Send {
    /// Writes the column's values of these rows. What is lent stays as it is: then this has an array of its own. Nothing is
    /// written where all values are there already.
    fn write(&mut self, ordinal: usize, rows: &Placed) -> Result<(), DoesNotFit>;

    /// All of them.
    fn array(&self) -> ArrayRef;
}

/// The value of a column in a row.
pub(crate) fn value_of(row: &Row, ordinal: usize) -> Result<&Value, DoesNotFit> {
    row.get(ordinal).ok_or(DoesNotFit)
}
