//! The assignments of SET: to a column, to a field of one, to several columns at once.

use crate::expression::{Binder, Expression, Kind, PARTS_HINT};
use crate::statement::column_targets::{default_row, is_default, target_column};
use crate::statement::fields::{assigned_field, field_target};
use crate::statement::subscripted::Subscripted;
use crate::table::TablePlan;
use sqlparser::ast::{
    self, AssignmentTarget, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, Query,
    SetExpr, Spanned, Statement, TableFactor,
};
use syntax::names::name_of;
use syntax::parse::parse_plain_statements;
use syntax::parse::subscripts::is_subscript;
use types::{DataType, ExecutionVersion, SqlError, SqlState, Value};
use values::broken;

/// Parts of one column that a statement may assign.
const PARTS_MAX: usize = 256;

/// Before execution version 12 a statement could assign as many as it had room for. More than these took a node's whole stack.
const PARTS_BEFORE_V12_MAX: usize = 1_900;

/// Whether SET assigns a DEFAULT that calls a function or draws from a sequence.
pub(super) fn sets_running_default(table: &TablePlan, list: &[ast::Assignment]) -> bool {
    let runs = |column: &ObjectName| {
        let ident = match column.0.as_slice() {
            [part] => part.as_ident(),
            _ => None,
        };
        let ordinal = ident.and_then(|ident| table.ordinal(&name_of(ident).ok()?));
        let default = ordinal.and_then(|ordinal| table.columns[ordinal].default.as_ref());
        default.is_some_and(Expression::runs_anything)
    };
    list.iter().any(|assignment| match (&assignment.target, &assignment.value) {
        (AssignmentTarget::ColumnName(column), value) => is_default(value) && runs(column),
        (AssignmentTarget::Tuple(columns), Expr::Tuple(values)) => {
            columns.iter().zip(values).any(|(column, value)| is_default(value) && runs(column))
        }
        _ => false,
    })
}

/// Ordinals and values of SET.
pub(super) fn bind_assignments(
    table: &TablePlan,
    binder: &Binder<'_>,
    list: &[ast::Assignment],
) -> Result<Vec<(u16, Expression)>, SqlError> {
    let mut assignments =
        Assignments { table, binder, assigned: Vec::new(), parts: Vec::new(), bound: Vec::new() };
    for assignment in list {
        match &assignment.target {
            AssignmentTarget::ColumnName(column) => assignments.assign(column, &assignment.value)?,
            AssignmentTarget::Tuple(columns) => assignments.assign_all(columns, &assignment.value)?,
        }
    }
    Ok(assignments.bound)
}

/// The assignments so far.
struct Assignments<'a, 'b> {
    table: &'a TablePlan,
    binder: &'a Binder<'b>,
    /// Ordinals of the columns.
    assigned: Vec<usize>,
    /// Columns of which parts are assigned, and how many.
    parts: Vec<(usize, usize)>,
    bound: Vec<(u16, Expression)>,
}

impl Assignments<'_, '_> {
    /// `column = value`
    fn assign(&mut self, column: &ObjectName, value: &Expr) -> Result<(), SqlError> {
        let (table, binder) = (self.table, self.binder);
        if column.0.iter().filter_map(|part| part.as_ident()).any(is_subscript) {
            return self.assign_part(column, value);
        }
        if column.0.len() > 1
            && let Some((ordinal, path)) = field_target(table, binder, column)?
        {
            let value = assigned_field(binder, &path, value)?;
            return self.set_part(ordinal, path.len(), |row| Ok(Expression::with_field(row, &path, value)));
        }
        let ordinal = self.target(column)?;
        let target = &table.columns[ordinal];
        if is_default(value) {
            let default = default_row(table).swap_remove(ordinal);
            default.visit_calls(&mut |call| binder.scope().note_call(&call.callee));
            self.bound.push((ordinal as u16, default));
            return Ok(());
        }
        self.refuse_given(ordinal)?;
        let bound = binder.in_clause(Some("UPDATE")).bind_towards(value, target.data_type)?;
        self.push(ordinal, bound).map_err(|error| binder.at(error, value.span()))
    }

    /// `column[subscript].field = value`
    fn assign_part(&mut self, target: &ObjectName, value: &Expr) -> Result<(), SqlError> {
        let parts: Vec<Ident> = target.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
        let (column, path) = (ObjectName::from(vec![parts[0].clone()]), &parts[1..]);
        let ordinal = target_column(self.table, self.binder.scope(), &column, &[])?;
        self.refuse_given(ordinal)?;
        let target = &self.table.columns[ordinal];
        let subscripted = Subscripted { binder: self.binder, column: &target.name, value };
        // A path into a `jsonb` is one step.
        let steps = if target.data_type == DataType::Jsonb { 1 } else { path.len() };
        self.set_part(ordinal, steps, |row| subscripted.replaced((row, target.data_type), path))
    }

