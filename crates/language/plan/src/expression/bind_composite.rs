//! Binding of rows: `ROW(…)`, whole rows of relations and records, fields, casts to composite types.

use crate::expression::bind::Source;
use crate::expression::build::variable_expression;
use crate::expression::row::{RowForm, RowOperation};
use crate::expression::written::all_fields_of;
use crate::expression::{Binder, Expression, Kind};
use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, Spanned};
use std::sync::Arc;
use syntax::names::name_of;
use types::{CompositeTypes, DataType, OutputColumn, SqlError, SqlState, Value};

impl Expression {
    /// An operation on rows.
    pub fn row(operation: RowOperation, operands: Vec<Expression>, data_type: DataType) -> Expression {
        Expression { kind: Kind::Row(Box::new(operation), operands), data_type }
    }

    /// A field of a row; where the row is written out, what stands there.
    pub fn field(row: Expression, position: usize, data_type: DataType) -> Expression {
        match row.kind {
            Kind::Row(operation, mut operands)
                if matches!(operation.as_ref(), RowOperation::Build(_)) && position < operands.len() =>
            {
                operands.swap_remove(position)
            }
            kind => {
                let row = Expression { kind, data_type: row.data_type };
                Expression::row(RowOperation::Field(position as u16), vec![row], data_type.unrounded())
            }
        }
    }

    /// A row with another value in a field that the path leads to: positions, counts of fields, and the types of the rows.
    pub fn with_field(row: Expression, path: &[FieldStep], value: Expression) -> Expression {
        let Some((step, rest)) = path.split_first() else { return value };
        let inner = Expression::field(row.clone(), step.position, step.data_type);
        let value = Expression::with_field(inner, rest, value);
        let data_type = row.data_type;
        let operation = RowOperation::WithField(step.position as u16, step.count as u16);
        Expression::row(operation, vec![row, value], data_type)
    }

    /// A row that is written out with so many fields: what is missing is NULL.
    #[must_use]
    pub fn with_fields(mut self, count: usize) -> Expression {
        if let Kind::Row(operation, operands) = &mut self.kind
            && let RowOperation::Build(form) = operation.as_mut()
        {
            form.names = form.names.take().filter(|names| names.len() == count);
            operands.resize(count, Expression::constant(Value::Null, DataType::Unknown));
        }
        self
    }

    /// The operands and the form of a row that is written out or the whole row of something.
    pub fn as_row(&self) -> Option<(&RowForm, &[Expression])> {
        match &self.kind {
            Kind::Row(operation, operands) => match operation.as_ref() {
                RowOperation::Build(form) => Some((form, operands)),
                _ => None,
            },
            _ => None,
        }
    }
}

/// One field on the way to another one.
#[derive(Clone, Copy, Debug)]
pub struct FieldStep {
    /// Where it stands.
    pub position: usize,
    /// Fields beside it, itself counted.
    pub count: usize,
    /// Its type.
    pub data_type: DataType,
}

