//! The logical plan: what a query asks for, as a tree of data, between its names and how its rows are found.
//!
//! ```text
//!  syntax ──bind──▶ LogicalPlan ──rules──▶ LogicalPlan ──operators──▶ BoundSelect ──▶ execute
//!                   names and types        conditions at the tables,   what execute runs
//!                   are settled            equal sides, paths, order
//! ```
//!
//! Binding says nothing of keys, indexes, ranges and orders of reading: it gives the tree as the text has it. The
//! [`rules`] rewrite the tree, each for one reason and in a fixed order. [`operators()`] then makes of it what runs. All
//! three are pure functions, so that every node makes the same plan of the same text.
//!
//! # The shape of a tree
//!
//! A SELECT becomes a **block**, from the top down:
//!
//! ```text
//!  Limit ▸ Distinct ▸ Project ▸ Distinct on ▸ Sort ▸ Window ▸ Filter (HAVING) ▸ Aggregate ▸ Filter (WHERE) ▸ source
//! ```
//!
//! Only `Project` is always there. The source is a relation: a table, a join, a function, rows that are given, a set
//! operation, or another block.
//!
//! # Which row an expression looks at
//!
//! [`Kind::Column`](crate::expression::Kind::Column) counts the columns of a row from 0:
//!
//! - In the **source** and in the filter of WHERE all expressions look at one row: the columns of all relations of FROM
//!   side by side, in their order. A condition therefore keeps its ordinals when a rule moves it.
//! - Behind an `Aggregate` the row has the keys, then the aggregates. A `Window` puts its values behind the columns of
//!   its input. The other nodes leave the row as it is; a `Project` makes a new one.
//!
//! A query inside of an expression is an argument of the expression: [`Subquery::logical`](crate::expression::Subquery).

mod alone;
mod block;
mod explain;
mod found_rows;
mod lower;
pub mod rules;
mod split;

use crate::aggregate::Aggregate;
use crate::expression::{Expression, RoutineCall};
use crate::row_locking::RowLocking;
use crate::statement::{AccessPath, JoinKind, RowFunction, SetOperation, SortKey};
use crate::table::TablePlan;
use crate::window::WindowCall;
pub use explain::explain;
pub use lower::operators;
pub use split::Split;
use std::sync::Arc;
use types::{ColumnSet, DataType, OutputColumn};

/// A node of a logical plan: rows, and what is to be done with them.
#[derive(Clone, Debug, PartialEq)]
pub enum LogicalPlan {
    /// One row without columns: the source of a query without FROM.
    OneRow,
    /// The rows of a table.
    Scan(Box<Scan>),
    /// VALUES.
    Values {
        /// The rows.
        rows: Vec<Vec<Expression>>,
        /// Types of the columns.
        types: Vec<DataType>,
    },
    /// The rows of a function that is built in.
    Function {
        /// Which.
        function: Box<RowFunction>,
        /// Of the types that it takes.
        arguments: Vec<Expression>,
        /// Types of the columns.
        types: Vec<DataType>,
    },
    /// The rows of a function of the ledger.
    Call {
        /// The call.
        call: Box<RoutineCall>,
        /// Types of the columns.
        types: Vec<DataType>,
    },
    /// Rows that are kept while the statement runs: those that a recursive query has found last, and those that a change
    /// of rows in WITH returns.
    Kept {
        /// By which they are known.
        number: usize,
        /// Types of the columns.
        types: Vec<DataType>,
    },
    /// A query in FROM, a view or a WITH query.
    Query(Box<QueryInFrom>),
    /// Two relations, joined.
    Join(Box<Join>),
    /// The rows for which all conditions are true.
    Filter {
        /// The rows.
        input: Box<LogicalPlan>,
        /// The conditions, in the order in which they are asked.
        conditions: Vec<Expression>,
    },
    /// One row per group: the keys, then the aggregates.
    Aggregate {
        /// The rows.
        input: Box<LogicalPlan>,
        /// GROUP BY. Without keys all rows are one group, which is there without rows too.
        keys: Vec<Expression>,
        /// The aggregates.
        aggregates: Vec<Aggregate>,
    },
    /// The values of window functions behind the columns of the input.
    Window {
        /// The rows.
        input: Box<LogicalPlan>,
        /// The functions.
        calls: Vec<WindowCall>,
    },
    /// The rows in another order; rows with equal keys stay in theirs.
    Sort {
        /// The rows.
        input: Box<LogicalPlan>,
        /// The keys.
        keys: Vec<SortKey>,
    },
    /// The first of rows that are equal.
    Distinct {
        /// The rows.
        input: Box<LogicalPlan>,
        /// In what they are equal; `None`: in all columns.
        on: Option<Vec<Expression>>,
    },
    /// Other columns.
    Project {
        /// The rows.
        input: Box<LogicalPlan>,
        /// The columns.
        outputs: Vec<Expression>,
        /// Their names and types.
        columns: Arc<[OutputColumn]>,
    },
    /// So many rows.
    Limit {
        /// The rows.
        input: Box<LogicalPlan>,
        /// How many; `None`: all.
        limit: Option<Expression>,
        /// How many are left out before that.
        offset: Option<Expression>,
        /// Those that the order does not tell from the last one come too.
        ties: bool,
    },
    /// UNION, INTERSECT, EXCEPT.
    Set {
        /// Which.
        operation: SetOperation,
        /// Duplicates stay.
        all: bool,
        /// Both have columns of the same types.
        sides: Box<[LogicalPlan; 2]>,
    },
    /// A WITH RECURSIVE query.
    Recursive {
        /// By which its own rows are known inside of it.
        number: usize,
        /// Duplicates stay.
        all: bool,
        /// What it begins with, and what is run on the last rows found until that finds none.
        sides: Box<[LogicalPlan; 2]>,
    },
}

