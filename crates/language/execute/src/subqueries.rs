//! What a query is run with, and what its subqueries gave when they ran last.

use crate::sorting::Sortable;
use std::collections::BTreeMap;
use std::rc::Rc;
use types::Value;

/// What a query is run with.
#[derive(Clone, Copy)]
pub(super) struct Given<'b> {
    /// Variables.
    pub frame: &'b [Value],
    /// What the query around it hands to it.
    pub arguments: &'b [Value],
    /// The columns to the left of the relation that is being read.
    pub left: &'b [Value],
}

/// A subquery (where its plan stands in memory), its limit, and what it is handed.
pub(super) type SubqueryRun = (usize, Option<usize>, Sortable);

/// Rows of subqueries that have run in a statement.
#[derive(Default)]
pub(super) struct KnownSubqueries {
    rows: BTreeMap<SubqueryRun, Rc<Vec<Vec<Value>>>>,
    values: usize,
}

impl KnownSubqueries {
    /// Values that are remembered.
    const VALUES_MAX: usize = 1 << 18;

    pub fn clear(&mut self) {
        self.rows.clear();
        self.values = 0;
    }

    pub fn get(&self, key: &SubqueryRun) -> Option<&Rc<Vec<Vec<Value>>>> {
        self.rows.get(key)
    }

    pub fn remember(&mut self, key: SubqueryRun, rows: Rc<Vec<Vec<Value>>>) {
        let values = key.2.0.len() + rows.iter().map(Vec::len).sum::<usize>() + 1;
        if self.values + values <= KnownSubqueries::VALUES_MAX {
            self.values += values;
            self.rows.insert(key, rows);
        }
    }
}
