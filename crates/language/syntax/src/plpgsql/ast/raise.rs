//! RAISE, and what is told of errors and statements.

use crate::plpgsql::ast::Expression;
use types::{Severity, SqlState};

/// `RAISE …`
#[derive(Clone, Debug, PartialEq)]
pub struct Raise {
    /// How severe.
    pub level: RaiseLevel,
    /// What is raised.
    pub subject: RaiseSubject,
    /// USING, in order.
    pub options: Vec<(RaiseOption, Expression)>,
}

/// How severe a RAISE is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RaiseLevel {
    /// Ends the transaction.
    Exception,
    /// `INFO`, `NOTICE` or `WARNING`: only says something.
    Message(Severity),
    /// `DEBUG` or `LOG`: what it says, the client does not get.
    Silent,
}

/// What a RAISE names in front of USING.
#[derive(Clone, Debug, PartialEq)]
pub enum RaiseSubject {
    /// `RAISE;`, which repeats an error inside a handler.
    Nothing,
    /// A format; `%` stands for the next argument.
    Format {
        /// The text.
        text: String,
        /// One for every `%`.
        arguments: Vec<Expression>,
    },
    /// The name of a condition, or `SQLSTATE '…'`.
    Condition {
        /// As it is written.
        name: String,
        /// Its code.
        state: SqlState,
    },
    /// Only USING.
    Options,
}

/// An option of USING.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RaiseOption {
    /// `ERRCODE`
    ErrorCode,
    /// `MESSAGE`
    Message,
    /// `DETAIL`
    Detail,
    /// `HINT`
    Hint,
    /// `COLUMN`, `CONSTRAINT`, `DATATYPE`, `TABLE` or `SCHEMA`: evaluated, not reported.
    Other(&'static str),
}

impl RaiseOption {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            RaiseOption::ErrorCode => "ERRCODE",
            RaiseOption::Message => "MESSAGE",
            RaiseOption::Detail => "DETAIL",
            RaiseOption::Hint => "HINT",
            RaiseOption::Other(name) => name,
        }
    }
}

/// What GET DIAGNOSTICS tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiagnosticsItem {
    /// `ROW_COUNT`
    RowCount,
    /// `PG_CONTEXT`
    Context,
}

/// What GET STACKED DIAGNOSTICS tells of the error that is being handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackedItem {
    /// `RETURNED_SQLSTATE`
    State,
    /// `MESSAGE_TEXT`
    Message,
    /// `PG_EXCEPTION_DETAIL`
    Detail,
    /// `PG_EXCEPTION_HINT`
    Hint,
    /// `PG_EXCEPTION_CONTEXT`
    Context,
}
