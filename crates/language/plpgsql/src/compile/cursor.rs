//! Compiling cursors.
//!
//! The query of a declared cursor is bound where it is declared, with the variables that are visible there; what it
//! needs is looked at where it is opened.

use crate::coercion::coercion;
use crate::compile::compiler::{Compiler, DeclaredCursor};
use crate::compile::failing::is_of_names;
use crate::position::or_at;
use crate::program::{
    Count, CurrentRow, CursorName, CursorQuery, CursorVariable, FetchCursor, Instruction, OpenCursor,
    RowsSource,
};
use crate::target::Store;
use plan::expression::{self, bind_data_type};
use plan::statement::{BoundSelect, BoundStatement, Distinctness, bind_statement};
use sqlparser::ast as sql;
use std::sync::Arc;
use syntax::parse::without_only;
use syntax::plpgsql::ast::{
    Argument, CursorParameter, Declaration, Expression, FetchCount, FetchDirection, IntoClause, Name,
    OpenSource, RowSource, Target,
};
use types::{DataType, OutputColumn, SqlError, SqlState, Value};

impl Compiler<'_> {
    /// `name [[NO] SCROLL] CURSOR [(parameters)] FOR query`
    pub(crate) fn cursor_declaration(
        &mut self,
        declaration: &Declaration,
        scroll: Option<bool>,
        parameters: &[CursorParameter],
        query: &sql::Statement,
    ) -> Result<(), SqlError> {
        self.variables.push_block(None);
        let declared = self.declared_cursor(scroll, parameters, query);
        self.variables.pop_block();
        let declared = declared.map_err(|error| or_at(error, declaration.name.position));
        let is_late = |error: &SqlError| !self.at_once && self.looks_late() && is_of_names(error);
        let declared = match declared {
            Ok(declared) => Ok(Arc::new(declared)),
            Err(error) if is_late(&error) => Err(error),
            Err(error) => return Err(error),
        };
        let slot = self.variables.declare(declaration, DataType::RefCursor)?;
        match declared {
            Ok(declared) => {
                self.declared_cursors.insert(slot, declared);
            }
            Err(error) => {
                self.missing.push(error.clone());
                self.unbound_cursors.insert(slot, SqlError { position: None, ..error });
            }
        }
        // Until it is given another one, it has the name of its variable.
        let name = Value::text(declaration.name.text.as_str());
        let value = expression::Expression::constant(name, DataType::RefCursor);
        self.emit(Instruction::Assign { slot, value });
        Ok(())
    }

    fn declared_cursor(
        &mut self,
        scroll: Option<bool>,
        parameters: &[CursorParameter],
        query: &sql::Statement,
    ) -> Result<DeclaredCursor, SqlError> {
        let mut declared = Vec::with_capacity(parameters.len());
        for CursorParameter { name, data_type, position } in parameters {
            let types = self.tables.routines().types();
            let bound = bind_data_type(types, data_type).map_err(|error| or_at(error, *position));
            self.at_once |= bound.is_err() && self.looks_late();
            let data_type = bound?;
            let slot = self.variables.declare_plain(&name.text, data_type);
            declared.push((name.text.clone(), slot.map_err(|error| or_at(error, name.position))?, data_type));
        }
        let expanded = self.variables.expanded(query);
        let query = expanded.as_ref().unwrap_or(query);
        let used = self.variables.names_used(query)?;
        let query = Arc::new(self.cursor_query(query)?);
        Ok(DeclaredCursor { scroll, parameters: declared, query, used })
    }

    /// The cursor of the variable in this slot, where it is declared with a query.
    ///
    /// # Errors
    /// What is wrong with the names in that query.
    pub(crate) fn cursor_of(&self, slot: u16) -> Result<Option<Arc<DeclaredCursor>>, SqlError> {
        match self.unbound_cursors.get(&slot) {
            Some(error) => Err(error.clone()),
            None => Ok(self.declared_cursors.get(&slot).cloned()),
        }
    }

    /// A query whose rows a cursor has: with the primary key behind its columns where its rows are those of a table.
    fn cursor_query(&self, query: &sql::Statement) -> Result<CursorQuery, SqlError> {
        let bound = bind_statement(self.tables, self.variables.scope(), query)?;
        if !bound.returns_rows() {
            let message = "cannot open query as cursor: it returns no rows";
            return Err(SqlError::new(SqlState(*b"42P11"), message));
        }
        let columns: Arc<[OutputColumn]> = bound.columns().into();
        let BoundStatement::Select(select) = bound else {
            return Ok(CursorQuery { source: RowsSource::Change(bound), columns, table: None });
        };
        if let Some((table, keyed)) = self.with_key(query, &select)
            && let Ok(BoundStatement::Select(keyed)) =
                bind_statement(self.tables, self.variables.scope(), &keyed)
        {
            return Ok(CursorQuery { source: RowsSource::Query(keyed), columns, table: Some(table.into()) });
        }
        Ok(CursorQuery { source: RowsSource::Query(select), columns, table: None })
    }

    /// The query with the columns of the primary key behind its own, and the table; `None` where its rows are not those of
    /// one table that has such a key.
    fn with_key(&self, query: &sql::Statement, bound: &BoundSelect) -> Option<(String, sql::Statement)> {
        let scanned = bound.source.table()?;
        let is_plain = bound.grouping.is_none()
            && bound.windows.is_empty()
            && matches!(bound.distinct, Distinctness::All);
        let mut keyed = query.clone();
        let sql::Statement::Query(inner) = &mut keyed else { return None };
        let sql::SetExpr::Select(select) = inner.body.as_mut() else { return None };
        let [sql::TableWithJoins { relation, joins }] = select.from.as_slice() else { return None };
        let (relation, _) = without_only(relation);
        let sql::TableFactor::Table { name, alias, .. } = relation.as_ref() else { return None };
        let known = self.tables.get(&self.tables.find(&syntax::names::table_name(name).ok()?)).ok()?;
        if !is_plain || !joins.is_empty() || known.id != scanned.table.id || known.key.is_empty() {
            return None;
        }
        let qualifier = match alias {
            Some(alias) => alias.name.clone(),
            None => name.0.last()?.as_ident()?.clone(),
        };
        for ordinal in &known.key {
            let column = sql::Ident::with_quote('"', known.columns[usize::from(*ordinal)].name.as_str());
            let column = sql::Expr::CompoundIdentifier(vec![qualifier.clone(), column]);
            select.projection.push(sql::SelectItem::UnnamedExpr(column));
        }
        Some((known.relation.clone(), keyed))
    }

    /// The variable of a cursor.
    ///
    /// # Errors
    /// `42601` where there is none, `42804` where it is none of a cursor.
    pub(crate) fn cursor_variable(&self, target: &Target) -> Result<CursorVariable, SqlError> {
        let is_record = self.variables.is_record(target);
        let variable = if is_record { None } else { Some(self.variables.scalar(target)?) };
        match variable.filter(|variable| variable.data_type == DataType::RefCursor) {
            Some(variable) => Ok(CursorVariable {
                slot: variable.slot,
                name: variable.name.into(),
                constant: variable.constant,
            }),
            None => {
                let message = format!("variable \"{}\" must be of type cursor or refcursor", target.text());
                Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).at(target.position()))
            }
        }
    }

    /// What the parameters of a cursor get.
    ///
    /// # Errors
    /// `42601` where the arguments are not those of the cursor.
    pub(crate) fn cursor_arguments(
        &mut self,
        cursor: &Name,
        declared: &DeclaredCursor,
        arguments: Option<&[Argument]>,
    ) -> Result<Box<[(Store, expression::Expression)]>, SqlError> {
        let cursor_name = &cursor.text;
        let refused =
            |message: String, position: u32| Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(position));
        let parameters = &declared.parameters;
        let Some(arguments) = arguments else {
            return match parameters.is_empty() {
                true => Ok(Box::default()),
                false => refused(format!("cursor \"{cursor_name}\" has arguments"), cursor.position),
            };
        };
        if parameters.is_empty() {
            return refused(format!("cursor \"{cursor_name}\" has no arguments"), cursor.position);
        }
        let mut given: Vec<Option<&Expression>> = vec![None; parameters.len()];
        for (number, (name, argument)) in arguments.iter().enumerate() {
            let (position, at) = match name {
                None => (number, argument.position),
                Some(name) => {
                    let found = parameters.iter().position(|(known, ..)| *known == name.text);
                    let Some(found) = found else {
                        let message =
                            format!("cursor \"{cursor_name}\" has no argument named \"{}\"", name.text);
                        return refused(message, name.position);
                    };
                    (found, name.position)
                }
            };
            let Some(place) = given.get_mut(position) else {
                return refused(format!("too many arguments for cursor \"{cursor_name}\""), at);
            };
            if place.replace(argument).is_some() {
                let parameter = &parameters[position].0;
                let message = format!(
                    "value for parameter \"{parameter}\" of cursor \"{cursor_name}\" specified more than once"
                );
                return refused(message, at);
            }
        }
        let mut stores = Vec::with_capacity(parameters.len());
        for (argument, (name, slot, data_type)) in given.into_iter().zip(parameters) {
            let Some(argument) = argument else {
                return refused(
                    format!("not enough arguments for cursor \"{cursor_name}\""),
                    cursor.position,
                );
            };
            let value = self.expression(argument)?;
            let what = format!("parameter \"{name}\"");
            let coercion = coercion(value.data_type, *data_type, &what);
            let coercion = coercion.map_err(|error| or_at(error, argument.position))?;
            stores.push((Store { slot: *slot, coercion, not_null: None, domain: None }, value));
        }
        Ok(stores.into())
    }

    /// OPEN
    pub(crate) fn open(
        &mut self,
        cursor: &Target,
        scroll: Option<bool>,
        source: &OpenSource,
    ) -> Result<(), SqlError> {
        let variable = self.cursor_variable(cursor)?;
        let declared = self.cursor_of(variable.slot)?;
        let refused =
            |message: &str| Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(cursor.position()));
        let open = match (source, declared) {
            (OpenSource::Bound(arguments), Some(declared)) => {
                let name = Name { text: variable.name.to_string(), position: cursor.position() };
                let arguments = self.cursor_arguments(&name, &declared, arguments.as_deref())?;
                self.prepare(&declared.used);
                let (query, scroll) = (declared.query.clone(), declared.scroll);
                OpenCursor { variable, arguments, query, scroll: scroll.unwrap_or(true), level: None }
            }
            (OpenSource::Bound(_), None) => {
                return refused("expected \"FOR\", to open a cursor for an unbound cursor variable");
            }
            (OpenSource::Query(_), Some(_)) => return refused("syntax error at or near \"FOR\""),
            (OpenSource::Query(source), None) => {
                let query = match source {
                    RowSource::Static(query) => {
                        let expanded = self.variables.expanded(query.as_ref());
                        let query = expanded.as_ref().unwrap_or(query);
                        self.prepare_names(query)?;
                        self.cursor_query(query)?
                    }
                    RowSource::Dynamic(dynamic) => {
                        let source = RowsSource::Dynamic(self.dynamic(dynamic, None)?);
                        CursorQuery { source, columns: [].into(), table: None }
                    }
                };
                match query.columns.is_empty() {
                    true => self.opened_columns.remove(&variable.slot),
                    false => self.opened_columns.insert(variable.slot, query.columns.clone()),
                };
                let (query, scroll) = (Arc::new(query), scroll.unwrap_or(true));
                OpenCursor { variable, arguments: Box::default(), query, scroll, level: None }
            }
        };
        self.emit(Instruction::OpenCursor(Box::new(open)));
        Ok(())
    }

    /// FETCH and MOVE
    pub(crate) fn fetch(
        &mut self,
        cursor: &Target,
        direction: &FetchDirection,
        into: Option<&IntoClause>,
    ) -> Result<(), SqlError> {
        let variable = self.cursor_variable(cursor)?;
        let count = match &direction.count {
            FetchCount::Constant(count) => Count::Constant(*count),
            FetchCount::All => Count::All,
            FetchCount::Expression(count) => {
                Count::Expression(self.expression_of(count, DataType::Integer, "the position of a cursor")?)
            }
        };
        let declared =
            self.declared_cursors.get(&variable.slot).map(|declared| declared.query.columns.clone());
        let columns = declared.or_else(|| self.opened_columns.get(&variable.slot).cloned());
        let target = match into {
            Some(into) => {
                Some(self.dynamic_target(&into.targets, columns.as_deref(), "FETCH", into.strict)?)
            }
            None => None,
        };
        let fetch = FetchCursor { variable, kind: direction.kind, count, target };
        self.emit(Instruction::FetchCursor(Box::new(fetch)));
        self.emit_packed();
        Ok(())
    }

    /// CLOSE
    pub(crate) fn close(&mut self, cursor: &Target) -> Result<(), SqlError> {
        let variable = self.cursor_variable(cursor)?;
        self.emit(Instruction::CloseCursor(Box::new(variable)));
        Ok(())
    }

    /// The statement that changes the row that a cursor stands on: by its key, which comes from the cursor.
    pub(crate) fn with_current_row(
        &mut self,
        statement: &sql::Statement,
        cursor: &Name,
    ) -> Result<sql::Statement, SqlError> {
        let mut changed = statement.clone();
        let Some((name, alias, selection)) = changed_table(&mut changed) else {
            let message = "syntax error at or near \"OF\"";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(cursor.position));
        };
        let table = self.tables.get(&self.tables.find(&name))?.clone();
        if table.key.is_empty() {
            let what = format_args!("WHERE CURRENT OF in table \"{name}\", which has no primary key,");
            return Err(SqlError::unsupported(what).at(cursor.position));
        }
        let named = Target { parts: vec![cursor.clone()] };
        let known = self.variables.is_record(&named) || self.variables.scalar(&named).is_ok();
        let named = match known {
            true => CursorName::Variable(self.cursor_variable(&named)?),
            false => CursorName::Literal(cursor.text.as_str().into()),
        };
        let mut slots = Vec::with_capacity(table.key.len());
        let mut condition: Option<sql::Expr> = None;
        for ordinal in &table.key {
            let column = &table.columns[usize::from(*ordinal)];
            let variable = format!("__current_{}_{ordinal}__", self.here());
            slots.push(self.variables.declare_plain(&variable, column.data_type)?);
            let column = vec![alias.clone(), sql::Ident::with_quote('"', column.name.as_str())];
            let equal = sql::Expr::BinaryOp {
                left: Box::new(sql::Expr::CompoundIdentifier(column)),
                op: sql::BinaryOperator::Eq,
                right: Box::new(sql::Expr::Identifier(sql::Ident::with_quote('"', variable))),
            };
            condition = Some(match condition {
                None => equal,
                Some(before) => sql::Expr::BinaryOp {
                    left: Box::new(before),
                    op: sql::BinaryOperator::And,
                    right: Box::new(equal),
                },
            });
        }
        *selection = condition;
        let current =
            CurrentRow { cursor: named, table: table.relation.as_str().into(), slots: slots.into() };
        self.emit(Instruction::CurrentRow(Box::new(current)));
        Ok(changed)
    }
}

/// The table that an UPDATE or DELETE changes, how its columns are qualified, and its WHERE.
fn changed_table(statement: &mut sql::Statement) -> Option<(String, sql::Ident, &mut Option<sql::Expr>)> {
    let (from, selection) = match statement {
        sql::Statement::Update(update) if update.from.is_none() => (&update.table, &mut update.selection),
        sql::Statement::Delete(delete) if delete.using.is_none() => {
            let (sql::FromTable::WithFromKeyword(tables) | sql::FromTable::WithoutKeyword(tables)) =
                &delete.from;
            let [table] = tables.as_slice() else { return None };
            (table, &mut delete.selection)
        }
        _ => return None,
    };
    let (relation, _) = without_only(&from.relation);
    let sql::TableFactor::Table { name, alias, .. } = relation.as_ref() else { return None };
    let known_as = match alias {
        Some(alias) => alias.name.clone(),
        None => name.0.last()?.as_ident()?.clone(),
    };
    Some((syntax::names::table_name(name).ok()?, known_as, selection))
}
