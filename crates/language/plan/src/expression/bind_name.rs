//! Binding of names: columns, variables and the fields of records.

use crate::expression::bind::Source;
use crate::expression::build::variable_expression;
use crate::expression::{Binder, Expression, Kind};
use sqlparser::ast::Ident;
use sqlparser::tokenizer::Span;
use syntax::names::name_of;
use syntax::plpgsql::ast::NameConflict;
use types::{Privileges, SqlError, SqlState, catalog_name};

impl Binder<'_> {
    pub(super) fn bind_name(&self, ident: &Ident) -> Result<Expression, SqlError> {
        let name = name_of(ident)?;
        let column = self.visible(&[&name]).map_err(|error| self.at(error, ident.span))?;
        let variable = self.scope.resolve(&[&name]);
        match (column, variable) {
            (Some(column), Some(variable)) => match self.scope.conflict() {
                NameConflict::Error => Err(self.ambiguous(&name, ident.span)),
                NameConflict::Column => Ok(column),
                NameConflict::Variable => Ok(variable_expression(variable)),
            },
            (Some(column), None) => Ok(column),
            (None, Some(variable)) => Ok(variable_expression(variable)),
            (None, None) => match self.whole_row(&name)?.or_else(|| self.session_word(ident)) {
                Some(found) => Ok(found),
                None => Err(self.at(self.no_column(&name), ident.span)),
            },
        }
    }

    pub(super) fn column(&self, name: &str) -> Result<Option<Expression>, SqlError> {
        match self.source {
            Source::Table { table, .. } => Ok(table
                .ordinal(name)
                .map(|ordinal| Expression::column(ordinal, table.columns[ordinal].data_type))),
            Source::Relations(relations) => relations.column(name),
            Source::Nothing | Source::Default => Ok(None),
        }
    }

    /// Notes that the statement looks at the columns of tables and views that this is of.
    pub(crate) fn note_read(&self, expression: &Expression) {
        expression.any(&mut |inner| {
            let Kind::Column(ordinal) = inner.kind else { return false };
            let column = match self.source {
                Source::Table { table, .. } => {
                    let column = table.columns.get(usize::from(ordinal));
                    column.map(|column| (table.relation.as_str(), column.name.as_str()))
                }
                Source::Relations(relations) => relations.catalogued(ordinal),
                Source::Nothing | Source::Default => None,
            };
            if let Some((relation, column)) = column {
                self.scope.note_column(relation, column, Privileges::SELECT);
            }
            false
        });
    }

    /// The column that a name stands for, here or in an enclosing query.
    ///
    /// # Errors
    /// `42702` where several have it; `42703` where the relation named does not.
    pub(super) fn visible(&self, parts: &[&str]) -> Result<Option<Expression>, SqlError> {
        let own = match (self.source, parts) {
            (_, [name]) => self.column(name)?,
            (Source::Relations(relations), [relation, name]) => {
                relations.qualified(relation, name).transpose()?
            }
            (Source::Table { name: table, .. }, [relation, name]) if table == *relation => {
                self.column(name)?
            }
            _ => None,
        };
        let enclosing = self.query.and_then(|(_, level)| Some((level, level.parent?)));
        own.iter().for_each(|own| self.note_read(own));
        match (own, enclosing) {
            (Some(own), _) => Ok(Some(own)),
            (None, Some((level, parent))) => Ok(parent.visible(parts)?.map(|found| level.argument(found))),
            (None, None) => Ok(None),
        }
    }

    /// Whether this relation of the query, or of one around it, stands in this schema.
    pub fn is_in_schema(&self, schema: &str, relation: &str) -> bool {
        let own = match self.source {
            Source::Table { table, name } => {
                name == relation && table.relation == catalog_name(schema, relation)
            }
            Source::Relations(relations) => relations.is_in_schema(schema, relation),
            Source::Nothing | Source::Default => false,
        };
        let enclosing = self.query.and_then(|(_, level)| level.parent);
        own || enclosing.is_some_and(|parent| parent.is_in_schema(schema, relation))
    }

    pub(super) fn ambiguous(&self, name: &str, span: Span) -> SqlError {
        let error =
            SqlError::new(SqlState::AMBIGUOUS_COLUMN, format!("column reference \"{name}\" is ambiguous"))
                .detail("It could refer to either a PL/pgSQL variable or a table column.");
        self.at(error, span)
    }

    pub(super) fn no_column(&self, name: &str) -> SqlError {
        if let Source::Default = self.source {
            return SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot use column reference in DEFAULT expression",
            );
        }
        SqlError::new(SqlState::UNDEFINED_COLUMN, format!("column \"{name}\" does not exist"))
    }

    /// What a qualified name stands for that is that of a column.
    fn column_or_variable(
        &self,
        column: Expression,
        parts: &[&str],
        span: Span,
    ) -> Result<Expression, SqlError> {
        match (self.scope.resolve(parts), self.scope.conflict()) {
            (Some(_), NameConflict::Error) => Err(self.ambiguous(&parts.join("."), span)),
            (Some(variable), NameConflict::Variable) => Ok(variable_expression(variable)),
            (Some(_), NameConflict::Column) | (None, _) => Ok(column),
        }
    }

    pub(super) fn bind_qualified(&self, parts: &[Ident]) -> Result<Expression, SqlError> {
        let names = parts.iter().map(name_of).collect::<Result<Vec<_>, _>>()?;
        let span = parts.first().map_or(Span::empty(), |part| part.span);
        let parts: Vec<&str> = match names.as_slice() {
            [schema, rest @ ..] if rest.len() == 2 && self.is_in_schema(schema, &rest[0]) => rest,
            all => all,
        }
        .iter()
        .map(String::as_str)
        .collect();
        if let ([_, _, _], Some(variable)) = (parts.as_slice(), self.scope.resolve(&parts)) {
            return Ok(variable_expression(variable));
        }
        let field = match self.scope.resolve(&parts) {
            None => self.variable_field(&parts).map_err(|error| self.at(error, span))?,
            Some(_) => None,
        };
        let [qualifier, name] = parts.as_slice() else {
            if let Some(field) = field {
                return Ok(field);
            }
            let [_, relation, _] = parts.as_slice() else {
                let what = format_args!("the qualified name {}", names.join("."));
                return Err(self.at(SqlError::unsupported(what), span));
            };
            let visible =
                matches!(self.source, Source::Relations(known) if known.relation(relation).is_some());
            let what = if visible { "invalid reference to" } else { "missing" };
            let message = format!("{what} FROM-clause entry for table \"{relation}\"");
            return Err(self.at(SqlError::new(SqlState::UNDEFINED_TABLE, message), span));
        };
        if matches!(self.source, Source::Table { name: table, .. } if table == *qualifier) {
            if let Some(column) = self.column(name)? {
                self.note_read(&column);
                return self.column_or_variable(column, &parts, span);
            }
            if self.scope.resolve(&parts).is_none() && field.is_none() {
                let message = format!("column {qualifier}.{name} does not exist");
                return Err(self.at(SqlError::new(SqlState::UNDEFINED_COLUMN, message), span));
            }
        }
        if !matches!(self.source, Source::Table { .. })
            && let Some(column) = self.visible(&parts).map_err(|error| self.at(error, span))?
        {
            return self.column_or_variable(column, &parts, span);
        }
        match self.scope.resolve(&parts) {
            Some(variable) => Ok(variable_expression(variable)),
            None if field.is_some() => Ok(field.expect("there is one")),
            None if self.scope.is_record(qualifier) => {
                let message = format!("record \"{qualifier}\" has no field \"{name}\"");
                Err(self.at(SqlError::new(SqlState::UNDEFINED_COLUMN, message), span))
            }
            None => {
                let hidden = match self.source {
                    Source::Table { table, .. } => table.name == *qualifier,
                    Source::Relations(relations) => {
                        let mut relations = relations.relations.iter();
                        relations.any(|relation| relation.table.as_deref() == Some(*qualifier))
                    }
                    Source::Nothing | Source::Default => false,
                };
                let error = match hidden {
                    true => SqlError::new(
                        SqlState::UNDEFINED_TABLE,
                        format!("invalid reference to FROM-clause entry for table \"{qualifier}\""),
                    )
                    .hint("Use the alias that the statement gives the table."),
                    false => SqlError::new(
                        SqlState::UNDEFINED_TABLE,
                        format!("missing FROM-clause entry for table \"{qualifier}\""),
                    ),
                };
                Err(self.at(error, span))
            }
        }
    }
}
