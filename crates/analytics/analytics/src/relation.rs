//! What stands in FROM, as operators over columns: tables with their conditions, and joins of them.

use crate::expression::Lowering;
use crate::fields::{Fields, Known};
use crate::interrupted::Interrupted;
use crate::join::{self, Conditions};
use crate::reason::OnRows;
use crate::rows::{Rows, columns_of, looks_left};
use crate::table;
use datafusion_physical_plan::filter::FilterExecBuilder;
use plan::expression::Expression;
use plan::logical::{Join, LogicalPlan, Scan};
use plan::statement::AccessPath;
use sql::WantedGroups;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What relations are lowered with.
pub(crate) struct Relations<'a> {
    wanted: &'a WantedGroups<'a>,
    /// The columns that somebody looks at behind the tables.
    needed: BTreeSet<usize>,
    interrupted: Interrupted,
}

impl<'a> Relations<'a> {
    /// Of a query whose keys and aggregates look at these expressions.
    pub(crate) fn of(
        wanted: &'a WantedGroups<'a>,
        source: &LogicalPlan,
        above: &[&Expression],
    ) -> Relations<'a> {
        let mut needed: BTreeSet<usize> =
            above.iter().flat_map(|expression| columns_of(expression)).collect();
        note_between(source, 0, &mut needed);
        Relations { wanted, needed, interrupted: Interrupted::of(wanted.interrupt) }
    }

    /// About how many rows the tables have. `leads`: its rows are read first.
    pub(crate) fn rows_read(&self, relation: &LogicalPlan, leads: bool) -> Result<u64, OnRows> {
        match relation {
            LogicalPlan::Filter { input, .. } => self.rows_read(input, leads),
            LogicalPlan::Join(join) => {
                Ok(self.rows_read(&join.left, leads)?.saturating_add(self.rows_read(&join.right, false)?))
            }
            LogicalPlan::Scan(scan) if leads && is_found_by_key(scan) => {
                Err(OnRows::because("a key or an index finds the rows"))
            }
            LogicalPlan::Scan(scan) => {
                let rows = self.wanted.snapshot.about_rows(scan.table.id);
                rows.ok_or_else(|| OnRows::because("the store keeps no columns"))
            }
            _ => Err(OnRows::because("something else than tables in FROM")),
        }
    }

    /// A relation whose columns begin at `first`. What its tables are asked that looks to their left goes to `lifted`.
    pub(crate) fn lower(
        &self,
        relation: &LogicalPlan,
        first: usize,
        lifted: &mut Vec<Expression>,
    ) -> Result<Rows, OnRows> {
        match relation {
            LogicalPlan::Scan(scan) => self.scan(scan, first, lifted),
            LogicalPlan::Filter { input, conditions } => {
                let rows = self.lower(input, first, lifted)?;
                self.filtered(rows, conditions)
            }
            LogicalPlan::Join(join) => self.join(join, first, lifted),
            _ => Err(OnRows::because("something else than tables in FROM")),
        }
    }

    fn join(&self, join: &Join, first: usize, lifted: &mut Vec<Expression>) -> Result<Rows, OnRows> {
        let middle = first + join.left.width();
        let mut asked = Vec::new();
        let left = self.lower(&join.left, first, lifted)?;
        let right = self.lower(&join.right, middle, &mut asked)?;
        let Conditions { equal, others, outer } = join::conditions(join, asked, first, middle)?;
        lifted.extend(outer);
        let joined = join::hash_join(join.kind, (left, right), &equal, (self.wanted.frame, self.wanted.now))?;
        self.filtered(joined, &others)
    }

    fn scan(&self, scan: &Scan, first: usize, lifted: &mut Vec<Expression>) -> Result<Rows, OnRows> {
        let (left, own): (Vec<Expression>, Vec<Expression>) =
            scan.conditions.iter().cloned().partition(|condition| looks_left(condition, first));
        lifted.extend(left);
        let end = first + scan.table.columns.len();
        let mut read: BTreeSet<usize> = self.needed.range(first..end).copied().collect();
        read.extend(own.iter().flat_map(columns_of));
        let of_some_type =
            |ordinal: &usize| state::column_type(scan.table.columns[*ordinal].data_type).is_some();
        if read.is_empty() {
            // Rows are counted by any column.
            read.extend((0..scan.table.columns.len()).find(of_some_type).map(|ordinal| first + ordinal));
        }
        let rows = self.table(scan, first, &read)?;
        self.filtered(rows, &own)
    }

    fn table(&self, scan: &Scan, first: usize, read: &BTreeSet<usize>) -> Result<Rows, OnRows> {
        let known = |ordinal: &usize| {
            let data_type = scan.table.columns[ordinal - first].data_type;
            let arrow = state::column_type(data_type);
            let arrow = arrow.ok_or_else(|| OnRows::because(format_args!("a column of type {data_type}")))?;
            Ok(Known { ordinal: *ordinal, data_type, arrow })
        };
        let fields = Fields(read.iter().map(known).collect::<Result<_, OnRows>>()?);
        let snapshot = self.wanted.snapshot;
        let table = snapshot.catalog().tables.get(&scan.table.relation);
        let table = table.filter(|table| table.id == scan.table.id);
        let table = table.ok_or_else(|| OnRows::because("the table is another one now"))?;
        let ordinals: Vec<usize> = read.iter().map(|ordinal| ordinal - first).collect();
        let batches = snapshot.columns(table, &ordinals)?;
        let batches = batches.ok_or_else(|| OnRows::because("the table is not kept in columns"))?;
        let about = batches.iter().map(|batch| batch.rows as u64).sum();
        let operator = table::operator(&fields, batches, self.interrupted.clone())?;
        Ok(Rows { operator, fields, about })
    }

    /// The rows for which all conditions are true, with the columns that somebody looks at behind them.
    fn filtered(&self, rows: Rows, conditions: &[Expression]) -> Result<Rows, OnRows> {
        let lowering = Lowering::new(&rows.fields, (self.wanted.frame, self.wanted.now));
        let Some(condition) = lowering.conjunction(conditions)? else { return Ok(rows) };
        let kept = |position: &usize| self.needed.contains(&rows.fields.0[*position].ordinal);
        let kept: Vec<usize> = (0..rows.fields.0.len()).filter(kept).collect();
        let fields = Fields(kept.iter().map(|position| rows.fields.0[*position].clone()).collect());
        let operator =
            FilterExecBuilder::new(condition, rows.operator).apply_projection(Some(kept))?.build()?;
        Ok(Rows { operator: Arc::new(operator), fields, about: rows.about.div_ceil(3) })
    }
}

