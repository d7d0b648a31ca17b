//! Binding of output lists: SELECT and RETURNING, with `*` expanded.

use crate::expression::written::all_fields_of;
use crate::expression::{Binder, Expression, Kind, Relations, Source, columns_of, is_of_type, output_name};
use crate::scope::VariableScope;
use crate::statement::change::Returning;
use crate::table::TablePlan;
use sqlparser::ast::{self, SelectItem, Spanned};
use syntax::names::name_of;
use types::{ColumnOrigin, ColumnSet, OutputColumn, SqlError, SqlState};

pub(super) fn bind_returning(
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
    let origin = |output: &Expression| {
        let Kind::Column(ordinal) = output.kind else { return None };
        let column = usize::from(ordinal);
        let is_shown = is_of_type(output, table.columns.get(column)?.data_type);
        is_shown.then(|| ColumnOrigin { relation: table.relation.clone(), column })
    };
    let origins = projection.iter().map(origin).collect();
    Ok(Some(Returning { projection, columns: columns.into(), origins, uses, beside: 0 }))
}

/// RETURNING of a change of `table` that has found its rows by a query with other relations: behind the row's columns and its
/// key, which has no name, stand theirs. What it looks at of these is appended to what the query gives. `over_table`: says of these
/// columns what is said of a view.
pub(super) fn bind_returning_beside(
    table: &TablePlan,
    binder: &Binder<'_>,
    names: &Relations,
    scope: &VariableScope,
    returning: Option<&[SelectItem]>,
    over_table: impl FnOnce(Vec<Expression>) -> Vec<Expression>,
    found: &mut Vec<Expression>,
) -> Result<Option<Returning>, SqlError> {
    let Some(items) = returning else { return Ok(None) };
    binder.in_clause(Some("RETURNING"));
    let (projection, columns) = bind_items(binder, Wildcards::Relations(names), scope, items)?;
    let origins = names.origins(&projection);
    let mut projection = over_table(projection);
    let mut row = RowBeside { width: table.columns.len(), uses: ColumnSet::EMPTY, beside: Vec::new() };
    projection.iter_mut().for_each(|expression| row.put_in(expression));
    let RowBeside { uses, beside, .. } = row;
    let returning = Returning { projection, columns: columns.into(), origins, uses, beside: beside.len() };
    found.extend(beside);
    Ok(Some(returning))
}

/// The row that RETURNING is said over.
struct RowBeside {
    /// Columns of the table.
    width: usize,
    /// Those that are looked at.
    uses: ColumnSet,
    /// What is looked at of other relations: columns of the row in which all stand side by side.
    beside: Vec<Expression>,
}

impl RowBeside {
    /// Says of this row what is said of the row in which all relations stand side by side.
    fn put_in(&mut self, expression: &mut Expression) {
        let Kind::Column(ordinal) = expression.kind else {
            expression.operands_mut().into_iter().for_each(|operand| self.put_in(operand));
            return;
        };
        let column = usize::from(ordinal);
        if column < self.width {
            self.uses |= ColumnSet::column(column);
            return;
        }
        let position = self.beside.iter().position(|known| known.kind == expression.kind);
        let position = position.unwrap_or_else(|| {
            self.beside.push(expression.clone());
            self.beside.len() - 1
        });
        *expression = Expression::column(self.width + position, expression.data_type);
    }
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
            (Wildcards::Relations(relations), Some(of)) => match relations.relation(of) {
                Some(relation) => Some(relation.all(false)),
                None => relations.columns_of_join(of),
            },
        }
    }

    /// The names of the same columns, as far as they are unique.
    fn paths(&self, of: Option<&str>) -> Vec<Vec<String>> {
        match (self, of) {
            (Wildcards::Table(..), _) => Vec::new(),
            (Wildcards::Relations(relations), None) => relations.paths(),
            (Wildcards::Relations(relations), Some(of)) => {
                if let Some(columns) = relations.columns_of_join(of) {
                    return columns.into_iter().map(|(column, _)| vec![of.to_string(), column]).collect();
                }
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
    let read = |found: &[(String, Expression)]| found.iter().for_each(|(_, column)| binder.note_read(column));
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
                read(&found);
                expand(found, &mut projection, &mut columns)?;
                continue;
            }
            SelectItem::QualifiedWildcard(
                ast::SelectItemQualifiedWildcardKind::ObjectName(name),
                options,
            ) => {
                refuse_wildcard_options(options)?;
                let relation = match name.0.as_slice() {
                    [ast::ObjectNamePart::Identifier(relation)] => name_of(relation)?,
                    [ast::ObjectNamePart::Identifier(schema), ast::ObjectNamePart::Identifier(relation)]
                        if binder.is_in_schema(&name_of(schema)?, &name_of(relation)?) =>
                    {
                        name_of(relation)?
                    }
                    _ => String::new(),
                };
                let Some(found) = wildcards.columns(Some(&relation)) else {
                    // The fields of a variable, or of a column of a composite type.
                    expand(binder.fields_of_name(name)?, &mut projection, &mut columns)?;
                    continue;
                };
                scope.note_wildcard(name.span(), || wildcards.paths(Some(&relation)));
                read(&found);
                expand(found, &mut projection, &mut columns)?;
                continue;
            }
            other => return Err(SqlError::unsupported(format_args!("the output {other}"))),
        };
        if let Some(row) = all_fields_of(expr) {
            let row = binder.bind_known(&row)?;
            expand(binder.all_fields(row)?, &mut projection, &mut columns)?;
            continue;
        }
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
