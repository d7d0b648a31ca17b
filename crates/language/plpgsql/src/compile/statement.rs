//! Compiling statements of SQL, CALL, RAISE and ASSERT.

use crate::coercion::coercion;
use crate::compile::compiler::Compiler;
use crate::late::Wanted;
use crate::position::or_at;
use crate::program::{
    Call, ChangeInto, Dynamic, Execute, FetchTarget, Instruction, RaiseMessage, RaisePlan, RecordColumns,
    SelectInto, Variable,
};
use crate::target::{RowTarget, Store};
use plan::expression::{self, NamedArgument};
use plan::statement::{BoundCall, BoundStatement, bind_statement};
use sqlparser::ast as sql;
use syntax::plpgsql::ast::{
    DiagnosticsItem, DynamicText, Expression, IntoClause, Name, Raise, RaiseLevel, RaiseSubject, StackedItem,
    StatementKind, Target,
};
use types::{DataType, OutputColumn, Severity, SqlError, SqlState};

impl Compiler<'_> {
    /// A statement without statements inside.
    pub(crate) fn simple_statement(&mut self, kind: &StatementKind) -> Result<(), SqlError> {
        match kind {
            StatementKind::Sql { statement, into, current_of: None } => {
                self.sql_statement(statement, into.as_ref())
            }
            StatementKind::Sql { statement, into, current_of: Some(cursor) } => {
                let statement = self.with_current_row(statement, cursor)?;
                self.sql_statement(&statement, into.as_ref())
            }
            StatementKind::Open { cursor, scroll, source } => self.open(cursor, *scroll, source),
            StatementKind::Fetch { cursor, direction, into } => self.fetch(cursor, direction, into.as_ref()),
            StatementKind::Close { cursor } => self.close(cursor),
            StatementKind::SetConstraints(set) => {
                self.emit(Instruction::SetConstraints(Box::new(set.clone())));
                Ok(())
            }
            StatementKind::Notify(notify) => {
                self.emit(Instruction::Notify(Box::new(notify.clone())));
                Ok(())
            }
            StatementKind::Perform { query } if self.late_statement(query, None, true)? => Ok(()),
            StatementKind::Perform { query } => match self.statement_of_sql(query)? {
                BoundStatement::Select(select) => {
                    self.emit(Instruction::Perform(Box::new(select)));
                    Ok(())
                }
                _ => Err(SqlError::unsupported("PERFORM of anything but an expression or SELECT")),
            },
            StatementKind::Call { procedure, arguments } => self.call(procedure, arguments),
            StatementKind::Execute { dynamic, into } => self.execute(dynamic, into.as_ref()),
            StatementKind::GetStackedDiagnostics { items } => self.stacked_diagnostics(items),
            StatementKind::GetDiagnostics { items } => self.diagnostics(items),
            StatementKind::Raise(raise) => self.raise(raise),
            StatementKind::Assert { condition, message } => self.assert(condition, message.as_ref()),
            other => Err(SqlError::new(
                SqlState::INTERNAL_ERROR,
                format!("a statement with statements inside was taken for a simple one: {other:?}"),
            )),
        }
    }

    /// A bound statement, after the instructions that look at what it needs.
    pub(crate) fn statement_of_sql(
        &mut self,
        statement: &sql::Statement,
    ) -> Result<BoundStatement, SqlError> {
        let expanded = self.variables.expanded(statement);
        let statement = expanded.as_ref().unwrap_or(statement);
        self.prepare_names(statement)?;
        bind_statement(self.tables, self.variables.scope(), statement)
    }

    fn sql_statement(
        &mut self,
        statement: &sql::Statement,
        into: Option<&IntoClause>,
    ) -> Result<(), SqlError> {
        if self.late_statement(statement, into, false)? {
            return Ok(());
        }
        let bound = self.statement_of_sql(statement)?;
        let Some(into) = into else {
            if bound.returns_rows() {
                let select = bound.is_query();
                let error = SqlError::new(SqlState::SYNTAX_ERROR, "query has no destination for result data");
                return Err(match select {
                    true => {
                        error.hint("If you want to discard the results of a SELECT, use PERFORM instead.")
                    }
                    false => error,
                });
            }
            self.emit(Instruction::Change(Box::new(bound)));
            return Ok(());
        };
        if !bound.returns_rows() {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "INTO used with a command that cannot return data",
            ));
        }
        let target = self.row_target(&into.targets, bound.columns(), into.strict)?;
        self.emit(match bound {
            BoundStatement::Select(query) => Instruction::SelectInto(Box::new(SelectInto { query, target })),
            statement => Instruction::ChangeInto(Box::new(ChangeInto { statement, target })),
        });
        self.emit_packed();
        Ok(())
    }

    /// Where the columns of a row go: all into a record, or one by one into scalars.
    pub(crate) fn row_target(
        &mut self,
        targets: &[Target],
        columns: &[OutputColumn],
        strict: bool,
    ) -> Result<RowTarget, SqlError> {
        if let [target] = targets
            && self.variables.is_record(target)
        {
            if let Some(target) = self.late_target(target, strict)? {
                return Ok(target);
            }
            let (stores, flag) = self.variables.assign_record(target, &fields_of(columns))?;
            return Ok(RowTarget { stores: stores.into(), flag: Some(flag), strict, record: None });
        }
        let found: Vec<DataType> = columns.iter().map(|column| known_type(column.data_type)).collect();
        if let Some((target, _)) = self.packed_target(targets, Some(&found), strict)? {
            return Ok(target);
        }
        let mut stores = Vec::with_capacity(targets.len());
        for (index, target) in targets.iter().enumerate() {
            if self.variables.is_record(target) {
                let message = "record variable cannot be part of multiple-item INTO list";
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(target.position()));
            }
            // A column that is not there is NULL, whatever its type.
            let from = columns.get(index).map_or(DataType::Unknown, |column| known_type(column.data_type));
            stores.push(self.store(target, from)?);
        }
        Ok(RowTarget { stores: stores.into(), flag: None, strict, record: None })
    }

    fn store(&self, target: &Target, from: DataType) -> Result<Store, SqlError> {
        let variable = self.variables.assignable(target)?;
        if variable.data_type.is_composite() {
            let message = format!("\"{}\" is not a scalar variable", target.text());
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(target.position()));
        }
        let what = format!("variable \"{}\"", variable.name);
        let coercion =
            coercion(from, variable.data_type, &what).map_err(|error| or_at(error, target.position()))?;
        let domain = variable.domain_number();
        let not_null = variable.not_null.then(|| variable.name.into());
        Ok(Store { slot: variable.slot, coercion, not_null, domain })
    }

    fn call(&mut self, procedure: &Name, arguments: &[(Option<Name>, Expression)]) -> Result<(), SqlError> {
        let mut bound = Vec::with_capacity(arguments.len());
        for (name, argument) in arguments {
            let value = self.expression(argument)?;
            let name = name.as_ref().map(|name| name.text.clone());
            bound.push(NamedArgument { name, value, is_variadic: false });
        }
        let call = BoundCall::new(self.variables.scope(), procedure.text.clone(), bound)
            .map_err(|error| or_at(error, procedure.position))?;
        let variable = |argument: &expression::Expression| {
            let variable = self.variables.at_slot(argument.as_slot()?)?;
            Some(Variable {
                slot: variable.slot,
                data_type: variable.data_type,
                domain: variable.domain_number(),
                not_null: variable.not_null.then(|| variable.name.as_str().into()),
                constant: variable.constant.then(|| variable.name.as_str().into()),
            })
        };
        let variables = call.arguments.iter().map(variable).collect();
        self.emit(Instruction::Call(Box::new(Call::new(call, variables))));
        Ok(())
    }

    fn execute(&mut self, dynamic: &DynamicText, into: Option<&IntoClause>) -> Result<(), SqlError> {
        let (target, wanted) = match into {
            None => (None, None),
            Some(into) => {
                let target = self.dynamic_target(&into.targets, None, "EXECUTE", into.strict)?;
                let wanted = target.target.record.is_none().then_some(target.wanted);
                (Some(target.target), wanted)
            }
        };
        let dynamic = self.dynamic(dynamic, wanted)?;
        self.emit(Instruction::Execute(Box::new(Execute { dynamic, target })));
        self.emit_packed();
        Ok(())
    }

    /// A statement whose text is computed.
    pub(crate) fn dynamic(
        &mut self,
        dynamic: &DynamicText,
        wanted: Option<Box<[DataType]>>,
    ) -> Result<Dynamic, SqlError> {
        let text = self.expression_of(&dynamic.text, DataType::Text(None), "the text of EXECUTE")?;
        let mut arguments = Vec::with_capacity(dynamic.arguments.len());
        for argument in &dynamic.arguments {
            if let Some(value) = self.late_value(argument, Wanted::Itself, "a value of USING")? {
                arguments.push(value);
                continue;
            }
            let bound = self.expression(argument)?;
            let known = known_type(bound.data_type);
            arguments.push(crate::coercion::coerce(bound, known, "a value of USING")?);
        }
        Ok(Dynamic { text, arguments: arguments.into(), wanted })
    }

    /// Where rows go whose columns are known only when the statement runs, and the types that they are to have. `columns`:
    /// what they probably are.
    pub(crate) fn dynamic_target(
        &mut self,
        targets: &[Target],
        columns: Option<&[OutputColumn]>,
        statement: &str,
        strict: bool,
    ) -> Result<FetchTarget, SqlError> {
        if let [target] = targets
            && self.variables.is_record(target)
        {
            if let Some(target) = self.late_target(target, strict)? {
                return Ok(FetchTarget { target, wanted: Box::default(), record: None });
            }
            let is_fixed = self.variables.is_fixed(target);
            let told = columns.map(fields_of).filter(|_| !is_fixed);
            let Some(fields) = told.or(self.variables.fields(target)?) else {
                self.variables.note_late(&target.parts[0].text);
                let what = format_args!("{statement} into a record whose columns nothing else has told");
                return Err(SqlError::unsupported(what)
                    .hint("Declare it as table%ROWTYPE, or name a variable for every column.")
                    .at(target.position()));
            };
            let wanted = fields.iter().map(|(_, data_type)| *data_type).collect();
            let (stores, flag) = self.variables.assign_record(target, &fields)?;
            let names = fields.iter().map(|(name, _)| name.as_str().into()).collect();
            let record = (!is_fixed).then(|| RecordColumns { record: target.text().into(), columns: names });
            let target = RowTarget { stores: stores.into(), flag: Some(flag), strict, record: None };
            return Ok(FetchTarget { target, wanted, record });
        }
        if let Some((target, wanted)) = self.packed_target(targets, None, strict)? {
            return Ok(FetchTarget { target, wanted, record: None });
        }
        let mut stores = Vec::with_capacity(targets.len());
        let mut wanted = Vec::with_capacity(targets.len());
        for target in targets {
            let variable = self.variables.assignable(target)?;
            stores.push(self.store(target, variable.data_type)?);
            wanted.push(variable.data_type);
        }
        let target = RowTarget { stores: stores.into(), flag: None, strict, record: None };
        Ok(FetchTarget { target, wanted: wanted.into(), record: None })
    }

    fn stacked_diagnostics(&mut self, items: &[(Target, StackedItem)]) -> Result<(), SqlError> {
        let mut stores = Vec::with_capacity(items.len());
        for (target, item) in items {
            stores.push((*item, self.store(target, DataType::Text(None))?));
        }
        self.emit(Instruction::StackedDiagnostics { items: stores.into() });
        Ok(())
    }

    fn diagnostics(&mut self, items: &[(Target, DiagnosticsItem)]) -> Result<(), SqlError> {
        for (target, item) in items {
            let instruction = match item {
                DiagnosticsItem::RowCount => {
                    self.looks_at_matched = true;
                    Instruction::RowCount { stores: Box::new([self.store(target, DataType::BigInt)?]) }
                }
                DiagnosticsItem::Context => {
                    Instruction::Context { stores: Box::new([self.store(target, DataType::Text(None))?]) }
                }
            };
            self.emit(instruction);
        }
        Ok(())
    }

    fn raise(&mut self, raise: &Raise) -> Result<(), SqlError> {
        let mut state = match raise.level {
            RaiseLevel::Exception => SqlState::RAISE_EXCEPTION,
            RaiseLevel::Message(severity) => severity.state(),
            RaiseLevel::Silent => Severity::Notice.state(),
        };
        let message = match &raise.subject {
            RaiseSubject::Nothing => {
                self.emit(Instruction::Rethrow);
                return Ok(());
            }
            RaiseSubject::Format { text, arguments } => {
                let arguments = arguments
                    .iter()
                    .map(|argument| self.shown(argument))
                    .collect::<Result<Vec<_>, SqlError>>()?;
                RaiseMessage::Format { pieces: pieces_of(text).into(), arguments: arguments.into() }
            }
            RaiseSubject::Condition { name, state: named } => {
                state = *named;
                RaiseMessage::Condition(name.as_str().into())
            }
            RaiseSubject::Options => RaiseMessage::Code,
        };
        let mut options = Vec::with_capacity(raise.options.len());
        for (option, expression) in &raise.options {
            options.push((*option, self.shown(expression)?));
        }
        let level = raise.level;
        let plan = RaisePlan { level, state, message, options: options.into() };
        self.emit(Instruction::Raise(Box::new(plan)));
        Ok(())
    }

    /// An expression of which the text is shown.
    fn shown(&mut self, expression: &Expression) -> Result<expression::Expression, SqlError> {
        match self.late_value(expression, Wanted::Shown, "")? {
            Some(value) => Ok(value),
            None => self.expression(expression),
        }
    }

    fn assert(&mut self, condition: &Expression, message: Option<&Expression>) -> Result<(), SqlError> {
        let condition = self.expression_of(condition, DataType::Boolean, "a condition")?;
        let message = match message {
            Some(message) => {
                Some(self.expression_of(message, DataType::Text(None), "the message of ASSERT")?)
            }
            None => None,
        };
        self.emit(Instruction::Assert(Box::new((condition, message))));
        Ok(())
    }
}

/// The fields of a record that holds rows with these columns.
fn fields_of(columns: &[OutputColumn]) -> Vec<(String, DataType)> {
    columns.iter().map(|column| (column.name.clone(), known_type(column.data_type))).collect()
}

/// A column of literals of unknown type is text.
fn known_type(data_type: DataType) -> DataType {
    match data_type {
        DataType::Unknown => DataType::Text(None),
        known => known,
    }
}

/// The text of a format between its arguments.
fn pieces_of(format: &str) -> Vec<Box<str>> {
    let mut pieces = Vec::new();
    let mut piece = String::new();
    let mut characters = format.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '%' if characters.next_if_eq(&'%').is_some() => piece.push('%'),
            '%' => pieces.push(std::mem::take(&mut piece).into()),
            other => piece.push(other),
        }
    }
    pieces.push(piece.into());
    pieces
}
