//! Binding of INSERT and ON CONFLICT.

use crate::command::UpdatePlan;
use crate::expression::{Binder, Expression, Kind, NamedRelation, Relations, Source};
use crate::row_security::{check_of_existing, check_of_written};
use crate::statement::arbiters::arbiters_of;
use crate::statement::assignments::bind_assignments;
use crate::statement::change::{BoundInsert, ConflictAction, InsertSource, OnConflict};
use crate::statement::column_targets::{default_row, insert_targets, is_default};
use crate::statement::fields::{InsertFields, insert_fields, written_out};
use crate::statement::named_table::find_table;
use crate::statement::output::bind_returning;
use crate::statement::query::bind_nested;
use crate::statement::query_scope::QueryScope;
use crate::statement::view_target::{Change, ViewTarget};
use crate::table::TablePlan;
use sqlparser::ast::{self, Expr, OnConflictAction, SetExpr, Spanned, TableAlias, TableObject};
use std::borrow::Cow;
use std::sync::Arc;
use syntax::names::name_of;
use types::{
    ColumnSet, DataType, ExecutionVersion, PolicyCommand, Privileges, SqlError, SqlState, object_name,
    schema_of,
};

pub(super) fn bind_insert(outer: QueryScope<'_>, insert: &ast::Insert) -> Result<BoundInsert, SqlError> {
    let (tables, scope) = (outer.tables, outer.variables);
    refuse_insert_forms(insert)?;
    let TableObject::TableName(name) = &insert.table else {
        return Err(SqlError::unsupported("INSERT into this target"));
    };
    let view = ViewTarget::find(tables, scope, name, Change::Insert)?;
    let (table, mut insert) = match &view {
        Some(view) => {
            view.note(tables, scope, insert_privileges(insert));
            let columns = view.insert_columns(insert)?;
            (&view.table, Cow::Owned(ast::Insert { columns, ..insert.clone() }))
        }
        None => {
            let table = find_table(tables, scope, name)?;
            scope.note_use(&table.relation, insert_privileges(insert));
            scope.note_fired(tables.fired_by(table));
            (table, Cow::Borrowed(insert))
        }
    };
    let known_as = match &insert.table_alias {
        Some(alias) => name_of(&alias.alias)?,
        None => view.as_ref().map_or(&*table.name, |view| object_name(&view.name)).to_string(),
    };
    let targets = match insert_fields(tables, table, scope, &insert)? {
        Some(InsertFields { targets, insert: whole }) => {
            insert = Cow::Owned(whole);
            targets
        }
        None => insert_targets(table, scope, &insert.columns)?,
    };
    let insert = insert.as_ref();
    let source = match &insert.source {
        None => InsertSource::Rows(vec![default_row(table)]),
        Some(query) => match query.body.as_ref() {
            SetExpr::Values(values) if is_plain(query, tables.version()) => {
                let explicit = !insert.columns.is_empty();
                let rows = outer.beside(|query, level| {
                    let binder = query.binder(level, Source::Nothing);
                    let row = |row: &ast::Parens<Vec<Expr>>| {
                        insert_row(table, &binder, &targets, explicit, &written_out(&binder, &row.content)?)
                    };
                    values.rows.iter().map(row).collect::<Result<_, _>>()
                });
                InsertSource::Rows(rows?)
            }
            _ => insert_select(outer, table, &targets, query)?,
        },
    };
    let on_conflict = match &insert.on {
        None => None,
        Some(ast::OnInsert::OnConflict(on_conflict)) => {
            Some(bind_on_conflict(outer, (table, view.as_ref()), &known_as, on_conflict)?)
        }
        Some(_) => return Err(SqlError::unsupported("ON DUPLICATE KEY").hint("Use ON CONFLICT.")),
    };
    let rows = match &source {
        InsertSource::Rows(rows) => rows.as_slice(),
        InsertSource::Select(_, targets) => std::slice::from_ref(targets),
    };
    for value in rows.iter().flatten() {
        // A DEFAULT may call functions without anybody having named them here.
        value.visit_calls(&mut |call| scope.note_call(&call.callee));
    }
    let returning = match &view {
        Some(view) => {
            let alias = insert.table_alias.as_ref().map(|alias| TableAlias {
                explicit: true,
                name: alias.alias.clone(),
                columns: Vec::new(),
                at: None,
            });
            view.returning(scope, alias.as_ref(), insert.returning.as_deref())?
        }
        None => bind_returning(table, &known_as, scope, insert.returning.as_deref())?,
    };
    let is_read = insert_privileges(insert).contains(Privileges::SELECT);
    let row_check = check_of_written(tables, scope, table, PolicyCommand::Insert, is_read)?;
    Ok(BoundInsert { table: table.clone(), source, on_conflict, row_check, returning })
}

