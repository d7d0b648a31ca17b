//! What a constant is before it has its place.

use types::{DataType, Value};

/// A constant as it is written. A text without a type, and NULL, are [`DataType::Unknown`]: their place says what they are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Written {
    pub(crate) value: Value,
    pub(crate) data_type: DataType,
}
