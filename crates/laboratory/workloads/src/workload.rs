use crate::contention::Contention;
use crate::smallbank::Smallbank;
use crate::tpcc::Tpcc;
use crate::ycsb::{Ycsb, YcsbHotspot};
use crate::{Call, ParameterError, Rows};
use rand::rngs::StdRng;
use types::{Outcome, Value};

/// The ids that [`workload()`] knows.
pub const WORKLOADS: [&str; 5] = ["smallbank", "ycsb", "ycsb-hotspot", "contention", "tpcc"];

/// Rows of one table that are loaded by one transaction.
pub(crate) const ROWS_PER_PORTION: u64 = 1_000;

/// A schema with contracts, the rows it begins with, and an endless sequence of calls.
///
/// Everything follows from the parameters and the generator handed in: the same seed gives the same calls on every
/// machine, for Entente and for the databases it is compared with.
///
/// ```
/// use rand::{SeedableRng, rngs::StdRng};
///
/// let ycsb = workloads::workload("ycsb", 10_000, 0.6)?;
/// let call = |seed| ycsb.call(0, &mut StdRng::seed_from_u64(seed));
/// assert_eq!(call(7), call(7));
/// assert!(call(7).procedure.starts_with("ycsb_"));
/// # Ok::<(), workloads::ParameterError>(())
/// ```
pub trait Workload: Send + Sync {
    /// The id by which experiments name it.
    fn id(&self) -> &'static str;

    /// The statements of schema and procedures, one by one, valid in Entente and in PostgreSQL.
    fn set_up(&self) -> Vec<&'static str>;

    /// The rows at the beginning, in portions that fit into one transaction each.
    fn portions(&self) -> Box<dyn Iterator<Item = Rows> + '_>;

    /// Call `number` of the sequence, counted from 0.
    fn call(&self, number: u64, random: &mut StdRng) -> Call;

    /// What must hold after any run.
    fn invariant(&self) -> Invariant;

    /// What else must hold after any run.
    fn conditions(&self) -> Vec<Condition> {
        Vec::new()
    }

    /// Who knows what the rows must be after a run of which it has seen every call, where no sum says it.
    fn follower(&self) -> Option<Box<dyn Follower>> {
        None
    }
}

/// Follows a run call by call, and holds the rows at its end against what the calls have said.
pub trait Follower: Send {
    /// A call (procedure, arguments) of the block of this height ended like this. Heights ascend; within a block the order
    /// in which calls took effect is the protocol's.
    fn ended(&mut self, height: u64, procedure: &str, arguments: &[Value], outcome: &Outcome);

    /// The query whose rows [`Follower::check`] wants.
    fn query(&self) -> &'static str;

    /// Whether the rows can be what the calls have left.
    ///
    /// # Errors
    /// What cannot be, for people.
    fn check(&self, rows: &[Vec<Value>]) -> Result<(), String>;
}

/// A query that must give no row.
#[derive(Clone, Debug)]
pub struct Condition {
    /// What must hold.
    pub name: String,
    /// For what breaks it.
    pub query: String,
}

/// A sum over the database that changes by exactly what the committed calls say.
#[derive(Clone, Copy, Debug)]
pub struct Invariant {
    /// Queries with one number each; the sum is theirs together.
    pub queries: &'static [&'static str],
    /// The sum at the beginning.
    pub initial: i128,
    /// By how much a call (procedure, arguments) that ended like this changes the sum.
    pub change: fn(&str, &[Value], &Outcome) -> i128,
}

/// The workload of this id, with `rows` rows (customers, keys, wallets, warehouses). `skew` is Zipf's exponent for `smallbank` and
/// `ycsb`, the probability of the hot rows for `ycsb-hotspot`, the share of transfers between the same two wallets for
/// `contention`; `tpcc` has warehouses and no skew.
///
/// # Errors
/// An unknown id, or parameters out of range.
pub fn workload(id: &str, rows: u64, skew: f64) -> Result<Box<dyn Workload>, ParameterError> {
    Ok(match id {
        "smallbank" => Box::new(Smallbank::new(rows, skew)?),
        "ycsb" => Box::new(Ycsb::new(rows, skew)?),
        "ycsb-hotspot" => Box::new(YcsbHotspot::new(rows, skew)?),
        "contention" => Box::new(Contention::new(rows, skew)?),
        "tpcc" => Box::new(Tpcc::new(rows)?),
        _ => return Err(ParameterError::Workload { found: id.to_string() }),
    })
}

/// The statements of an SQL file of tables and one of procedures.
pub(crate) fn statements(schema: &'static str, procedures: &'static str) -> Vec<&'static str> {
    let statements = schema.split_inclusive(";\n").chain(procedures.split_inclusive("$$;\n"));
    statements.filter(|statement| !statement.trim().is_empty()).collect()
}

/// The first ids of the portions of `rows` rows that are numbered from 1, with their lengths.
pub(crate) fn portions_of(rows: u64) -> impl Iterator<Item = (u64, u64)> {
    (1..=rows)
        .step_by(ROWS_PER_PORTION as usize)
        .map(move |first| (first, ROWS_PER_PORTION.min(rows + 1 - first)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use std::collections::BTreeSet;

    fn all() -> impl Iterator<Item = Box<dyn Workload>> {
        let ids = WORKLOADS.into_iter().filter(|id| *id != "tpcc");
        ids.map(|id| workload(id, 2_500, 0.5).expect("valid parameters"))
    }

    #[test]
    fn a_seed_gives_the_same_calls_and_another_seed_others() {
        for workload in all() {
            let calls = |seed| {
                let mut random = StdRng::seed_from_u64(seed);
                (0..50).map(|number| workload.call(number, &mut random)).collect::<Vec<_>>()
            };
            assert_eq!(calls(1), calls(1), "{}", workload.id());
            assert_ne!(calls(1), calls(2), "{}", workload.id());
        }
    }

    #[test]
    fn portions_hold_every_row_once() {
        for workload in all() {
            let mut keys = BTreeSet::new();
            for portion in workload.portions() {
                assert!(portion.rows.len() as u64 <= ROWS_PER_PORTION);
                for row in &portion.rows {
                    assert_eq!(row.len(), portion.columns.len());
                    assert!(keys.insert((portion.table, format!("{:?}", row[0]))), "{row:?}");
                }
            }
            assert!(keys.len().is_multiple_of(2_500) && !keys.is_empty(), "{}", workload.id());
        }
    }

    #[test]
    fn unknown_ids_and_bad_parameters_are_named() {
        let text = |id, rows, skew| workload(id, rows, skew).err().map(|error| error.to_string());
        assert!(text("tpc-x", 10, 0.0).is_some_and(|text| text.contains("`tpc-x`")));
        assert!(text("ycsb", 10, -1.0).is_some_and(|text| text.contains("-1")));
        assert!(text("ycsb-hotspot", 1_000, 1.5).is_some_and(|text| text.contains("1.5")));
        assert!(text("ycsb-hotspot", 50, 0.5).is_some_and(|text| text.contains("50")));
        assert!(text("contention", 2, 0.5).is_some_and(|text| text.contains('2')));
    }
}
