//! Calls of functions that draw random values.

use crate::expression::bind::Binder;
use crate::expression::{Expression, Kind, RoutineCall};
use crate::random::RandomFunction;
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
        let call = RoutineCall::in_execution(function.name(), arguments);
        self.scope().note_call(&call.callee);
        Some(Expression { kind: Kind::Call(Box::new(call)), data_type: function.result() })
    }
}
