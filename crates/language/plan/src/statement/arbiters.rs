//! In what rows conflict: what ON CONFLICT names, or everything that is unique.

use crate::bind_indexes::bind_over_row;
use crate::computed_index::ComputedIndex;
use crate::expression::{Expression, Kind};
use crate::implied::is_implied;
use crate::routines::Routines;
use crate::statement::change::Arbiter;
use crate::statement::view_target::ViewTarget;
use crate::table::TablePlan;
use sqlparser::ast::{self, ConflictTarget};
use std::sync::Arc;
use syntax::names::{name_of, table_name};
use syntax::parse::conflict_target::ConflictTargetText;
use types::{ExecutionVersion, Index, SqlError, SqlState};

/// What tells whether a row exists.
///
/// # Errors
/// `42P10` where nothing unique is what ON CONFLICT names; unknown columns and constraints.
pub(super) fn arbiters_of(
    table: &TablePlan,
    view: Option<&ViewTarget>,
    on_conflict: &ast::OnConflict,
    routines: &Routines,
) -> Result<Vec<Arbiter>, SqlError> {
    let Some(target) = &on_conflict.conflict_target else { return Ok(everything_unique(table)) };
    if let Some(text) = written_target(target, routines.version()) {
        if view.is_some() {
            return Err(SqlError::unsupported("an expression or WHERE in ON CONFLICT on a view")
                .hint("Insert into the table of the view."));
        }
        return inferred(table, &text, routines);
    }
    match view {
        Some(view) => conflict_target(table, &view.base_conflict(target)?),
        None => conflict_target(table, target),
    }
}

fn everything_unique(table: &TablePlan) -> Vec<Arbiter> {
    let unique = table.indexes.iter().filter(|index| index.unique);
    let unique = unique.map(|index| Arbiter::Unique(index.clone()));
    let computed = table.computed.iter().filter(|computed| computed.index.unique);
    let computed = computed.map(|computed| Arbiter::Computed(computed.clone()));
    (!table.key.is_empty()).then_some(Arbiter::Key).into_iter().chain(unique).chain(computed).collect()
}

/// Versions before read any name that is written like a text as a column.
fn written_target(target: &ConflictTarget, version: ExecutionVersion) -> Option<ConflictTargetText> {
    match target {
        _ if version < ExecutionVersion::V8 => None,
        ConflictTarget::Columns(columns) => columns.first().and_then(ConflictTargetText::of),
        ConflictTarget::OnConstraint(_) => None,
    }
}

fn conflict_target(table: &TablePlan, target: &ConflictTarget) -> Result<Vec<Arbiter>, SqlError> {
    match target {
        ConflictTarget::Columns(columns) => {
            let mut named = Vec::with_capacity(columns.len());
            for column in columns {
                let name = name_of(column)?;
                let ordinal = table.ordinal(&name).ok_or_else(|| {
                    SqlError::new(SqlState::UNDEFINED_COLUMN, format!("column \"{name}\" does not exist"))
                })?;
                named.push(ordinal as u16);
            }
            found(on_columns(table, named).into_iter().collect())
        }
        ConflictTarget::OnConstraint(name) => {
            let name = match name.0.as_slice() {
                [ast::ObjectNamePart::Identifier(name)] => name_of(name)?,
                _ => table_name(name)?,
            };
            if !table.key.is_empty() && name == table.key_name {
                return Ok(vec![Arbiter::Key]);
            }
            let named = unique_index(table, &|index| index.constraint && index.name == name);
            named.map(|arbiter| vec![arbiter]).ok_or_else(|| {
                let message = format!("constraint \"{name}\" for table \"{}\" does not exist", table.name);
                SqlError::new(SqlState(*b"42704"), message)
            })
        }
    }
}

fn unique_index(table: &TablePlan, is: &dyn Fn(&Index) -> bool) -> Option<Arbiter> {
    let index = table.indexes.iter().find(|index| index.unique && is(index));
    index.map(|index| Arbiter::Unique(index.clone()))
}

/// What is unique in exactly these columns.
fn on_columns(table: &TablePlan, mut named: Vec<u16>) -> Option<Arbiter> {
    named.sort_unstable();
    named.dedup();
    let names = |columns: &[u16]| {
        let mut columns = columns.to_vec();
        columns.sort_unstable();
        named == columns
    };
    if !table.key.is_empty() && names(&table.key) {
        return Some(Arbiter::Key);
    }
    unique_index(table, &|index| names(&index.columns))
}

fn found(arbiters: Vec<Arbiter>) -> Result<Vec<Arbiter>, SqlError> {
    match arbiters.is_empty() {
        false => Ok(arbiters),
        true => {
            let message = "there is no unique or exclusion constraint matching the ON CONFLICT specification";
            Err(SqlError::new(SqlState(*b"42P10"), message))
        }
    }
}

/// What is unique in exactly these columns and expressions, at least of the rows for which the condition is true.
fn inferred(
    table: &TablePlan,
    text: &ConflictTargetText,
    routines: &Routines,
) -> Result<Vec<Arbiter>, SqlError> {
    let parts = text.parts.iter().map(|part| bind_over_row(table, part, routines, false));
    let parts: Vec<Expression> = parts.collect::<Result<_, _>>()?;
    let condition = text.condition.as_ref();
    let condition = condition.map(|sql| bind_over_row(table, sql, routines, true)).transpose()?;
    let conditions = condition.map(Expression::into_conjuncts).unwrap_or_default();
    let columns: Option<Vec<u16>> = parts
        .iter()
        .map(|part| match part.kind {
            Kind::Column(ordinal) => Some(ordinal),
            _ => None,
        })
        .collect();
    let plain = columns.and_then(|columns| on_columns(table, columns));
    let fits = |computed: &&Arc<ComputedIndex>| {
        let implied = computed.predicate.as_ref().is_none_or(|predicate| is_implied(predicate, &conditions));
        let keys = &computed.keys;
        computed.index.unique
            && implied
            && keys.iter().all(|key| parts.contains(key))
            && parts.iter().all(|part| keys.contains(part))
    };
    let computed = table.computed.iter().filter(fits).map(|computed| Arbiter::Computed(computed.clone()));
    found(plain.into_iter().chain(computed).collect())
}