/// Whether some column of a key or an index equals a value: few rows do, and an index finds them.
fn is_found_by_key(scan: &Scan) -> bool {
    match AccessPath::choose(&scan.table, &scan.conditions).0 {
        AccessPath::Key(_) => true,
        AccessPath::Range(interval) => !interval.equal.is_empty(),
        AccessPath::Index(index) => !index.interval.equal.is_empty() || !index.within.equal.is_empty(),
    }
}

/// Notes the columns that are looked at between tables: those of joins, of filters above them, and of what a table is asked about
/// columns to its left.
fn note_between(relation: &LogicalPlan, first: usize, needed: &mut BTreeSet<usize>) {
    match relation {
        LogicalPlan::Filter { input, conditions } => {
            needed.extend(conditions.iter().flat_map(columns_of));
            note_between(input, first, needed);
        }
        LogicalPlan::Join(join) => {
            let equal = join.equal.iter().flat_map(|(left, right)| [left, right]);
            needed.extend(equal.chain(&join.on).flat_map(columns_of));
            note_between(&join.left, first, needed);
            note_between(&join.right, first + join.left.width(), needed);
        }
        LogicalPlan::Scan(scan) => {
            let asked = scan.conditions.iter().filter(|condition| looks_left(condition, first));
            needed.extend(asked.flat_map(columns_of));
        }
        _ => {}
    }
}
