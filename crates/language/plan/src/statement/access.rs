//! How a statement finds its rows.

use crate::expression::Expression;
use crate::statement::access_path::{AccessPath, IndexAccess, Interval, KeyPart, parts_of_access};
use crate::statement::select::BoundSelect;
use crate::table::TablePlan;
use types::ColumnSet;

/// How rows are found.
#[derive(Debug)]
pub enum Access {
    /// At most one row: every column of the key equals a value.
    Key(Vec<KeyPart>),
    /// The rows in an interval of the primary key.
    Range(Interval),
    /// The rows in an interval of an index.
    Index(Box<IndexAccess>),
    /// Of UPDATE and DELETE: a query finds them. Its rows have the key first, in its encoding, then whatever the change
    /// needs; of several rows with the same key the first one counts.
    Found(Box<BoundSelect>),
}

impl From<AccessPath> for Access {
    fn from(path: AccessPath) -> Access {
        match path {
            AccessPath::Key(parts) => Access::Key(parts),
            AccessPath::Range(interval) => Access::Range(interval),
            AccessPath::Index(access) => Access::Index(access),
        }
    }
}

impl Access {
    /// Plans the conditions of a WHERE, all of which must be true. Gives the access and what is left to ask of a row:
    /// for [`Access::Key`] without the conditions that the key fulfils.
    pub fn plan(table: &TablePlan, mut conditions: Vec<Expression>) -> (Access, Vec<Expression>) {
        let (path, fulfilled) = AccessPath::choose(table, &conditions);
        let mut positions = 0..;
        conditions.retain(|_| positions.next().is_none_or(|position| !fulfilled.contains(&position)));
        (Access::from(path), conditions)
    }

    /// What columns are compared with.
    pub fn parts(&self) -> impl Iterator<Item = &KeyPart> {
        let (equal, interval, index) = match self {
            Access::Key(parts) => (parts.as_slice(), None, None),
            Access::Range(interval) => (&[][..], Some(interval), None),
            Access::Index(access) => (&[][..], None, Some(access)),
            Access::Found(_) => (&[][..], None, None),
        };
        parts_of_access(equal, interval, index.map(Box::as_ref))
    }

    /// Columns that the access itself looks at besides the primary key: those of an index.
    pub fn columns(&self) -> ColumnSet {
        match self {
            Access::Index(access) => access.index.column_set(),
            Access::Key(_) | Access::Range(_) | Access::Found(_) => ColumnSet::EMPTY,
        }
    }
}
