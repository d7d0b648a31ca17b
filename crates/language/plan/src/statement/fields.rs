//! Fields of columns of composite types as targets of INSERT and UPDATE, and `name.*` among the values of VALUES.

use crate::expression::{Binder, Expression, FieldOwner, FieldStep, field_path};
use crate::scope::VariableScope;
use crate::table::TablePlan;
use crate::tables::Tables;
use sqlparser::ast::{self, Expr, Ident, ObjectName, SetExpr, Spanned};
use std::borrow::Cow;
use syntax::names::name_of;
use types::SqlError;

/// The column and the way to the field of it that `column.field` names; `None` where the first part is no column.
///
/// # Errors
/// A field that is not there; a column that is of no composite type.
pub(super) fn field_target(
    table: &TablePlan,
    binder: &Binder<'_>,
    target: &ObjectName,
) -> Result<Option<(usize, Vec<FieldStep>)>, SqlError> {
    let parts: Vec<&Ident> = target.0.iter().filter_map(|part| part.as_ident()).collect();
    let names = parts.iter().map(|part| name_of(part)).collect::<Result<Vec<String>, SqlError>>()?;
    let Some((column, fields)) = names.split_first() else { return Ok(None) };
    let Some(ordinal) = table.ordinal(column) else { return Ok(None) };
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    let owner = FieldOwner::Column(column);
    let path = field_path(binder.types(), owner, table.columns[ordinal].data_type, &fields);
    let path = path.map_err(|error| binder.at(error, target.span()))?;
    Ok(Some((ordinal, path)))
}

/// The value of a field, of its type.
///
/// # Errors
/// As [`Binder::assign_to_column`].
pub(super) fn assigned_field(
    binder: &Binder<'_>,
    path: &[FieldStep],
    value: &Expr,
) -> Result<Expression, SqlError> {
    let data_type = path[path.len() - 1].data_type;
    let bound = binder.in_clause(Some("UPDATE")).bind_towards(value, data_type)?;
    binder.assign_to_column(bound, "field", data_type).map_err(|error| binder.at(error, value.span()))
}

/// An INSERT of fields, as one of whole columns.
pub(super) struct InsertFields {
    /// Ordinals of the columns.
    pub targets: Vec<usize>,
    /// Without its list of columns.
    pub insert: ast::Insert,
}

/// What a row of VALUES gives to a column of the table that is named.
enum GivenColumn {
    /// The column: the position of its value.
    Whole(usize),
    /// Its fields: the positions of their values.
    Fields(Vec<Option<usize>>),
}

/// Puts the values of a row together, one per column.
fn gather(row: &mut Vec<Expr>, count: usize, columns: &[(ObjectName, GivenColumn)]) -> Result<(), SqlError> {
    let null = || Expr::Value(ast::Value::Null.with_empty_span());
    let given: Vec<Expr> = std::mem::take(row);
    if given.len() != count {
        let message = match given.len() > count {
            true => "INSERT has more expressions than target columns",
            false => "INSERT has more target columns than expressions",
        };
        return Err(SqlError::new(types::SqlState::SYNTAX_ERROR, message));
    }
    let value = |(_, place): &(ObjectName, GivenColumn)| match place {
        GivenColumn::Whole(position) => given[*position].clone(),
        GivenColumn::Fields(fields) => {
            Expr::Tuple(fields.iter().map(|field| field.map_or_else(null, |at| given[at].clone())).collect())
        }
    };
    *row = columns.iter().map(value).collect();
    Ok(())
}

