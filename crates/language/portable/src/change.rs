//! UPDATE and DELETE.

use crate::access::access_of;
use crate::bind::{Binder, Operand};
use crate::constant::Constants;
use crate::expression::Expression;
use crate::fit::{check_assignable, stored};
use crate::insert::is_default;
use crate::place::{refuse_decisions, refuse_narrow, settle_condition};
use crate::refusal::refused;
use crate::statement::{Access, Action, Statement};
use crate::table::{default_value, single_table, target_column};
use sqlparser::ast::{self, AssignmentTarget, Expr, FromTable};
use syntax::parse::subscripts::is_subscript;
use types::{Catalog, SqlError, SqlState};

/// Binds UPDATE.
///
/// # Errors
/// As [`check_script`](crate::check_script).
pub(crate) fn bind_update(
    catalog: &Catalog,
    update: &ast::Update,
    constants: &Constants<'_>,
) -> Result<Statement, SqlError> {
    if update.returning.is_some() {
        return Err(returning());
    }
    if update.from.is_some() {
        return Err(refused("FROM in UPDATE")
            .hint("Read values of other tables before, and give them as parameters."));
    }
    if update.output.is_some() || update.or.is_some() || !update.order_by.is_empty() || update.limit.is_some()
    {
        return Err(refused("this form of UPDATE").hint("Write UPDATE t SET a = 1 WHERE id = 1."));
    }
    let (table, known_as) = single_table(catalog, &update.table, constants)?;
    let binder = Binder::new(table, &known_as, *constants);
    let (condition, access) = bind_where(&binder, update.selection.as_ref())?;
    let set = bind_assignments(&binder, &update.assignments, &access)?;
    Ok(Statement { table: table.clone(), action: Action::Update { set, condition }, access })
}

/// Binds DELETE.
///
/// # Errors
/// As [`check_script`](crate::check_script).
pub(crate) fn bind_delete(
    catalog: &Catalog,
    delete: &ast::Delete,
    constants: &Constants<'_>,
) -> Result<Statement, SqlError> {
    if delete.returning.is_some() {
        return Err(returning());
    }
    if delete.using.is_some() {
        return Err(refused("USING in DELETE")
            .hint("Read values of other tables before, and give them as parameters."));
    }
    let FromTable::WithFromKeyword(from) = &delete.from else {
        return Err(refused("DELETE without FROM").hint("Write DELETE FROM t."));
    };
    let is_plain = delete.tables.is_empty()
        && delete.output.is_none()
        && delete.order_by.is_empty()
        && delete.limit.is_none();
    let ([from], true) = (from.as_slice(), is_plain) else {
        return Err(refused("this form of DELETE").hint("Write DELETE FROM t WHERE id = 1."));
    };
    let (table, known_as) = single_table(catalog, from, constants)?;
    let binder = Binder::new(table, &known_as, *constants);
    let (condition, access) = bind_where(&binder, delete.selection.as_ref())?;
    Ok(Statement { table: table.clone(), action: Action::Delete { condition }, access })
}

fn returning() -> SqlError {
    refused("RETURNING").hint("Read the rows with SELECT afterwards.")
}

fn bind_where(
    binder: &Binder<'_>,
    selection: Option<&Expr>,
) -> Result<(Option<Expression>, Access), SqlError> {
    let Some(selection) = selection else { return Ok((None, Access::Table)) };
    let condition = binder.condition(selection, "WHERE")?;
    let settled = refuse_narrow(&condition, None).and_then(|()| settle_condition(condition, binder.table));
    let condition = settled.map_err(|error| binder.constants.at(error, selection))?;
    let access = access_of(binder.table, Some(&condition));
    Ok((Some(condition), access))
}

fn bind_assignments(
    binder: &Binder<'_>,
    assignments: &[ast::Assignment],
    access: &Access,
) -> Result<Vec<(usize, Expression)>, SqlError> {
    let (table, constants) = (binder.table, &binder.constants);
    let mut set: Vec<(usize, Expression)> = Vec::with_capacity(assignments.len());
    for assignment in assignments {
        let AssignmentTarget::ColumnName(name) = &assignment.target else {
            return Err(refused("SET (a, b) = …").hint("Assign each column: SET a = 1, b = 2."));
        };
        if name.0.iter().filter_map(|part| part.as_ident()).any(is_subscript) {
            let error = refused("a subscript in SET").hint("Assign the whole column.");
            return Err(constants.at(error, name));
        }
        let ordinal = target_column(table, name, constants)?;
        let column = &table.columns[ordinal].name;
        let error = if set.iter().any(|(earlier, _)| *earlier == ordinal) {
            let message = format!("multiple assignments to same column \"{column}\"");
            Some(SqlError::new(SqlState::SYNTAX_ERROR, message))
        } else if table.primary_key.iter().any(|key| usize::from(*key) == ordinal) {
            let what = format!("a change of column \"{column}\" of the primary key");
            Some(refused(what).hint("DELETE the row, and INSERT it with the other key."))
        } else {
            None
        };
        if let Some(error) = error {
            return Err(constants.at(error, name));
        }
        let value = bind_value(binder, ordinal, &assignment.value)?;
        let placed = refuse_narrow(&value, Some(table.columns[ordinal].data_type))
            .and_then(|()| refuse_decisions(&value, access))
            .and_then(|()| refuse_changed(binder, &set, &value));
        placed.map_err(|error| constants.at(error, &assignment.value))?;
        set.push((ordinal, value));
    }
    Ok(set)
}

fn bind_value(binder: &Binder<'_>, ordinal: usize, value: &Expr) -> Result<Expression, SqlError> {
    let column = &binder.table.columns[ordinal];
    if is_default(value) {
        let default = default_value(binder.table, ordinal, binder.constants.now_ms)?;
        return Ok(Expression::constant(default, column.data_type));
    }
    let bound = match binder.operand(value, Some(column.data_type))? {
        Operand::Written(written) => stored(written, &column.name, column.data_type)
            .map(|stored| Expression::constant(stored, column.data_type)),
        Operand::Bound(bound) => {
            check_assignable(bound.data_type, &column.name, column.data_type).map(|()| bound)
        }
    };
    bound.map_err(|error| binder.constants.at(error, value))
}

/// Refuses a value that reads what an earlier assignment changes: MariaDB reads the new value there, PostgreSQL the old one.
fn refuse_changed(
    binder: &Binder<'_>,
    set: &[(usize, Expression)],
    value: &Expression,
) -> Result<(), SqlError> {
    let Some((ordinal, _)) = set.iter().find(|(ordinal, _)| value.reads(*ordinal)) else { return Ok(()) };
    let column = &binder.table.columns[*ordinal].name;
    let what = format!("a value of column \"{column}\" behind an assignment to it in one SET");
    Err(refused(what).hint(format!(
        "Change the order of the assignments: that of \"{column}\" comes behind those that read it."
    )))
}
