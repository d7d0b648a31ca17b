//! The state of an aggregate of the ledger: a state that functions take on row by row.

use crate::sorting::{Sortable, compare_by};
use plan::aggregate::{Aggregate, UserFunctions};
use plan::expression::Environment;
use std::collections::BTreeSet;
use types::{SqlError, Value};

/// The state of one group.
pub(super) struct UserState {
    state: Value,
    /// No row has made a state yet, and none was given.
    is_empty: bool,
    seen: BTreeSet<Sortable>,
    /// Where the order of the rows matters: what they are sorted by, and what they add.
    rows: Vec<(Vec<Value>, Vec<Value>)>,
}

impl UserState {
    pub fn new(functions: &UserFunctions) -> UserState {
        UserState {
            state: functions.initial.clone(),
            is_empty: functions.initial.is_null(),
            seen: BTreeSet::new(),
            rows: Vec::new(),
        }
    }

    /// Adds a row that the filter has let through.
    ///
    /// # Errors
    /// What evaluation and the functions raise.
    pub fn add(
        &mut self,
        aggregate: &Aggregate,
        functions: &UserFunctions,
        environment: &Environment<'_>,
    ) -> Result<(), SqlError> {
        let values = functions.arguments.iter().map(|argument| argument.evaluate(environment));
        let values = values.collect::<Result<Vec<Value>, SqlError>>()?;
        if functions.is_strict && values.iter().any(Value::is_null) {
            return Ok(());
        }
        if aggregate.distinct && !self.seen.insert(Sortable(values.clone())) {
            return Ok(());
        }
        if aggregate.order.is_empty() && !aggregate.distinct {
            return self.step(functions, values, environment);
        }
        let keys = aggregate.order.iter().map(|key| key.expression.evaluate(environment));
        self.rows.push((keys.collect::<Result<_, _>>()?, values));
        Ok(())
    }

    fn step(
        &mut self,
        functions: &UserFunctions,
        values: Vec<Value>,
        environment: &Environment<'_>,
    ) -> Result<(), SqlError> {
        if functions.is_strict {
            if std::mem::replace(&mut self.is_empty, false) {
                self.state = values.into_iter().next().unwrap_or_default();
                return Ok(());
            }
            // A strict function that gave NULL is not called any more.
            if self.state.is_null() {
                return Ok(());
            }
        }
        let mut row = Vec::with_capacity(values.len() + 1);
        row.push(std::mem::take(&mut self.state));
        row.extend(values);
        self.state = functions.transition.evaluate(&Environment { row: &row, ..*environment })?;
        Ok(())
    }

    /// Takes the rows that waited for their order.
    ///
    /// # Errors
    /// What the functions raise.
    pub fn finish_rows(
        &mut self,
        aggregate: &Aggregate,
        functions: &UserFunctions,
        environment: &Environment<'_>,
    ) -> Result<(), SqlError> {
        let mut rows = std::mem::take(&mut self.rows);
        rows.sort_by(|(left_keys, left), (right_keys, right)| {
            let by_keys = compare_by(&aggregate.order, left_keys, right_keys);
            // DISTINCT sorts by what is distinct, as PostgreSQL does.
            match aggregate.distinct {
                true => by_keys.then_with(|| Sortable(left.clone()).cmp(&Sortable(right.clone()))),
                false => by_keys,
            }
        });
        rows.into_iter().try_for_each(|(_, values)| self.step(functions, values, environment))
    }

    /// The result of the rows so far.
    ///
    /// # Errors
    /// What the functions raise.
    pub fn result(
        &self,
        functions: &UserFunctions,
        environment: &Environment<'_>,
    ) -> Result<Value, SqlError> {
        let mut row = vec![Value::Null; functions.arguments.len() + 1];
        row[0] = self.state.clone();
        functions.result.evaluate(&Environment { row: &row, ..*environment })
    }
}
