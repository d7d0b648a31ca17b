//! SELECT, bound.

use crate::aggregate::Aggregate;
use crate::condition::Condition;
use crate::expression::Expression;
use crate::row_locking::RowLocking;
use crate::statement::access::Access;
use crate::statement::relation::Relation;
use crate::table::TablePlan;
use crate::window::WindowCall;
use std::sync::Arc;
use types::{ColumnOrigin, ColumnSet, OutputColumn};

/// A SELECT.
#[derive(Debug)]
pub struct BoundSelect {
    /// FROM, with as much of WHERE as tells which rows are read.
    pub source: From,
    /// The rest of WHERE.
    pub filter: Option<Expression>,
    /// GROUP BY, aggregates and HAVING; the expressions below are then over the rows of the grouping.
    pub grouping: Option<Grouping>,
    /// Window functions, over the rows that come out of the grouping, or of the source where there is none; their values
    /// are the last columns of the rows that the expressions below are over.
    pub windows: Vec<WindowCall>,
    /// The output.
    pub projection: Vec<Expression>,
    /// Its columns.
    pub columns: Arc<[OutputColumn]>,
    /// DISTINCT
    pub distinct: Distinctness,
    /// ORDER BY; empty also where the table's order is the wanted one already.
    pub order: Vec<SortKey>,
    /// The table is read backwards.
    pub reverse: bool,
    /// LIMIT
    pub limit: Option<Expression>,
    /// OFFSET
    pub offset: Option<Expression>,
    /// Rows that the order does not tell from the last one of LIMIT come too. Then there is an order.
    pub ties: bool,
    /// An expression holds a subquery. Then the source is no table alone.
    pub has_subqueries: bool,
    /// By output: it is a literal without a type, which what it meets may still give one; may be shorter.
    pub literals: Vec<bool>,
    /// By output: the column of a table or view that it is; may be shorter.
    pub origins: Vec<Option<ColumnOrigin>>,
    /// What the first FOR UPDATE or its kind in it is called that asks for rows of the ledger: a read-only transaction must not run it.
    pub lock: Option<&'static str>,
}

/// FROM.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "few of them, and none is moved once a plan is made")]
pub enum From {
    /// One row without columns.
    Nothing,
    /// A table alone: its rows are never copied.
    Table(Scanned),
    /// Anything else.
    Relation(Box<Relation>),
}

impl BoundSelect {
    /// One row without columns.
    pub(crate) fn of_nothing() -> BoundSelect {
        BoundSelect {
            source: From::Nothing,
            filter: None,
            grouping: None,
            windows: Vec::new(),
            projection: Vec::new(),
            columns: Arc::default(),
            distinct: Distinctness::All,
            order: Vec::new(),
            reverse: false,
            limit: None,
            offset: None,
            ties: false,
            has_subqueries: false,
            literals: Vec::new(),
            origins: Vec::new(),
            lock: None,
        }
    }

    /// Whether it looks at rows of tables.
    pub fn reads_rows(&self) -> bool {
        !matches!(self.source, From::Nothing) || self.has_subqueries
    }

    /// The table of which it locks the rows that it gives, whose keys stand behind their columns.
    pub fn locks(&self) -> Option<(&Scanned, RowLocking)> {
        let scanned = self.source.only_table().filter(|scanned| scanned.keyed)?;
        Some((scanned, scanned.locking?))
    }

    /// Names of the tables that it reads.
    pub fn tables(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        self.visit_tables(&mut |scanned| {
            if !names.contains(&scanned.table.name) {
                names.push(scanned.table.name.clone());
            }
        });
        names
    }
}

impl From {
    /// The table, where there is nothing else.
    pub fn table(&self) -> Option<&Scanned> {
        match self {
            From::Table(scanned) => Some(scanned),
            From::Nothing | From::Relation(_) => None,
        }
    }

    /// The table, where there is no other relation.
    fn only_table(&self) -> Option<&Scanned> {
        match self {
            From::Table(scanned) => Some(scanned),
            From::Relation(relation) => match relation.as_ref() {
                Relation::Table(scanned) => Some(scanned),
                _ => None,
            },
            From::Nothing => None,
        }
    }

    pub(crate) fn only_table_mut(&mut self) -> Option<&mut Scanned> {
        match self {
            From::Table(scanned) => Some(scanned),
            From::Relation(relation) => match relation.as_mut() {
                Relation::Table(scanned) => Some(scanned),
                _ => None,
            },
            From::Nothing => None,
        }
    }
}

/// DISTINCT.
#[derive(Debug, PartialEq)]
pub enum Distinctness {
    /// Every row.
    All,
    /// The first of equal outputs.
    Distinct,
    /// DISTINCT ON: the first, in the wanted order, of the rows in which these are equal.
    On(Vec<Expression>),
}

/// A table as a statement reads it.
#[derive(Debug)]
pub struct Scanned {
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
    /// The row's key stands behind its columns.
    pub keyed: bool,
    /// How its rows are locked.
    pub locking: Option<RowLocking>,
    /// The height after which it is read; `None`: now.
    pub past: Option<Box<Expression>>,
}

/// GROUP BY. A row of the grouping has the keys first, then the aggregates.
#[derive(Debug)]
pub struct Grouping {
    /// Over the table's columns.
    pub keys: Vec<Expression>,
    /// Over the table's columns.
    pub aggregates: Vec<Aggregate>,
    /// Over the rows of the grouping.
    pub having: Option<Expression>,
}

/// A key of ORDER BY, over the same row as the projection.
#[derive(Clone, Debug, PartialEq)]
pub struct SortKey {
    /// Position in the output, where it is one of its columns.
    pub output: Option<usize>,
    /// What to sort by otherwise.
    pub expression: Expression,
    /// DESC
    pub descending: bool,
    /// NULLS FIRST
    pub nulls_first: bool,
}
