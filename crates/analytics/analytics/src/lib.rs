//! Fragments of large queries, run by DataFusion on columns.
//!
//! A query that looks at many rows and gives few is split (`plan::logical::Split`). Its fragments, which are groups with all that is
//! below them, or the rows of FROM and WHERE, run here over the columns of a snapshot (`state::Snapshot::columns`). What is above,
//! HAVING, outputs, order and limits, runs on the row operators, on the rows that are handed to them.
//!
//! ```text
//!  LogicalPlan ──question──▶ relations with columns numbered once ──lower──▶ operators of DataFusion ──run──▶ rows
//!                queries inside become joins                        joins in the order of estimates
//! ```
//!
//! **Rows decide.** Names, types and functions are those of the bound plan. Arrow's kernels compute what is proven to give the same
//! as PostgreSQL (`lower::expression`, `lower::aggregate`); the code of the row operators computes the other expressions, row by row
//! (`lower::by_row`). What nobody of both can do stays on rows, and so does what ends with an error here: an overflow, a division by
//! zero, too little memory. Then the whole statement runs on rows at the same snapshot.

mod interrupted;
mod lower;
mod memory;
mod question;
mod reason;
mod run;

pub use run::DataFusion;
