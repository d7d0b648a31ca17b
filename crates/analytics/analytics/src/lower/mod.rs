//! Relations as operators of DataFusion over columns.

mod aggregate;
mod arrays;
mod by_row;
mod decimal;
mod estimate;
mod expression;
mod fields;
mod groups;
mod join;
mod joined;
mod listed;
mod order;
mod packed;
mod quotient;
mod relations;
mod rows;
mod sample;
mod source;
mod sum;
mod table;

pub(crate) use relations::{Joins, Lower};
