//! Binding of statements.

use super::change::{
    Arbiter, BoundDelete, BoundInsert, BoundUpdate, ConflictAction, InsertSource, OnConflict, Returning,
};
use super::from::bind_from;
use super::query::{bind_query, close_literals, finding, in_statement};
use super::{Access, BoundCall, BoundStatement, Interval};
use crate::command::{DeletePlan, UpdatePlan};
use crate::expression::{
    Binder, Expression, Kind, NamedArgument, NamedRelation, Relations, Source, output_name, shown_arguments,
};
use crate::predicate::Condition;
use crate::polymorphic::Callee;
use crate::routines::{Given, Routines, assign_arguments};
use crate::scope::{VariableScope, name_of};
use crate::sequence::draws_value;
use crate::table::{TablePlan, Tables};
use sqlparser::ast::{
    self, AssignmentTarget, ConflictTarget, Expr, FromTable, FunctionArguments, Ident, ObjectName,
    OnConflictAction, SelectItem, SetExpr, Spanned, Statement, TableFactor, TableObject, TableWithJoins,
    UpdateTableFromKind,
};
use std::sync::Arc;
use types::{ColumnSet, DataType, Index, OutputColumn, Privileges, SqlError, SqlState, Value};

/// Binds SELECT, INSERT, UPDATE, DELETE or CALL.
///
/// # Errors
/// Unknown names, wrong types; `0A000` for what is not supported, by name.
pub(crate) fn bind_statement(
    tables: &Tables,
    scope: &VariableScope,
    statement: &Statement,
) -> Result<BoundStatement, SqlError> {
    match statement {
        Statement::Query(query) => Ok(BoundStatement::Select(bind_query(tables, scope, query)?)),
        Statement::Insert(insert) => bind_insert(tables, scope, insert).map(BoundStatement::Insert),
        Statement::Update(update) => bind_update(tables, scope, update).map(BoundStatement::Update),
        Statement::Delete(delete) => bind_delete(tables, scope, delete).map(BoundStatement::Delete),
        Statement::Truncate(truncate) => bind_truncate(tables, scope, truncate).map(BoundStatement::Delete),
        Statement::Call(call) => bind_call(scope, call).map(BoundStatement::Call),
        other => Err(unsupported_statement(other)),
    }
}

/// The error that names a statement which is not supported.
fn unsupported_statement(statement: &Statement) -> SqlError {
    let text = statement.to_string();
    let words = text
        .split_whitespace()
        .take_while(|word| word.chars().all(|character| character.is_ascii_uppercase()) && word.len() > 1);
    let name = words.take(3).collect::<Vec<_>>().join(" ");
    let error = SqlError::unsupported(if name.is_empty() { "this statement" } else { name.as_str() });
    match statement {
        Statement::AlterTable(_) => error.hint("Drop the table and create it again."),
        Statement::Explain { .. } | Statement::ExplainTable { .. } => {
            error.hint("Use EXPLAIN without options: it runs nothing, and shows what a statement would read and register.")
        }
        Statement::Merge(_) => error.hint("Use UPDATE and INSERT in a procedure."),
        _ => error,
    }
}

/// The name of a table, in the schema `public` or in none.
pub(crate) fn table_name(name: &ObjectName) -> Result<String, SqlError> {
    let parts: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
    match parts.as_slice() {
        [name] => name_of(name),
        [schema, name] if name_of(schema)? == "public" => name_of(name),
        _ => Err(SqlError::unsupported(format_args!("the qualified name {name}"))
            .hint("All tables are in the schema public.")),
    }
}

pub(super) fn find_table<'t>(
    tables: &'t Tables,
    scope: &VariableScope,
    name: &ObjectName,
) -> Result<&'t Arc<TablePlan>, SqlError> {
    let called = table_name(name)?;
    if tables.view(&called).is_some() {
        let error = SqlError::unsupported(format_args!("a change of the view \"{called}\""));
        return Err(scope.located(error.hint("Change the tables that it reads."), name.span()));
    }
    tables.get(&called).map_err(|error| scope.located(error, name.span()))
}

