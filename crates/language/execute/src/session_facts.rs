//! Who executes a statement: `current_user` and `session_user`.
//!
//! An organisation's administrator has the organisation's name, as in the session that it connects to.

use crate::execution::Execution;
use plan::session_facts::SessionFunction;
use types::Value;

impl Execution<'_> {
    /// Runs one of these functions.
    pub(crate) fn session_value(&self, function: SessionFunction) -> Value {
        let role = match function {
            // Without one everything is allowed: that is an administrator, or the definer of a routine.
            SessionFunction::CurrentUser => self.on.authority.as_ref().map(|authority| &authority.role),
            SessionFunction::SessionUser => self.on.signed_by.role.as_ref(),
        };
        match role {
            Some(role) => Value::text(&**role),
            None => Value::text(self.administrator()),
        }
    }

    /// The name of the administrator of the organisation whose client has signed.
    fn administrator(&self) -> String {
        let position = self.on.signed_by.organisation;
        match self.on.programs.catalog().governance.name_of(position) {
            "" => format!("organisation {}", position + 1),
            name => name.to_string(),
        }
    }
}