/// VALUES and nothing around it. Version 1 did not look at WITH and FETCH, and ran the statement without them.
fn is_plain(query: &ast::Query, version: ExecutionVersion) -> bool {
    let ends = query.order_by.is_none() && query.limit_clause.is_none();
    ends && (version < ExecutionVersion::V2 || (query.with.is_none() && query.fetch.is_none()))
}

/// As PostgreSQL: what is looked at must be readable as well.
fn insert_privileges(insert: &ast::Insert) -> Privileges {
    let mut privileges = Privileges::INSERT;
    if let Some(ast::OnInsert::OnConflict(on_conflict)) = &insert.on {
        if on_conflict.conflict_target.is_some() {
            privileges = privileges | Privileges::SELECT;
        }
        if matches!(on_conflict.action, ast::OnConflictAction::DoUpdate(_)) {
            privileges = privileges | Privileges::SELECT | Privileges::UPDATE;
        }
    }
    if insert.returning.is_some() { privileges | Privileges::SELECT } else { privileges }
}

/// The columns of the existing row that these look at.
///
/// # Errors
/// `0A000` where one queries the table: rows of the same statement go before, a query would see them, and PostgreSQL's does not.
fn used_of_existing<'a>(
    table: &TablePlan,
    expressions: impl Iterator<Item = &'a Expression>,
) -> Result<ColumnSet, SqlError> {
    let (mut uses, mut sees_itself) = (ColumnSet::EXISTS, false);
    for expression in expressions {
        expression.any(&mut |inner| {
            match &inner.kind {
                Kind::Column(ordinal) if usize::from(*ordinal) < table.columns.len() => {
                    uses |= ColumnSet::column(usize::from(*ordinal));
                }
                Kind::Subquery(subquery) => {
                    subquery.query.visit_tables(&mut |scanned| sees_itself |= scanned.table.id == table.id);
                }
                _ => {}
            }
            false
        });
    }
    if sees_itself {
        let what = "a query of the table itself in ON CONFLICT DO UPDATE";
        return Err(SqlError::unsupported(what).hint("Read the value into a variable first."));
    }
    Ok(uses)
}

fn bind_on_conflict(
    outer: QueryScope<'_>,
    (table, view): (&Arc<TablePlan>, Option<&ViewTarget>),
    known_as: &str,
    on_conflict: &ast::OnConflict,
) -> Result<OnConflict, SqlError> {
    let arbiters = arbiters_of(table, view, on_conflict, outer.tables.routines())?;
    let update = match &on_conflict.action {
        OnConflictAction::DoNothing => {
            return Ok(OnConflict { arbiters, action: ConflictAction::Nothing });
        }
        OnConflictAction::DoUpdate(update) => update,
    };
    if on_conflict.conflict_target.is_none() {
        let message = "ON CONFLICT DO UPDATE requires inference specification or constraint name";
        return Err(
            SqlError::new(SqlState::SYNTAX_ERROR, message).hint("For example, ON CONFLICT (column_name).")
        );
    }
    let width = table.columns.len();
    let own = || table.columns.iter().map(|column| (column.name.clone(), column.data_type)).collect();
    let columns: Vec<(String, DataType)> = view.map_or_else(own, ViewTarget::named_columns);
    let catalogued = view.map_or(table.relation.as_str(), |view| view.name.as_str());
    let called = object_name(catalogued);
    let relation = |name: &str, first: usize| NamedRelation {
        name: name.to_string(),
        table: (name != called).then(|| called.to_string()),
        schema: (name == called).then(|| schema_of(catalogued).to_string()),
        columns: columns.clone(),
        first,
        hidden: Vec::new(),
        keyed: false,
        may_be_missing: false,
        row_type: outer.tables.routines().types().named(catalogued).map(|known| known.data_type()),
        records: Vec::new(),
    };
    // The columns of a view are none of the rows, and stand behind them.
    let first = if view.is_some() { 2 * width } else { 0 };
    let relations = vec![relation(known_as, first), relation("excluded", first + columns.len())];
    let names = Relations { relations, merged: Vec::new(), joins: Vec::new() };
    outer.beside(|query, level| {
        let binder = query.binder(level, Source::Relations(&names));
        let list = match view {
            Some(view) => view.base_assignments(&update.assignments, Change::Insert)?,
            None => update.assignments.clone(),
        };
        let over_table = |value: Expression| match view {
            Some(view) => view.over_conflict(value),
            None => value,
        };
        let assignments = bind_assignments(table, &binder, &list)?.into_iter();
        let assignments = assignments.map(|(ordinal, value)| (ordinal, over_table(value)));
        let condition = match &update.selection {
            Some(selection) => {
                let condition = binder.in_clause(Some("WHERE")).bind_condition(selection, "WHERE")?;
                Some(over_table(condition))
            }
            None => None,
        };
        let (mut values, mut slots) = (Vec::new(), Vec::new());
        for (position, (ordinal, value)) in assignments.enumerate() {
            slots.push((ordinal, Expression::slot(position, value.data_type)));
            values.push(value);
        }
        let mut uses = used_of_existing(table, values.iter().chain(&condition))?;
        let (tables, scope) = (outer.tables, outer.variables);
        let row_check = check_of_written(tables, scope, table, PolicyCommand::Update, true)?;
        let existing_check = check_of_existing(tables, scope, table)?;
        if existing_check.is_some() {
            uses = ColumnSet::ALL;
        }
        let plan = UpdatePlan::new(table.clone(), Vec::new(), slots);
        let plan = Arc::new(plan.checking(row_check));
        let action = ConflictAction::Update { plan, values, condition, existing_check, uses };
        Ok(OnConflict { arbiters, action })
    })
}