/// The only table of a FROM clause, with the name under which its columns are known.
pub(super) fn single_table<'t>(
    tables: &'t Tables,
    scope: &VariableScope,
    from: &TableWithJoins,
) -> Result<(&'t Arc<TablePlan>, String), SqlError> {
    if !from.joins.is_empty() {
        return Err(scope.located(
            SqlError::unsupported("JOIN here").hint("Use it in a SELECT."),
            from.joins[0].relation.span(),
        ));
    }
    let TableFactor::Table { name, alias, .. } = &from.relation else {
        let what = match &from.relation {
            TableFactor::Derived { .. } => "a subquery in FROM here",
            TableFactor::NestedJoin { .. } => "JOIN here",
            _ => "this form of FROM",
        };
        return Err(scope.located(SqlError::unsupported(what), from.relation.span()));
    };
    plain_table(&from.relation).map_err(|error| scope.located(error, name.span()))?;
    let table = find_table(tables, scope, name)?;
    let known_as = match alias {
        None => table.name.clone(),
        Some(alias) if alias.columns.is_empty() => name_of(&alias.name)?,
        Some(alias) => {
            return Err(scope.located(SqlError::unsupported("a list of column aliases"), alias.name.span));
        }
    };
    Ok((table, known_as))
}

/// Refuses a table with anything around its name but an alias.
pub(super) fn plain_table(factor: &TableFactor) -> Result<(), SqlError> {
    let plain = match factor {
        TableFactor::Table { args, with_hints, version, with_ordinality, partitions, sample, .. } => {
            args.is_none()
                && with_hints.is_empty()
                && version.is_none()
                && !with_ordinality
                && partitions.is_empty()
                && sample.is_none()
        }
        _ => false,
    };
    if plain { Ok(()) } else { Err(SqlError::unsupported("this form of FROM")) }
}

/// The conditions of a WHERE, all of which must be true.
pub(super) fn bind_where(binder: &Binder<'_>, selection: Option<&Expr>) -> Result<Vec<Expression>, SqlError> {
    let Some(selection) = selection else { return Ok(Vec::new()) };
    let condition = binder.in_clause(Some("WHERE")).bind_condition(selection, "WHERE")?;
    Ok(condition.into_conjuncts())
}

pub(super) fn columns_of(expressions: &[Expression]) -> ColumnSet {
    expressions.iter().fold(ColumnSet::EMPTY, |set, expression| set | expression.columns())
}

