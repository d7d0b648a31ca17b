//! The rows of TPC-H as its generator makes them, with the types of the tables, in the order of their keys.

use std::fmt::Display;
use std::sync::Arc;
use tpchgen::dates::TPCHDate;
use tpchgen::decimal::TPCHDecimal;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSupp,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};
use types::{Numeric, Value};

/// Days from 1970-01-01, where the generator counts from, to 2000-01-01.
const DAYS_TO_2000: i32 = 10_957;
/// Suppliers of a part.
const SUPPLIERS: usize = 4;

type Row = Vec<Value>;

/// The rows of `region`.
pub(super) fn regions() -> impl Iterator<Item = Row> {
    RegionGenerator::new(1.0, 1, 1)
        .iter()
        .map(|row| vec![Value::BigInt(row.r_regionkey), padded(row.r_name, 25), Value::text(row.r_comment)])
}

/// The rows of `nation`.
pub(super) fn nations() -> impl Iterator<Item = Row> {
    NationGenerator::new(1.0, 1, 1).iter().map(|row| {
        vec![
            Value::BigInt(row.n_nationkey),
            padded(row.n_name, 25),
            Value::BigInt(row.n_regionkey),
            Value::text(row.n_comment),
        ]
    })
}

/// The rows of `part`.
pub(super) fn parts(scale: f64) -> impl Iterator<Item = Row> {
    PartGenerator::new(scale, 1, 1).iter().map(|row| {
        vec![
            Value::BigInt(row.p_partkey),
            Value::text(row.p_name.to_string()),
            padded(row.p_mfgr, 25),
            padded(row.p_brand, 10),
            Value::text(row.p_type),
            Value::Integer(row.p_size),
            padded(row.p_container, 10),
            amount(row.p_retailprice),
            Value::text(row.p_comment),
        ]
    })
}

/// The rows of `supplier`.
pub(super) fn suppliers(scale: f64) -> impl Iterator<Item = Row> {
    SupplierGenerator::new(scale, 1, 1).iter().map(|row| {
        vec![
            Value::BigInt(row.s_suppkey),
            padded(row.s_name, 25),
            Value::text(row.s_address.to_string()),
            Value::BigInt(row.s_nationkey),
            padded(row.s_phone, 15),
            amount(row.s_acctbal),
            Value::text(row.s_comment),
        ]
    })
}

/// The rows of `partsupp`. The generator makes the four suppliers of a part in another order. At scales below 0.01 it names one
/// supplier several times: that is one row, because they are a key.
pub(super) fn parts_of_suppliers(scale: f64) -> impl Iterator<Item = Row> {
    let mut rows = PartSuppGenerator::new(scale, 1, 1).iter();
    let next_part = move || {
        let mut of_part: Vec<PartSupp<'_>> = rows.by_ref().take(SUPPLIERS).collect();
        of_part.sort_by_key(|row| row.ps_suppkey);
        of_part.dedup_by_key(|row| row.ps_suppkey);
        (!of_part.is_empty()).then_some(of_part)
    };
    std::iter::from_fn(next_part).flatten().map(|row| {
        vec![
            Value::BigInt(row.ps_partkey),
            Value::BigInt(row.ps_suppkey),
            Value::Integer(row.ps_availqty),
            amount(row.ps_supplycost),
            Value::text(row.ps_comment),
        ]
    })
}

/// The rows of `customer`.
pub(super) fn customers(scale: f64) -> impl Iterator<Item = Row> {
    CustomerGenerator::new(scale, 1, 1).iter().map(|row| {
        vec![
            Value::BigInt(row.c_custkey),
            Value::text(row.c_name.to_string()),
            Value::text(row.c_address.to_string()),
            Value::BigInt(row.c_nationkey),
            padded(row.c_phone, 15),
            amount(row.c_acctbal),
            padded(row.c_mktsegment, 10),
            Value::text(row.c_comment),
        ]
    })
}

/// The rows of `orders`.
pub(super) fn orders(scale: f64) -> impl Iterator<Item = Row> {
    OrderGenerator::new(scale, 1, 1).iter().map(|row| {
        vec![
            Value::BigInt(row.o_orderkey),
            Value::BigInt(row.o_custkey),
            padded(row.o_orderstatus, 1),
            amount(row.o_totalprice),
            date(row.o_orderdate),
            padded(row.o_orderpriority, 15),
            padded(row.o_clerk, 15),
            Value::Integer(row.o_shippriority),
            Value::text(row.o_comment),
        ]
    })
}

/// The rows of `lineitem`.
pub(super) fn line_items(scale: f64) -> impl Iterator<Item = Row> {
    LineItemGenerator::new(scale, 1, 1).iter().map(|row| {
        vec![
            Value::BigInt(row.l_orderkey),
            Value::BigInt(row.l_partkey),
            Value::BigInt(row.l_suppkey),
            Value::Integer(row.l_linenumber),
            cents(row.l_quantity * 100),
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
    })
}

fn cents(number: i64) -> Value {
    Value::Numeric(Numeric::new(i128::from(number), 2))
}

fn amount(amount: TPCHDecimal) -> Value {
    cents(amount.into_inner())
}

fn date(date: TPCHDate) -> Value {
    Value::Date(date.to_unix_epoch() - DAYS_TO_2000)
}

/// A value of `char(length)`.
fn padded(value: impl Display, length: usize) -> Value {
    Value::Char(Arc::from(format!("{:length$}", value.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suppliers_of_a_part_ascend_at_every_scale() {
        for scale in [0.001, 0.01] {
            let keys: Vec<(i64, i64)> = parts_of_suppliers(scale)
                .map(|row| match row[..] {
                    [Value::BigInt(part), Value::BigInt(supplier), ..] => (part, supplier),
                    _ => panic!("expected two numbers, found {row:?}"),
                })
                .collect();
            assert!(keys.is_sorted_by(|one, next| one < next), "scale {scale}");
        }
    }
}
