//! The options of views: `check_option`, which WITH CHECK OPTION sets.

use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::relations::relation_exists;
use plan::statement::why_not_updatable;
use sqlparser::ast::{CreateTableOptions, Expr, SqlOption};
use std::sync::Arc;
use syntax::names::name_of;
use syntax::parse::view::{AlterView, ViewChange};
use types::{CheckOption, SqlError, SqlState, object_name};

/// What the options of CREATE VIEW say of rows that are written through it.
///
/// # Errors
/// `22023` for what is no option, or no value of it; `0A000` for other options.
pub(super) fn check_option_of(options: &CreateTableOptions) -> Result<Option<CheckOption>, SqlError> {
    match options {
        CreateTableOptions::None => Ok(None),
        CreateTableOptions::With(options) => {
            options.iter().try_fold(None, |_, option| check_option(option).map(Some))
        }
        _ => Err(SqlError::unsupported("an option of CREATE VIEW")),
    }
}

/// The only option that there is.
fn check_option(option: &SqlOption) -> Result<CheckOption, SqlError> {
    let SqlOption::KeyValue { key, value } = option else {
        return Err(SqlError::unsupported("an option of CREATE VIEW"));
    };
    let value = value_of(value)?;
    match name_of(key)?.as_str() {
        "check_option" => {}
        "security_barrier" | "security_invoker" => {
            return Err(SqlError::unsupported("an option of CREATE VIEW"));
        }
        other => return Err(invalid(format!("unrecognized parameter \"{other}\""))),
    }
    let is = |known: CheckOption| value.eq_ignore_ascii_case(known.name());
    [CheckOption::Local, CheckOption::Cascaded].into_iter().find(|known| is(*known)).ok_or_else(|| {
        let message = format!("invalid value for enum option \"check_option\": {value}");
        invalid(message).detail("Valid values are \"local\" and \"cascaded\".")
    })
}

fn value_of(value: &Expr) -> Result<String, SqlError> {
    match value {
        Expr::Identifier(name) => name_of(name),
        Expr::Value(value) => Ok(value.value.clone().into_string().unwrap_or_else(|| value.to_string())),
        other => Ok(other.to_string()),
    }
}

fn invalid(message: String) -> SqlError {
    SqlError::new(SqlState(*b"22023"), message)
}

/// Refuses a check option of a view that cannot be written through.
///
/// # Errors
/// `0A000`
pub(super) fn check_updatable(catalog: &NewCatalog, view: &str) -> Result<(), SqlError> {
    if catalog.views.get(view).is_none_or(|view| view.check_option.is_none()) {
        return Ok(());
    }
    match why_not_updatable(&catalog.bound()?, view)? {
        None => Ok(()),
        Some(why) => {
            let message = "WITH CHECK OPTION is supported only on automatically updatable views";
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).hint(why))
        }
    }
}

/// ALTER VIEW … SET and RESET.
///
/// # Errors
/// A view that is not there; what is wrong with an option.
pub(super) fn alter_view(catalog: &mut NewCatalog, alter: &AlterView) -> Result<(), SqlError> {
    let name = &alter.name;
    let known = catalog.views.get(name).map(|view| view.check_option);
    let Some(known) = known else {
        let (state, problem) = match relation_exists(catalog, name) {
            true => (SqlState(*b"42809"), "is not a view"),
            false if alter.if_exists => return Ok(()),
            false => (SqlState::UNDEFINED_TABLE, "does not exist"),
        };
        let relation = if state == SqlState::UNDEFINED_TABLE { "relation " } else { "" };
        return Err(SqlError::new(state, format!("{relation}\"{}\" {problem}", object_name(name))));
    };
    let new = match &alter.change {
        ViewChange::Set(options) => check_option_of(&CreateTableOptions::With(options.clone()))?,
        ViewChange::Reset(names) => known.filter(|_| names.iter().all(|name| name != "check_option")),
    };
    if new != known {
        if let Some(view) = catalog.views.get_mut(name) {
            Arc::make_mut(view).check_option = new;
        }
        check_updatable(catalog, name)?;
    }
    Ok(())
}