fn bind_insert(
    tables: &Tables,
    scope: &VariableScope,
    insert: &ast::Insert,
) -> Result<BoundInsert, SqlError> {
    refuse_insert_forms(insert)?;
    let TableObject::TableName(name) = &insert.table else {
        return Err(SqlError::unsupported("INSERT into this target"));
    };
    let table = find_table(tables, scope, name)?;
    scope.note_use(&table.name, insert_privileges(insert));
    let known_as = match &insert.table_alias {
        Some(alias) => name_of(&alias.alias)?,
        None => table.name.clone(),
    };
    let targets = insert_targets(table, scope, &insert.columns)?;
    let source = match &insert.source {
        None => InsertSource::Rows(vec![default_row(table)]),
        Some(query) => match query.body.as_ref() {
            SetExpr::Values(values) if query.order_by.is_none() && query.limit_clause.is_none() => {
                let explicit = !insert.columns.is_empty();
                let rows = in_statement(tables, scope, |query, level| {
                    let binder = query.binder(level, Source::Nothing);
                    let row = |row: &ast::Parens<Vec<Expr>>| {
                        insert_row(table, &binder, &targets, explicit, &row.content)
                    };
                    values.rows.iter().map(row).collect::<Result<_, _>>()
                });
                InsertSource::Rows(rows?)
            }
            _ => insert_select(tables, table, scope, &targets, query)?,
        },
    };
    let on_conflict = match &insert.on {
        None => None,
        Some(ast::OnInsert::OnConflict(on_conflict)) => {
            Some(bind_on_conflict(tables, table, &known_as, scope, on_conflict)?)
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
    let returning = bind_returning(table, &known_as, scope, insert.returning.as_deref())?;
    Ok(BoundInsert { table: table.clone(), source, on_conflict, returning })
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

fn bind_on_conflict(
    tables: &Tables,
    table: &Arc<TablePlan>,
    known_as: &str,
    scope: &VariableScope,
    on_conflict: &ast::OnConflict,
) -> Result<OnConflict, SqlError> {
    let arbiters = match &on_conflict.conflict_target {
        Some(target) => vec![conflict_target(table, target)?],
        None => {
            let unique = table.indexes.iter().filter(|index| index.unique);
            let unique = unique.map(|index| Arbiter::Unique(index.clone()));
            (!table.key.is_empty()).then_some(Arbiter::Key).into_iter().chain(unique).collect()
        }
    };
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
    let columns: Vec<(String, DataType)> =
        table.columns.iter().map(|column| (column.name.clone(), column.data_type)).collect();
    let width = columns.len();
    let relation = |name: &str, first: usize| NamedRelation {
        name: name.to_string(),
        table: (name != table.name).then(|| table.name.clone()),
        columns: columns.clone(),
        first,
        hidden: Vec::new(),
    };
    let relations = vec![relation(known_as, 0), relation("excluded", width)];
    let names = Relations { relations, merged: Vec::new() };
    in_statement(tables, scope, |query, level| {
        let binder = query.binder(level, Source::Relations(&names));
        let assignments = bind_assignments(table, &binder, &update.assignments)?;
        let condition = match &update.selection {
            Some(selection) => Some(binder.in_clause(Some("WHERE")).bind_condition(selection, "WHERE")?),
            None => None,
        };
        let mut values = Vec::with_capacity(assignments.len());
        let mut slots = Vec::with_capacity(assignments.len());
        for (position, (ordinal, value)) in assignments.into_iter().enumerate() {
            slots.push((ordinal, Expression::slot(position, value.data_type)));
            values.push(value);
        }
        let mut uses = ColumnSet::EXISTS;
        for expression in values.iter().chain(&condition) {
            expression.any(&mut |inner| {
                if let Kind::Column(ordinal) = inner.kind
                    && usize::from(ordinal) < width
                {
                    uses |= ColumnSet::column(usize::from(ordinal));
                }
                false
            });
        }
        // Rows of the same statement go before: a query would see them, which PostgreSQL's does not.
        let mut sees_itself = false;
        for expression in values.iter().chain(&condition) {
            expression.any(&mut |inner| {
                if let Kind::Subquery(subquery) = &inner.kind {
                    subquery.query.visit_tables(&mut |scanned| sees_itself |= scanned.table.id == table.id);
                }
                false
            });
        }
        if sees_itself {
            let what = "a query of the table itself in ON CONFLICT DO UPDATE";
            return Err(SqlError::unsupported(what).hint("Read the value into a variable first."));
        }
        let plan = Arc::new(UpdatePlan::new(table.clone(), Vec::new(), slots));
        Ok(OnConflict { arbiters, action: ConflictAction::Update { plan, values, condition, uses } })
    })
}

/// In what ON CONFLICT says that rows conflict.
fn conflict_target(table: &TablePlan, target: &ConflictTarget) -> Result<Arbiter, SqlError> {
    let unique = |is: &dyn Fn(&Index) -> bool| {
        let index = table.indexes.iter().find(|index| index.unique && is(index));
        index.map(|index| Arbiter::Unique(index.clone()))
    };
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
            named.sort_unstable();
            named.dedup();
            let names = |columns: &[u16]| {
                let mut columns = columns.to_vec();
                columns.sort_unstable();
                named == columns
            };
            if !table.key.is_empty() && names(&table.key) {
                return Ok(Arbiter::Key);
            }
            unique(&|index| names(&index.columns)).ok_or_else(|| {
                let message =
                    "there is no unique or exclusion constraint matching the ON CONFLICT specification";
                SqlError::new(SqlState(*b"42P10"), message)
            })
        }
        ConflictTarget::OnConstraint(name) => {
            let name = table_name(name)?;
            if !table.key.is_empty() && name == table.key_name {
                return Ok(Arbiter::Key);
            }
            unique(&|index| index.constraint && index.name == name).ok_or_else(|| {
                let message = format!("constraint \"{name}\" for table \"{}\" does not exist", table.name);
                SqlError::new(SqlState(*b"42704"), message)
            })
        }
    }
}

fn bind_truncate(
    tables: &Tables,
    scope: &VariableScope,
    truncate: &ast::Truncate,
) -> Result<BoundDelete, SqlError> {
    let plain = truncate.partitions.is_none()
        && !truncate.if_exists
        && truncate.on_cluster.is_none()
        && !matches!(truncate.cascade, Some(ast::CascadeOption::Cascade));
    let [target] = truncate.table_names.as_slice() else {
        return Err(SqlError::unsupported("TRUNCATE of several tables").hint("Truncate one after the other."));
    };
    if !plain {
        return Err(SqlError::unsupported("this form of TRUNCATE").hint("Use TRUNCATE table, or DELETE."));
    }
    let table = find_table(tables, scope, &target.name)?;
    scope.note_use(&table.name, Privileges::TRUNCATE);
    let referenced = tables.foreign_keys().of_parent(table.id);
    if let Some(foreign_key) = referenced.iter().find(|foreign_key| foreign_key.child.id != table.id) {
        let (child, parent) = (&foreign_key.child.name, &table.name);
        let message = "cannot truncate a table referenced in a foreign key constraint";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
            .detail(format!("Table \"{child}\" references \"{parent}\"."))
            .hint(format!("Use DELETE, or truncate \"{child}\" and drop the constraint first.")));
    }
    Ok(BoundDelete {
        plan: Arc::new(DeletePlan::new(table.clone(), Vec::new())),
        access: Access::Range(Interval::default()),
        filter: None,
        filter_columns: ColumnSet::EMPTY,
        returning: None,
        truncates: true,
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

/// Ordinals of the columns that an INSERT names, or all.
fn insert_targets(
    table: &TablePlan,
    scope: &VariableScope,
    columns: &[ObjectName],
) -> Result<Vec<usize>, SqlError> {
    if columns.is_empty() {
        return Ok((0..table.columns.len()).collect());
    }
    let mut targets = Vec::with_capacity(columns.len());
    for column in columns {
        targets.push(target_column(table, scope, column, &targets)?);
    }
    Ok(targets)
}

/// Ordinal of an assigned column, which must not be among those `assigned` already.
fn target_column(
    table: &TablePlan,
    scope: &VariableScope,
    column: &ObjectName,
    assigned: &[usize],
) -> Result<usize, SqlError> {
    let [ast::ObjectNamePart::Identifier(ident)] = column.0.as_slice() else {
        return Err(scope.located(SqlError::unsupported(format_args!("the target {column}")), column.span()));
    };
    let name = name_of(ident)?;
    let Some(ordinal) = table.ordinal(&name) else {
        return Err(scope.located(no_column(table, &name), ident.span));
    };
    if assigned.contains(&ordinal) {
        let message = format!("column \"{name}\" specified more than once");
        return Err(scope.located(SqlError::new(SqlState::DUPLICATE_COLUMN, message), ident.span));
    }
    Ok(ordinal)
}

pub(crate) fn no_column(table: &TablePlan, name: &str) -> SqlError {
    let message = format!("column \"{name}\" of relation \"{}\" does not exist", table.name);
    SqlError::new(SqlState::UNDEFINED_COLUMN, message)
}

/// A row of nothing but defaults.
pub(crate) fn default_row(table: &TablePlan) -> Vec<Expression> {
    let default = |column: &crate::table::ColumnPlan| match &column.default {
        Some(default) => default.clone(),
        None => Expression::constant(Value::Null, column.data_type),
    };
    table.columns.iter().map(default).collect()
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
    if !column.is_generated {
        return Ok(());
    }
    let message = format!("cannot insert a non-DEFAULT value into column \"{}\"", column.name);
    let detail = format!("Column \"{}\" is an identity column defined as GENERATED ALWAYS.", column.name);
    Err(SqlError::new(SqlState(*b"428C9"), message).detail(detail))
}

fn is_default(value: &Expr) -> bool {
    matches!(value, Expr::Identifier(name) if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default"))
}

fn insert_select(
    tables: &Tables,
    table: &TablePlan,
    scope: &VariableScope,
    targets: &[usize],
    query: &ast::Query,
) -> Result<InsertSource, SqlError> {
    let mut select = bind_query(tables, scope, query)?;
    if select.columns.len() > targets.len() {
        return Err(count_mismatch(true));
    }
    let types: Vec<DataType> =
        targets.iter().map(|ordinal| table.columns[*ordinal].data_type.family()).collect();
    select = close_literals(scope, select, &types)?;
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

fn bind_returning(
    table: &TablePlan,
    known_as: &str,
    scope: &VariableScope,
    returning: Option<&[SelectItem]>,
) -> Result<Option<Returning>, SqlError> {
    let Some(items) = returning else { return Ok(None) };
    let binder = Binder::new(scope, Source::Table { table, name: known_as });
    binder.in_clause(Some("RETURNING"));
    let (projection, columns) = bind_items(&binder, Wildcards::Table(table, known_as), scope, items)?;
    let uses = columns_of(&projection);
    Ok(Some(Returning { projection, columns: columns.into(), uses }))
}

/// What `*` and `name.*` stand for.
#[derive(Clone, Copy)]
pub(super) enum Wildcards<'a> {
    /// The columns of a table under this name.
    Table(&'a TablePlan, &'a str),
    /// The columns of the relations of a query.
    Relations(&'a Relations),
}

impl Wildcards<'_> {
    /// The columns; `None` where there is no such relation. `of`: the relation, or all.
    fn columns(&self, of: Option<&str>) -> Option<Vec<(String, Expression)>> {
        match (self, of) {
            (Wildcards::Table(_, known_as), Some(of)) if of != *known_as => None,
            (Wildcards::Table(table, _), _) => {
                let columns = table.columns.iter().enumerate();
                let columns = columns.map(|(ordinal, column)| {
                    (column.name.clone(), Expression::column(ordinal, column.data_type))
                });
                Some(columns.collect())
            }
            (Wildcards::Relations(relations), None) => {
                (!relations.relations.is_empty()).then(|| relations.all())
            }
            (Wildcards::Relations(relations), Some(of)) => Some(relations.relation(of)?.all(false)),
        }
    }

    /// The names of the same columns, as far as they are unique.
    fn paths(&self, of: Option<&str>) -> Vec<Vec<String>> {
        match (self, of) {
            (Wildcards::Table(..), _) => Vec::new(),
            (Wildcards::Relations(relations), None) => relations.paths(),
            (Wildcards::Relations(relations), Some(of)) => {
                relations.relation(of).map_or_else(Vec::new, |relation| relation.paths(false))
            }
        }
    }
}

/// The output list of SELECT and RETURNING, `*` expanded.
pub(super) fn bind_items(
    binder: &Binder<'_>,
    wildcards: Wildcards<'_>,
    scope: &VariableScope,
    items: &[SelectItem],
) -> Result<(Vec<Expression>, Vec<OutputColumn>), SqlError> {
    let (mut projection, mut columns) = (Vec::new(), Vec::new());
    let expand = |found: Vec<(String, Expression)>,
                  projection: &mut Vec<Expression>,
                  columns: &mut Vec<OutputColumn>| {
        for (name, column) in found {
            check_list(projection.len())?;
            columns.push(OutputColumn { name, data_type: column.data_type });
            projection.push(column);
        }
        Ok::<(), SqlError>(())
    };
    for item in items {
        check_list(projection.len())?;
        let (expr, name) = match item {
            SelectItem::UnnamedExpr(expr) => (expr, output_name(expr)),
            SelectItem::ExprWithAlias { expr, alias } => (expr, name_of(alias)?),
            SelectItem::Wildcard(options) => {
                refuse_wildcard_options(options)?;
                let Some(found) = wildcards.columns(None) else {
                    let message = "SELECT * with no tables specified is not valid";
                    return Err(scope.located(SqlError::new(SqlState::SYNTAX_ERROR, message), item.span()));
                };
                scope.note_wildcard(options.wildcard_token.0.span, || wildcards.paths(None));
                expand(found, &mut projection, &mut columns)?;
                continue;
            }
            SelectItem::QualifiedWildcard(
                ast::SelectItemQualifiedWildcardKind::ObjectName(name),
                options,
            ) => {
                refuse_wildcard_options(options)?;
                let relation = table_name(name)?;
                let Some(found) = wildcards.columns(Some(&relation)) else {
                    let message = format!("missing FROM-clause entry for table \"{name}\"");
                    let error = SqlError::new(SqlState::UNDEFINED_TABLE, message);
                    return Err(scope.located(error, name.span()));
                };
                scope.note_wildcard(name.span(), || wildcards.paths(Some(&relation)));
                expand(found, &mut projection, &mut columns)?;
                continue;
            }
            other => return Err(SqlError::unsupported(format_args!("the output {other}"))),
        };
        let bound = binder.bind_known(expr)?;
        columns.push(OutputColumn { name, data_type: bound.data_type });
        projection.push(bound);
    }
    Ok((projection, columns))
}

/// Expressions of one list, as in PostgreSQL.
const LIST_MAX: usize = 1_664;

/// Refuses to add to a list that is as long as it may be.
pub(super) fn check_list(length: usize) -> Result<(), SqlError> {
    if length < LIST_MAX {
        return Ok(());
    }
    let message = format!("target lists can have at most {LIST_MAX} entries (LIST_MAX)");
    Err(SqlError::new(SqlState(*b"54011"), message))
}

fn refuse_wildcard_options(options: &ast::WildcardAdditionalOptions) -> Result<(), SqlError> {
    let plain = options.opt_ilike.is_none()
        && options.opt_exclude.is_none()
        && options.opt_except.is_none()
        && options.opt_replace.is_none()
        && options.opt_rename.is_none();
    if plain { Ok(()) } else { Err(SqlError::unsupported("an option of *")) }
}

fn bind_update(
    tables: &Tables,
    scope: &VariableScope,
    update: &ast::Update,
) -> Result<BoundUpdate, SqlError> {
    if update.output.is_some() || update.or.is_some() || !update.order_by.is_empty() || update.limit.is_some()
    {
        return Err(SqlError::unsupported("this form of UPDATE"));
    }
    let others = match &update.from {
        None => &[],
        Some(UpdateTableFromKind::AfterSet(others)) => others.as_slice(),
        Some(UpdateTableFromKind::BeforeSet(_)) => {
            return Err(SqlError::unsupported("this form of UPDATE"));
        }
    };
    let (table, known_as) = single_table(tables, scope, &update.table)?;
    let plain = |assignment: &ast::Assignment| matches!(assignment.value, Expr::Value(_));
    let reads =
        update.selection.is_some() || update.returning.is_some() || !update.assignments.iter().all(plain);
    scope.note_use(&table.name, Privileges::UPDATE);
    if reads {
        scope.note_use(&table.name, Privileges::SELECT);
    }
    let returning = bind_returning(table, &known_as, scope, update.returning.as_deref())?;
    let parts = update.assignments.iter().map(|assignment| &assignment.value).chain(&update.selection);
    if !others.is_empty() || parts.into_iter().any(|part| holds_query(scope, part)) {
        return in_statement(tables, scope, |query, level| {
            let from: Vec<TableWithJoins> = [&update.table].into_iter().chain(others).cloned().collect();
            let (item, names) = bind_from(query, level, &from)?;
            let binder = query.binder(level, Source::Relations(&names));
            let assignments = bind_assignments(table, &binder, &update.assignments)?;
            let conditions = bind_where(&binder, update.selection.as_ref())?;
            let mut projection = key_columns(table, "UPDATE")?;
            let found = |(position, (ordinal, value)): (usize, (u16, Expression))| {
                let slot = Expression::slot(table.key.len() + position, value.data_type);
                projection.push(value);
                (ordinal, slot)
            };
            let assignments = assignments.into_iter().enumerate().map(found).collect();
            let item = item.expect("there is a table at least");
            let access = Access::Found(Box::new(finding(item, conditions, projection)));
            let plan = Arc::new(UpdatePlan::new(table.clone(), Vec::new(), assignments));
            Ok(BoundUpdate { plan, access, filter: None, filter_columns: ColumnSet::EMPTY, returning })
        });
    }
    let binder = Binder::new(scope, Source::Table { table, name: &known_as });
    let assignments = bind_assignments(table, &binder, &update.assignments)?;
    let conditions = bind_where(&binder, update.selection.as_ref())?;
    let (access, rest) = Access::plan(table, conditions);
    let filter_columns = columns_of(&rest) | access.columns();
    let (asked_by_command, filter) = match access {
        Access::Key(_) => (rest, None),
        Access::Range(_) | Access::Index(_) | Access::Found(_) => (Vec::new(), Condition::all(rest)),
    };
    let plan = Arc::new(UpdatePlan::new(table.clone(), asked_by_command, assignments));
    Ok(BoundUpdate { plan, access, filter, filter_columns, returning })
}

/// The columns of the primary key, as a query that finds rows gives them.
fn key_columns(table: &TablePlan, statement: &str) -> Result<Vec<Expression>, SqlError> {
    if table.key.is_empty() {
        let what = format_args!("{statement} by a query on a table without a primary key");
        return Err(SqlError::unsupported(what).hint("Give the table a primary key."));
    }
    let column = |ordinal: &u16| {
        let ordinal = usize::from(*ordinal);
        Expression::column(ordinal, table.columns[ordinal].data_type)
    };
    Ok(table.key.iter().map(column).collect())
}

/// True where a query or a call of a function of the ledger stands inside.
fn holds_query(scope: &VariableScope, expr: &Expr) -> bool {
    let is_routine = |function: &ast::Function| {
        let name = function.name.0.last().and_then(|part| part.as_ident());
        let name = name.and_then(|name| name_of(name).ok());
        name.is_some_and(|name| scope.routines().get(&name).is_some() || draws_value(&name))
    };
    let flow = ast::visit_expressions(expr, |inner| match inner {
        Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => std::ops::ControlFlow::Break(()),
        Expr::Function(function) if is_routine(function) => std::ops::ControlFlow::Break(()),
        _ => std::ops::ControlFlow::Continue(()),
    });
    flow.is_break()
}

/// Ordinals and values of SET.
fn bind_assignments(
    table: &TablePlan,
    binder: &Binder<'_>,
    list: &[ast::Assignment],
) -> Result<Vec<(u16, Expression)>, SqlError> {
    let mut assigned: Vec<usize> = Vec::new();
    let mut assignments = Vec::new();
    for assignment in list {
        let AssignmentTarget::ColumnName(column) = &assignment.target else {
            return Err(SqlError::unsupported("an assignment to several columns at once"));
        };
        let ordinal = target_column(table, binder.scope(), column, &assigned).map_err(assigned_twice)?;
        assigned.push(ordinal);
        let target = &table.columns[ordinal];
        if table.key.contains(&(ordinal as u16)) {
            let what = format_args!("UPDATE of \"{}\", a column of the primary key,", target.name);
            let error = SqlError::unsupported(what).hint("Use DELETE and INSERT.");
            return Err(binder.at(error, column.span()));
        }
        let value = if is_default(&assignment.value) {
            let default = default_row(table).swap_remove(ordinal);
            if default.runs_anything() {
                let what = format_args!("SET {} = DEFAULT, whose default calls a function,", target.name);
                return Err(SqlError::unsupported(what).hint("Call the function instead."));
            }
            default
        } else {
            if target.is_generated {
                let message = format!("column \"{}\" can only be updated to DEFAULT", target.name);
                return Err(SqlError::new(SqlState(*b"428C9"), message));
            }
            let bound = binder.in_clause(Some("UPDATE")).bind_towards(&assignment.value, target.data_type)?;
            binder
                .assign_to_column(bound, &target.name, target.data_type)
                .map_err(|error| binder.at(error, assignment.value.span()))?
        };
        assignments.push((ordinal as u16, value));
    }
    Ok(assignments)
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

fn bind_delete(
    tables: &Tables,
    scope: &VariableScope,
    delete: &ast::Delete,
) -> Result<BoundDelete, SqlError> {
    if !delete.tables.is_empty()
        || delete.output.is_some()
        || !delete.order_by.is_empty()
        || delete.limit.is_some()
    {
        return Err(SqlError::unsupported("this form of DELETE"));
    }
    let FromTable::WithFromKeyword(from) = &delete.from else {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "syntax error: DELETE without FROM"));
    };
    let [from] = from.as_slice() else {
        return Err(SqlError::unsupported("DELETE from several tables"));
    };
    let (table, known_as) = single_table(tables, scope, from)?;
    scope.note_use(&table.name, Privileges::DELETE);
    if delete.selection.is_some() || delete.returning.is_some() {
        scope.note_use(&table.name, Privileges::SELECT);
    }
    let returning = bind_returning(table, &known_as, scope, delete.returning.as_deref())?;
    let others = delete.using.as_deref().unwrap_or_default();
    if !others.is_empty() || delete.selection.iter().any(|part| holds_query(scope, part)) {
        return in_statement(tables, scope, |query, level| {
            let from: Vec<TableWithJoins> = [from].into_iter().chain(others).cloned().collect();
            let (item, names) = bind_from(query, level, &from)?;
            let binder = query.binder(level, Source::Relations(&names));
            let conditions = bind_where(&binder, delete.selection.as_ref())?;
            let item = item.expect("there is a table at least");
            let access = Access::Found(Box::new(finding(item, conditions, key_columns(table, "DELETE")?)));
            let plan = Arc::new(DeletePlan::new(table.clone(), Vec::new()));
            Ok(BoundDelete {
                plan,
                access,
                filter: None,
                filter_columns: ColumnSet::EMPTY,
                returning,
                truncates: false,
            })
        });
    }
    let binder = Binder::new(scope, Source::Table { table, name: &known_as });
    let conditions = bind_where(&binder, delete.selection.as_ref())?;
    let (access, rest) = Access::plan(table, conditions);
    let filter_columns = columns_of(&rest) | access.columns();
    let (asked_by_command, filter) = match access {
        Access::Key(_) => (rest, None),
        Access::Range(_) | Access::Index(_) | Access::Found(_) => (Vec::new(), Condition::all(rest)),
    };
    let plan = Arc::new(DeletePlan::new(table.clone(), asked_by_command));
    Ok(BoundDelete { plan, access, filter, filter_columns, returning, truncates: false })
}

fn bind_call(scope: &VariableScope, call: &ast::Function) -> Result<BoundCall, SqlError> {
    let procedure = table_name(&call.name)?;
    let binder = Binder::new(scope, Source::Nothing);
    binder.in_clause(Some("CALL arguments"));
    let arguments = match &call.args {
        FunctionArguments::None => Vec::new(),
        FunctionArguments::List(list) if list.clauses.is_empty() && list.duplicate_treatment.is_none() => {
            binder.bind_arguments(&list.args)?
        }
        _ => return Err(SqlError::unsupported("this form of CALL")),
    };
    BoundCall::new(scope, procedure, arguments).map_err(|error| scope.located(error, call.name.span()))
}

impl BoundCall {
    /// A call with these arguments in the order of the procedure's parameters, what is left out by its DEFAULT. A
    /// procedure that is not there yet is looked up again when the call runs.
    ///
    /// # Errors
    /// `42883` where the procedure takes other arguments, `42809` for a function.
    pub fn new(
        scope: &VariableScope,
        procedure: String,
        arguments: Vec<NamedArgument>,
    ) -> Result<BoundCall, SqlError> {
        scope.note_call(&Callee::named(&procedure));
        let names: Vec<Option<String>> = arguments.iter().map(|argument| argument.name.clone()).collect();
        let known = scope.routines().get(&procedure);
        if known.is_some_and(|known| known.definition.function.is_some()) {
            let message = format!("{procedure}({}) is not a procedure", shown_arguments(&arguments));
            let error = SqlError::new(SqlState(*b"42809"), message);
            return Err(error.hint("To call a function, use SELECT."));
        }
        let given = known.and_then(|known| assign_arguments(known.definition.parameters.iter(), &names));
        let (Some(known), Some(given)) = (known, given) else {
            if names.iter().any(Option::is_some) {
                return Err(crate::execution::no_procedure(&procedure, &shown_arguments(&arguments)));
            }
            let arguments = arguments.into_iter().map(|argument| argument.value).collect();
            return Ok(BoundCall { procedure, arguments });
        };
        let mut values: Vec<Option<Expression>> =
            arguments.into_iter().map(|argument| Some(argument.value)).collect();
        let mut ordered = Vec::with_capacity(given.len());
        for (parameter, given) in known.definition.parameters.iter().zip(given) {
            ordered.push(match given {
                Given::Argument(at) => values[at].take().expect("each argument is assigned once"),
                Given::Default => Routines::default_in(scope, parameter)?,
            });
        }
        Ok(BoundCall { procedure, arguments: ordered })
    }

    /// Gives parameters of a script the types of the procedure's parameters, where nothing else has told them.
    pub fn infer(&mut self, scope: &VariableScope, parameters: &[types::Parameter]) {
        for (argument, parameter) in self.arguments.iter_mut().zip(parameters) {
            if argument.data_type == DataType::Unknown
                && let Some(slot) = argument.as_slot()
            {
                scope.infer(slot, parameter.data_type.family());
                argument.data_type = parameter.data_type.family();
            }
        }
    }
}