fn refuse_insert_forms(insert: &ast::Insert) -> Result<(), SqlError> {
    let plain = insert.or.is_none()
        && !insert.ignore
        && insert.into
        && !insert.overwrite
        && insert.assignments.is_empty()
        && insert.partitioned.is_none()
        && insert.after_columns.is_empty()
        && !insert.has_table_keyword
        && insert.output.is_none()
        && !insert.replace_into
        && insert.insert_alias.is_none()
        && insert.settings.is_none()
        && insert.format_clause.is_none()
        && insert.multi_table_insert_type.is_none();
    if plain { Ok(()) } else { Err(SqlError::unsupported("this form of INSERT")) }
}

fn count_mismatch(more_expressions: bool) -> SqlError {
    let message = match more_expressions {
        true => "INSERT has more expressions than target columns",
        false => "INSERT has more target columns than expressions",
    };
    SqlError::new(SqlState::SYNTAX_ERROR, message)
}

fn insert_row(
    table: &TablePlan,
    binder: &Binder<'_>,
    targets: &[usize],
    explicit: bool,
    values: &[Expr],
) -> Result<Vec<Expression>, SqlError> {
    // Without a list of columns the first ones may be given alone.
    if values.len() > targets.len() || (explicit && values.len() < targets.len()) {
        let at = values.get(targets.len()).or(values.last());
        let error = count_mismatch(values.len() > targets.len());
        return Err(at.map_or(error.clone(), |at| binder.at(error, at.span())));
    }
    binder.in_clause(Some("VALUES"));
    let mut row = default_row(table);
    for (ordinal, value) in targets.iter().zip(values) {
        if is_default(value) {
            continue;
        }
        let column = &table.columns[*ordinal];
        refuse_given(column)?;
        let bound = binder.bind_towards(value, column.data_type)?;
        row[*ordinal] = binder
            .assign_to_column(bound, &column.name, column.data_type)
            .map_err(|error| binder.at(error, value.span()))?;
    }
    Ok(row)
}

/// Refuses a value for a column that takes none.
fn refuse_given(column: &crate::table::ColumnPlan) -> Result<(), SqlError> {
    if !column.is_generated && column.computed.is_none() {
        return Ok(());
    }
    let message = format!("cannot insert a non-DEFAULT value into column \"{}\"", column.name);
    let kind = match column.computed {
        Some(_) => "a generated column",
        None => "an identity column defined as GENERATED ALWAYS",
    };
    let detail = format!("Column \"{}\" is {kind}.", column.name);
    Err(SqlError::new(SqlState(*b"428C9"), message).detail(detail))
}

fn insert_select(
    outer: QueryScope<'_>,
    table: &TablePlan,
    targets: &[usize],
    query: &ast::Query,
) -> Result<InsertSource, SqlError> {
    let scope = outer.variables;
    let (bound, _) = outer.beside(|outer, _| bind_nested(outer, query, None))?;
    if bound.columns().len() > targets.len() {
        return Err(count_mismatch(true));
    }
    let types: Vec<DataType> =
        targets.iter().map(|ordinal| table.columns[*ordinal].data_type.family()).collect();
    let select = bound.close_literals(scope, &types)?.operators();
    let binder = Binder::new(scope, Source::Nothing);
    let mut row = default_row(table);
    for (position, (ordinal, output)) in targets.iter().zip(select.columns.iter()).enumerate() {
        let column = &table.columns[*ordinal];
        refuse_given(column)?;
        let value = Expression::column(position, output.data_type);
        row[*ordinal] = binder.assign_to_column(value, &column.name, column.data_type)?;
    }
    Ok(InsertSource::Select(Box::new(select), row))
}
