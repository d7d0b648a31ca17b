//! Calls of functions that draw random values.

use crate::expression::bind::Binder;
use crate::expression::{Expression, Kind, RoutineCall};
use crate::polymorphic::Callee;
use crate::random::RandomFunction;
use crate::routines::CallForm;
use types::{DataType, ExecutionVersion};

impl Binder<'_> {
    /// A call of one of these functions; `None` where it is none.
    pub(super) fn bind_random_call(&self, name: &str, given: &[Expression]) -> Option<Expression> {
        let function =
            RandomFunction::called(name).filter(|_| self.scope().version() >= ExecutionVersion::V7)?;
        let expected = function.arguments();
        if given.len() != expected.len() {
            return None;
        }
        let cast =
            |(argument, expected): (&Expression, &DataType)| self.argument(argument.clone(), *expected);
        let arguments = given.iter().zip(expected).map(cast).collect::<Option<Vec<Expression>>>()?;
        let callee = Callee::named(function.name());
        self.scope().note_call(&callee);
        let call = RoutineCall {
            callee,
            is_volatile: true,
            is_strict: true,
            arguments,
            form: CallForm::Value,
            columns: None,
            columns_are_asked: false,
        };
        Some(Expression { kind: Kind::Call(Box::new(call)), data_type: function.result() })
    }
}
