//! What a query reads its rows from: tables, queries, lists of rows, and how they are joined.
//!
//! A relation gives rows of its own columns. Its expressions look at those as [`Kind::Column`], and at the columns to
//! its left in the same FROM as [`Kind::Left`]: a table that is found by a key which comes from the left is looked up
//! row by row, everything else is read once.

use crate::expression::{Expression, RoutineCall};
use crate::statement::row_function::RowFunction;
use crate::statement::visit::VisitExpression;
use crate::statement::{BoundSelect, Scanned};
use std::sync::Arc;

/// Where rows come from.
#[derive(Debug)]
pub enum Relation {
    /// A table.
    Table(Scanned),
    /// A query in FROM, a view or a WITH query.
    Query {
        /// The query.
        query: Arc<BoundSelect>,
        /// What it is handed, over the columns to the left; `None`: what the query around it was handed.
        arguments: Option<Vec<Expression>>,
        /// What must be true of its rows.
        filter: Option<Expression>,
    },
    /// VALUES.
    Values(Vec<Vec<Expression>>),
    /// A function that gives rows.
    Function {
        /// Which.
        function: RowFunction,
        /// Of the types that it takes.
        arguments: Vec<Expression>,
    },
    /// The rows of a function of the ledger.
    Call(RoutineCall),
    /// UNION, INTERSECT, EXCEPT.
    Set {
        /// Which.
        operation: SetOperation,
        /// Duplicates stay.
        all: bool,
        /// Both have columns of the same types, and no arguments.
        sides: Box<[BoundSelect; 2]>,
    },
    /// A WITH RECURSIVE query.
    Recursive {
        /// By which its own rows are known inside of it.
        number: usize,
        /// Duplicates stay.
        all: bool,
        /// What it begins with, and what is run on the last rows found until that finds none; both have columns of the
        /// same types, and no arguments of their own.
        sides: Box<[BoundSelect; 2]>,
    },
    /// The last rows that the WITH RECURSIVE query of this number has found.
    Working(usize),
    /// Two relations, joined.
    Join(Box<Join>),
}

/// A set operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOperation {
    /// UNION
    Union,
    /// INTERSECT
    Intersect,
    /// EXCEPT
    Except,
}

/// Whose rows appear that match nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// Nobody's.
    Inner,
    /// The left one's.
    Left,
    /// The right one's.
    Right,
    /// Both's.
    Full,
}

/// Two relations, joined.
#[derive(Debug)]
pub struct Join {
    /// Whose rows appear that match nothing.
    pub kind: JoinKind,
    /// Read first.
    pub left: Relation,
    /// Read once, or for every row of the left one.
    pub right: Relation,
    /// Columns of the left one.
    pub left_width: usize,
    /// Columns of the right one.
    pub right_width: usize,
    /// The right one looks at columns of the left one.
    pub dependent: bool,
    /// What must be equal: over the columns of the left one, and of the right one.
    pub equal: Vec<(Expression, Expression)>,
    /// What else must be true of the columns of both, the left ones first.
    pub condition: Option<Expression>,
}

impl Relation {
    /// Visits its expressions, without those of its queries.
    pub fn visit_expressions(&self, visit: &mut VisitExpression<'_>) {
        match self {
            Relation::Table(scanned) => scanned.visit_expressions(visit),
            Relation::Query { arguments, filter, .. } => {
                arguments.iter().flatten().chain(filter).for_each(visit);
            }
            Relation::Values(rows) => rows.iter().flatten().for_each(visit),
            Relation::Function { arguments, .. } => arguments.iter().for_each(visit),
            Relation::Call(call) => call.arguments.iter().for_each(visit),
            Relation::Set { .. } | Relation::Recursive { .. } | Relation::Working(_) => {}
            Relation::Join(join) => {
                join.left.visit_expressions(visit);
                join.right.visit_expressions(visit);
                let equal = join.equal.iter().flat_map(|(left, right)| [left, right]);
                equal.chain(&join.condition).for_each(visit);
            }
        }
    }

    /// Visits the tables that it names itself.
    pub fn visit_tables(&self, visit: &mut dyn FnMut(&Scanned)) {
        match self {
            Relation::Table(scanned) => visit(scanned),
            Relation::Join(join) => {
                join.left.visit_tables(visit);
                join.right.visit_tables(visit);
            }
            _ => {}
        }
    }

    /// Visits the queries whose rows it has.
    pub fn visit_queries(&self, visit: &mut dyn FnMut(&BoundSelect)) {
        match self {
            Relation::Query { query, .. } => visit(query),
            Relation::Set { sides, .. } | Relation::Recursive { sides, .. } => sides.iter().for_each(visit),
            Relation::Join(join) => {
                join.left.visit_queries(visit);
                join.right.visit_queries(visit);
            }
            Relation::Table(_)
            | Relation::Values(_)
            | Relation::Function { .. }
            | Relation::Call(_)
            | Relation::Working(_) => {}
        }
    }

    /// Visits the functions whose rows it has.
    pub fn visit_calls(&self, visit: &mut dyn FnMut(&RoutineCall)) {
        match self {
            Relation::Call(call) => visit(call),
            Relation::Join(join) => {
                join.left.visit_calls(visit);
                join.right.visit_calls(visit);
            }
            _ => {}
        }
    }
}
