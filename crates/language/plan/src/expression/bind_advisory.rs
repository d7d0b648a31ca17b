//! Calls of functions about advisory locks.

use crate::advisory::AdvisoryFunction;
use crate::expression::bind::Binder;
use crate::expression::{Expression, Kind, RoutineCall};

impl Binder<'_> {
    /// `pg_advisory_lock(…)` and its kind; `None` where it is none of them, or before version 14.
    pub(super) fn bind_advisory_call(&self, name: &str, given: &[Expression]) -> Option<Expression> {
        let function = AdvisoryFunction::called(name, self.scope().version())?;
        // A ledger may have a function of this name from before; who calls it means that one.
        if self.scope().routines().get(name).is_some() {
            return None;
        }
        self.advisory_call(function, given)
    }

    /// A call of it with these arguments; `None` where it does not take them.
    pub(super) fn advisory_call(
        &self,
        function: AdvisoryFunction,
        given: &[Expression],
    ) -> Option<Expression> {
        let taken = function.takes(given.len())?;
        let arguments = given.iter().map(|argument| self.argument(argument.clone(), taken));
        let arguments = arguments.collect::<Option<Vec<_>>>()?;
        let call = RoutineCall::in_execution(function.name(), arguments);
        self.scope().note_call(&call.callee);
        Some(Expression { kind: Kind::Call(Box::new(call)), data_type: function.result() })
    }
}
