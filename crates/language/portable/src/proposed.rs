//! What the text of a script says about rows, whatever rows there are: what somebody can agree to before the script is ordered.

use crate::access::{equal_value, listed_values};
use crate::expression::{Expression, Term};
use crate::statement::{Action, Script, Statement};
use std::fmt;
use std::sync::Arc;
use types::{Table, Value};

/// What happens to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// INSERT, COPY
    Insert,
    /// UPDATE
    Update,
    /// DELETE
    Delete,
}

impl fmt::Display for ChangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ChangeKind::Insert => "insert",
            ChangeKind::Update => "update",
            ChangeKind::Delete => "delete",
        })
    }
}

/// A change of one row, or of all rows that a condition may be true for.
#[derive(Clone, Debug, PartialEq)]
pub struct ProposedChange {
    /// The table.
    pub table: Arc<Table>,
    /// What happens.
    pub kind: ChangeKind,
    /// By ordinal, the value that the row has behind the change (DELETE: had), where the text alone says that: all of an
    /// inserted row; of others what they are found by, if that is their whole key, and what they are set to.
    pub values: Vec<Option<Value>>,
}

impl Script {
    /// What its text says about rows, in order: one change per row that it names.
    pub fn proposed_changes(&self) -> Vec<ProposedChange> {
        self.statements.iter().flat_map(proposed).collect()
    }
}

fn proposed(statement: &Statement) -> Vec<ProposedChange> {
    let change = |kind, values| ProposedChange { table: Arc::clone(&statement.table), kind, values };
    match &statement.action {
        Action::Insert(rows) => {
            let values = |row: &types::Row| row.iter().cloned().map(Some).collect();
            rows.iter().map(|row| change(ChangeKind::Insert, values(row))).collect()
        }
        Action::Update { set, condition } => {
            let mut named = named_rows(&statement.table, condition.as_ref());
            for (ordinal, value) in set {
                let value = constant(&statement.table, *ordinal, value);
                named.iter_mut().for_each(|values| values[*ordinal].clone_from(&value));
            }
            named.into_iter().map(|values| change(ChangeKind::Update, values)).collect()
        }
        Action::Delete { condition } => {
            let named = named_rows(&statement.table, condition.as_ref());
            named.into_iter().map(|values| change(ChangeKind::Delete, values)).collect()
        }
    }
}

/// The rows that a condition names by their whole keys, with those; else one that nothing is known of.
fn named_rows(table: &Table, condition: Option<&Expression>) -> Vec<Vec<Option<Value>>> {
    let unknown = vec![None; table.columns.len()];
    let parts = match condition.map(|condition| (&condition.term, condition)) {
        None => return vec![unknown],
        Some((Term::And(parts), _)) => parts.as_slice(),
        Some((_, condition)) => std::slice::from_ref(condition),
    };
    let mut values = unknown.clone();
    for ordinal in table.primary_key.iter().map(|ordinal| usize::from(*ordinal)) {
        values[ordinal] = parts.iter().find_map(|part| equal_value(table, ordinal, part)).cloned();
    }
    if table.primary_key.iter().all(|ordinal| values[usize::from(*ordinal)].is_some()) {
        return vec![values];
    }
    let Some((ordinal, listed)) = listed_values(table, parts) else { return vec![unknown] };
    let with = |value: &Value| {
        let mut values = unknown.clone();
        values[ordinal] = Some(value.clone());
        values
    };
    listed.into_iter().map(with).collect()
}

/// What a column is set to, where that does not depend on the row.
fn constant(table: &Table, ordinal: usize, value: &Expression) -> Option<Value> {
    let family = table.columns[ordinal].data_type.family();
    match &value.term {
        Term::Constant(value) if value.is_null() || value.data_type() == family => Some(value.clone()),
        _ => None,
    }
}