    /// Assigns one more part of a column, so many steps inside of the column. `with`: the column with that part.
    fn set_part(
        &mut self,
        ordinal: usize,
        steps: usize,
        with: impl FnOnce(Expression) -> Result<Expression, SqlError>,
    ) -> Result<(), SqlError> {
        let target = &self.table.columns[ordinal];
        let Some(at) = self.bound.iter().position(|(known, _)| usize::from(*known) == ordinal) else {
            let row = with(Expression::column(ordinal, target.data_type))?;
            self.bound.push((ordinal as u16, row));
            self.assigned.push(ordinal);
            self.parts.push((ordinal, 1));
            return Ok(());
        };
        // Another part of the same column.
        let Some((_, count)) = self.parts.iter_mut().find(|(known, _)| *known == ordinal) else {
            let message = format!("multiple assignments to same column \"{}\"", target.name);
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        };
        *count += 1;
        check_parts(*count, &target.name, self.binder.scope().version())?;
        let row = &mut self.bound[at].1;
        self.binder.count_part(row, steps)?;
        let nothing = Expression::constant(Value::Null, row.data_type);
        *row = with(std::mem::replace(row, nothing))?;
        Ok(())
    }

    /// `(column, …) = values`
    fn assign_all(&mut self, columns: &[ObjectName], value: &Expr) -> Result<(), SqlError> {
        let count_differs = || {
            let message = "number of columns does not match number of values";
            self.binder.at(SqlError::new(SqlState::SYNTAX_ERROR, message), value.span())
        };
        if let Some(values) = values_of_row(value) {
            if values.len() != columns.len() {
                return Err(count_differs());
            }
            return columns.iter().zip(values).try_for_each(|(column, value)| self.assign(column, value));
        }
        let Expr::Subquery(query) = value else {
            let what = "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression";
            let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, what);
            return Err(self.binder.at(error, value.span()));
        };
        let row = self.binder.in_clause(Some("UPDATE")).bind(&Expr::Subquery(as_one_row(query)?))?;
        let fields = match &row.kind {
            Kind::Subquery(subquery) => subquery.query.projection.first().and_then(Expression::as_row),
            _ => None,
        };
        let Some((_, fields)) = fields else { return Err(broken("a row without fields")) };
        if fields.len() != columns.len() {
            return Err(count_differs());
        }
        let types: Vec<DataType> = fields.iter().map(|field| field.data_type).collect();
        for (position, (column, data_type)) in columns.iter().zip(types).enumerate() {
            let ordinal = self.target(column)?;
            self.refuse_given(ordinal)?;
            self.push(ordinal, Expression::field(row.clone(), position, data_type))
                .map_err(|error| self.binder.at(error, column.span()))?;
        }
        Ok(())
    }

    fn target(&mut self, column: &ObjectName) -> Result<usize, SqlError> {
        let ordinal =
            target_column(self.table, self.binder.scope(), column, &self.assigned).map_err(assigned_twice)?;
        self.assigned.push(ordinal);
        Ok(ordinal)
    }

    fn refuse_given(&self, ordinal: usize) -> Result<(), SqlError> {
        let target = &self.table.columns[ordinal];
        if !target.is_generated && target.computed.is_none() {
            return Ok(());
        }
        let message = format!("column \"{}\" can only be updated to DEFAULT", target.name);
        Err(SqlError::new(SqlState(*b"428C9"), message))
    }

    fn push(&mut self, ordinal: usize, value: Expression) -> Result<(), SqlError> {
        let target = &self.table.columns[ordinal];
        let value = self.binder.assign_to_column(value, &target.name, target.data_type)?;
        self.bound.push((ordinal as u16, value));
        Ok(())
    }
}

/// Refuses to assign too many parts of one column. Each stands in the next, and whoever looks at them goes down into all.
fn check_parts(count: usize, column: &str, version: ExecutionVersion) -> Result<(), SqlError> {
    let max = match version >= ExecutionVersion::V12 {
        true => PARTS_MAX,
        false => PARTS_BEFORE_V12_MAX,
    };
    if count <= max {
        return Ok(());
    }
    let message = format!("more than {max} parts of the column \"{column}\" are assigned");
    Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message).hint(PARTS_HINT))
}

/// The values of `(a, b)` or `ROW(a, b)`.
fn values_of_row(value: &Expr) -> Option<Vec<&Expr>> {
    match value {
        Expr::Tuple(values) => Some(values.iter().collect()),
        Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("row") => {
            let FunctionArguments::List(list) = &function.args else { return None };
            let plain = |argument| match argument {
                &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref value)) => Some(value),
                _ => None,
            };
            list.args.iter().map(plain).collect()
        }
        _ => None,
    }
}

/// A query with one column that has the row: `SELECT ROW(…) FROM (query)`.
fn as_one_row(query: &Query) -> Result<Box<Query>, SqlError> {
    let sql = "SELECT ROW(assigned.*) FROM (SELECT 1) AS assigned";
    let parsed = parse_plain_statements(sql, ExecutionVersion::NEWEST)?.pop();
    let Some(Statement::Query(mut whole)) = parsed else { return Err(broken("a query that was none")) };
    if let SetExpr::Select(select) = whole.body.as_mut()
        && let Some(TableFactor::Derived { subquery, .. }) =
            select.from.first_mut().map(|from| &mut from.relation)
    {
        **subquery = query.clone();
    }
    Ok(whole)
}

/// UPDATE says it in other words than INSERT.
fn assigned_twice(error: SqlError) -> SqlError {
    if error.state != SqlState::DUPLICATE_COLUMN {
        return error;
    }
    let message = error.message.replace("column ", "multiple assignments to same column ");
    let message = message.replace(" specified more than once", "");
    SqlError { state: SqlState::SYNTAX_ERROR, message, ..error }
}
