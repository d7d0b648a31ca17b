//! Which operator a relation becomes, and the parts that all of them share.

use crate::interrupted::Interrupted;
use crate::lower::expression::{self, Lowering};
use crate::lower::fields::Fields;
use crate::lower::rows::Rows;
use crate::question::{Computed, Relation, columns_of};
use crate::reason::OnRows;
use datafusion_physical_plan::filter::FilterExecBuilder;
use datafusion_physical_plan::projection::ProjectionExec;
use plan::expression::Expression;
use state::Snapshot;
use std::collections::BTreeSet;
use std::sync::Arc;
use types::Value;

/// What relations are lowered with.
#[derive(Clone, Copy)]
pub(crate) struct Lower<'a> {
    /// Where tables are read; `None`: nothing is read, all tables are empty.
    pub(crate) snapshot: Option<&'a dyn Snapshot>,
    /// Parameters of the query.
    pub(crate) frame: &'a [Value],
    /// The time of the query, microseconds since 2000-01-01 00:00 UTC.
    pub(crate) now: i64,
    pub(crate) interrupted: &'a Interrupted,
    pub(crate) joins: Joins,
}

/// How rows of two relations find one another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Joins {
    /// One side is kept in memory.
    Hashed,
    /// Both sides are sorted, and what does not fit goes to files.
    Merged,
}

impl Lower<'_> {
    /// The rows of a relation with the columns that are needed of it. `compared`: it is one of several, so that it matters how many
    /// rows there are.
    pub(super) fn relation(
        &self,
        relation: &Relation,
        needed: &BTreeSet<usize>,
        compared: bool,
    ) -> Result<Rows, OnRows> {
        match relation {
            Relation::Table(table) => self.table(table, needed, compared),
            Relation::Joined(joined) => self.joined(joined, needed),
            Relation::Outer(outer) => self.outer(outer, needed),
            Relation::Groups(groups) => self.groups(groups, needed),
            Relation::Computed(computed) => self.computed(computed, needed),
        }
    }

    /// Lowers expressions over the columns of an operator.
    pub(super) fn over<'f>(&'f self, fields: &'f Fields) -> Lowering<'f> {
        Lowering::new(fields, (self.frame, self.now))
    }

    /// The rows for which all conditions are true, with the columns that are needed behind them.
    pub(super) fn filtered(
        &self,
        rows: Rows,
        conditions: &[Expression],
        needed: &BTreeSet<usize>,
    ) -> Result<Rows, OnRows> {
        let Some(condition) = self.over(&rows.fields).conjunction(conditions)? else { return Ok(rows) };
        let (kept, fields) = rows.fields.kept(needed);
        let operator =
            FilterExecBuilder::new(condition, rows.operator).apply_projection(Some(kept))?.build()?;
        Ok(Rows { operator: Arc::new(operator), fields, estimate: rows.estimate })
    }

    fn computed(&self, computed: &Computed, needed: &BTreeSet<usize>) -> Result<Rows, OnRows> {
        let mut below = needed.clone();
        below.extend(computed.outputs.iter().flat_map(columns_of));
        let rows = self.relation(&computed.input, &below, false)?;
        let (positions, mut fields) = rows.fields.kept(needed);
        let schema = rows.operator.schema();
        let mut expressions: Vec<_> =
            positions.into_iter().map(|position| expression::column_at(&schema, position)).collect();
        let lowering = self.over(&rows.fields);
        for (number, output) in computed.outputs.iter().enumerate() {
            let column = computed.first + number;
            if needed.contains(&column) {
                let lowered = lowering.lower(output)?;
                expressions.push((lowered.expression.clone(), format!("c{column}")));
                fields.0.push(lowered.known_as(column));
            }
        }
        let operator = Arc::new(ProjectionExec::try_new(expressions, rows.operator)?);
        Ok(Rows { operator, fields, estimate: rows.estimate })
    }
}
