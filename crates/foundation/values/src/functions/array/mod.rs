//! Functions and forms of arrays.

mod common;
mod forms;
mod named;
mod side_by_side;

pub(super) use forms::FORMS;
pub use forms::{
    ASSIGN, ASSIGN_SLICE, CONSTRUCT, CONTAINS, ELEMENT, NEST, OVERLAPS, SLICE, all_elements, any_element,
};
pub(super) use named::FUNCTIONS;
pub use side_by_side::{accumulated, check_accumulated, nested};
