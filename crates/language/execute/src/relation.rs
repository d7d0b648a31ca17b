//! The rows of relations.

use crate::execution::Execution;
use crate::scratch::{RowList, Rows, SharedRows};
use crate::subqueries::Given;
use plan::expression::{Expression, row_space, rows_space};
use plan::statement::{BoundSelect, Relation};
use std::ops::ControlFlow;
use types::{SqlError, Value};
use values::broken;

impl Execution<'_> {
    /// The rows of a relation, which the query holds from now on.
    pub(super) fn relation_rows(&mut self, relation: &Relation, given: Given<'_>) -> Result<Rows, SqlError> {
        Ok(match relation {
            Relation::Table(scanned) => self.table_rows(scanned, given)?,
            Relation::Query { query, arguments, filter } => {
                let arguments = match arguments {
                    None => given.arguments.to_vec(),
                    Some(arguments) => self.evaluate_all(arguments, given)?,
                };
                self.enter_query()?;
                let inner = Given { frame: given.frame, arguments: &arguments, left: &[] };
                let rows = self.query_rows(query, inner);
                self.leave_query();
                match filter {
                    None => rows?,
                    Some(filter) => self.filtered(rows?, filter, given)?,
                }
            }
            Relation::Values(rows) => {
                let rows = rows.iter().map(|row| self.evaluate_all(row, given)).collect::<Result<_, _>>()?;
                self.counted(rows)?
            }
            Relation::Function { function, arguments } => self.function_rows(function, arguments, given)?,
            Relation::Call(call) => {
                let rows = self.called_rows(call, given)?;
                self.counted(rows)?
            }
            Relation::Set { operation, all, sides } => self.combined(*operation, *all, sides, given)?,
            Relation::Recursive { number, all, sides } => self.recursive(*number, *all, sides, given)?,
            Relation::Working(number) => self.working_rows(*number)?,
            Relation::Join(join) => self.joined(join, given)?,
        })
    }

    /// The rows that are known by a number.
    fn working_rows(&mut self, number: usize) -> Result<Rows, SqlError> {
        let known = self.running.working.iter().rev().find(|(known, _)| *known == number);
        let (_, rows) = known.ok_or_else(|| broken("the rows of a query that is not running"))?;
        match (rows.clone(), self.on.scratch.clone()) {
            (SharedRows::Held(rows), None) => {
                self.charge(rows.len() as u64)?;
                self.counted(rows.as_ref().clone())
            }
            (SharedRows::Held(rows), scratch) => {
                self.charge(rows.len() as u64)?;
                let mut list = RowList::new(scratch);
                let memory = &self.meter.memory;
                rows.iter().try_for_each(|row| list.push(memory, row_space(row.len()), row.clone()))?;
                list.complete()
            }
            (SharedRows::Written { run, count }, _) => {
                self.charge(count as u64)?;
                Ok(Rows::Written { run, count })
            }
        }
    }

    /// Rows that the query holds from now on.
    fn counted(&mut self, rows: Vec<Vec<Value>>) -> Result<Rows, SqlError> {
        self.meter.memory.hold(rows_space(&rows))?;
        Ok(Rows::Held(rows))
    }

    /// The rows of a query in FROM.
    fn query_rows(&mut self, query: &BoundSelect, given: Given<'_>) -> Result<Rows, SqlError> {
        let Some(scratch) = self.on.scratch.clone() else {
            return self.select_given(query, given, None).map(Rows::Held);
        };
        let (memory, mut list) = (self.meter.memory.clone(), RowList::new(Some(scratch)));
        self.each_row(query, given, &mut |row| list.push(&memory, row_space(row.len()), row))?;
        list.complete()
    }

    /// Hands out the rows of a query inside of another one, one by one. What `take` holds of them stays counted.
    pub(super) fn each_row(
        &mut self,
        query: &BoundSelect,
        given: Given<'_>,
        take: &mut dyn FnMut(Vec<Value>) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let (memory, mut grown, mut taken) = (self.meter.memory.clone(), 0, Ok(()));
        let mut take_counted = |row| {
            let before = memory.held();
            taken = take(row);
            grown += memory.held() as i64 - before as i64;
            if taken.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let rest = self.select_handing_out(query, given, None, Some(&mut take_counted))?;
        taken?;
        // With the query went all that was held meanwhile. Of the rest each row is counted by who takes it.
        memory.release(rows_space(&rest));
        memory.release_to(memory.held().saturating_add_signed(grown));
        rest.into_iter().try_for_each(take)
    }

    pub(super) fn evaluate_all(
        &mut self,
        expressions: &[Expression],
        given: Given<'_>,
    ) -> Result<Vec<Value>, SqlError> {
        self.with_subqueries(&[], given, |environment| {
            expressions.iter().map(|expression| expression.evaluate(environment)).collect()
        })
    }

    fn filtered(&mut self, rows: Rows, filter: &Expression, given: Given<'_>) -> Result<Rows, SqlError> {
        // Those that are left take no more room than all did.
        let (mut kept, mut left) = (Vec::new(), RowList::new(self.on.scratch.clone()));
        let (is_written, memory) = (matches!(rows, Rows::Written { .. }), self.meter.memory.clone());
        let mut rows = rows.into_each();
        while let Some(row) = rows.next()? {
            if !self.with_subqueries(&row, given, |environment| filter.is_true(environment))? {
                continue;
            }
            match is_written {
                true => left.push(&memory, row_space(row.len()), row)?,
                false => kept.push(row),
            }
        }
        if is_written { left.complete() } else { Ok(Rows::Held(kept)) }
    }
}
