//! A partitioned table as its rows are held against it: which partitioned relation has no partition for a row.

use crate::expression::{Environment, Expression};
use types::session_format::{SessionFormat, within_format};
use types::{SqlError, SqlState, Value, format_value, object_name};

/// The name of the check that a partition takes the row; no constraint has such a name.
pub(crate) const CHECK_NAME: &str = "\0partitions";

/// What a table is partitioned by, and what its partitions are that are partitioned themselves.
#[derive(Debug)]
pub struct PartitionsPlan {
    /// The table, then what is partitioned inside of it, the outer ones first.
    pub(crate) levels: Vec<PartitionedLevel>,
}

/// Something that is partitioned.
#[derive(Debug)]
pub(crate) struct PartitionedLevel {
    /// Its name in the catalog.
    pub relation: String,
    /// Ordinals of the columns that it is partitioned by.
    pub columns: Vec<u16>,
    /// Their names, as errors list them.
    pub listed: String,
    /// What is true of its rows; `None`: it is the table.
    pub condition: Option<Expression>,
}

impl PartitionsPlan {
    /// The error of a row that no partition takes, and what it says of the row.
    #[cold]
    pub(crate) fn no_partition(&self, row: &[Value]) -> (SqlError, String) {
        let has = |level: &&PartitionedLevel| match &level.condition {
            None => true,
            Some(condition) => {
                let environment = Environment::new(row, &[], 0);
                within_format(SessionFormat::default(), || condition.is_true(&environment)).unwrap_or(false)
            }
        };
        let Some(level) = self.levels.iter().rev().find(has) else {
            let message = "no partition found for row";
            return (SqlError::new(SqlState::CHECK_VIOLATION, message), String::new());
        };
        let relation = object_name(&level.relation);
        let message = format!("no partition of relation \"{relation}\" found for row");
        let shown = |ordinal: &u16| {
            let value = row.get(usize::from(*ordinal)).and_then(format_value);
            value.unwrap_or_else(|| "null".to_string())
        };
        let values: Vec<String> = level.columns.iter().map(shown).collect();
        let (key, values) = (&level.listed, values.join(", "));
        let detail = format!("Partition key of the failing row contains ({key}) = ({values}).");
        (SqlError::new(SqlState::CHECK_VIOLATION, message), detail)
    }
}