/// `INSERT INTO t (a, c.f, c.g) VALUES (1, 2, 3)` is `INSERT INTO t (a, c) VALUES (1, ROW(2, 3))` where `c` has these
/// fields; those that are not named are NULL. `None` where no field is named.
///
/// # Errors
/// `0A000` for anything but VALUES; a field that is not there.
pub(super) fn insert_fields(
    tables: &Tables,
    table: &TablePlan,
    scope: &VariableScope,
    insert: &ast::Insert,
) -> Result<Option<InsertFields>, SqlError> {
    if insert.columns.iter().all(|column| column.0.len() < 2) {
        return Ok(None);
    }
    let types = tables.routines().types();
    let unsupported = |what: &str| {
        let error = SqlError::unsupported(what).hint("Give the column a whole row: ROW(…).");
        scope.located(error, insert.columns[0].span())
    };
    let mut columns: Vec<(ObjectName, GivenColumn)> = Vec::new();
    for (position, column) in insert.columns.iter().enumerate() {
        let parts: Vec<&Ident> = column.0.iter().filter_map(|part| part.as_ident()).collect();
        let (name, field) = match parts.as_slice() {
            [name] => {
                columns.push((ObjectName::from(vec![(*name).clone()]), GivenColumn::Whole(position)));
                continue;
            }
            [name, field] => (*name, *field),
            _ => return Err(unsupported("INSERT of a field of a field")),
        };
        let known = table.ordinal(&name_of(name)?).and_then(|at| types.of(table.columns[at].data_type));
        let Some(known) = known else {
            // Says what is wrong with the column.
            let mut whole: Vec<ObjectName> = columns.iter().map(|(column, _)| column.clone()).collect();
            whole.push(ObjectName::from(vec![name.clone()]));
            let ordinal = crate::statement::column_targets::insert_targets(table, scope, &whole)?.pop();
            let data_type = ordinal.map_or(types::DataType::Unknown, |at| table.columns[at].data_type);
            let (name, field) = (name_of(name)?, name_of(field)?);
            field_path(types, FieldOwner::Column(&name), data_type, &[&field])
                .map_err(|error| scope.located(error, column.span()))?;
            return Err(unsupported("INSERT of a field of such a column"));
        };
        let owner = name_of(name)?;
        let path = field_path(types, FieldOwner::Column(&owner), known.data_type(), &[&name_of(field)?]);
        let at = path.map_err(|error| scope.located(error, column.span()))?[0].position;
        let same = |(other, given): &(ObjectName, GivenColumn)| {
            matches!(given, GivenColumn::Fields(_))
                && other.0.first().and_then(|part| part.as_ident()) == Some(name)
        };
        let index = match columns.iter().position(same) {
            Some(index) => index,
            None => {
                let nothing = GivenColumn::Fields(vec![None; known.fields.len()]);
                columns.push((ObjectName::from(vec![name.clone()]), nothing));
                columns.len() - 1
            }
        };
        if let GivenColumn::Fields(fields) = &mut columns[index].1
            && fields[at].replace(position).is_some()
        {
            return Err(unsupported("a field that is given twice"));
        }
    }
    let mut insert = insert.clone();
    let Some(source) = insert.source.as_mut() else { return Err(unsupported("DEFAULT VALUES for fields")) };
    let SetExpr::Values(values) = source.body.as_mut() else {
        return Err(unsupported("INSERT of a query into fields of a column"));
    };
    let count = insert.columns.len();
    values.rows.iter_mut().try_for_each(|row| gather(&mut row.content, count, &columns))?;
    insert.columns = columns.into_iter().map(|(column, _)| column).collect();
    let targets = crate::statement::column_targets::insert_targets(table, scope, &insert.columns)?;
    Ok(Some(InsertFields { targets, insert }))
}

/// The values of a row of VALUES, with the fields in the place of every `name.*`.
///
/// # Errors
/// A name that has no fields.
pub(super) fn written_out<'v>(binder: &Binder<'_>, values: &'v [Expr]) -> Result<Cow<'v, [Expr]>, SqlError> {
    if !values.iter().any(|value| matches!(value, Expr::QualifiedWildcard(..))) {
        return Ok(Cow::Borrowed(values));
    }
    let mut written = Vec::with_capacity(values.len());
    for value in values {
        let Expr::QualifiedWildcard(name, _) = value else {
            written.push(value.clone());
            continue;
        };
        let row: Vec<Ident> = name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
        for (field, _) in binder.fields_of_name(name)? {
            let mut parts = row.clone();
            parts.push(Ident::with_quote('"', field));
            written.push(Expr::CompoundIdentifier(parts));
        }
    }
    Ok(Cow::Owned(written))
}
