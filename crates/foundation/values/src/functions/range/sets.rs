//! Unions, intersections and differences.

use super::{MULTIRANGE, RANGE, V10, multirange, pair, range, single};
use crate::functions::entry::{Function, code};
use types::{Multirange, Value};

pub(in crate::functions) static FUNCTIONS: &[Function] = &[
    Function::worked(
        &["range_union", "+"],
        |given| pair(given, RANGE, RANGE, RANGE),
        code!(
            [Value::Range(left), Value::Range(right)] => range(left.union(right)),
        ),
    )
    .since(V10),
    Function::worked(
        &["multirange_union", "+"],
        |given| pair(given, MULTIRANGE, MULTIRANGE, MULTIRANGE),
        code!(
            [Value::Multirange(left), Value::Multirange(right)] => multirange(left.union(right)),
        ),
    )
    .since(V10),
    Function::worked(
        &["range_intersect", "*"],
        |given| pair(given, RANGE, RANGE, RANGE),
        code!(
            [Value::Range(left), Value::Range(right)] => range(left.intersection(right)),
        ),
    )
    .since(V10),
    Function::worked(
        &["multirange_intersect", "*"],
        |given| pair(given, MULTIRANGE, MULTIRANGE, MULTIRANGE),
        code!(
            [Value::Multirange(left), Value::Multirange(right)] => multirange(left.intersection(right)),
        ),
    )
    .since(V10),
    Function::worked(
        &["range_minus", "-"],
        |given| pair(given, RANGE, RANGE, RANGE),
        code!(
            [Value::Range(left), Value::Range(right)] => range(left.minus(right)),
        ),
    )
    .since(V10),
    Function::worked(
        &["multirange_minus", "-"],
        |given| pair(given, MULTIRANGE, MULTIRANGE, MULTIRANGE),
        code!(
            [Value::Multirange(left), Value::Multirange(right)] => multirange(left.minus(right)),
        ),
    )
    .since(V10),
    Function::worked(
        &["range_merge"],
        |given| pair(given, RANGE, RANGE, RANGE),
        code!(
            [Value::Range(left), Value::Range(right)] => range(left.hull(right)),
        ),
    )
    .since(V10),
    Function::worked(
        &["range_merge"],
        |given| single(given, MULTIRANGE, RANGE),
        code!(
            [Value::Multirange(ranges)] => range(ranges.hull()),
        ),
    )
    .since(V10),
    Function::worked(
        &["multirange"],
        |given| single(given, RANGE, MULTIRANGE),
        code!(
            [Value::Range(range)] => multirange(Multirange::new(range.range_type(), [&**range])),
        ),
    )
    .since(V10),
];
