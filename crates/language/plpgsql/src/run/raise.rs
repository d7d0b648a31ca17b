//! Running RAISE and ASSERT.

use crate::program::{RaiseMessage, RaisePlan};
use plan::expression::{Environment, Expression};
use syntax::plpgsql::ast::{RaiseLevel, RaiseOption};
use syntax::plpgsql::conditions::{parse_state, state_of_condition};
use types::{Notice, SqlError, SqlState, format_value};

/// Evaluates a RAISE in `environment` (whose row nobody looks at): an error where it ends the call. Gives what it says to
/// the client otherwise.
///
/// # Errors
/// What RAISE says.
pub(crate) fn raise(plan: &RaisePlan, environment: &Environment<'_>) -> Result<Option<Notice>, SqlError> {
    let mut message = match &plan.message {
        RaiseMessage::Format { pieces, arguments } => Some(formatted(pieces, arguments, environment)?),
        RaiseMessage::Condition(name) => Some(name.to_string()),
        RaiseMessage::Code => None,
    };
    let has_text = matches!(plan.message, RaiseMessage::Format { .. });
    let mut error = SqlError::new(plan.state, "");
    let mut given_message = None;
    for (position, (option, expression)) in plan.options.iter().enumerate() {
        // PostgreSQL finds out when it runs.
        let given = match plan.message {
            RaiseMessage::Format { .. } => *option == RaiseOption::Message,
            RaiseMessage::Condition(_) => *option == RaiseOption::ErrorCode,
            RaiseMessage::Code => false,
        };
        if given || plan.options[..position].iter().any(|(known, _)| known == option) {
            let message = format!("RAISE option already specified: {}", option.name());
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        let Some(text) = format_value(&expression.evaluate(environment)?) else {
            let message = "RAISE statement option cannot be null";
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        };
        match option {
            RaiseOption::ErrorCode => {
                error.state = state_named(&text)?;
                if !has_text {
                    message = Some(text);
                }
            }
            RaiseOption::Message => given_message = Some(text),
            RaiseOption::Detail => error.detail = Some(text),
            RaiseOption::Hint => error.hint = Some(text),
            RaiseOption::Other(_) => {}
        }
    }
    error.message = given_message.or(message).unwrap_or_else(|| error.state.to_string());
    match plan.level {
        RaiseLevel::Exception => Err(error),
        RaiseLevel::Message(severity) => Ok(Some(Notice { severity, report: error })),
        RaiseLevel::Silent => Ok(None),
    }
}

fn formatted(
    pieces: &[Box<str>],
    arguments: &[Expression],
    environment: &Environment<'_>,
) -> Result<String, SqlError> {
    let mut text = String::new();
    for (index, piece) in pieces.iter().enumerate() {
        text.push_str(piece);
        if let Some(argument) = arguments.get(index) {
            let value = argument.evaluate(environment)?;
            text.push_str(format_value(&value).as_deref().unwrap_or("<NULL>"));
        }
    }
    Ok(text)
}

/// Evaluates an ASSERT.
///
/// # Errors
/// `P0004` unless the condition is true.
pub(crate) fn assert(
    condition: &Expression,
    message: Option<&Expression>,
    environment: &Environment<'_>,
) -> Result<(), SqlError> {
    if condition.is_true(environment)? {
        return Ok(());
    }
    let text = match message {
        Some(message) => format_value(&message.evaluate(environment)?),
        None => None,
    };
    Err(SqlError::new(SqlState(*b"P0004"), text.unwrap_or_else(|| "assertion failed".to_string())))
}

/// The code that ERRCODE gives, itself or by the condition's name.
fn state_named(text: &str) -> Result<SqlState, SqlError> {
    parse_state(text).or_else(|| state_of_condition(text)).ok_or_else(|| {
        let message = format!("unrecognized exception condition \"{text}\"");
        SqlError::new(SqlState(*b"42704"), message)
    })
}

/// The error of CASE where nothing fits.
#[cold]
pub(crate) fn case_not_found() -> SqlError {
    SqlError::new(SqlState(*b"20000"), "case not found").hint("CASE statement is missing ELSE part.")
}
