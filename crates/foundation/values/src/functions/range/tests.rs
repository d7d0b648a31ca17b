use crate::functions::{
    MULTIRANGE_OF_ARRAY, RANGES_OF_MULTIRANGE, range_intersection, range_union_all, resolve,
};
use crate::work;
use types::{DataType, ExecutionVersion, RangeType, SqlState, Value, format_value, parse_value};

const RANGE: DataType = DataType::Range(RangeType::Int4);
const MULTIRANGE: DataType = DataType::Multirange(RangeType::Int4);

fn read(text: &str, data_type: DataType) -> Value {
    parse_value(text, data_type).expect(text)
}

#[test]
fn arrays_of_ranges_become_multiranges_and_multiranges_arrays() {
    let ranges = RANGE.array().expect("a type that has arrays");
    let made = |text: &str| {
        let value = MULTIRANGE_OF_ARRAY.call(&[read(text, ranges)], MULTIRANGE);
        value.map(|value| format_value(&value).unwrap_or_default()).map_err(|error| error.state)
    };
    assert_eq!(made("{\"[5,7)\",\"[1,3)\",empty,\"[2,4)\"}"), Ok("{[1,4),[5,7)}".to_string()));
    assert_eq!(made("{}"), Ok("{}".to_string()));
    assert_eq!(made("{NULL}"), Err(SqlState::NULL_VALUE_NOT_ALLOWED));
    let parts = RANGES_OF_MULTIRANGE.call(&[read("{[1,4),[5,7)}", MULTIRANGE)], ranges);
    assert_eq!(parts, Ok(read("{\"[1,4)\",\"[5,7)\"}", ranges)));
    assert_eq!(RANGES_OF_MULTIRANGE.call(&[read("{}", MULTIRANGE)], ranges), Ok(read("{}", ranges)));
}

#[test]
fn aggregates_pass_over_null() {
    let range = |text: &str| read(text, RANGE);
    let values = [range("[1,5)"), Value::Null, range("[4,9)"), range("empty")];
    assert_eq!(range_union_all(&values), Ok(read("{[1,9)}", MULTIRANGE)));
    assert_eq!(range_intersection(&values[0], &values[2]), Ok(range("[4,5)")));
    assert_eq!(range_intersection(&values[0], &values[3]), Ok(range("empty")));
    let values = [Value::Null, read("{[1,5),[7,9)}", MULTIRANGE), read("{[3,8)}", MULTIRANGE)];
    assert_eq!(range_union_all(&values), Ok(read("{[1,9)}", MULTIRANGE)));
    assert_eq!(range_intersection(&values[1], &values[2]), Ok(read("{[3,5),[7,8)}", MULTIRANGE)));
    for none in [&[][..], &[Value::Null]] {
        assert_eq!(range_union_all(none), Ok(Value::Null));
    }
    assert_eq!(range_union_all(&[range("empty")]), Ok(read("{}", MULTIRANGE)));
}

#[test]
fn work_grows_with_the_number_of_ranges() {
    let many = |count: usize| {
        let ranges: Vec<String> = (0..count).map(|number| format!("[{0}0,{0}5)", number + 1)).collect();
        read(&format!("{{{}}}", ranges.join(",")), MULTIRANGE)
    };
    let steps = |name: &str, values: &[Value]| {
        let types: Vec<DataType> = values.iter().map(Value::data_type).collect();
        let found =
            resolve(name, &types, ExecutionVersion::NEWEST).expect("it is there").expect("it is there");
        let (value, steps) = work::measured(u64::MAX, || found.function.call(values, found.result));
        assert!(value.is_ok(), "{value:?}");
        steps
    };
    let (few, more) = (many(10), many(4_000));
    for name in ["+", "-", "*", "@>", "&&", "<<"] {
        assert_eq!(steps(name, &[few.clone(), few.clone()]), 0, "{name}");
        assert!(steps(name, &[few.clone(), more.clone()]) > 100, "{name}");
    }
    assert_eq!(steps("upper", std::slice::from_ref(&more)), 0);
    let (union, steps) = work::measured(10, || range_union_all(&[few, more]));
    assert_eq!(union.map_err(|error| error.state), Err(SqlState::QUERY_CANCELED));
    assert!(steps > 100);
}

#[test]
fn before_version_10_there_are_no_functions_of_ranges() {
    let found =
        |name: &str, types: &[DataType], version| resolve(name, types, version).ok().flatten().is_some();
    for (name, types) in [
        ("@>", vec![RANGE, RANGE]),
        ("int4range", vec![DataType::Integer, DataType::Integer]),
        ("lower_inc", vec![RANGE]),
    ] {
        assert!(
            !found(name, &types, ExecutionVersion::V9) && found(name, &types, ExecutionVersion::V10),
            "{name}"
        );
    }
}
