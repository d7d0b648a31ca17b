//! Compiling what a procedure or function gives to its caller: RETURN, RETURN NEXT, RETURN QUERY.

use super::ast::{Expression, Name, RowSource, Target};
use super::compile::{Compiler, or_at};
use super::program::{Instruction, ResultForm, ReturnQuery, RowsSource};
use crate::expression;
use crate::statement::{BoundStatement, close_types};
use crate::table::Tables;
use sqlparser::ast as sql;
use types::{DataType, FunctionResult, OutputColumn, Procedure, SqlError, SqlState, Value};

/// What a procedure or function gives back.
pub(super) struct ResultShape {
    returns: Returns,
    /// It gives any number of rows.
    is_set: bool,
    /// Types of the columns of its rows; one for a value.
    types: Vec<DataType>,
}

/// How RETURN names it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Returns {
    Procedure,
    Void,
    Value,
    /// By the OUT and INOUT parameters.
    Outputs,
    /// A row of a table.
    Row,
}

impl ResultShape {
    /// That of this definition.
    ///
    /// # Errors
    /// `42704` where it is the row of a table that is not there.
    pub fn of(tables: &Tables, procedure: &Procedure) -> Result<ResultShape, SqlError> {
        let outputs = || procedure.outputs().map(|parameter| parameter.data_type.family()).collect();
        let Some(function) = &procedure.function else {
            return Ok(ResultShape { returns: Returns::Procedure, is_set: false, types: outputs() });
        };
        let (returns, types) = match &function.result {
            FunctionResult::Void => (Returns::Void, Vec::new()),
            FunctionResult::Value(data_type) => (Returns::Value, vec![data_type.family()]),
            FunctionResult::Outputs => (Returns::Outputs, outputs()),
            FunctionResult::Table(name) => {
                let columns = tables.columns_of(name).map_err(|_| {
                    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("type \"{name}\" does not exist"))
                })?;
                (Returns::Row, columns.into_iter().map(|(_, data_type)| data_type).collect())
            }
        };
        Ok(ResultShape { returns, is_set: function.is_set, types })
    }

    /// How the program gives it.
    pub fn form(&self) -> ResultForm {
        match self.returns {
            _ if self.is_set => ResultForm::Rows,
            Returns::Procedure | Returns::Outputs => ResultForm::Outputs,
            Returns::Void => ResultForm::Void,
            Returns::Value | Returns::Row => ResultForm::Value,
        }
    }

    /// What RETURN with a value is refused with.
    fn refuses_value(&self) -> Option<SqlError> {
        let refused = |what: &str| {
            let message = format!("RETURN cannot have a parameter in {what}");
            SqlError::new(SqlState::DATATYPE_MISMATCH, message)
        };
        Some(match self.returns {
            _ if self.is_set => refused("function returning set").hint("Use RETURN NEXT or RETURN QUERY."),
            Returns::Procedure => refused("a procedure"),
            Returns::Void => refused("function returning void"),
            Returns::Outputs => refused("function with OUT parameters"),
            Returns::Value | Returns::Row => return None,
        })
    }
}

