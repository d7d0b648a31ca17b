//! Groups of large queries, made by DataFusion from columns.
//!
//! A query that looks at many rows and gives few is split where its groups are made (`plan::logical::Grouped`). What is below that,
//! tables with conditions, joins and aggregates, is lowered here to physical operators of DataFusion over the columns of a snapshot
//! (`state::Snapshot::columns`). What is above, HAVING, outputs, order and limits, runs on the row operators, on the groups that
//! are handed to them.
//!
//! ```text
//!  LogicalPlan::Aggregate ──relation──▶ operators over columns ──aggregate──▶ sums and counts ──finish──▶ rows of groups
//!                          expression: only what is proven to give the same as PostgreSQL
//! ```
//!
//! **Rows decide.** Names, types and functions are those of the bound plan. What is not on the list of `expression` and `aggregate`
//! stays on rows, and so does what ends with an error here: an overflow, a division by zero, too little memory. Then the whole
//! statement runs on rows at the same snapshot.

mod interrupted;
mod lower;
mod memory;
mod question;
mod reason;
mod run;

pub use run::DataFusion;