/// The rows of a table.
#[derive(Clone, Debug)]
pub struct Scan {
    /// The table.
    pub table: Arc<TablePlan>,
    /// Behind the columns stands the row's key.
    pub keyed: bool,
    /// How its rows are locked.
    pub locking: Option<RowLocking>,
    /// The height after which the table is read; `None`: now.
    pub past: Option<Expression>,
    /// What the table is asked while it is read; see [`rules`]. Empty from binding.
    pub conditions: Vec<Expression>,
    /// The columns that somebody looks at behind the table. All from binding.
    pub columns: ColumnSet,
    /// How the rows are found. Nothing from binding.
    pub path: Option<AccessPath>,
    /// The rows are read backwards.
    pub backwards: bool,
}

/// LIMIT or FETCH, and OFFSET.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// How many rows; `None`: all.
    pub limit: Option<Expression>,
    /// How many are left out before that.
    pub offset: Option<Expression>,
    /// Those that the order does not tell from the last one come too.
    pub ties: bool,
}

/// A query in FROM, a view or a WITH query.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryInFrom {
    /// The query, a block of its own.
    pub plan: LogicalPlan,
    /// What the query is handed, in the order of its [`Kind::Argument`](crate::expression::Kind::Argument)s.
    pub arguments: Vec<Expression>,
    /// What must be true of its rows; see [`rules`]. Empty from binding.
    pub conditions: Vec<Expression>,
}

/// Two relations, joined.
#[derive(Clone, Debug, PartialEq)]
pub struct Join {
    /// Whose rows appear that match nothing.
    pub kind: JoinKind,
    /// Whose rows come first.
    pub left: LogicalPlan,
    /// The other ones.
    pub right: LogicalPlan,
    /// What must be true of a row of both.
    pub on: Vec<Expression>,
    /// What must be equal, of the left side and of the right one. Empty from binding.
    pub equal: Vec<(Expression, Expression)>,
    /// The right side looks at columns of the left one: it is read for every row of it. False from binding.
    pub dependent: bool,
}

impl Scan {
    /// All rows of a table.
    pub fn of(table: Arc<TablePlan>) -> Scan {
        Scan {
            table,
            keyed: false,
            locking: None,
            past: None,
            conditions: Vec::new(),
            columns: ColumnSet::ALL,
            path: None,
            backwards: false,
        }
    }
}

/// Two scans are the same where they read the same table alike.
impl PartialEq for Scan {
    fn eq(&self, other: &Scan) -> bool {
        let Scan { table, keyed, locking, past, conditions, columns, path, backwards } = self;
        Arc::ptr_eq(table, &other.table)
            && *keyed == other.keyed
            && *locking == other.locking
            && *past == other.past
            && *conditions == other.conditions
            && *columns == other.columns
            && *path == other.path
            && *backwards == other.backwards
    }
}

impl From<Scan> for LogicalPlan {
    fn from(scan: Scan) -> LogicalPlan {
        LogicalPlan::Scan(Box::new(scan))
    }
}

impl From<Join> for LogicalPlan {
    fn from(join: Join) -> LogicalPlan {
        LogicalPlan::Join(Box::new(join))
    }
}

impl LogicalPlan {
    /// The rows of a query in FROM.
    pub fn query(plan: LogicalPlan, arguments: Vec<Expression>) -> LogicalPlan {
        LogicalPlan::Query(Box::new(QueryInFrom { plan, arguments, conditions: Vec::new() }))
    }

    /// Two relations, joined.
    pub fn join(kind: JoinKind, left: LogicalPlan, right: LogicalPlan, on: Vec<Expression>) -> LogicalPlan {
        LogicalPlan::from(Join { kind, left, right, on, equal: Vec::new(), dependent: false })
    }

    /// The rows for which these are true.
    pub fn filtered(self, conditions: Vec<Expression>) -> LogicalPlan {
        match conditions.is_empty() {
            true => self,
            false => LogicalPlan::Filter { input: Box::new(self), conditions },
        }
    }

    /// So many of its rows.
    pub fn limited(self, limit: Option<Expression>, offset: Option<Expression>) -> LogicalPlan {
        self.within(Limits { limit, offset, ties: false })
    }

