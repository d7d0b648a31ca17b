//! Columns that GROUP BY does not name, and that the primary keys which it names decide on: a group has one value of each.

use crate::expression::{Expression, Kind, Relations};

/// Finds the columns beside the keys of a GROUP BY that these decide on, as expressions look at them.
pub(super) struct Decided<'b> {
    /// GROUP BY.
    keys: &'b [Expression],
    /// What the columns are called.
    names: &'b Relations,
    found: Vec<Expression>,
}

impl<'b> Decided<'b> {
    /// None so far.
    pub fn by(keys: &'b [Expression], names: &'b Relations) -> Decided<'b> {
        Decided { keys, names, found: Vec::new() }
    }

    /// Notes those that an expression over the rows of FROM looks at, outside of aggregates.
    pub fn note(&mut self, expression: &Expression) {
        if self.keys.contains(expression) || self.found.contains(expression) {
            return;
        }
        match expression.kind {
            Kind::Column(ordinal) if self.is_decided(ordinal) => self.found.push(expression.clone()),
            _ => expression.operands().into_iter().for_each(|operand| self.note(operand)),
        }
    }

    /// Those that were found. They are keys that make no more groups, whatever is equal in their types.
    pub fn into_keys(self) -> Vec<Expression> {
        self.found
    }

    /// Where an outer join has no row of the relation, all of its columns are NULL.
    fn is_decided(&self, ordinal: u16) -> bool {
        let is_key = |position| {
            self.keys.iter().any(|key| matches!(key.kind, Kind::Column(ordinal) if ordinal == position))
        };
        self.names.primary_key_beside(ordinal).is_some_and(|mut key| key.all(is_key))
    }
}
