//! Running statements of SQL, EXECUTE, RETURN QUERY and CALL.

use crate::coercion::coercion;
use crate::compile::result::check_structure;
use crate::fuse::run_fused;
use crate::program::{
    Call, ChangeInto, Dynamic, Execute, FusedStatement, ReturnQuery, RowsSource, SelectInto, SubqueryPlan,
};
use crate::run::activation::Activation;
use crate::run::store::{check_single, convert, refuse_null};
use crate::variables::constant;
use execute::Execution;
use plan::expression::{Expression, row_value};
use plan::statement::{BoundSelect, BoundStatement, StatementOutput};
use std::collections::BTreeSet;
use types::{DataType, SqlError, SqlState, Value, format_value};

impl Activation<'_> {
    /// The rows of a loop or of RETURN QUERY.
    pub(crate) fn source_rows(
        &mut self,
        source: &RowsSource,
        execution: &mut Execution<'_>,
    ) -> Result<StatementOutput, SqlError> {
        match source {
            RowsSource::Query(query) => {
                let rows = execution.select(query, &self.frame, None)?;
                Ok(StatementOutput { rows, ..StatementOutput::default() })
            }
            RowsSource::Change(statement) => {
                let output = execution.run(statement, &self.frame)?;
                execution.look_at_matched();
                Ok(output)
            }
            RowsSource::Dynamic(dynamic) => self.dynamic(dynamic, execution),
            RowsSource::Late(late) => self.late_rows(late, execution),
        }
    }

    pub(crate) fn return_query(
        &mut self,
        query: &ReturnQuery,
        execution: &mut Execution<'_>,
    ) -> Result<(), SqlError> {
        let StatementOutput { rows, columns, .. } = self.source_rows(&query.source, execution)?;
        if let RowsSource::Dynamic(_) | RowsSource::Late(_) = query.source {
            let types: Option<&[DataType]> = query.types.as_deref();
            types.map_or(Ok(()), |types| check_structure(&columns, types))?;
        }
        let rows = match query.row {
            None => rows,
            Some(data_type) => {
                let packed = rows.into_iter().map(|row| Ok(vec![row_value(data_type, row)?]));
                packed.collect::<Result<_, SqlError>>()?
            }
        };
        for (at, domain) in &query.domains {
            let values = rows.iter().filter_map(|row| row.get(*at));
            values.into_iter().try_for_each(|value| self.procedure.types.check_domain(value, *domain))?;
        }
        self.set_row_count(rows.len() as u64, false);
        execution.keep_rows(&rows)?;
        self.rows.extend(rows);
        Ok(())
    }

    /// A statement whose text is computed.
    fn dynamic(
        &mut self,
        dynamic: &Dynamic,
        execution: &mut Execution<'_>,
    ) -> Result<StatementOutput, SqlError> {
        let Value::Text(text) = execution.evaluate(&dynamic.text, &self.frame)? else {
            let message = "query string argument of EXECUTE is null";
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        };
        let values = self.evaluated(&dynamic.arguments, execution)?;
        let type_of = |argument: &Expression| {
            let late = argument.as_slot().and_then(|slot| self.late_types.get(&u16::try_from(slot).ok()?));
            late.copied().unwrap_or(argument.data_type)
        };
        let types: Vec<DataType> = dynamic.arguments.iter().map(type_of).collect();
        let mut output = execution.run_text(self.procedure.types.search_path(), &text, values, &types)?;
        let Some(wanted) = &dynamic.wanted else { return Ok(output) };
        let columns = output.columns.clone();
        self.convert_rows(&mut output.rows, &columns, wanted)?;
        Ok(output)
    }

    /// EXECUTE. It leaves FOUND as it is.
    pub(crate) fn execute(
        &mut self,
        execute: &Execute,
        execution: &mut Execution<'_>,
    ) -> Result<(), SqlError> {
        if self.procedure.looks_at_matched && self.found_unseen {
            self.look_at_matched(execution);
        }
        let output = self.dynamic(&execute.dynamic, execution)?;
        execution.look_at_matched();
        self.row_count = output.affected;
        self.row_count_unseen = false;
        let Some(target) = &execute.target else { return Ok(()) };
        if output.columns.is_empty() {
            let message = "INTO used with a command that cannot return data";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        if target.strict {
            check_single(output.rows.len()).or_else(|error| {
                if !self.procedure.print_strict_params {
                    return Err(error);
                }
                let values = self.evaluated(&execute.dynamic.arguments, execution)?;
                let names = (1..).map(|number: usize| format!("${number}"));
                Err(with_parameters(error, names.zip(&values)))
            })?;
        }
        self.store_first(target, &output.columns, output.rows.into_iter().next())
    }

    pub(crate) fn select_into(
        &mut self,
        select: &SelectInto,
        execution: &mut Execution<'_>,
    ) -> Result<(), SqlError> {
        // A second row is looked for only where it would be an error.
        let limit = if select.target.strict { 2 } else { 1 };
        let rows = execution.select(&select.query, &self.frame, Some(limit))?;
        if select.target.strict {
            check_single(rows.len())
                .map_err(|error| self.with_variables(error, |visit| select.query.visit_slots(visit)))?;
        }
        self.set_row_count(rows.len() as u64, false);
        self.store_first(&select.target, &select.query.columns, rows.into_iter().next())
    }

    /// An error of STRICT with the values of these variables, where that is wanted.
    fn with_variables(&self, error: SqlError, visit_slots: impl FnOnce(&mut dyn FnMut(u16))) -> SqlError {
        if !self.procedure.print_strict_params {
            return error;
        }
        let mut slots = BTreeSet::new();
        visit_slots(&mut |slot| {
            slots.insert(usize::from(slot));
        });
        let named = |slot: usize| {
            let name = self.procedure.names.get(slot).filter(|name| !name.is_empty())?;
            Some((name.to_string(), &self.frame[slot]))
        };
        with_parameters(error, slots.into_iter().filter_map(named))
    }

    pub(crate) fn perform(
        &mut self,
        query: &BoundSelect,
        execution: &mut Execution<'_>,
    ) -> Result<(), SqlError> {
        let rows = execution.select(query, &self.frame, None)?.len();
        self.set_row_count(rows as u64, false);
        Ok(())
    }

    pub(crate) fn change(
        &mut self,
        statement: &BoundStatement,
        execution: &mut Execution<'_>,
    ) -> Result<(), SqlError> {
        let affected = execution.run(statement, &self.frame)?.affected;
        self.set_row_count(affected, true);
        Ok(())
    }

    /// What an oracle says goes into a variable.
    pub(crate) fn oracle(
        &mut self,
        slot: u16,
        name: &Expression,
        execution: &mut Execution<'_>,
    ) -> Result<(), SqlError> {
        let name = execution.evaluate(name, &self.frame)?;
        self.frame[usize::from(slot)] = execution.ask_oracle(&name)?;
        Ok(())
    }

    pub(crate) fn subquery(
        &mut self,
        plan: &SubqueryPlan,
        execution: &mut Execution<'_>,
    ) -> Result<(), SqlError> {
        // A second row of a value is an error.
        let limit = if plan.exists.is_some() { 1 } else { 2 };
        let mut rows = execution.select(&plan.query, &self.frame, Some(limit))?;
        let value = match plan.exists {
            Some(value) => Value::Boolean(if rows.is_empty() { !value } else { value }),
            None if rows.len() > 1 => {
                let message = "more than one row returned by a subquery used as an expression";
                return Err(SqlError::new(SqlState(*b"21000"), message));
            }
            None => rows.pop().and_then(|row| row.into_iter().next()).unwrap_or(Value::Null),
        };
        self.frame[usize::from(plan.slot)] = value;
        // PostgreSQL runs such an expression as a query of one row.
        self.row_count = 1;
        self.row_count_unseen = false;
        Ok(())
    }

    /// Statements on one row that are one command. What they assign and others use does not depend on the row: it is
    /// computed again here, where it was computed without an error a moment ago.
    pub(crate) fn fused(
        &mut self,
        fused: &FusedStatement,
        execution: &mut Execution<'_>,
    ) -> Result<(), SqlError> {
        let matched = run_fused(execution, fused, &self.frame)?;
        self.set_row_count(u64::from(matched), true);
        for (slot, value) in fused.assigned_outside() {
            self.frame[usize::from(*slot)] = execution.evaluate(value, &self.frame)?;
        }
        Ok(())
    }

    pub(crate) fn change_into(
        &mut self,
        change: &ChangeInto,
        execution: &mut Execution<'_>,
    ) -> Result<(), SqlError> {
        let output = execution.run(&change.statement, &self.frame)?;
        // Whether there was a row shows in the variables.
        self.look_at_matched(execution);
        match output.rows.len() {
            1 => {}
            0 if !change.target.strict => {}
            _ if !change.target.strict && change.statement.is_query() => {}
            several => check_single(several)
                .map_err(|error| self.with_variables(error, |visit| change.statement.visit_slots(visit)))?,
        }
        self.set_row_count(output.affected, false);
        self.store_first(&change.target, change.statement.columns(), output.rows.into_iter().next())
    }

    pub(crate) fn call(&mut self, call: &Call, execution: &mut Execution<'_>) -> Result<(), SqlError> {
        if self.procedure.looks_at_matched {
            // Afterwards the last change would be one of the procedure called.
            self.look_at_unseen(execution);
        }
        let output = execution.run(&call.statement, &self.frame)?;
        let values = output.rows.into_iter().flatten();
        for ((position, value), column) in output.call_outputs.iter().zip(values).zip(output.columns.iter()) {
            let Some(variable) = call.variables.get(*position).and_then(Option::as_ref) else {
                let message = format!(
                    "procedure parameter \"{}\" is an output parameter but corresponding argument is not writable",
                    column.name
                );
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            };
            if let Some(name) = &variable.constant {
                return Err(constant(name));
            }
            let value = convert(
                value,
                coercion(column.data_type, variable.data_type, "an output argument")?,
                &self.procedure.types,
            )?;
            if let Some(domain) = variable.domain {
                self.procedure.types.check_domain(&value, domain)?;
            }
            if let Some(name) = &variable.not_null {
                refuse_null(&value, name)?;
            }
            self.frame[usize::from(variable.slot)] = value;
        }
        Ok(())
    }
}

/// An error of STRICT that shows the values of parameters.
fn with_parameters<'v>(error: SqlError, parameters: impl Iterator<Item = (String, &'v Value)>) -> SqlError {
    let shown = parameters.map(|(name, value)| match format_value(value) {
        Some(text) => format!("{name} = '{}'", text.replace('\'', "''")),
        None => format!("{name} = NULL"),
    });
    let shown: Vec<String> = shown.collect();
    if shown.is_empty() { error } else { error.detail(format!("parameters: {}", shown.join(", "))) }
}
