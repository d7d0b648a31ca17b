//! The tables that analytical queries read, and their rows, which follow from the size alone.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;
use tpchgen::decimal::TPCHDecimal;
use tpchgen::generators::{LineItem, LineItemGenerator};
use types::{Numeric, Value};

/// Days from 1970-01-01, where TPC-H counts from, to 2000-01-01.
const DAYS_TO_2000: i32 = 10_957;
const SEED: u64 = 1;
/// Different values of `t.i`.
const INTEGERS: i32 = 1_000;
/// Different values of `t.s`.
const TEXTS: u32 = 100;
/// `t.n` and `u.v` are below.
const NUMBERS: i64 = 1_000_000_000;
/// `t.d` has less cents.
const CENTS: i64 = 100_000_000;

/// How many rows there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// Of `t` and of `u`.
    pub(super) rows: u64,
    /// Scale of TPC-H.
    pub(super) scale: f64,
}

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    T,
    U,
    LineItem,
}

impl Table {
    pub(super) const ALL: [Table; 3] = [Table::T, Table::U, Table::LineItem];

    pub(super) fn name(self) -> &'static str {
        match self {
            Table::T => "t",
            Table::U => "u",
            Table::LineItem => "lineitem",
        }
    }

    /// What creates it, in all systems.
    pub(super) fn definition(self) -> &'static str {
        match self {
            Table::T => {
                "CREATE TABLE t (id bigint PRIMARY KEY, i integer NOT NULL, n bigint NOT NULL, \
                 d numeric(15,2) NOT NULL, s text NOT NULL)"
            }
            Table::U => "CREATE TABLE u (id bigint PRIMARY KEY, t_id bigint NOT NULL, v bigint NOT NULL)",
            Table::LineItem => {
                "CREATE TABLE lineitem (l_orderkey bigint NOT NULL, l_partkey bigint NOT NULL, \
                 l_suppkey bigint NOT NULL, l_linenumber integer NOT NULL, l_quantity numeric(15,2) NOT NULL, \
                 l_extendedprice numeric(15,2) NOT NULL, l_discount numeric(15,2) NOT NULL, \
                 l_tax numeric(15,2) NOT NULL, l_returnflag char(1) NOT NULL, l_linestatus char(1) NOT NULL, \
                 l_shipdate date NOT NULL, l_commitdate date NOT NULL, l_receiptdate date NOT NULL, \
                 l_shipinstruct char(25) NOT NULL, l_shipmode char(10) NOT NULL, l_comment varchar(44) NOT NULL, \
                 PRIMARY KEY (l_orderkey, l_linenumber))"
            }
        }
    }

    /// Its rows in the order of their keys, the same at every call.
    pub(super) fn rows(self, size: Size) -> Box<dyn Iterator<Item = Vec<Value>>> {
        let ids = 1..=size.rows as i64;
        match self {
            Table::T => {
                let mut random = StdRng::seed_from_u64(SEED);
                Box::new(ids.map(move |id| t(id, &mut random)))
            }
            Table::U => {
                let mut random = StdRng::seed_from_u64(SEED + 1);
                let most = size.rows as i64;
                Box::new(ids.map(move |id| {
                    let (t_id, v) = (random.random_range(1..=most), random.random_range(0..NUMBERS));
                    [id, t_id, v].map(Value::BigInt).to_vec()
                }))
            }
            Table::LineItem => Box::new(LineItemGenerator::new(size.scale, 1, 1).iter().map(line_item)),
        }
    }
}

fn t(id: i64, random: &mut StdRng) -> Vec<Value> {
    vec![
        Value::BigInt(id),
        Value::Integer(random.random_range(0..INTEGERS)),
        Value::BigInt(random.random_range(0..NUMBERS)),
        money(random.random_range(0..CENTS)),
        Value::text(format!("label {}", random.random_range(0..TEXTS))),
    ]
}

fn line_item(row: LineItem<'_>) -> Vec<Value> {
    let amount = |amount: TPCHDecimal| money(amount.into_inner());
    let date = |date: tpchgen::dates::TPCHDate| Value::Date(date.to_unix_epoch() - DAYS_TO_2000);
    vec![
        Value::BigInt(row.l_orderkey),
        Value::BigInt(row.l_partkey),
        Value::BigInt(row.l_suppkey),
        Value::Integer(row.l_linenumber),
        money(row.l_quantity * 100),
        amount(row.l_extendedprice),
        amount(row.l_discount),
        amount(row.l_tax),
        padded(row.l_returnflag, 1),
        padded(row.l_linestatus, 1),
        date(row.l_shipdate),
        date(row.l_commitdate),
        date(row.l_receiptdate),
        padded(row.l_shipinstruct, 25),
        padded(row.l_shipmode, 10),
        Value::text(row.l_comment),
    ]
}

fn money(cents: i64) -> Value {
    Value::Numeric(Numeric::new(i128::from(cents), 2))
}

/// A value of `char(length)`.
fn padded(text: &str, length: usize) -> Value {
    Value::Char(Arc::from(format!("{text:length$}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::format_value;

    const SMALL: Size = Size { rows: 3, scale: 0.001 };

    fn line(row: &[Value]) -> String {
        row.iter().filter_map(format_value).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn line_items_are_those_of_tpc_h() {
        let rows: Vec<Vec<Value>> = Table::LineItem.rows(SMALL).collect();
        assert_eq!(rows.len(), 6_005);
        // The first line of dbgen at this scale.
        let (numbers, texts) = ("1|156|4|1|17.00|17954.55|0.04|0.02|N|O", "egular courts above the");
        let dates = "1996-03-13|1996-02-12|1996-03-22|DELIVER IN PERSON        |TRUCK     ";
        assert_eq!(line(&rows[0]), format!("{numbers}|{dates}|{texts}"));
    }

    #[test]
    fn rows_are_the_same_at_every_call() {
        for table in [Table::T, Table::U] {
            let rows: Vec<String> = table.rows(SMALL).map(|row| line(&row)).collect();
            assert_eq!(rows, table.rows(SMALL).map(|row| line(&row)).collect::<Vec<_>>());
            assert_eq!(rows.len(), 3);
        }
    }
}
