//! Where a query keeps rows that do not fit into its memory.
//!
//! Only queries that one node runs for its own clients have such room. A transaction of a block has none: whether its rows fit must not
//! depend on the node, so its memory is bounded alike on all of them ([`plan::expression::Memory`]).

mod room;
mod row_list;
mod run;
mod seen_rows;
mod sorter;

pub use room::{Scratch, ScratchFile};
pub(crate) use room::{named, row_bytes};
pub(crate) use row_list::{EachRow, RowList, Rows, SharedRows};
pub(crate) use run::{BLOCK_ROWS, Run, RunRows};
pub(crate) use seen_rows::SeenRows;
pub(crate) use sorter::{KeyOrder, Sorted, Sorter};
