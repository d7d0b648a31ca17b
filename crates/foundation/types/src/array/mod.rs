//! Arrays: elements of one type, in up to [`limits::ARRAY_DIMENSIONS_MAX`](crate::limits::ARRAY_DIMENSIONS_MAX) dimensions.

mod dimensions;
mod part;
mod room;
mod text;
mod value;

#[cfg(test)]
mod tests;

pub use dimensions::{Dimension, Dimensions, check_dimensions, elements_in};
pub use part::SliceBounds;
pub(crate) use room::values_with_room;
pub(crate) use text::{format_array, parse_array, parse_array_of};
pub use value::{Array, check_array_elements};
