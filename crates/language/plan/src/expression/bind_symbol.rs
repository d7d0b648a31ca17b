//! Binding of operators whose meaning the table of functions has by their symbol.

use crate::expression::{Binder, Expression};
use types::{DataType, SqlError, SqlState};

impl Binder<'_> {
    /// An operator of network addresses, strings of bits, times with zones or ranges; `None` where neither side is one, or the table
    /// has no such operator for them.
    ///
    /// # Errors
    /// A literal that is no value of the type that the operator takes.
    pub(super) fn symbol_operator(
        &self,
        symbol: &str,
        left: &Expression,
        right: &Expression,
    ) -> Result<Option<Expression>, SqlError> {
        let is_one = |data_type: DataType| {
            data_type.is_of_version_10() || data_type.is_of_version_15() || data_type == DataType::Hstore
        };
        if !is_one(left.data_type) && !is_one(right.data_type) {
            return Ok(None);
        }
        match self.call_by_name(symbol, vec![left.clone(), right.clone()]) {
            Err(error) if error.state == SqlState::UNDEFINED_FUNCTION => Ok(None),
            called => called.map(Some),
        }
    }
}
