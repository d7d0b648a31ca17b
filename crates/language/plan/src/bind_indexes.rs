//! Binding of indexes on expressions and with a condition.

use crate::computed_index::ComputedIndex;
use crate::expression::written::first_subquery;
use crate::expression::{Binder, Expression, Kind, Source};
use crate::immutable::is_mutable;
use crate::routines::Routines;
use crate::scope::VariableScope;
use crate::table::TablePlan;
use crate::written_sql::{Parentheses, written_key};
use std::collections::BTreeSet;
use std::sync::Arc;
use syntax::parse::parse_expression;
use types::{ColumnSet, Index, SqlError, SqlState};
use values::{broken, quote_ident};

/// Binds one of a table whose columns are bound.
///
/// # Errors
/// What is wrong with its expressions or its predicate.
pub fn bind_index(
    plan: &TablePlan,
    index: &Arc<Index>,
    routines: &Routines,
) -> Result<ComputedIndex, SqlError> {
    let mut expressions = index.details.expressions.iter();
    let (mut keys, mut names) = (Vec::new(), Vec::new());
    for ordinal in index.columns.iter().map(|ordinal| usize::from(*ordinal)) {
        let key = match plan.columns.get(ordinal) {
            Some(column) => {
                names.push(quote_ident(&column.name));
                Expression::column(ordinal, column.data_type)
            }
            None => {
                let sql = expressions.next().ok_or_else(|| broken("an index without its expression"))?;
                names.push(written_key(sql, plan, routines, Parentheses::Few)?);
                bind_key(plan, sql, routines)?
            }
        };
        keys.push(key);
    }
    let predicate = index.details.predicate.as_ref();
    let predicate = predicate.map(|sql| bind_predicate(plan, sql, routines)).transpose()?;
    // Where a row has another key, its entry leads there.
    let key = plan.key.iter().fold(ColumnSet::EXISTS, |set, c| set | ColumnSet::column(usize::from(*c)));
    let columns = keys.iter().chain(&predicate).fold(key, |set, part| set | part.columns());
    let mut looked_at = BTreeSet::new();
    for part in keys.iter().chain(&predicate) {
        part.any(&mut |inner| {
            if let Kind::Column(ordinal) = inner.kind {
                looked_at.insert(ordinal);
            }
            false
        });
    }
    let looked_at = looked_at.into_iter().collect();
    Ok(ComputedIndex {
        index: index.clone(),
        keys,
        predicate,
        names,
        columns,
        looked_at,
        hides_keys: plan.hides_keys,
    })
}

/// What a part of an index's definition is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Key,
    Predicate,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Key => "index expression",
            Part::Predicate => "index predicate",
        }
    }

    /// Binds it over the table's row, in a clause of this name.
    fn bind(
        self,
        plan: &TablePlan,
        sql: &str,
        scope: &VariableScope,
        clause: &'static str,
    ) -> Result<Expression, SqlError> {
        let expr = parse_expression(sql, scope.version())?;
        if first_subquery(&expr).is_some() {
            let message = format!("cannot use subquery in {}", self.name());
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        let binder = Binder::new(scope, Source::Table { table: plan, name: &plan.name });
        let binder = binder.in_clause(Some(clause));
        match self {
            Part::Key => binder.bind_known(&expr),
            Part::Predicate => binder.bind_condition(&expr, "WHERE"),
        }
    }

    /// The same of a definition, which must say the same for ever.
    fn define(
        self,
        plan: &TablePlan,
        sql: &str,
        routines: &Routines,
        clause: &'static str,
    ) -> Result<Expression, SqlError> {
        let scope = VariableScope::for_procedure(None).with_routines(routines);
        let bound = self.bind(plan, sql, &scope, clause)?;
        if is_mutable(&bound, &scope) {
            let message = format!("functions in {} must be marked IMMUTABLE", self.name());
            return Err(SqlError::new(SqlState(*b"42P17"), message));
        }
        match bound.runs_anything() {
            false => Ok(bound),
            true => {
                Err(SqlError::unsupported(format_args!("a function of the ledger in an {}", self.name()))
                    .hint("Write the expression out, or keep the value in a column that a trigger fills."))
            }
        }
    }
}

/// Binds an expression that an index is on.
///
/// # Errors
/// `42P17` where it is not the same for ever; what cannot stand there.
pub fn bind_key(plan: &TablePlan, sql: &str, routines: &Routines) -> Result<Expression, SqlError> {
    Part::Key.define(plan, sql, routines, "index expressions")
}

/// Binds the WHERE of an index.
///
/// # Errors
/// As [`bind_key`]; `42804` where it is no condition.
pub fn bind_predicate(plan: &TablePlan, sql: &str, routines: &Routines) -> Result<Expression, SqlError> {
    Part::Predicate.define(plan, sql, routines, "index predicates")
}

/// Binds what ON CONFLICT says of rows that conflict: an expression, or a condition.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn bind_over_row(
    plan: &TablePlan,
    sql: &str,
    routines: &Routines,
    is_condition: bool,
) -> Result<Expression, SqlError> {
    let scope = VariableScope::for_procedure(None).with_routines(routines);
    let part = if is_condition { Part::Predicate } else { Part::Key };
    part.bind(plan, sql, &scope, "ON CONFLICT")
}
