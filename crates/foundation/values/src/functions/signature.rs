//! What a call of a function means.

use crate::functions::Function;
use types::DataType;

/// What a call of a name with some argument types means.
pub struct Signature {
    /// The function.
    pub function: Function,
    /// Types that the arguments are cast to.
    pub arguments: Vec<DataType>,
    /// Type of the result.
    pub result: DataType,
}
