//! `enum_first`, `enum_last` and `enum_range`, which the type of their argument tells everything.

use crate::expression::enum_call::EnumCall;
use crate::expression::refusals::no_function;
use crate::expression::row::RowOperation;
use crate::expression::{Binder, Expression};
use std::sync::Arc;
use types::{DataType, EnumValue, SqlError};

impl Binder<'_> {
    fn no_enum_function(&self, call: EnumCall, given: &[DataType]) -> SqlError {
        self.types().named_in(no_function(call.name(), given))
    }

    /// A call of one of these functions.
    ///
    /// # Errors
    /// `42883` where the arguments are of no enum, or of several.
    pub(super) fn bind_enum_call(
        &self,
        call: EnumCall,
        arguments: Vec<Expression>,
    ) -> Result<Expression, SqlError> {
        let given: Vec<DataType> = arguments.iter().map(Expression::data_type).collect();
        let named = given.iter().copied().find(|data_type| matches!(data_type, DataType::Enum(_)));
        let counted = match call {
            EnumCall::Range => matches!(given.len(), 1 | 2),
            _ => given.len() == 1,
        };
        let (Some(data_type), true) = (named, counted) else {
            return Err(self.no_enum_function(call, &given));
        };
        if !given.iter().all(|given| [data_type, DataType::Unknown].contains(given)) {
            return Err(self.no_enum_function(call, &given));
        }
        let arguments = arguments.into_iter().map(|argument| self.cast_to(argument, data_type));
        let arguments = arguments.collect::<Result<Vec<_>, _>>()?;
        let known: Arc<[Arc<EnumValue>]> = self.types().enum_values(data_type).unwrap_or_default().into();
        let result = match call {
            EnumCall::Range => data_type.array().unwrap_or(data_type),
            _ => data_type,
        };
        Ok(Expression::row(RowOperation::EnumValues(call, known), arguments, result))
    }
}
