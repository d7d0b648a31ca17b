//! Binding of what statements ask about who executes them and where they look for names.

use crate::expression::bind::Binder;
use crate::expression::{Expression, Kind, RoutineCall};
use crate::polymorphic::Callee;
use crate::session_facts::{SessionFunction, setting};
use sqlparser::ast::Ident;
use std::sync::Arc;
use types::{Array, DATABASE, DataType, ElementType, ExecutionVersion, SqlError, Value, parse_value};

impl Binder<'_> {
    /// A call of one of these functions; `None` where it is none.
    ///
    /// # Errors
    /// Settings that a statement cannot ask for.
    pub(super) fn bind_session_call(
        &self,
        name: &str,
        given: &[Expression],
    ) -> Result<Option<Expression>, SqlError> {
        let text = DataType::Text(None);
        if self.scope().version() < ExecutionVersion::V8 {
            return Ok(None);
        }
        let value = match (name, given) {
            ("current_database" | "current_catalog", []) => Some(Value::text(DATABASE)),
            ("current_schema", []) => Some(self.schemas_looked_in().next().map_or(Value::Null, Value::text)),
            ("current_schemas", [implicit]) => return self.bind_schemas_looked_in(implicit),
            ("current_setting", [name, more @ ..]) if more.len() <= 1 => {
                let missing = match more {
                    [] => Some(false),
                    [flag, ..] => constant_flag(flag),
                };
                let (Some(Value::Text(name)), Some(missing)) = (name.as_constant(), missing) else {
                    return Ok(None);
                };
                let path = self.scope().routines().search_path();
                Some(setting(name, missing, path, self.scope().version())?.map_or(Value::Null, Value::text))
            }
            (name, []) => return Ok(SessionFunction::called(name).map(|called| self.call_session(called))),
            _ => None,
        };
        Ok(value.map(|value| {
            self.scope().note_folded_session();
            Expression::constant(value, text)
        }))
    }

    /// `current_schema` and `current_role`, which PostgreSQL reserves and sqlparser takes for columns. A table of an older version may
    /// have columns of these names, which come first.
    pub(super) fn session_word(&self, ident: &Ident) -> Option<Expression> {
        let word = session_word(ident)?;
        self.bind_session_call(word, &[]).ok().flatten()
    }

    fn call_session(&self, function: SessionFunction) -> Expression {
        self.scope().note_call(&Callee::named(function.name()));
        session_call(function, Vec::new())
    }

    /// The schemas of the search path that there are.
    fn schemas_looked_in(&self) -> impl Iterator<Item = &str> {
        let routines = self.scope().routines();
        let path = routines.search_path().schemas().iter().map(String::as_str);
        path.filter(|schema| routines.has_schema(schema))
    }

    /// `current_schemas(implicit)`: also with those that are looked in without being named.
    fn bind_schemas_looked_in(&self, implicit: &Expression) -> Result<Option<Expression>, SqlError> {
        let Some(implicit) = constant_flag(implicit) else { return Ok(None) };
        self.scope().note_folded_session();
        let first = implicit.then_some("pg_catalog");
        let names: Vec<Value> = first.into_iter().chain(self.schemas_looked_in()).map(Value::text).collect();
        let array = Array::new(ElementType::TEXT, names)?;
        Ok(Some(Expression::constant(Value::Array(Arc::new(array)), DataType::Array(ElementType::TEXT))))
    }
}

/// A call of one of these functions.
pub(crate) fn session_call(function: SessionFunction, arguments: Vec<Expression>) -> Expression {
    let call = RoutineCall { is_volatile: false, ..RoutineCall::in_execution(function.name(), arguments) };
    Expression { kind: Kind::Call(Box::new(call)), data_type: function.result() }
}

/// The word that asks about the session, if a name is one.
pub(crate) fn session_word(ident: &Ident) -> Option<&'static str> {
    let words = ["current_schema", "current_role"];
    let is_it = |word: &&str| ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case(word);
    words.into_iter().find(is_it)
}

/// A literal that is true or false.
fn constant_flag(flag: &Expression) -> Option<bool> {
    match flag.as_constant()? {
        Value::Boolean(flag) => Some(*flag),
        Value::Text(text) => match parse_value(text, DataType::Boolean).ok()? {
            Value::Boolean(flag) => Some(flag),
            _ => None,
        },
        _ => None,
    }
}
