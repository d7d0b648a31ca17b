//! What a routine is called with where a call says nothing, and what it gives where it is not called.

use crate::expression::bind::{Binder, Source};
use crate::expression::{Expression, RoutineCall};
use crate::routines::Routines;
use crate::scope::VariableScope;
use syntax::parse::parse_expression;
use types::session_format::{SessionFormat, within_format};
use types::{DataType, Parameter, SearchPath, SqlError, SqlState, Value};

impl Routines {
    /// What a function gives that is not run because an argument is NULL.
    pub fn row_of_nulls(&self, call: &RoutineCall) -> Vec<Vec<Value>> {
        let routine = self.named(&call.callee.name);
        match routine.and_then(|routine| Some((routine, routine.definition.function.as_ref()?))) {
            Some((routine, function)) if !function.is_set => {
                vec![vec![Value::Null; call.columns.as_ref().unwrap_or(&routine.columns).len()]]
            }
            _ => Vec::new(),
        }
    }

    /// The value of a parameter that a caller in this scope gives no argument for, of the parameter's type.
    ///
    /// # Errors
    /// What is wrong in its DEFAULT.
    pub fn default_in(scope: &VariableScope, parameter: &Parameter) -> Result<Expression, SqlError> {
        let default = scope.routines().default_of(parameter)?;
        default.visit_calls(&mut |call| scope.note_call(&call.callee));
        Ok(default)
    }

    /// The value of a parameter that no argument is given for, of the parameter's type.
    ///
    /// # Errors
    /// What is wrong in its DEFAULT.
    pub fn default_of(&self, parameter: &Parameter) -> Result<Expression, SqlError> {
        within_format(SessionFormat::default(), || self.bound_default_of(parameter))
    }

    fn bound_default_of(&self, parameter: &Parameter) -> Result<Expression, SqlError> {
        // Its text has the names of the catalog.
        let routines = self.with_search_path(&SearchPath::default());
        let scope = VariableScope::for_procedure(None).with_routines(&routines);
        let binder = Binder::new(&scope, Source::Default);
        let sql = parameter.default.as_deref().unwrap_or("NULL");
        let bound = binder.bind(&parse_expression(sql, self.version())?)?;
        if matches!(parameter.data_type, DataType::Polymorphic(_)) {
            // A call tells its type.
            return Ok(bound);
        }
        let (from, to) = (bound.data_type, self.types().base_of(parameter.data_type).family());
        if from != DataType::Unknown && !types::can_cast_in_assignment(from, to) {
            let message = format!("argument of DEFAULT must be type {to}, not type {from}");
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        }
        binder.cast_to(bound, to)
    }
}
