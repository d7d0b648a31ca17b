//! What expressions refuse that has no equality and no order: [`is_unordered`].

use crate::expression::refusals::no_sort_operator;
use crate::expression::{Binder, Expression};
use crate::unordered::is_unordered;
use types::{DataType, ExecutionVersion, SqlError, SqlState};
use values::Comparison;

impl Binder<'_> {
    /// Refuses what has no equality or no order, where something sorts or groups.
    ///
    /// # Errors
    /// `42883`
    pub fn check_sortable(&self, what: &Expression, operator: &str) -> Result<(), SqlError> {
        if is_unordered(self.types(), what.data_type) {
            return Err(self.types().named_in(no_sort_operator(what.data_type, operator)));
        }
        // A record has both operators, and looks for those of its fields.
        match self.unordered_field(what) {
            Some(field) => Err(self.no_comparison_function(field)),
            None => Ok(()),
        }
    }

    /// The type of the first field of a row that has no equality and no order.
    pub(super) fn unordered_field(&self, row: &Expression) -> Option<DataType> {
        if self.scope().version() < ExecutionVersion::V8 || !row.data_type.is_composite() {
            return None;
        }
        let fields = self.fields_of(row)?;
        let mut types = fields.into_iter().map(|field| field.data_type);
        types.find(|data_type| is_unordered(self.types(), *data_type))
    }

    /// Refuses to compare a row with a field that has no such operator.
    ///
    /// # Errors
    /// `42883`
    pub(super) fn check_compared_row(&self, row: &Expression, by: Comparison) -> Result<(), SqlError> {
        match (self.unordered_field(row), by) {
            (None, _) => Ok(()),
            (Some(field), Comparison::Equal | Comparison::NotEqual) => {
                Err(self.types().named_in(no_sort_operator(field, "equality")))
            }
            (Some(field), _) => Err(self.no_comparison_function(field)),
        }
    }

    /// Refuses to compare elements that have no equality, from execution version 8 on.
    ///
    /// # Errors
    /// `42883`
    pub(super) fn check_compared_elements(&self, array: DataType) -> Result<(), SqlError> {
        if self.scope().version() < ExecutionVersion::V8 {
            return Ok(());
        }
        match array.element().filter(|element| is_unordered(self.types(), *element)) {
            Some(element) => Err(self.types().named_in(no_sort_operator(element, "equality"))),
            None => Ok(()),
        }
    }

    /// Refuses values of which none comes first.
    ///
    /// # Errors
    /// `42883`
    pub(super) fn check_comparable(&self, values: &[Expression]) -> Result<(), SqlError> {
        if self.scope().version() < ExecutionVersion::V8 {
            return Ok(());
        }
        let unordered = |value: &Expression| match is_unordered(self.types(), value.data_type) {
            true => Some(value.data_type),
            false => self.unordered_field(value),
        };
        match values.iter().find_map(unordered) {
            Some(found) => Err(self.no_comparison_function(found)),
            None => Ok(()),
        }
    }

    /// The error of what asks which of two values comes first.
    pub(super) fn no_comparison_function(&self, data_type: DataType) -> SqlError {
        let message = format!("could not identify a comparison function for type {}", data_type.family());
        self.types().named_in(SqlError::new(SqlState::UNDEFINED_FUNCTION, message))
    }
}
