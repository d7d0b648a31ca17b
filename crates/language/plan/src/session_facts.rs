//! What statements ask about who executes them and where they look for names: `current_user`, `session_user`, `current_schema()`,
//! `current_setting(name)` and their kind.
//!
//! Who executes a transaction stands under its client's signature, so every node answers alike. The role is known only when a statement
//! runs, the rest when it is bound.

use types::session_format::session_format;
use types::{DataType, ExecutionVersion, SearchPath, SqlError, SqlState};
use values::quote_ident;

/// A function that runs in the execution of its statement. A call of it stands under its name; no function of the ledger has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionFunction {
    /// `current_user`, `user` and `current_role`: with whose rights the statement runs.
    CurrentUser,
    /// `session_user`: who has signed the transaction.
    SessionUser,
    /// Whether policies of rows count for who executes the statement. The argument: also for administrators. No SQL calls it.
    IsBoundByPolicies,
    /// Whether who executes the statement is one of these, or a member of one. No SQL calls it.
    ActsAs,
}

impl SessionFunction {
    const ALL: [SessionFunction; 4] = [
        SessionFunction::CurrentUser,
        SessionFunction::SessionUser,
        SessionFunction::IsBoundByPolicies,
        SessionFunction::ActsAs,
    ];

    /// The name under which a call stands.
    pub fn name(self) -> &'static str {
        match self {
            SessionFunction::CurrentUser => "pg_catalog.current_user",
            SessionFunction::SessionUser => "pg_catalog.session_user",
            SessionFunction::IsBoundByPolicies => "pg_catalog.is_bound_by_policies",
            SessionFunction::ActsAs => "pg_catalog.acts_as",
        }
    }

    /// The type of its values.
    pub(crate) fn result(self) -> DataType {
        match self {
            SessionFunction::CurrentUser | SessionFunction::SessionUser => DataType::Text(None),
            SessionFunction::IsBoundByPolicies | SessionFunction::ActsAs => DataType::Boolean,
        }
    }

    /// The function whose calls stand under this name.
    pub fn named(name: &str) -> Option<SessionFunction> {
        SessionFunction::ALL.into_iter().find(|function| function.name() == name)
    }

    /// What SQL calls by this name.
    pub fn called(name: &str) -> Option<SessionFunction> {
        match name {
            "current_user" | "user" | "current_role" => Some(SessionFunction::CurrentUser),
            "session_user" => Some(SessionFunction::SessionUser),
            _ => None,
        }
    }
}

/// Settings that are the same in every transaction, in lower case, and what they are.
const SETTINGS: &[(&str, &str)] = &[
    ("bytea_output", "hex"),
    ("client_encoding", "UTF8"),
    ("integer_datetimes", "on"),
    ("lc_collate", "C"),
    ("max_identifier_length", "63"),
    ("max_index_keys", "32"),
    ("server_encoding", "UTF8"),
    ("server_version_num", "150000"),
    ("standard_conforming_strings", "on"),
    ("transaction_isolation", "serializable"),
];

/// What `current_setting(name)` gives; `None`: NULL. `may_be_missing`: the second argument.
///
/// # Errors
/// `42704` for a setting that there is not; `0A000` for one of an application, which no signature covers.
pub(crate) fn setting(
    name: &str,
    may_be_missing: bool,
    path: &SearchPath,
    version: ExecutionVersion,
) -> Result<Option<String>, SqlError> {
    let lower = name.to_ascii_lowercase();
    if lower == "search_path" {
        let names = path.schemas().iter().map(|schema| quote_ident(schema));
        return Ok(Some(names.collect::<Vec<_>>().join(", ")));
    }
    let is_older = lower == "default_text_search_config" && version < ExecutionVersion::V15;
    if let Some(value) =
        session_format().setting(&lower).filter(|_| lower != "extra_float_digits" && !is_older)
    {
        return Ok(Some(value));
    }
    if let Some((_, value)) = SETTINGS.iter().find(|(known, _)| *known == lower) {
        return Ok(Some((*value).to_string()));
    }
    if lower.contains('.') {
        return Err(SqlError::unsupported(format_args!("the session's setting \"{name}\" in a statement"))
            .hint(
                "A transaction does not carry the settings of its session. Pass the value as an argument.",
            ));
    }
    if may_be_missing {
        return Ok(None);
    }
    let message = format!("unrecognized configuration parameter \"{name}\"");
    Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
}
