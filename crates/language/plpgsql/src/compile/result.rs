//! Compiling what a procedure or function gives to its caller: RETURN, RETURN NEXT, RETURN QUERY.

use crate::compile::compiler::Compiler;
use crate::compile::result_shape::Returns;
use crate::late::Wanted;
use crate::position::or_at;
use crate::program::{Instruction, ResultForm, ReturnQuery, RowsSource};
use plan::expression;
use plan::statement::{BoundStatement, close_types};
use sqlparser::ast as sql;
use syntax::plpgsql::ast::{Expression, Name, RowSource, Target};
use types::{DataType, OutputColumn, SqlError, SqlState, Value};
use values::broken;

impl Compiler<'_> {
    /// The end of the body.
    pub(crate) fn end(&mut self) {
        let end = match self.result.form() {
            ResultForm::Value => Instruction::NoReturn,
            _ => Instruction::Return,
        };
        self.emit(end);
    }

    /// RETURN
    pub(crate) fn returns(&mut self, value: Option<&Expression>) -> Result<(), SqlError> {
        let Some(value) = value else {
            if self.result.form() == ResultForm::Value {
                let message = "missing expression at or near \";\"";
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            }
            self.emit(Instruction::Return);
            return Ok(());
        };
        if let Some(error) = self.result.refuses_value() {
            return Err(error.at(value.position));
        }
        if self.result.returns == Returns::TriggeredRow {
            self.returns_triggered_row(value)?;
            self.may_have_returned = true;
            return Ok(());
        }
        let values = self.row_values(value, "RETURN")?;
        self.emit(Instruction::ReturnValue { values });
        Ok(())
    }

    /// RETURN NEXT
    pub(crate) fn returns_next(&mut self, value: Option<&Expression>) -> Result<(), SqlError> {
        if !self.result.is_set {
            let message = "cannot use RETURN NEXT in a non-SETOF function";
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        }
        let by_outputs = self.result.returns == Returns::Outputs;
        let values = match value {
            None if by_outputs => {
                let outputs = self.outputs.iter().zip(&self.result.types);
                outputs.map(|(slot, kind)| expression::Expression::slot(usize::from(*slot), *kind)).collect()
            }
            None => {
                let message = "missing expression at or near \";\"";
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            }
            Some(value) if by_outputs => {
                let message = "RETURN NEXT cannot have a parameter in function with OUT parameters";
                return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).at(value.position));
            }
            Some(value) => self.row_values(value, "RETURN NEXT")?,
        };
        self.emit(Instruction::ReturnNext { values });
        Ok(())
    }

    /// RETURN QUERY
    pub(crate) fn returns_query(&mut self, source: &RowSource) -> Result<(), SqlError> {
        if !self.result.is_set {
            let message = "cannot use RETURN QUERY in a non-SETOF function";
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        }
        let row = self.result.row();
        let types: Option<Box<[DataType]>> = match row {
            None => Some(self.result.types.as_slice().into()),
            Some(_) => self.result.fields.as_deref().map(Into::into),
        };
        let source = match source {
            RowSource::Static(statement) if !self.late_records(statement.as_ref()).is_empty() => {
                self.late_rows(statement, None)?.ok_or_else(|| broken("a query of no record"))?
            }
            RowSource::Static(statement) => {
                let (source, columns) = self.rows_of(statement)?;
                if let Some(types) = &types
                    && let Err(error) = check_structure(&columns, types)
                {
                    // PostgreSQL finds out when it runs.
                    self.emit(Instruction::Fail(Box::new(error)));
                    return Ok(());
                }
                source
            }
            RowSource::Dynamic(dynamic) => RowsSource::Dynamic(self.dynamic(dynamic, None)?),
        };
        self.emit(Instruction::ReturnQuery(Box::new(ReturnQuery {
            source,
            types,
            row,
            domains: self.result.domains.as_slice().into(),
        })));
        Ok(())
    }

    /// The value of RETURN or RETURN NEXT.
    fn row_values(
        &mut self,
        value: &Expression,
        statement: &str,
    ) -> Result<Box<[expression::Expression]>, SqlError> {
        let what = format!("the value of {statement}");
        let data_type = self.result.types[0];
        let position = value.position;
        let value = match data_type.is_composite() {
            false => self.expression_of(value, data_type, &what)?,
            true => {
                let late = match self.late_row(value, data_type, statement == "RETURN NEXT")? {
                    Some(row) => Some(row),
                    None => self.late_value(value, Wanted::Type(data_type), &what)?,
                };
                if let Some(value) = late {
                    return Ok(Box::new([self.held_against(value, self.result.domain())]));
                }
                let bound = self.expression(value)?;
                match self.returned(bound, data_type, &what) {
                    Ok(value) => value,
                    Err(error) if error.state == SqlState::DATATYPE_MISMATCH => {
                        // PostgreSQL finds out when it runs.
                        self.emit(Instruction::Fail(Box::new(or_at(error, position))));
                        expression::Expression::constant(Value::Null, data_type)
                    }
                    Err(error) => return Err(or_at(error, position)),
                }
            }
        };
        Ok(Box::new([self.held_against(value, self.result.domain())]))
    }

    /// `record := record`, or `(a, b, …)`, or NULL.
    pub(crate) fn record_assignment(&mut self, target: &Target, value: &Expression) -> Result<(), SqlError> {
        let is_null =
            |value: &sql::Expr| matches!(value, sql::Expr::Value(value) if value.value == sql::Value::Null);
        let parts: Vec<sql::Expr> = match &value.expression {
            sql::Expr::Tuple(parts) => parts.clone(),
            sql::Expr::Identifier(name) if self.names_record(name, value.position)? => {
                self.fields_of(name, value.position)?
            }
            null if is_null(null) => Vec::new(),
            _ => return self.row_assignment(target, value),
        };
        let named = match &value.expression {
            sql::Expr::Identifier(name) => {
                let text = syntax::names::name_of(name)?;
                self.variables.fields(&Target { parts: vec![Name { text, position: value.position }] })?
            }
            _ => self.variables.fields(target)?,
        };
        let named = match named {
            Some(named) => named,
            // The row tells them.
            None if !parts.is_empty() => return self.row_assignment(target, value),
            None => {
                let error =
                    SqlError::unsupported("assigning NULL to a record whose columns nothing has told");
                return Err(error.hint("Declare it as table%ROWTYPE.").at(value.position));
            }
        };
        let (stores, flag) = self.variables.assign_record(target, &named)?;
        // All values are computed before the first one is assigned.
        let mut values = Vec::with_capacity(stores.len());
        for (position, store) in stores.iter().enumerate() {
            let data_type =
                self.variables.at_slot(usize::from(store.slot)).map_or(DataType::Unknown, |v| v.data_type);
            let part = parts.get(position).cloned().unwrap_or_else(null_literal);
            let part = Expression { expression: part, position: value.position };
            let bound = self.expression_of(&part, data_type, "a field of the record")?;
            let name = format!("__field_{}_{position}__", self.here());
            let temporary = self.variables.declare_plain(&name, data_type)?;
            self.emit(Instruction::Assign { slot: temporary, value: bound });
            values.push((store.slot, expression::Expression::slot(usize::from(temporary), data_type)));
        }
        for (slot, value) in values {
            self.emit(Instruction::Assign { slot, value });
        }
        // NULL is what a trigger function returns then.
        let no_row = is_null(&value.expression) && self.result.is_triggered_row();
        let assigned = if no_row { Value::Null } else { Value::Boolean(true) };
        let assigned = expression::Expression::constant(assigned, DataType::Boolean);
        self.emit(Instruction::Assign { slot: flag, value: assigned });
        Ok(())
    }

    fn names_record(&self, name: &sql::Ident, position: u32) -> Result<bool, SqlError> {
        let text = syntax::names::name_of(name)?;
        Ok(self.variables.is_record(&Target { parts: vec![Name { text, position }] }))
    }

    /// `record := row`, of any other expression.
    fn row_assignment(&mut self, target: &Target, value: &Expression) -> Result<(), SqlError> {
        let bound = self.expression(value)?;
        let binder = expression::Binder::new(self.variables.scope(), expression::Source::Nothing);
        let fields = match bound.data_type.is_composite() {
            true => binder.fields_of(&bound),
            false => {
                let message = "cannot assign non-composite value to a record variable";
                return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).at(value.position));
            }
        };
        let Some(fields) = fields else {
            let error =
                SqlError::unsupported("assigning a row whose columns nothing tells to a whole record");
            return Err(error.hint("Use SELECT … INTO.").at(value.position));
        };
        let bound = binder.known_fields(bound)?;
        let fields: Vec<(String, DataType)> = fields
            .into_iter()
            .map(|field| match field.data_type {
                DataType::Unknown => (field.name, DataType::Text(None)),
                known => (field.name, known),
            })
            .collect();
        let data_type = bound.data_type;
        let name = format!("__row_{}__", self.here());
        let whole = self.variables.declare_plain(&name, data_type)?;
        self.emit(Instruction::Assign { slot: whole, value: bound });
        let (stores, flag) = self.variables.assign_record(target, &fields)?;
        for (position, store) in stores.iter().enumerate() {
            let to = self.variables.at_slot(usize::from(store.slot)).map(|variable| variable.data_type);
            let row = expression::Expression::slot(usize::from(whole), data_type);
            let from = fields.get(position).map_or(DataType::Unknown, |(_, found)| *found);
            let field = expression::Expression::field(row, position, from);
            let value = self.converted(field, to.unwrap_or(from), "a field of the record")?;
            self.emit(Instruction::Assign { slot: store.slot, value });
        }
        let assigned = expression::Expression::constant(Value::Boolean(true), DataType::Boolean);
        self.emit(Instruction::Assign { slot: flag, value: assigned });
        Ok(())
    }

    /// The fields of a record, as expressions that name them.
    fn fields_of(&self, name: &sql::Ident, position: u32) -> Result<Vec<sql::Expr>, SqlError> {
        let text = syntax::names::name_of(name)?;
        let target = Target { parts: vec![Name { text, position }] };
        let fields = self.variables.field_names(&target).map_err(|error| or_at(error, position))?;
        let field = |field: String| {
            let field = sql::Ident { span: name.span, ..sql::Ident::with_quote('"', field) };
            sql::Expr::CompoundIdentifier(vec![name.clone(), field])
        };
        Ok(fields.into_iter().map(field).collect())
    }

    /// The rows of a statement and their columns.
    pub(crate) fn rows_of(
        &mut self,
        statement: &sql::Statement,
    ) -> Result<(RowsSource, Vec<OutputColumn>), SqlError> {
        let bound = self.statement_of_sql(statement)?;
        if !bound.returns_rows() {
            let message = "cannot open query as cursor: it returns no rows";
            return Err(SqlError::new(SqlState(*b"42P11"), message));
        }
        let columns = bound.columns().to_vec();
        Ok(match bound {
            BoundStatement::Select(select) => (RowsSource::Query(select), columns),
            statement => (RowsSource::Change(statement), columns),
        })
    }

    /// LANGUAGE sql: statements, of which the last gives the result.
    pub(crate) fn sql_body(&mut self, body: &str) -> Result<(), SqlError> {
        let statements = syntax::parse::parse_plain_statements(body, self.tables.version())?;
        let count = statements.len();
        let mut gives = false;
        for (index, statement) in statements.iter().enumerate() {
            self.mark_place(index as u32 + 1, "");
            let bound = self.statement_of_sql(statement)?;
            let is_last = index + 1 == count;
            if is_last && bound.returns_rows() && self.gives_result() {
                gives = true;
                self.sql_result(bound)?;
                continue;
            }
            self.emit(match bound {
                BoundStatement::Select(select) => Instruction::Perform(Box::new(select)),
                BoundStatement::Call(_) => {
                    return Err(SqlError::unsupported("CALL in LANGUAGE sql").hint("Use LANGUAGE plpgsql."));
                }
                statement => Instruction::Change(Box::new(statement)),
            });
        }
        if self.gives_result() && !gives {
            let detail =
                "Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING.".to_string();
            return Err(self.mismatch(detail));
        }
        if !gives {
            let nothing = expression::Expression::constant(Value::Null, DataType::Text(None));
            self.emit(match self.result.form() {
                // Unlike in PL/pgSQL.
                ResultForm::Void => Instruction::ReturnValue { values: Box::new([nothing]) },
                _ => Instruction::Return,
            });
        }
        Ok(())
    }

    fn gives_result(&self) -> bool {
        self.result.returns != Returns::Void && !self.result.types.is_empty()
    }

    fn mismatch(&self, detail: String) -> SqlError {
        let returned = match self.result.types.as_slice() {
            [only] => self.tables.routines().types().name_of(*only),
            _ => "record".to_string(),
        };
        let message = format!("return type mismatch in function declared to return {returned}");
        SqlError::new(SqlState(*b"42P13"), message).detail(detail)
    }

    /// The last statement of LANGUAGE sql.
    fn sql_result(&mut self, statement: BoundStatement) -> Result<(), SqlError> {
        let columns = statement.columns().to_vec();
        // A row is given as its columns, or as one value.
        let row = self.result.row().filter(|row| match columns.as_slice() {
            [only] => only.data_type != *row && !(*row == DataType::Record && only.data_type.is_composite()),
            _ => true,
        });
        let types = match (row, &self.result.fields) {
            (Some(_), Some(fields)) => fields.clone(),
            (Some(_), None) => columns.iter().map(|column| column.data_type).collect(),
            (None, _) => match self.result.types.as_slice() {
                // Every row is a record.
                [DataType::Record] => columns.iter().map(|column| column.data_type).collect(),
                types => types.to_vec(),
            },
        };
        if columns.len() != types.len() {
            let few = if columns.len() < types.len() { "few" } else { "many" };
            return Err(self.mismatch(match types.len() {
                1 if row.is_none() => "Final statement must return exactly one column.".to_string(),
                _ => format!("Final statement returns too {few} columns."),
            }));
        }
        for (position, (column, data_type)) in columns.iter().zip(&types).enumerate() {
            let found = column.data_type;
            if found != DataType::Unknown && !types::can_cast_in_assignment(found, *data_type) {
                return Err(self.mismatch(match types.len() {
                    1 => format!("Actual return type is {found}."),
                    _ => format!(
                        "Final statement returns {found} instead of {data_type} at column {}.",
                        position + 1
                    ),
                }));
            }
        }
        let source = match statement {
            BoundStatement::Select(select) => RowsSource::Query(close_types(select, &types)?),
            statement => {
                let same =
                    columns.iter().zip(&types).all(|(column, kind)| column.data_type.family() == *kind);
                if !same {
                    let what = "RETURNING of another type than the function's in LANGUAGE sql";
                    return Err(SqlError::unsupported(what).hint("Cast it."));
                }
                RowsSource::Change(statement)
            }
        };
        let domains = self.result.domains.as_slice().into();
        let query = ReturnQuery { source, types: Some(types.as_slice().into()), row, domains };
        self.emit(Instruction::ReturnQuery(Box::new(query)));
        let end = match self.result.is_set {
            true => Instruction::Return,
            false => Instruction::ReturnFirst,
        };
        self.emit(end);
        Ok(())
    }
}

fn null_literal() -> sql::Expr {
    sql::Expr::Value(sql::Value::Null.with_empty_span())
}

/// Whether rows with these columns are rows of the result.
///
/// # Errors
/// `42804`
pub(crate) fn check_structure(columns: &[OutputColumn], types: &[DataType]) -> Result<(), SqlError> {
    let mismatch = |detail: String| {
        let message = "structure of query does not match function result type";
        Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).detail(detail))
    };
    if columns.len() != types.len() {
        return mismatch(format!(
            "Number of returned columns ({}) does not match expected column count ({}).",
            columns.len(),
            types.len()
        ));
    }
    for (position, (column, expected)) in columns.iter().zip(types).enumerate() {
        let found = match column.data_type {
            DataType::Unknown => DataType::Text(None),
            known => known,
        };
        let same =
            found.family() == expected.family() && (*expected == expected.family() || *expected == found);
        if !same {
            return mismatch(format!(
                "Returned type {found} does not match expected type {expected} in column {}.",
                position + 1
            ));
        }
    }
    Ok(())
}
