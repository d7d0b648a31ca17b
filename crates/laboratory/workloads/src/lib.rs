//! The workloads of the five papers as data: schema and contracts (SQL files), generators of calls, invariants.
//! Nothing here measures; `bench` and `entente demo` do.
//!
//! [`workload()`] makes a [`Workload`] by its id; `entente bench protocols` and PostgreSQL beside it run the same ones.

mod contention;
mod hot_accounts;
mod parameters;
pub mod smallbank;
mod tpcc;
mod workload;
mod ycsb;

pub use contention::Contention;
pub use hot_accounts::HotAccounts;
pub use parameters::ParameterError;
pub use tpcc::Tpcc;
pub use workload::{Condition, Follower, Invariant, WORKLOADS, Workload, workload};
pub use ycsb::{Ycsb, YcsbHotspot};

use types::{Payload, Value};

/// A call of a contract.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The procedure.
    pub procedure: &'static str,
    /// One value per IN and INOUT parameter.
    pub arguments: Vec<Value>,
}

impl Call {
    /// As the payload of a transaction.
    pub fn into_payload(self) -> Payload {
        Payload::Call { procedure: self.procedure.to_string(), arguments: self.arguments }
    }
}

/// Rows of one table, to be loaded in bulk.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// The table.
    pub table: &'static str,
    /// Its columns.
    pub columns: &'static [&'static str],
    /// The rows.
    pub rows: Vec<Vec<Value>>,
}