/// What has the field that an assignment names.
#[derive(Clone, Copy)]
pub enum FieldOwner<'a> {
    /// A column of a table.
    Column(&'a str),
    /// A variable of PL/pgSQL.
    Variable(&'a str),
}

/// The way to a field in a value of a composite type, by the names of the fields.
///
/// # Errors
/// `42703` where there is none of a name, `42804` where there are no fields.
pub fn field_path(
    types: &CompositeTypes,
    owner: FieldOwner<'_>,
    of: DataType,
    names: &[&str],
) -> Result<Vec<FieldStep>, SqlError> {
    let mut path: Vec<FieldStep> = Vec::with_capacity(names.len());
    let mut data_type = of;
    for name in names {
        let shown = types.name_of(data_type);
        let known = types.of(data_type);
        let Some((known, (position, of_field))) = known.and_then(|known| Some((known, known.field(name)?)))
        else {
            let (state, message) = match (owner, known) {
                (FieldOwner::Variable(variable), _) => {
                    (SqlState::UNDEFINED_COLUMN, format!("record \"{variable}\" has no field \"{name}\""))
                }
                (FieldOwner::Column(column), None) => (
                    SqlState::DATATYPE_MISMATCH,
                    format!(
                        "cannot assign to field \"{name}\" of column \"{column}\" because its type {shown} is not a composite type"
                    ),
                ),
                (FieldOwner::Column(column), Some(_)) => (
                    SqlState::UNDEFINED_COLUMN,
                    format!(
                        "cannot assign to field \"{name}\" of column \"{column}\" because there is no such column in data type {shown}"
                    ),
                ),
            };
            return Err(SqlError::new(state, message));
        };
        path.push(FieldStep { position, count: known.fields.len(), data_type: of_field });
        data_type = of_field;
    }
    Ok(path)
}

impl Binder<'_> {
    /// The composite types.
    pub fn types(&self) -> &Arc<CompositeTypes> {
        self.scope.routines().types()
    }

    /// `ROW(a, b)`, `(a, b)`
    pub(super) fn bind_row_of(&self, parts: &[Expr]) -> Result<Expression, SqlError> {
        let parts: Vec<FunctionArg> =
            parts.iter().map(|part| FunctionArg::Unnamed(FunctionArgExpr::from(part.clone()))).collect();
        self.bind_row_arguments(&parts)
    }

    /// The fields of `ROW(…)`, those of every `name.*` among them.
    pub(super) fn bind_row_arguments(&self, parts: &[FunctionArg]) -> Result<Expression, SqlError> {
        let mut operands = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(part)) => match all_fields_of(part) {
                    Some(row) => {
                        let fields = self.all_fields(self.bind(&row)?)?;
                        operands.extend(fields.into_iter().map(|(_, field)| field));
                    }
                    None => operands.push(self.bind(part)?),
                },
                FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) => {
                    operands.extend(self.fields_of_name(name)?.into_iter().map(|(_, field)| field));
                }
                _ => return Err(SqlError::unsupported("this form of ROW(…)")),
            }
        }
        let form = RowForm { is_constructor: true, ..RowForm::default() };
        Ok(Expression::row(RowOperation::Build(form), operands, DataType::Record))
    }

    /// What `name.*` stands for.
    ///
    /// # Errors
    /// `42P01` where nothing of this name has fields.
    pub fn fields_of_name(&self, name: &ObjectName) -> Result<Vec<(String, Expression)>, SqlError> {
        let parts: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
        let row = match parts.as_slice() {
            [one] => {
                let one = name_of(one)?;
                match self.whole_row(&one)? {
                    Some(row) => Some(row),
                    None => self
                        .visible(&[&one])?
                        .or_else(|| self.scope.resolve(&[&one]).map(variable_expression)),
                }
            }
            [relation, column] => {
                let (relation, column) = (name_of(relation)?, name_of(column)?);
                match self.visible(&[&relation, &column])? {
                    Some(row) => Some(row),
                    None => self.variable_field(&[&relation, &column])?,
                }
            }
            _ => None,
        };
        let row = row.ok_or_else(|| {
            let message = format!("missing FROM-clause entry for table \"{name}\"");
            self.at(SqlError::new(SqlState::UNDEFINED_TABLE, message), name.span())
        })?;
        self.all_fields(row)
    }

    /// The fields of a row, with their names.
    ///
    /// # Errors
    /// `42809` where it has none.
    pub fn all_fields(&self, row: Expression) -> Result<Vec<(String, Expression)>, SqlError> {
        let Some(fields) = self.fields_of(&row) else {
            let error = match row.data_type {
                DataType::Record => {
                    SqlError::new(SqlState::SYNTAX_ERROR, "record type has not been registered")
                }
                other => {
                    let message = format!("type {} is not composite", self.types().name_of(other));
                    SqlError::new(SqlState(*b"42809"), message)
                }
            };
            return Err(error);
        };
        let field = |(position, field): (usize, OutputColumn)| {
            Ok((field.name, Expression::field(self.again(&row)?, position, field.data_type)))
        };
        fields.into_iter().enumerate().map(field).collect()
    }

    /// Names and types of the fields of a row, as far as they can be told.
    pub fn fields_of(&self, row: &Expression) -> Option<Vec<OutputColumn>> {
        if let Some(known) = self.types().of(row.data_type) {
            return Some(known.fields.clone());
        }
        let numbered =
            |position: usize, data_type| OutputColumn { name: format!("f{}", position + 1), data_type };
        match &row.kind {
            Kind::Row(..) => {
                let (form, operands) = row.as_row()?;
                let field = |(position, operand): (usize, &Expression)| match &form.names {
                    Some(names) => {
                        OutputColumn { name: names[position].clone(), data_type: operand.data_type }
                    }
                    None => numbered(position, operand.data_type),
                };
                Some(operands.iter().enumerate().map(field).collect())
            }
            Kind::Constant(Value::Composite(row)) => {
                let types = row.values().iter().map(Value::data_type);
                Some(types.enumerate().map(|(position, found)| numbered(position, found)).collect())
            }
            Kind::Column(ordinal) => match self.source {
                Source::Relations(relations) => relations.fields_of(*ordinal).map(<[OutputColumn]>::to_vec),
                _ => None,
            },
            Kind::Call(call) => call.columns.as_ref().map(|columns| columns.to_vec()),
            _ => None,
        }
    }

    /// `(row).name`
    ///
    /// # Errors
    /// `42703` where it has no such field, `42809` where it has none.
    pub(super) fn bind_field(&self, row: Expression, name: &str) -> Result<Expression, SqlError> {
        let shown = self.types().name_of(row.data_type.family());
        if !row.data_type.is_composite() {
            let message =
                format!("column notation .{name} applied to type {shown}, which is not a composite type");
            return Err(SqlError::new(SqlState(*b"42809"), message));
        }
        let fields = self.fields_of(&row).unwrap_or_default();
        match fields.iter().position(|field| field.name == name) {
            Some(position) => Ok(Expression::field(row, position, fields[position].data_type)),
            None => {
                let message = match row.data_type {
                    DataType::Record => format!("could not identify column \"{name}\" in record data type"),
                    _ => format!("column \"{name}\" not found in data type {shown}"),
                };
                Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message))
            }
        }
    }

    /// The whole row of a relation or record of this name.
    pub(super) fn whole_row(&self, name: &str) -> Result<Option<Expression>, SqlError> {
        if let Some(row) = self.relation_row(name)? {
            return Ok(Some(row));
        }
        let Some(fields) = self.scope.record_fields(name) else { return Ok(None) };
        // A hidden one may say whether there is a row.
        let fields = fields.into_iter().filter(|(field, _)| !field.starts_with('\0'));
        let (names, operands): (Vec<String>, Vec<Expression>) =
            fields.map(|(field, variable)| (field, variable_expression(variable))).unzip();
        if operands.is_empty() {
            let message = format!("record \"{name}\" is not assigned yet");
            let error = SqlError::new(SqlState(*b"55000"), message);
            return Err(error.detail("The tuple structure of a not-yet-assigned record is indeterminate."));
        }
        let form = RowForm { names: Some(names.into()), is_constructor: false, may_be_missing: true };
        Ok(Some(Expression::row(RowOperation::Build(form), operands, DataType::Record)))
    }

    /// The whole row of a relation, here or in an enclosing query.
    fn relation_row(&self, name: &str) -> Result<Option<Expression>, SqlError> {
        let own = match self.source {
            Source::Table { table, name: known_as } if known_as == name => {
                let columns = table.columns.iter().enumerate();
                let columns = columns.map(|(ordinal, column)| {
                    (column.name.clone(), Expression::column(ordinal, column.data_type))
                });
                let row_type = self.types().named(&table.relation).map(|known| known.data_type());
                Some((columns.collect(), row_type, false))
            }
            Source::Relations(relations) => match relations.relation(name) {
                Some(relation) => Some((relation.all(false), relation.row_type, relation.may_be_missing)),
                None => relations.columns_of_join(name).map(|columns| (columns, None, false)),
            },
            _ => None,
        };
        if let Some((columns, row_type, may_be_missing)) = own {
            columns.iter().for_each(|(_, column)| self.note_read(column));
            // What a function gives that are no rows is known by its name.
            if let (Some(value), [(_, column)]) = (row_type, columns.as_slice())
                && !value.is_composite()
            {
                return Ok(Some(column.clone()));
            }
            let (names, operands): (Vec<String>, Vec<Expression>) = columns.into_iter().unzip();
            let form = RowForm { names: Some(names.into()), is_constructor: false, may_be_missing };
            return Ok(Some(Expression::row(
                RowOperation::Build(form),
                operands,
                row_type.unwrap_or(DataType::Record),
            )));
        }
        let Some((level, parent)) = self.query.and_then(|(_, level)| Some((level, level.parent?))) else {
            return Ok(None);
        };
        let Some(found) = parent.relation_row(name)? else { return Ok(None) };
        let Kind::Row(operation, operands) = found.kind else { return Ok(Some(level.argument(found))) };
        let operands = operands.into_iter().map(|operand| level.argument(operand)).collect();
        Ok(Some(Expression { kind: Kind::Row(operation, operands), data_type: found.data_type }))
    }

    /// The field of a variable of a composite type, by the names of the variable and of its fields.
    pub(super) fn variable_field(&self, parts: &[&str]) -> Result<Option<Expression>, SqlError> {
        for length in (1..parts.len()).rev() {
            let Some(variable) = self.scope.resolve(&parts[..length]) else { continue };
            if !variable.data_type.is_composite() {
                continue;
            }
            let mut value = variable_expression(variable);
            for name in &parts[length..] {
                value = self.bind_field(value, name)?;
            }
            return Ok(Some(value));
        }
        Ok(None)
    }

    /// A cast to a composite type or an array of one.
    ///
    /// # Errors
    /// `42846` where the fields do not fit; what their casts are refused with.
    pub fn convert_row(
        &self,
        operand: Expression,
        target: DataType,
        explicit: bool,
    ) -> Result<Expression, SqlError> {
        if operand.data_type == target || operand.data_type == target.family() {
            return Ok(operand);
        }
        if target == DataType::Record {
            // Every row is one.
            return Ok(operand);
        }
        if let (DataType::Record, Some(known), Some((_, fields))) =
            (operand.data_type, self.types().of(target), operand.as_row())
        {
            if fields.len() != known.fields.len() {
                let what = if fields.len() < known.fields.len() { "few" } else { "many" };
                let message = format!("cannot cast type record to {}", known.name);
                return Err(SqlError::new(SqlState(*b"42846"), message)
                    .detail(format!("Input has too {what} columns.")));
            }
            let field = |(position, (field, to)): (usize, (&Expression, &OutputColumn))| {
                let from = field.data_type;
                let cast = match explicit {
                    true => self.explicit_cast(field.clone(), to.data_type),
                    false => self.assign_to_column(field.clone(), &to.name, to.data_type),
                };
                cast.map_err(|error| match error.state.0 {
                    state if &state == b"42846" || error.state == SqlState::DATATYPE_MISMATCH => {
                        let (from, to) = (self.types().name_of(from), self.types().name_of(to.data_type));
                        let detail = format!("Cannot cast type {from} to {to} in column {}.", position + 1);
                        let message = format!("cannot cast type record to {}", known.name);
                        SqlError::new(SqlState(*b"42846"), message).detail(detail)
                    }
                    _ => error,
                })
            };
            let fields: Vec<Expression> =
                fields.iter().zip(&known.fields).enumerate().map(field).collect::<Result<_, _>>()?;
            let (form, _) = operand.as_row().expect("it was one a moment ago");
            let form = RowForm { is_constructor: false, ..form.clone() };
            return Ok(Expression::row(RowOperation::Build(form), fields, target));
        }
        let operation = RowOperation::Convert(explicit, self.types().clone());
        Ok(Expression::row(operation, vec![operand], target))
    }

    /// A row whose literals of unknown type are texts.
    ///
    /// # Errors
    /// None.
    pub fn known_fields(&self, row: Expression) -> Result<Expression, SqlError> {
        let Expression { kind: Kind::Row(operation, operands), data_type } = row else { return Ok(row) };
        let operands = operands.into_iter().map(|operand| self.known(operand));
        let operands = operands.collect::<Result<Vec<_>, _>>()?;
        Ok(Expression { kind: Kind::Row(operation, operands), data_type })
    }
}

/// The parts of `ROW(…)`, where nothing in it stands for several.
pub(super) fn constructor_parts(expr: &Expr) -> Option<Vec<Expr>> {
    match expr {
        Expr::Nested(inner) => constructor_parts(inner),
        Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("row") => {
            let FunctionArguments::List(list) = &function.args else { return None };
            let part = |part: &FunctionArg| match part {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(part)) if all_fields_of(part).is_none() => {
                    Some(part.clone())
                }
                _ => None,
            };
            list.args.iter().map(part).collect()
        }
        _ => None,
    }
}
