//! SELECT, bound.

use super::Access;
use crate::aggregate::Aggregate;
use crate::expression::Expression;
use crate::predicate::Condition;
use crate::table::TablePlan;
use std::sync::Arc;
use types::{ColumnSet, OutputColumn};

/// A SELECT.
#[derive(Debug)]
pub(crate) struct BoundSelect {
    /// The table; `None`: one row without columns.
    pub source: Option<Scanned>,
    /// WHERE where there is no table.
    pub filter: Option<Expression>,
    /// GROUP BY, aggregates and HAVING; the expressions below are then over the rows of the grouping.
    pub grouping: Option<Grouping>,
    /// The output.
    pub projection: Vec<Expression>,
    /// Its columns.
    pub columns: Arc<[OutputColumn]>,
    /// DISTINCT
    pub distinct: bool,
    /// ORDER BY; empty also where the table's order is the wanted one already.
    pub order: Vec<SortKey>,
    /// The table is read backwards.
    pub reverse: bool,
    /// LIMIT
    pub limit: Option<Expression>,
    /// OFFSET
    pub offset: Option<Expression>,
}

/// A table as a statement reads it.
#[derive(Debug)]
pub(crate) struct Scanned {
    /// The table.
    pub table: Arc<TablePlan>,
    /// How rows are found.
    pub access: Access,
    /// What else must be true of a row. With [`Access::Key`] without what the key says already.
    pub filter: Option<Condition>,
    /// Columns of filter and output, and `exists`.
    pub columns: ColumnSet,
    /// Columns of the filter.
    pub filter_columns: ColumnSet,
}

/// GROUP BY. A row of the grouping has the keys first, then the aggregates.
#[derive(Debug)]
pub(crate) struct Grouping {
    /// Over the table's columns.
    pub keys: Vec<Expression>,
    /// Over the table's columns.
    pub aggregates: Vec<Aggregate>,
    /// Over the rows of the grouping.
    pub having: Option<Expression>,
}

/// A key of ORDER BY, over the same row as the projection.
#[derive(Debug)]
pub(crate) struct SortKey {
    /// Position in the output, where it is one of its columns.
    pub output: Option<usize>,
    /// What to sort by otherwise.
    pub expression: Expression,
    /// DESC
    pub descending: bool,
    /// NULLS FIRST
    pub nulls_first: bool,
}
