//! What a checked transaction is made of.

use crate::expression::Expression;
use std::sync::Arc;
use types::{Key, Row, Table};

/// What a transaction does, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// Its statements.
    pub statements: Vec<Statement>,
}

/// A statement about one table.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// The table.
    pub table: Arc<Table>,
    /// What happens to it.
    pub action: Action,
    /// Which rows that can be: what conflicts are found by.
    pub access: Access,
}

/// What a statement does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Adds rows: all columns of each, in the table's order, of the columns' types or NULL.
    Insert(Vec<Row>),
    /// Changes columns, none of them of the key, each at most once; no expression reads a column that an earlier one changes.
    Update {
        /// Ordinals and new values.
        set: Vec<(usize, Expression)>,
        /// Which rows; `None`: all.
        condition: Option<Expression>,
    },
    /// Takes rows away.
    Delete {
        /// Which; `None`: all.
        condition: Option<Expression>,
    },
}

/// Rows that a statement can touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Those with these whole keys alone.
    Keys(Vec<Key>),
    /// Any of the table's.
    Table,
}
