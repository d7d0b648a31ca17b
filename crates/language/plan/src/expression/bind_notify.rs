//! Calls of `pg_notify`.

use crate::expression::bind::Binder;
use crate::expression::{Expression, Kind, RoutineCall};
use crate::notify::{NOTIFY, notifies};
use types::DataType;

impl Binder<'_> {
    /// `pg_notify(channel, payload)`; `None` where it is not that, or before version 14. Its value is that of a function returning void.
    pub(super) fn bind_notify_call(&self, name: &str, given: &[Expression]) -> Option<Expression> {
        let [channel, payload] = given else { return None };
        // A ledger may have a function of this name from before; who calls it means that one.
        if !notifies(name, self.scope().version()) || self.scope().routines().get(name).is_some() {
            return None;
        }
        let text = DataType::Text(None);
        let cast = |argument: &Expression| self.argument(argument.clone(), text);
        let arguments = vec![cast(channel)?, cast(payload)?];
        // NULL as a channel is an error, as a payload nothing said.
        let call = RoutineCall { is_strict: false, ..RoutineCall::in_execution(NOTIFY, arguments) };
        self.scope().note_call(&call.callee);
        Some(Expression { kind: Kind::Call(Box::new(call)), data_type: text })
    }
}
