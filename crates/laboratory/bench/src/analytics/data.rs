//! The tables that analytical queries read, and their rows, which follow from the size alone.

use crate::side_by_side::Table;
use crate::tpch;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use types::{Numeric, Value};

const SEED: u64 = 1;
/// Different values of `t.i`.
const INTEGERS: i32 = 1_000;
/// Different values of `t.s`.
const TEXTS: u32 = 100;
/// `t.n` and `u.v` are below.
const NUMBERS: i64 = 1_000_000_000;
/// `t.d` has less cents.
const CENTS: i64 = 100_000_000;
/// Bytes of a row of `t` or `u` in PostgreSQL with its index, at most.
const ROW_BYTES: f64 = 128.0;

/// How many rows there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// Of `t` and of `u`.
    pub(super) rows: u64,
    /// Scale of TPC-H.
    pub(super) scale: f64,
}

impl Size {
    /// All of them.
    pub(super) fn tables(self) -> Vec<Table> {
        vec![t(self.rows as i64), u(self.rows as i64), tpch::line_items(self.scale)]
    }

    /// Memory with which PostgreSQL has all rows in its own: a table that has more than a quarter of it is not kept there.
    pub(super) fn postgres_megabytes(self) -> u64 {
        let (small, large) = (self.rows as f64 * ROW_BYTES, tpch::postgres_line_items_bytes(self.scale));
        (256.0 + (4.0 * small.max(large) + small) / f64::from(1 << 20)).round() as u64
    }
}

fn t(rows: i64) -> Table {
    Table {
        name: "t",
        definition: "CREATE TABLE t (id bigint PRIMARY KEY, i integer NOT NULL, n bigint NOT NULL, \
                     d numeric(15,2) NOT NULL, s text NOT NULL)",
        postgres_indexes: &[],
        rows: Box::new(move || {
            let mut random = StdRng::seed_from_u64(SEED);
            Box::new((1..=rows).map(move |id| row_of_t(id, &mut random)))
        }),
    }
}

fn row_of_t(id: i64, random: &mut StdRng) -> Vec<Value> {
    vec![
        Value::BigInt(id),
        Value::Integer(random.random_range(0..INTEGERS)),
        Value::BigInt(random.random_range(0..NUMBERS)),
        Value::Numeric(Numeric::new(i128::from(random.random_range(0..CENTS)), 2)),
        Value::text(format!("label {}", random.random_range(0..TEXTS))),
    ]
}

fn u(rows: i64) -> Table {
    Table {
        name: "u",
        definition: "CREATE TABLE u (id bigint PRIMARY KEY, t_id bigint NOT NULL, v bigint NOT NULL)",
        postgres_indexes: &[],
        rows: Box::new(move || {
            let mut random = StdRng::seed_from_u64(SEED + 1);
            Box::new((1..=rows).map(move |id| {
                let (t_id, v) = (random.random_range(1..=rows), random.random_range(0..NUMBERS));
                [id, t_id, v].map(Value::BigInt).to_vec()
            }))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::format_value;

    fn line(row: &[Value]) -> String {
        row.iter().filter_map(format_value).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn rows_are_the_same_at_every_call() {
        for table in [t(3), u(3)] {
            let lines = || (table.rows)().map(|row| line(&row)).collect::<Vec<_>>();
            assert_eq!(lines(), lines());
            assert_eq!(lines().len(), 3);
        }
    }

    #[test]
    fn postgresql_has_four_times_the_largest_table() {
        let size = Size { rows: 1_000_000, scale: 1.0 };
        assert_eq!(size.postgres_megabytes(), 5_590);
    }
}
