//! Statements bound to tables, ordinals and slots.
//!
//! # Queries
//!
//! ```text
//!  syntax ─▶ names, types (expression::Relations) ─▶ logical::LogicalPlan ─▶ BoundSelect ─▶ execute::{select, relation}
//!            one row of all relations                 rewritten by rules       a table alone: streamed, never copied
//!                                                                              else: gathered relation by relation
//! ```
//!
//! What a query asks for and how its rows are found are two steps: see [`logical`](crate::logical). A query is bound over one row that has the columns of all relations in FROM, side by side. A subquery is a value
//! of that row; what it needs of the rows around it is handed to it as arguments.
//!
//! - **Joins.** A table whose key comes from its left is looked up row by row, and each look-up registers a read of
//!   that row. Anything else is read once and matched by what must be equal. Rows come in the order of the left side,
//!   then of the right one, on every node.
//! - **Subqueries** run when their value is asked for, so what is not reached reads nothing, and once per statement
//!   and arguments.
//! - **UPDATE and DELETE with a query in them** find their rows by a query, which registers what it looked at, and
//!   then consist of commands with known values. ON CONFLICT reads the key, then inserts or changes.
//! - **UPDATE of the primary key** is a DELETE of the old key and an INSERT of the new one. Both are read: the row as
//!   a whole, and whether the new key is there (`execute::moving`).
//! - **Window functions come last.** All rows are gathered, partitioned, and sorted with ties in the order in which
//!   they came. The functions' values become further columns, over which outputs and ORDER BY are bound.

mod access;
mod access_path;
mod arbiters;
mod assignments;
mod bind;
mod bind_row_function;
mod bound_query;
mod call;
mod change;
mod column_targets;
mod common_table;
mod conditions;
mod decided;
mod delete;
mod explain;
mod fields;
mod from;
mod from_factor;
mod grouping;
mod insert;
mod level;
mod locking;
mod named_table;
mod only;
mod output;
mod partition;
mod past;
mod query;
mod query_scope;
mod record_columns;
mod relation;
mod relation_names;
mod resolve;
mod row_function;
mod scalar_function;
mod select;
mod select_clauses;
mod select_query;
mod set_functions;
mod set_operation;
mod slots;
mod subscripted;
mod truncate;
mod update;
mod view_conflict;
mod view_target;
mod visit;
mod with;
mod with_change;

use crate::expression::Expression;
pub use crate::row_functions::SLICES;
use crate::table::TablePlan;
pub use access::Access;
pub use access_path::{AccessPath, IndexAccess, Interval, KeyPart, PartsAccess};
pub use bind::bind_statement;
pub use bound_query::{BoundQuery, close_types};
pub use change::{
    Arbiter, BoundDelete, BoundInsert, BoundUpdate, ConflictAction, InsertSource, OnConflict, Returning,
};
pub use column_targets::{default_row, no_column};
pub use explain::{columns, explain};
pub use level::Level;
pub use partition::find_rows;
pub use query::{bind_expression, bind_logical, bind_nested, bind_query};
pub use query_scope::QueryScope;
pub use relation::{Join, JoinKind, Relation, SetOperation};
pub use resolve::{encode_lookup, resolve_key};
pub use row_function::{JsonCall, RowFunction, RowKind, goes_up};
pub use select::{BoundSelect, Distinctness, From, Grouping, Scanned, SortKey};
use std::sync::Arc;
use types::{ColumnOrigin, OutputColumn, TriggerEvent, Value};
pub use view_target::why_not_updatable;
pub use visit::VisitSlot;
pub use with::{BoundWith, WithChange};
pub use with_change::changes_rows;

/// A statement that `execute::Execution::run` runs.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "few of them, and none is moved once a plan is made")]
pub enum BoundStatement {
    /// SELECT
    Select(BoundSelect),
    /// INSERT
    Insert(BoundInsert),
    /// UPDATE
    Update(BoundUpdate),
    /// DELETE
    Delete(BoundDelete),
    /// Any of these behind WITH queries of which some change rows.
    With(Box<BoundWith>),
    /// CALL
    Call(BoundCall),
    /// EXPLAIN, already explained: one text per row.
    Explain(BoundExplain),
}

/// CALL. The procedure is looked up by its name when it runs.
#[derive(Debug)]
pub struct BoundCall {
    /// Name of the procedure.
    pub procedure: String,
    /// One per parameter, OUT parameters included.
    pub arguments: Vec<Expression>,
}

/// EXPLAIN: what it says is known when it is bound.
#[derive(Debug)]
pub struct BoundExplain {
    /// The only column.
    pub columns: Arc<[OutputColumn]>,
    /// One per row.
    pub lines: Vec<String>,
}