    /// Those of its rows that LIMIT, FETCH and OFFSET leave.
    pub fn within(self, limits: Limits) -> LogicalPlan {
        let Limits { limit, offset, ties } = limits;
        match (&limit, &offset) {
            (None, None) => self,
            _ => LogicalPlan::Limit { input: Box::new(self), limit, offset, ties },
        }
    }

    /// Its rows in this order.
    pub fn sorted(self, keys: Vec<SortKey>) -> LogicalPlan {
        match keys.is_empty() {
            true => self,
            false => LogicalPlan::Sort { input: Box::new(self), keys },
        }
    }

    /// These outputs over its rows.
    pub fn projected(self, outputs: Vec<Expression>, columns: Arc<[OutputColumn]>) -> LogicalPlan {
        LogicalPlan::Project { input: Box::new(self), outputs, columns }
    }

    /// How many columns its rows have.
    pub fn width(&self) -> usize {
        match self {
            LogicalPlan::OneRow => 0,
            LogicalPlan::Scan(scan) => scan.table.columns.len() + usize::from(scan.keyed),
            LogicalPlan::Values { types, .. }
            | LogicalPlan::Function { types, .. }
            | LogicalPlan::Call { types, .. }
            | LogicalPlan::Kept { types, .. } => types.len(),
            LogicalPlan::Query(query) => query.plan.width(),
            LogicalPlan::Join(join) => join.left.width() + join.right.width(),
            LogicalPlan::Filter { input, .. }
            | LogicalPlan::Sort { input, .. }
            | LogicalPlan::Distinct { input, .. }
            | LogicalPlan::Limit { input, .. } => input.width(),
            LogicalPlan::Aggregate { keys, aggregates, .. } => keys.len() + aggregates.len(),
            LogicalPlan::Window { input, calls } => input.width() + calls.len(),
            LogicalPlan::Project { outputs, .. } => outputs.len(),
            LogicalPlan::Set { sides, .. } | LogicalPlan::Recursive { sides, .. } => sides[0].width(),
        }
    }

    /// Names and types of the columns that a block gives; without names where it has no outputs of its own.
    pub fn columns(&self) -> Arc<[OutputColumn]> {
        match self {
            LogicalPlan::Project { columns, .. } => columns.clone(),
            LogicalPlan::Limit { input, .. } | LogicalPlan::Distinct { input, on: None } => input.columns(),
            rows => {
                let column = |data_type| OutputColumn { name: String::new(), data_type };
                rows.types().into_iter().map(column).collect()
            }
        }
    }

    /// The outputs of a block; none where it has none of its own.
    pub fn outputs(&self) -> &[Expression] {
        match self {
            LogicalPlan::Project { outputs, .. } => outputs,
            LogicalPlan::Limit { input, .. } | LogicalPlan::Distinct { input, on: None } => input.outputs(),
            _ => &[],
        }
    }

    /// The outputs of a block and their columns, to be changed.
    pub fn outputs_mut(&mut self) -> Option<(&mut Vec<Expression>, &mut Arc<[OutputColumn]>)> {
        match self {
            LogicalPlan::Project { outputs, columns, .. } => Some((outputs, columns)),
            LogicalPlan::Limit { input, .. } | LogicalPlan::Distinct { input, on: None } => {
                input.outputs_mut()
            }
            _ => None,
        }
    }

    /// Types of the columns of its rows.
    pub fn types(&self) -> Vec<DataType> {
        let of = |expressions: &[Expression]| expressions.iter().map(Expression::data_type).collect();
        match self {
            LogicalPlan::OneRow => Vec::new(),
            LogicalPlan::Scan(scan) => {
                let key = scan.keyed.then_some(DataType::Bytea);
                scan.table.columns.iter().map(|column| column.data_type).chain(key).collect()
            }
            LogicalPlan::Values { types, .. }
            | LogicalPlan::Function { types, .. }
            | LogicalPlan::Call { types, .. }
            | LogicalPlan::Kept { types, .. } => types.clone(),
            LogicalPlan::Query(query) => query.plan.types(),
            LogicalPlan::Join(join) => [join.left.types(), join.right.types()].concat(),
            LogicalPlan::Filter { input, .. }
            | LogicalPlan::Sort { input, .. }
            | LogicalPlan::Distinct { input, .. }
            | LogicalPlan::Limit { input, .. } => input.types(),
            LogicalPlan::Aggregate { keys, aggregates, .. } => {
                let keys: Vec<DataType> = of(keys);
                keys.into_iter().chain(aggregates.iter().map(|aggregate| aggregate.data_type)).collect()
            }
            LogicalPlan::Window { input, calls } => {
                input.types().into_iter().chain(calls.iter().map(|call| call.data_type)).collect()
            }
            LogicalPlan::Project { outputs, .. } => of(outputs),
            LogicalPlan::Set { sides, .. } | LogicalPlan::Recursive { sides, .. } => sides[0].types(),
        }
    }
}
