//! Binding of INSERT and ON CONFLICT.

use crate::command::UpdatePlan;
use crate::expression::{Binder, Catalogued, Expression, Kind, NamedRelation, Relations, Source};
use crate::row_check::RowCheck;
use crate::row_security::{check_of_existing, check_of_written};
use crate::scope::VariableScope;
use crate::statement::arbiters::arbiters_of;
use crate::statement::assignments::bind_assignments;
use crate::statement::change::{Arbiter, BoundInsert, ConflictAction, InsertSource, OnConflict};
use crate::statement::column_targets::{default_row, insert_targets, is_default, note_columns};
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

pub(super) fn bind_insert(outer: QueryScope<'_>, written: &ast::Insert) -> Result<BoundInsert, SqlError> {
    let insert = written;
    let (tables, scope) = (outer.tables, outer.variables);
    refuse_insert_forms(insert)?;
    let TableObject::TableName(name) = &insert.table else {
        return Err(SqlError::unsupported("INSERT into this target"));
    };
    let view = ViewTarget::find(tables, scope, name, Change::Insert)?;
    let (table, mut insert) = match &view {
        Some(view) => {
            view.note(tables, scope, noted_privileges(insert, scope));
            let columns = view.insert_columns(insert)?;
            (&view.table, Cow::Owned(ast::Insert { columns, ..insert.clone() }))
        }
        None => {
            let table = find_table(tables, scope, name)?;
            scope.note_use(&table.relation, noted_privileges(insert, scope));
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
                    let mut length = None;
                    let row = |row: &ast::Parens<Vec<Expr>>| {
                        let values = written_out(&binder, &row.content)?;
                        let first = *length.get_or_insert(values.len());
                        check_length(&binder, first, &values, tables.version())?;
                        insert_row(table, &binder, &targets, explicit, &values)
                    };
                    values.rows.iter().map(row).collect::<Result<_, _>>()
                });
                InsertSource::Rows(rows?)
            }
            _ => insert_select(outer, table, &targets, query)?,
        },
    };
    note_inserted(scope, (table, view.as_ref()), written, (&targets, &source, insert));
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
        Some(view) => view.returning(scope, alias_of(insert).as_ref(), insert.returning.as_deref())?,
        None => bind_returning(table, &known_as, scope, insert.returning.as_deref())?,
    };
    let is_read = insert_privileges(insert).contains(Privileges::SELECT);
    let row_check = row_check_of(outer, (table, view.as_ref()), (PolicyCommand::Insert, is_read))?;
    Ok(BoundInsert { table: table.clone(), source, on_conflict, row_check, returning })
}

/// The alias of the target.
fn alias_of(insert: &ast::Insert) -> Option<TableAlias> {
    let alias = insert.table_alias.as_ref()?;
    Some(TableAlias { explicit: true, name: alias.alias.clone(), columns: Vec::new(), at: None })
}

