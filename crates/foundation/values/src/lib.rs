//! What values mean in SQL: the functions, patterns and quotes, and the work that they take.
//!
//! A function of values knows nothing of names, tables and trees: values go in and a value comes out, the same on
//! every node. All that is known of a function is one entry in the table of [`functions`]. What it costs it says to
//! [`work`] before it begins.

mod comparison;
mod invariant;
mod length;
mod pattern;
mod quote;
mod text_search;

pub mod functions;
pub mod inverted;
pub mod work;

pub use comparison::Comparison;
pub use invariant::broken;
pub use pattern::{LikeForm, like};
pub use quote::{format_text, quote_ident, quote_literal};
