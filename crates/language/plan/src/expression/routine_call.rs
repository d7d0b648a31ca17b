//! A call of one of the ledger's own functions inside of an expression.

use crate::expression::Expression;
use crate::polymorphic::Callee;
use crate::routines::CallForm;
use std::sync::Arc;
use types::OutputColumn;

/// A call of a function of the ledger, which runs when its value is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutineCall {
    /// Which one.
    pub callee: Callee,
    /// It may change rows, and is called for every row.
    pub is_volatile: bool,
    /// It is not run where an argument is NULL.
    pub is_strict: bool,
    /// One per parameter that takes one, of the parameters' types.
    pub arguments: Vec<Expression>,
    /// What its rows are.
    pub form: CallForm,
    /// The columns of a row, where it gives rows and they are known.
    pub columns: Option<Arc<[OutputColumn]>>,
    /// The caller has named the columns: whether they are these is seen when it gives a row.
    pub columns_are_asked: bool,
}

impl RoutineCall {
    /// A call of a function of the system that runs in the execution of its statement: for every row, but not where an argument is NULL.
    pub fn in_execution(name: &str, arguments: Vec<Expression>) -> RoutineCall {
        RoutineCall {
            callee: Callee::named(name),
            is_volatile: true,
            is_strict: true,
            arguments,
            form: CallForm::Value,
            columns: None,
            columns_are_asked: false,
        }
    }
}