/// What a statement gave.
#[derive(Debug, Default)]
pub struct StatementOutput {
    /// Rows inserted, updated, deleted or returned: what ROW_COUNT says.
    pub affected: u64,
    /// Columns of `rows`; empty where the statement returns none.
    pub columns: Arc<[OutputColumn]>,
    /// Rows of SELECT and RETURNING; the OUT and INOUT values of CALL as one row.
    pub rows: Vec<Vec<Value>>,
    /// CALL: positions of the OUT and INOUT arguments, which the values of the row belong to.
    pub call_outputs: Vec<usize>,
}

impl BoundStatement {
    /// Columns of the rows that it returns; empty where it returns none. Those of CALL are known when it has run.
    pub fn columns(&self) -> &[OutputColumn] {
        match self {
            BoundStatement::Select(select) => &select.columns,
            BoundStatement::Insert(insert) => returned(&insert.returning),
            BoundStatement::Update(update) => returned(&update.returning),
            BoundStatement::Delete(delete) => returned(&delete.returning),
            BoundStatement::With(with) => with.main.columns(),
            BoundStatement::Call(_) => &[],
            BoundStatement::Explain(explain) => &explain.columns,
        }
    }

    /// By column of its rows, what column of a table or view it is; may be shorter.
    pub fn origins(&self) -> &[Option<ColumnOrigin>] {
        match self {
            BoundStatement::Select(select) => &select.origins,
            BoundStatement::Insert(insert) => returned_origins(&insert.returning),
            BoundStatement::Update(update) => returned_origins(&update.returning),
            BoundStatement::Delete(delete) => returned_origins(&delete.returning),
            BoundStatement::With(with) => with.main.origins(),
            BoundStatement::Call(_) | BoundStatement::Explain(_) => &[],
        }
    }

    /// True where it returns rows.
    pub fn returns_rows(&self) -> bool {
        match self {
            BoundStatement::Select(_) | BoundStatement::Explain(_) => true,
            BoundStatement::Insert(insert) => insert.returning.is_some(),
            BoundStatement::Update(update) => update.returning.is_some(),
            BoundStatement::Delete(delete) => delete.returning.is_some(),
            BoundStatement::With(with) => with.main.returns_rows(),
            BoundStatement::Call(_) => false,
        }
    }

    /// True where it changes nothing.
    pub fn is_read(&self) -> bool {
        matches!(self, BoundStatement::Select(_) | BoundStatement::Explain(_))
    }

    /// True where its rows are those of a query, whatever else it does.
    pub fn is_query(&self) -> bool {
        match self {
            BoundStatement::With(with) => with.main.is_query(),
            other => matches!(other, BoundStatement::Select(_)),
        }
    }

    /// The table that it changes, and what triggers fire at.
    pub fn change(&self) -> Option<(&TablePlan, TriggerEvent)> {
        match self {
            BoundStatement::Insert(insert) => Some((&insert.table, TriggerEvent::Insert)),
            BoundStatement::Update(update) => Some((&update.plan.table, TriggerEvent::Update)),
            BoundStatement::Delete(delete) if delete.truncation.is_some() => {
                Some((&delete.plan.table, TriggerEvent::Truncate))
            }
            BoundStatement::Delete(delete) => Some((&delete.plan.table, TriggerEvent::Delete)),
            BoundStatement::Select(_)
            | BoundStatement::With(_)
            | BoundStatement::Call(_)
            | BoundStatement::Explain(_) => None,
        }
    }

    /// Whether it changes rows that are not a session's own: what a read-only transaction must not.
    pub fn changes_ledger(&self) -> bool {
        match self {
            BoundStatement::Insert(insert) => !insert.table.id.is_temporary(),
            BoundStatement::Update(update) => !update.plan.table.id.is_temporary(),
            BoundStatement::Delete(delete) => delete.changes_ledger(),
            BoundStatement::With(with) => {
                let mut parts = with.changes.iter().map(|change| &change.statement);
                parts.any(BoundStatement::changes_ledger) || with.main.changes_ledger()
            }
            // What a routine changes it changes by statements of its own.
            BoundStatement::Select(_) | BoundStatement::Call(_) | BoundStatement::Explain(_) => false,
        }
    }

    /// PostgreSQL's command tag.
    pub fn tag(&self, affected: u64) -> String {
        match self {
            BoundStatement::Select(_) => format!("SELECT {affected}"),
            BoundStatement::Insert(_) => format!("INSERT 0 {affected}"),
            BoundStatement::Update(_) => format!("UPDATE {affected}"),
            BoundStatement::Delete(delete) if delete.truncation.is_some() => "TRUNCATE TABLE".to_string(),
            BoundStatement::Delete(_) => format!("DELETE {affected}"),
            BoundStatement::With(with) => with.main.tag(affected),
            BoundStatement::Call(_) => "CALL".to_string(),
            BoundStatement::Explain(_) => "EXPLAIN".to_string(),
        }
    }
}

fn returned_origins(returning: &Option<Returning>) -> &[Option<ColumnOrigin>] {
    returning.as_ref().map_or(&[], |returning| &returning.origins)
}

fn returned(returning: &Option<Returning>) -> &[OutputColumn] {
    returning.as_ref().map_or(&[], |returning| &returning.columns)
}
