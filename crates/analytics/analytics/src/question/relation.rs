//! Relations whose columns are numbered once for the whole query.

use plan::aggregate::Aggregate;
use plan::expression::{Expression, Kind};
use plan::statement::{JoinKind, SortKey};
use plan::table::TablePlan;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Rows.
#[derive(Debug)]
pub(crate) enum Relation {
    Table(Table),
    Joined(Joined),
    Outer(Box<Outer>),
    Groups(Box<Groups>),
    Computed(Box<Computed>),
}

/// The rows of a table for which all conditions are true.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) plan: Arc<TablePlan>,
    /// The number of its first column; the others follow.
    pub(crate) first: usize,
    /// They look at no other columns.
    pub(crate) conditions: Vec<Expression>,
}

/// The rows of all members side by side for which all conditions are true. The order of members says nothing.
#[derive(Debug, Default)]
pub(crate) struct Joined {
    pub(crate) members: Vec<Relation>,
    pub(crate) conditions: Vec<Expression>,
    pub(crate) partners: Vec<Partner>,
}

/// Rows that another row must have a partner among, or must not.
#[derive(Debug)]
pub(crate) struct Partner {
    pub(crate) relation: Relation,
    /// What is true of a row and its partner.
    pub(crate) on: Vec<Expression>,
    /// Rows with a partner stay; otherwise those without one.
    pub(crate) wanted: bool,
    /// `NOT IN`: NULL on either side may be equal to anything.
    pub(crate) null_may_match: bool,
}

/// An outer join.
#[derive(Debug)]
pub(crate) struct Outer {
    pub(crate) kind: JoinKind,
    pub(crate) left: Relation,
    pub(crate) right: Relation,
    pub(crate) on: Vec<Expression>,
}

/// One row per group: its keys, then its aggregates, numbered from `first`.
#[derive(Debug)]
pub(crate) struct Groups {
    pub(crate) input: Relation,
    pub(crate) keys: Vec<Expression>,
    pub(crate) aggregates: Vec<Aggregate>,
    pub(crate) first: usize,
}

/// The rows with further columns, numbered from `first`.
#[derive(Debug)]
pub(crate) struct Computed {
    pub(crate) input: Relation,
    pub(crate) outputs: Vec<Expression>,
    pub(crate) first: usize,
}

/// Rows that leave the columns, in an order.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) input: Relation,
    /// `None`: NULL, because nobody looks at it.
    pub(crate) outputs: Vec<Option<Expression>>,
    /// Where only the first rows are wanted: in which order, and how many.
    pub(crate) first: Option<(Vec<SortKey>, Expression)>,
    /// Columns in whose order rows come otherwise, and where they are equal in the order that is wanted.
    pub(crate) keys: Vec<Expression>,
}

impl Relation {
    /// Whether a column is one of its own.
    pub(crate) fn has(&self, column: usize) -> bool {
        match self {
            Relation::Table(table) => (table.first..table.first + table.plan.columns.len()).contains(&column),
            Relation::Joined(joined) => joined.members.iter().any(|member| member.has(column)),
            Relation::Outer(outer) => outer.left.has(column) || outer.right.has(column),
            Relation::Groups(groups) => {
                (groups.first..groups.first + groups.keys.len() + groups.aggregates.len()).contains(&column)
            }
            Relation::Computed(computed) => {
                (computed.first..computed.first + computed.outputs.len()).contains(&column)
                    || computed.input.has(column)
            }
        }
    }

    /// Whether an expression looks at columns, and only at its own.
    pub(crate) fn has_all_of(&self, expression: &Expression) -> bool {
        let columns = columns_of(expression);
        !columns.is_empty() && columns.iter().all(|column| self.has(*column))
    }

    /// Visits its tables, those of partners included.
    pub(crate) fn visit_tables<'r>(&'r self, visit: &mut dyn FnMut(&'r Table)) {
        match self {
            Relation::Table(table) => visit(table),
            Relation::Joined(joined) => {
                joined.members.iter().for_each(|member| member.visit_tables(visit));
                joined.partners.iter().for_each(|partner| partner.relation.visit_tables(visit));
            }
            Relation::Outer(outer) => {
                outer.left.visit_tables(visit);
                outer.right.visit_tables(visit);
            }
            Relation::Groups(groups) => groups.input.visit_tables(visit),
            Relation::Computed(computed) => computed.input.visit_tables(visit),
        }
    }

    /// The table that row operators would read first, where its rows are read as they are.
    pub(crate) fn leading_table(&self) -> Option<&Table> {
        match self {
            Relation::Table(table) => Some(table),
            Relation::Joined(joined) => joined.members.first().and_then(Relation::leading_table),
            Relation::Outer(outer) => outer.left.leading_table(),
            Relation::Groups(_) | Relation::Computed(_) => None,
        }
    }
}

/// The columns that an expression looks at.
pub(crate) fn columns_of(expression: &Expression) -> BTreeSet<usize> {
    let mut columns = BTreeSet::new();
    expression.any(&mut |inner| {
        if let Kind::Column(ordinal) = inner.kind {
            columns.insert(usize::from(ordinal));
        }
        false
    });
    columns
}
