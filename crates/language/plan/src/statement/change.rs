//! INSERT, UPDATE and DELETE, bound.

use crate::command::{DeletePlan, UpdatePlan};
use crate::computed_index::ComputedIndex;
use crate::condition::Condition;
use crate::expression::Expression;
use crate::row_check::RowCheck;
use crate::statement::{Access, BoundSelect};
use crate::table::TablePlan;
use std::sync::Arc;
use types::{ColumnOrigin, ColumnSet, Index, OutputColumn, Value};

/// An INSERT.
#[derive(Debug)]
pub struct BoundInsert {
    /// The table.
    pub table: Arc<TablePlan>,
    /// Where the rows come from.
    pub source: InsertSource,
    /// ON CONFLICT
    pub on_conflict: Option<OnConflict>,
    /// What policies ask of the rows.
    pub row_check: Option<Arc<RowCheck>>,
    /// RETURNING
    pub returning: Option<Returning>,
}

/// ON CONFLICT.
#[derive(Debug)]
pub struct OnConflict {
    /// In what rows conflict: looked at in this order.
    pub arbiters: Vec<Arbiter>,
    /// What becomes of a row that conflicts with one that exists.
    pub action: ConflictAction,
}

/// What no two rows may have the same of.
#[derive(Debug)]
pub enum Arbiter {
    /// The primary key.
    Key,
    /// The columns of a unique index.
    Unique(Arc<Index>),
    /// What a unique index on expressions, or of a part of the rows, has of a row.
    Computed(Arc<ComputedIndex>),
}

impl Arbiter {
    /// Ordinals of the columns that it looks at.
    pub fn looks_at(&self, table: &TablePlan) -> Vec<u16> {
        match self {
            Arbiter::Key => table.key.clone(),
            Arbiter::Unique(index) => index.columns.clone(),
            Arbiter::Computed(computed) => computed.looked_at.clone(),
        }
    }
}

/// What becomes of a row that conflicts with one that exists.
#[derive(Debug)]
pub enum ConflictAction {
    /// It is left out.
    Nothing,
    /// The row that exists is changed.
    Update {
        /// Assigns the slots 0, 1, … in turn.
        plan: Arc<UpdatePlan>,
        /// What is assigned, over the columns of the row that exists and then those of the row that was to be inserted.
        values: Vec<Expression>,
        /// Over the same; where it is not true, nothing happens.
        condition: Option<Expression>,
        /// What policies ask of the row that exists.
        existing_check: Option<Arc<RowCheck>>,
        /// Columns that values and conditions look at in the row that exists.
        uses: ColumnSet,
    },
}

/// The rows of an INSERT, in the order of the table's columns.
#[derive(Debug)]
pub enum InsertSource {
    /// VALUES: one expression per column of the table.
    Rows(Vec<Vec<Expression>>),
    /// A query, and for each column of the table what to make of a row of its result.
    Select(Box<BoundSelect>, Vec<Expression>),
}

/// An UPDATE.
#[derive(Debug)]
pub struct BoundUpdate {
    /// What a command does.
    pub plan: Arc<UpdatePlan>,
    /// How rows are found.
    pub access: Access,
    /// With [`Access::Range`] and [`Access::Index`]: what must be true of a row. With [`Access::Key`] the command asks it.
    pub filter: Option<Condition>,
    /// Columns of the filter.
    pub filter_columns: ColumnSet,
    /// RETURNING
    pub returning: Option<Returning>,
}

/// A DELETE.
#[derive(Debug)]
pub struct BoundDelete {
    /// What a command does.
    pub plan: Arc<DeletePlan>,
    /// How rows are found.
    pub access: Access,
    /// As [`BoundUpdate::filter`].
    pub filter: Option<Condition>,
    /// Columns of the filter.
    pub filter_columns: ColumnSet,
    /// RETURNING
    pub returning: Option<Returning>,
    /// It is written as TRUNCATE.
    pub truncation: Option<Truncation>,
}

impl BoundDelete {
    /// Whether it deletes rows that are not a session's own.
    pub(super) fn changes_ledger(&self) -> bool {
        let mut others = self.truncation.iter().flat_map(|truncation| &truncation.also);
        !self.plan.table.id.is_temporary() || others.any(BoundDelete::changes_ledger)
    }
}

/// What TRUNCATE does besides deleting all rows.
#[derive(Debug)]
pub struct Truncation {
    /// RESTART IDENTITY.
    pub restarts: bool,
    /// What is truncated before: tables that reference this one, and others.
    pub also: Vec<BoundDelete>,
}

/// RETURNING: over the row inserted, updated or deleted.
#[derive(Debug)]
pub struct Returning {
    /// The output.
    pub projection: Vec<Expression>,
    /// Its columns.
    pub columns: Arc<[OutputColumn]>,
    /// By output: the column of a table or view that it is.
    pub origins: Vec<Option<ColumnOrigin>>,
    /// Columns of the table that it looks at.
    pub uses: ColumnSet,
    /// How many values at the end of what the query gives that finds a row are those of other relations: in RETURNING
    /// they stand behind the columns of the table.
    pub beside: usize,
}

impl Returning {
    /// What RETURNING is said over: the row that was changed, and what stands beside it in the row that a query has found.
    pub fn row(&self, row: &[Value], found: &[Value]) -> Vec<Value> {
        let beside = &found[found.len().saturating_sub(self.beside)..];
        [row, beside].concat()
    }
}
