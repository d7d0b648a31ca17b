//! What a session alone knows of a statement of a transaction block, and says with it: rows that others have locked, and the rows of its
//! temporary tables.

use crate::unknown_types::check_known;
use crate::{DataType, ExecutionVersion, Key, PackedRows, TableId};
use borsh::{BorshDeserialize, BorshSerialize};
use std::io;

/// [`SessionStep::RunGiven`](crate::SessionStep::RunGiven) as its encoding begins.
const RUN_GIVEN: u8 = 5;

/// A row that another transaction block had locked.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, BorshSerialize, BorshDeserialize)]
pub struct HeldRow {
    /// Its table.
    pub table: TableId,
    /// Its primary key.
    pub key: Key,
}

/// A temporary table as a statement finds it.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct GivenTable {
    /// As the statement names it.
    pub name: String,
    /// Names and types of its columns.
    pub columns: Vec<(String, DataType)>,
    /// Its rows.
    pub rows: PackedRows,
}

/// What is said with a statement.
#[derive(Clone, PartialEq, Eq, Debug, Default, BorshSerialize, BorshDeserialize)]
pub struct StepGiven {
    /// Rows that count as locked by others, in ascending order.
    pub held: Vec<HeldRow>,
    /// The temporary tables that it reads.
    pub tables: Vec<GivenTable>,
}

/// Nothing is given.
pub(crate) static NOTHING: StepGiven = StepGiven { held: Vec::new(), tables: Vec::new() };

/// Reads what a step begins with that programs before version 15 did not know.
pub(crate) fn read_given<R: io::Read>(reader: &mut R) -> io::Result<StepGiven> {
    check_known(RUN_GIVEN, ExecutionVersion::V15)?;
    BorshDeserialize::deserialize_reader(reader)
}
