//! INSERT, UPDATE and DELETE, bound.

use super::{Access, BoundSelect};
use crate::command::{DeletePlan, UpdatePlan};
use crate::expression::Expression;
use crate::predicate::Condition;
use crate::table::TablePlan;
use std::sync::Arc;
use types::{ColumnSet, OutputColumn};

/// An INSERT.
#[derive(Debug)]
pub(crate) struct BoundInsert {
    /// The table.
    pub table: Arc<TablePlan>,
    /// Where the rows come from.
    pub source: InsertSource,
    /// ON CONFLICT
    pub on_conflict: Option<OnConflict>,
    /// RETURNING
    pub returning: Option<Returning>,
}

/// What becomes of a row whose key exists already.
#[derive(Debug)]
pub(crate) enum OnConflict {
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
        /// Columns that values and condition look at in the row that exists.
        uses: ColumnSet,
    },
}

/// The rows of an INSERT, in the order of the table's columns.
#[derive(Debug)]
pub(crate) enum InsertSource {
    /// VALUES: one expression per column of the table.
    Rows(Vec<Vec<Expression>>),
    /// A query, and for each column of the table what to make of a row of its result.
    Select(Box<BoundSelect>, Vec<Expression>),
}

/// An UPDATE.
#[derive(Debug)]
pub(crate) struct BoundUpdate {
    /// What a command does.
    pub plan: Arc<UpdatePlan>,
    /// How rows are found.
    pub access: Access,
    /// With [`Access::Range`]: what must be true of a row. With [`Access::Key`] the command asks it.
    pub filter: Option<Condition>,
    /// Columns of the filter.
    pub filter_columns: ColumnSet,
    /// RETURNING
    pub returning: Option<Returning>,
}

/// A DELETE.
#[derive(Debug)]
pub(crate) struct BoundDelete {
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
    pub truncates: bool,
}

/// RETURNING: over the row inserted, updated or deleted.
#[derive(Debug)]
pub(crate) struct Returning {
    /// The output.
    pub projection: Vec<Expression>,
    /// Its columns.
    pub columns: Arc<[OutputColumn]>,
    /// Columns of the table that it looks at.
    pub uses: ColumnSet,
}