impl Compiler<'_> {
    /// The end of the body.
    pub(super) fn end(&mut self) {
        let end = match self.result.form() {
            ResultForm::Value => Instruction::NoReturn,
            _ => Instruction::Return,
        };
        self.emit(end);
    }

    /// RETURN
    pub(super) fn returns(&mut self, value: Option<&Expression>) -> Result<(), SqlError> {
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
        let values = self.row_values(value, "RETURN")?;
        self.emit(Instruction::ReturnValue { values });
        Ok(())
    }

    /// RETURN NEXT
    pub(super) fn returns_next(&mut self, value: Option<&Expression>) -> Result<(), SqlError> {
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
    pub(super) fn returns_query(&mut self, source: &RowSource) -> Result<(), SqlError> {
        if !self.result.is_set {
            let message = "cannot use RETURN QUERY in a non-SETOF function";
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        }
        let types: Box<[DataType]> = self.result.types.as_slice().into();
        let source = match source {
            RowSource::Static(statement) => {
                let (source, columns) = self.rows_of(statement)?;
                if let Err(error) = check_structure(&columns, &types) {
                    // PostgreSQL finds out when it runs.
                    self.emit(Instruction::Fail(Box::new(error)));
                    return Ok(());
                }
                source
            }
            RowSource::Dynamic(dynamic) => RowsSource::Dynamic(self.dynamic(dynamic, None)?),
        };
        self.emit(Instruction::ReturnQuery(Box::new(ReturnQuery { source, types })));
        Ok(())
    }

    /// The values of a row: one of the function's type, or those of a record or of `(a, b, …)`.
    fn row_values(
        &mut self,
        value: &Expression,
        statement: &str,
    ) -> Result<Box<[expression::Expression]>, SqlError> {
        let types = self.result.types.clone();
        if self.result.returns != Returns::Row {
            let what = format!("the value of {statement}");
            return Ok(Box::new([self.expression_of(value, types[0], &what)?]));
        }
        let parts: Vec<sql::Expr> = match &value.expression {
            sql::Expr::Tuple(parts) => parts.clone(),
            sql::Expr::Identifier(name) => self.fields_of(name, value.position)?,
            _ => {
                let error = SqlError::unsupported(format_args!("{statement} of this as a row"));
                return Err(error.hint("Return a record, or (value, value, …).").at(value.position));
            }
        };
        if parts.len() != types.len() {
            let detail = format!(
                "Number of returned columns ({}) does not match expected column count ({}).",
                parts.len(),
                types.len()
            );
            let message = "returned record type does not match expected record type";
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message)
                .detail(detail)
                .at(value.position));
        }
        let mut values = Vec::with_capacity(parts.len());
        for (part, data_type) in parts.into_iter().zip(types) {
            let part = Expression { expression: part, position: value.position };
            values.push(self.expression_of(&part, data_type, "a column of the result")?);
        }
        Ok(values.into())
    }

    /// `record := record`, or `(a, b, …)`, or NULL.
    pub(super) fn record_assignment(&mut self, target: &Target, value: &Expression) -> Result<(), SqlError> {
        let is_null =
            |value: &sql::Expr| matches!(value, sql::Expr::Value(value) if value.value == sql::Value::Null);
        let parts: Vec<sql::Expr> = match &value.expression {
            sql::Expr::Tuple(parts) => parts.clone(),
            sql::Expr::Identifier(name) => self.fields_of(name, value.position)?,
            null if is_null(null) => Vec::new(),
            _ => {
                let error = SqlError::unsupported("assigning this to a whole record");
                return Err(error.hint("Use SELECT … INTO.").at(value.position));
            }
        };
        let named = match &value.expression {
            sql::Expr::Identifier(name) => {
                let text = crate::scope::name_of(name)?;
                self.variables.fields(&Target { parts: vec![Name { text, position: value.position }] })?
            }
            _ => self.variables.fields(target)?,
        };
        let Some(named) = named else {
            let error = SqlError::unsupported("assigning values to a record whose columns nothing has told");
            return Err(error.hint("Declare it as table%ROWTYPE.").at(value.position));
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
        let assigned = expression::Expression::constant(Value::Boolean(true), DataType::Boolean);
        self.emit(Instruction::Assign { slot: flag, value: assigned });
        Ok(())
    }

    /// The fields of a record, as expressions that name them.
    fn fields_of(&self, name: &sql::Ident, position: u32) -> Result<Vec<sql::Expr>, SqlError> {
        let text = crate::scope::name_of(name)?;
        let target = Target { parts: vec![Name { text, position }] };
        let fields = self.variables.field_names(&target).map_err(|error| or_at(error, position))?;
        let field = |field: String| {
            let field = sql::Ident { span: name.span, ..sql::Ident::with_quote('"', field) };
            sql::Expr::CompoundIdentifier(vec![name.clone(), field])
        };
        Ok(fields.into_iter().map(field).collect())
    }

    /// The rows of a statement and their columns.
    pub(super) fn rows_of(
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
    pub(super) fn sql_body(&mut self, body: &str) -> Result<(), SqlError> {
        let statements = crate::parse::parse_plain_statements(body)?;
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
            [only] if self.result.returns != Returns::Row => only.to_string(),
            _ => "record".to_string(),
        };
        let message = format!("return type mismatch in function declared to return {returned}");
        SqlError::new(SqlState(*b"42P13"), message).detail(detail)
    }

    /// The last statement of LANGUAGE sql.
    fn sql_result(&mut self, statement: BoundStatement) -> Result<(), SqlError> {
        let types = self.result.types.clone();
        let columns = statement.columns().to_vec();
        if columns.len() != types.len() {
            let few = if columns.len() < types.len() { "few" } else { "many" };
            return Err(self.mismatch(match types.len() {
                1 => "Final statement must return exactly one column.".to_string(),
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
        let query = ReturnQuery { source, types: types.as_slice().into() };
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
pub(super) fn check_structure(columns: &[OutputColumn], types: &[DataType]) -> Result<(), SqlError> {
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
