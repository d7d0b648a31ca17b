//! Who executes a statement: `current_user` and `session_user`.
//!
//! An organisation's administrator has the organisation's name, as in the session that it connects to.

use crate::execution::Execution;
use plan::session_facts::SessionFunction;
use types::{SqlError, Value};

impl Execution<'_> {
    /// Runs one of these functions.
    ///
    /// # Errors
    /// None of what a binder has made.
    pub(crate) fn session_value(
        &self,
        function: SessionFunction,
        arguments: &[Value],
    ) -> Result<Value, SqlError> {
        let role = match function {
            // Without one everything is allowed: that is an administrator, or the definer of a routine.
            SessionFunction::CurrentUser => self.on.authority.as_ref().map(|authority| &authority.role),
            SessionFunction::SessionUser => self.on.signed_by.role.as_ref(),
            SessionFunction::IsBoundByPolicies => {
                let forced = arguments.first() == Some(&Value::Boolean(true));
                return Ok(Value::Boolean(self.is_bound_by_policies(forced)));
            }
            SessionFunction::ActsAs => {
                return Ok(Value::Boolean(self.acts_as(arguments.first().unwrap_or(&Value::Null))?));
            }
        };
        Ok(match role {
            Some(role) => Value::text(&**role),
            None => Value::text(self.administrator()),
        })
    }

    /// The name of the administrator of the organisation whose client has signed.
    pub(crate) fn administrator(&self) -> String {
        self.on.programs.catalog().governance.administrator_of(self.on.signed_by.organisation)
    }
}