/// What the rows have to keep: what policies of the table ask, partitions, and views with CHECK OPTION.
fn row_check_of(
    outer: QueryScope<'_>,
    (table, view): (&TablePlan, Option<&ViewTarget>),
    (command, is_read): (PolicyCommand, bool),
) -> Result<Option<Arc<RowCheck>>, SqlError> {
    let of_policies = check_of_written(outer.tables, outer.variables, table, command, is_read)?;
    match view {
        Some(view) => view.row_check(of_policies),
        None => Ok(of_policies),
    }
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

/// What is noted where the statement names its target. From version 10 on that it reads is noted of the columns that it looks at.
fn noted_privileges(insert: &ast::Insert, scope: &VariableScope) -> Privileges {
    let privileges = insert_privileges(insert);
    match scope.version() >= ExecutionVersion::V10 {
        true => privileges.without(Privileges::SELECT),
        false => privileges,
    }
}

/// Notes the columns that are given values.
fn note_inserted(
    scope: &VariableScope,
    (table, view): (&TablePlan, Option<&ViewTarget>),
    written: &ast::Insert,
    (targets, source, insert): (&[usize], &InsertSource, &ast::Insert),
) {
    let given = match (source, insert.source.as_deref().map(|query| query.body.as_ref())) {
        (InsertSource::Select(select, _), _) => select.columns.len(),
        (InsertSource::Rows(_), Some(SetExpr::Values(values))) => {
            // What `name.*` stands for is not counted.
            let is_whole = |value: &Expr| matches!(value, Expr::QualifiedWildcard(..));
            values.rows.first().map_or(0, |row| match row.content.iter().any(is_whole) {
                true => targets.len(),
                false => row.content.len(),
            })
        }
        (InsertSource::Rows(_), _) => 0,
    };
    let Some(view) = view else {
        let ordinals = targets.iter().take(given).map(|ordinal| *ordinal as u16);
        return note_columns(scope, table, ordinals, Privileges::INSERT);
    };
    let named = written.columns.iter().filter_map(|column| {
        let ident = column.0.first().and_then(|part| part.as_ident())?;
        name_of(ident).ok()
    });
    let names: Vec<String> = match written.columns.is_empty() {
        true => view.columns.iter().map(|column| column.name.clone()).collect(),
        false => named.collect(),
    };
    names.iter().take(given).for_each(|name| scope.note_column(&view.name, name, Privileges::INSERT));
}

/// Notes the columns by which ON CONFLICT finds the row that exists.
fn note_arbiters(
    scope: &VariableScope,
    (table, view): (&TablePlan, Option<&ViewTarget>),
    on_conflict: &ast::OnConflict,
    arbiters: &[Arbiter],
) {
    match (&on_conflict.conflict_target, view) {
        (None, _) => {}
        (Some(ast::ConflictTarget::Columns(columns)), Some(view)) => {
            let names = columns.iter().filter_map(|column| name_of(column).ok());
            names.for_each(|name| scope.note_column(&view.name, &name, Privileges::SELECT));
        }
        (Some(_), _) => {
            let columns = arbiters.iter().flat_map(|arbiter| arbiter.looks_at(table));
            note_columns(scope, table, columns, Privileges::SELECT);
        }
    }
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

/// The names of the row that exists and of the one that was to be inserted, which stand side by side.
fn names_of_both(
    outer: QueryScope<'_>,
    (table, view): (&TablePlan, Option<&ViewTarget>),
    known_as: &str,
) -> Relations {
    let width = table.columns.len();
    let own = || table.columns.iter().map(|column| (column.name.clone(), column.data_type)).collect();
    let columns: Vec<(String, DataType)> = view.map_or_else(own, ViewTarget::named_columns);
    let catalogued = view.map_or(table.relation.as_str(), |view| view.name.as_str());
    let called = object_name(catalogued);
    let relation = |name: &str, first: usize| NamedRelation {
        name: name.to_string(),
        table: (name != called).then(|| called.to_string()),
        schema: (name == called).then(|| schema_of(catalogued).to_string()),
        catalogued: Some(Catalogued {
            relation: catalogued.to_string(),
            columns: columns.iter().map(|(name, _)| name.clone()).collect(),
            primary_key: Vec::new(),
        }),
        columns: columns.clone(),
        first,
        hidden: Vec::new(),
        keyed: false,
        may_be_missing: false,
        row_type: outer.tables.routines().types().named(catalogued).map(|known| known.data_type()),
        records: Vec::new(),
        origins: Vec::new(),
    };
    // The columns of a view are none of the rows, and stand behind them.
    let first = if view.is_some() { 2 * width } else { 0 };
    let relations = vec![relation(known_as, first), relation("excluded", first + columns.len())];
    Relations { relations, merged: Vec::new(), joins: Vec::new() }
}

fn bind_on_conflict(
    outer: QueryScope<'_>,
    (table, view): (&Arc<TablePlan>, Option<&ViewTarget>),
    known_as: &str,
    on_conflict: &ast::OnConflict,
) -> Result<OnConflict, SqlError> {
    let arbiters = arbiters_of(table, view, on_conflict, outer.tables.routines())?;
    note_arbiters(outer.variables, (table, view), on_conflict, &arbiters);
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
    let names = names_of_both(outer, (table, view), known_as);
    outer.beside(|query, level| {
        let binder = query.binder(level, Source::Relations(&names));
        let list = match view {
            Some(view) => {
                view.note_assigned(outer.variables, &update.assignments);
                view.base_assignments(&update.assignments, Change::Insert)?
            }
            None => update.assignments.clone(),
        };
        let over_table = |value: Expression| match view {
            Some(view) => view.over_conflict(value),
            None => value,
        };
        let assignments = bind_assignments(table, &binder, &list)?;
        if view.is_none() {
            let ordinals = assignments.iter().map(|(ordinal, _)| *ordinal);
            note_columns(outer.variables, table, ordinals, Privileges::UPDATE);
        }
        let assignments = assignments.into_iter().map(|(ordinal, value)| (ordinal, over_table(value)));
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
        let row_check = row_check_of(outer, (table, view), (PolicyCommand::Update, true))?;
        let existing_check = check_of_existing(tables, scope, table)?;
        if existing_check.is_some() || view.is_some_and(ViewTarget::asks_of_rows) {
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

/// What is said of `VALUES (1, 2), (3)`.
pub(super) const UNEQUAL_ROWS: &str = "VALUES lists must all be the same length";

/// Refuses a row of another length than the first one; before version 15 its last columns had their defaults.
fn check_length(
    binder: &Binder<'_>,
    first: usize,
    values: &[Expr],
    version: ExecutionVersion,
) -> Result<(), SqlError> {
    if values.len() == first || version < ExecutionVersion::V15 {
        return Ok(());
    }
    let error = SqlError::new(SqlState::SYNTAX_ERROR, UNEQUAL_ROWS);
    Err(values.first().map_or(error.clone(), |value| binder.at(error, value.span())))
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
