//! What every entry of the table must be.

use crate::functions::entry::{Argument, Function, Signature, Takes};
use crate::functions::{FUNCTIONS, SLICE, all, all_elements, any_element, resolve};
use crate::{Comparison, work};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeMap;
use std::sync::Arc;
use types::{
    Array, DataType, Dimension, ElementType, ExecutionVersion, Interval, NetworkAddress, Numeric, RangeType,
    SqlState, Value,
};

const TEXT: DataType = DataType::Text(None);
const NUMERIC: DataType = DataType::Numeric(None);

fn array_of(element: DataType) -> DataType {
    element.array().expect("a type that has arrays")
}

/// Types of arguments that may be for a function.
fn given(function: &Function) -> Vec<Vec<DataType>> {
    let arrays = || vec![array_of(DataType::Integer), array_of(TEXT)];
    let json = [DataType::Json, DataType::Jsonb];
    let of = |argument: &Argument| match argument {
        Argument::To(data_type) => vec![*data_type],
        Argument::From(types, _) | Argument::OneOf(types) => types.to_vec(),
        Argument::Pairs(pairs) => pairs.iter().map(|(accepted, _)| *accepted).collect(),
        Argument::AnyArray | Argument::Array => arrays(),
        Argument::Element => vec![DataType::Integer, TEXT],
    };
    match function.takes() {
        Takes::Arguments { list, optional, .. } => {
            let each: Vec<Vec<DataType>> = list.iter().map(of).collect();
            (list.len() - optional..=list.len()).flat_map(|count| combinations(&each[..count])).collect()
        }
        Takes::Worked(_) => {
            let any =
                [arrays(), vec![DataType::SmallInt, DataType::Integer, DataType::BigInt, TEXT]].concat();
            let of_json = combinations(&[json.to_vec(), vec![TEXT]]);
            let of_three = combinations(&[vec![DataType::Integer, TEXT], arrays(), arrays()]);
            [combinations(&[any.clone(), any]), of_json, of_ranges(), of_three].concat()
        }
        Takes::Form => Vec::new(),
    }
}

/// Arguments of functions of ranges.
fn of_ranges() -> Vec<Vec<DataType>> {
    let each = RangeType::ALL.into_iter().flat_map(|range_type| {
        let (range, multirange) = (DataType::Range(range_type), DataType::Multirange(range_type));
        [vec![range], vec![multirange], vec![range, range], vec![range, multirange]]
    });
    let of_one = [DataType::Range(RangeType::Int4), DataType::Multirange(RangeType::Int4), DataType::Integer];
    let pairs = combinations(&[of_one.to_vec(), of_one.to_vec()]);
    each.chain([Vec::new()]).chain(pairs).collect()
}

fn combinations<T: Clone>(sets: &[Vec<T>]) -> Vec<Vec<T>> {
    sets.iter().fold(vec![Vec::new()], |known, set| {
        let longer = |start: &Vec<T>| {
            let start = start.clone();
            set.iter().map(move |next| [start.clone(), vec![next.clone()]].concat()).collect::<Vec<_>>()
        };
        known.iter().flat_map(longer).collect()
    })
}

fn named() -> impl Iterator<Item = &'static Function> {
    FUNCTIONS.iter().flat_map(|functions| functions.iter())
}

fn signatures(function: &'static Function) -> Vec<Signature> {
    given(function).iter().filter_map(|types| function.signature(types)).collect()
}

fn numeric(text: &str) -> Value {
    Value::Numeric(Numeric::parse(text).expect("a number"))
}

fn read(text: &str, data_type: DataType) -> Value {
    types::parse_value(text, data_type).expect(text)
}

/// Arrays of one dimension from 1, and of others.
fn samples_of_arrays(element: ElementType) -> Vec<Value> {
    let values = samples(element.data_type());
    let array =
        |values: Vec<Value>| Value::Array(Arc::new(Array::new(element, values).expect("a short array")));
    let (column, shifted) = (Dimension::of(1), Dimension { lower: -1, length: 1 });
    let shaped = |dimensions: &[Dimension]| {
        let array = Array::shaped(element, dimensions, values[..1].to_vec());
        Value::Array(Arc::new(array.expect("a short array")))
    };
    let shaped = [shaped(&[column, shifted]), shaped(&[shifted])];
    let plain = [array(values[..1].to_vec()), array(values), array(vec![Value::Null]), array(Vec::new())];
    plain.into_iter().chain(shaped).collect()
}

/// Values of a type, among them some that most functions of texts take.
fn samples(data_type: DataType) -> Vec<Value> {
    match data_type {
        DataType::SmallInt => vec![Value::SmallInt(7), Value::SmallInt(i16::MIN)],
        DataType::Integer => [1, 2, 0, -3, i32::MAX].map(Value::Integer).to_vec(),
        DataType::BigInt => [6, 0, -9, i64::MIN].map(Value::BigInt).to_vec(),
        NUMERIC => ["1.50", "2", "0", "-7.25", "NaN"].map(numeric).to_vec(),
        DataType::Double => [2.5, 1.0, 59.5, f64::NAN, f64::NEG_INFINITY].map(Value::Double).to_vec(),
        DataType::Real => [0.5, 1.0, 0.25, 0.125].map(Value::Real).to_vec(),
        TEXT => [
            "i",
            "(i)",
            "utc",
            "year",
            "hour",
            "YYYY-MM-DD",
            "2024-02-29",
            "l+",
            "hello",
            "hex",
            "utf8",
            "",
            "ü",
            "sha256",
            "[)",
            "a",
            "simple",
        ]
        .map(Value::text)
        .to_vec(),
        DataType::Date => vec![Value::Date(8_000)],
        DataType::Timestamp => vec![Value::Timestamp(700_000_000_000_000), Value::Timestamp(i64::MAX)],
        DataType::TimestampTz => vec![Value::TimestampTz(700_000_000_000_000)],
        DataType::Time => vec![Value::Time(18_000_000_007)],
        DataType::Interval => {
            let hours = Interval { months: 0, days: 0, microseconds: 9_000_000_000 };
            let all = Interval { months: 14, days: 40, microseconds: 90_000_000_000 };
            vec![Value::Interval(all), Value::Interval(hours)]
        }
        DataType::Json | DataType::Jsonb => {
            ["{\"i\": [1, null], \"year\": 1.50}", "[\"i\", {\"b\": null}]", "null", "\"i\"", "[]"]
                .map(|text| read(text, data_type))
                .to_vec()
        }
        DataType::Range(RangeType::Int4 | RangeType::Int8 | RangeType::Num) => {
            ["[1,7)", "empty", "(,2]", "(,)"].map(|text| read(text, data_type)).to_vec()
        }
        DataType::Range(_) => {
            ["[2020-01-01,infinity]", "empty", "(,2020-01-02)"].map(|text| read(text, data_type)).to_vec()
        }
        DataType::Multirange(RangeType::Int4 | RangeType::Int8 | RangeType::Num) => {
            ["{[1,2),[6,8)}", "{}", "{(,)}"].map(|text| read(text, data_type)).to_vec()
        }
        DataType::Multirange(_) => {
            ["{(,2020-01-01),[2020-02-01,2020-03-01)}", "{[2020-01-01,infinity]}", "{}"]
                .map(|text| read(text, data_type))
                .to_vec()
        }
        DataType::Inet => parsed(data_type, &["10.1.2.3/8", "1.2.3.4", "::1", "2001:db8::1/64"]),
        DataType::Cidr => parsed(data_type, &["10.0.0.0/8", "1.2.3.4", "::1", "2001:db8::/64"]),
        DataType::MacAddr => parsed(data_type, &["08:00:2b:01:02:03"]),
        DataType::Oid => parsed(data_type, &["0", "1259", "4294967295"]),
        DataType::Hstore => parsed(data_type, &["a=>1, b=>NULL", "", "aa=>\"x y\", a=>2", "t=>t, n=>-1.5"]),
        DataType::Citext => parsed(data_type, &["Hello", "", "a.b,c", "ÄÖ"]),
        DataType::TsVector => parsed(data_type, &["'hello':1A,3 'i':2", "", "'l'", "a:5 b:9C c"]),
        DataType::TsQuery => parsed(data_type, &["hello", "", "!i | b:*A", "a <-> b & !c"]),
        DataType::Bit(_) | DataType::VarBit(_) => parsed(data_type, &["101", "0101100110", "1", ""]),
        DataType::TimeTz => parsed(data_type, &["12:34:56.789+05:30", "24:00-08"]),
        DataType::Unknown => Vec::new(),
        DataType::Boolean => [true, false].map(Value::Boolean).to_vec(),
        DataType::Bytea => [&b"a\x01b"[..], b""].map(|bytes| Value::Bytea(Arc::from(bytes))).to_vec(),
        DataType::Array(element) => samples_of_arrays(element),
        other => panic!("no samples of {other}"),
    }
}

fn parsed(data_type: DataType, texts: &[&str]) -> Vec<Value> {
    texts.iter().map(|text| types::parse_value(text, data_type).expect("a value")).collect()
}

/// Calls with values of the types that a function takes.
fn calls(signature: &Signature) -> Vec<Vec<Value>> {
    const CALLS: usize = 3_000;
    let with_null = |data_type: &DataType| {
        let null = (!signature.function.is_strict()).then_some(Value::Null);
        let mut values = samples(*data_type);
        values.extend(null);
        // What has many arguments does with few values of each.
        values.truncate(if signature.arguments.len() > 4 { 3 } else { 18 });
        values
    };
    let all = combinations(&signature.arguments.iter().map(with_null).collect::<Vec<_>>());
    let step = all.len() / CALLS + 1;
    all.into_iter().step_by(step).collect()
}

#[test]
fn every_function_is_found_by_its_names_and_types() {
    for function in named() {
        assert!(!function.names().is_empty(), "{function:?} has no name");
        let signatures = given(function);
        for name in function.names() {
            let finds = |types: &Vec<DataType>| {
                resolve(name, types, ExecutionVersion::NEWEST)
                    .ok()
                    .flatten()
                    .is_some_and(|found| found.function == function)
            };
            assert!(signatures.iter().any(finds), "{name}: another entry hides {function:?}");
        }
    }
}

#[test]
fn a_name_and_types_are_one_function() {
    let mut known: BTreeMap<String, &'static Function> = BTreeMap::new();
    for function in named() {
        for signature in signatures(function) {
            for name in function.names() {
                let call = format!("{name}{:?}", signature.arguments);
                let first = *known.entry(call.clone()).or_insert(function);
                assert!(first == function, "two entries are {call}");
            }
        }
    }
}

#[test]
fn every_function_gives_what_it_declares() {
    for function in named() {
        for signature in signatures(function) {
            let mut given = 0;
            for values in calls(&signature) {
                match function.call(&values, signature.result) {
                    Ok(Value::Null) => {}
                    Ok(value) => {
                        given += 1;
                        let expected = signature.result.family();
                        assert_eq!(value.data_type(), expected, "{:?} of {values:?}", function.names());
                    }
                    Err(error) => {
                        let broken = error.state == SqlState::INTERNAL_ERROR;
                        assert!(!broken, "{:?} of {values:?}: {error:?}", function.names());
                        assert!(function.can_fail(), "{:?} of {values:?}: {error:?}", function.names());
                    }
                }
            }
            assert!(given > 0, "{:?}{:?} never gives a value", function.names(), signature.arguments);
        }
    }
}

fn any_address() -> impl Strategy<Value = NetworkAddress> {
    (any::<bool>(), any::<u8>(), any::<u128>()).prop_map(|(is_v6, prefix, number)| {
        let bits: u8 = if is_v6 { 128 } else { 32 };
        NetworkAddress::of_number(is_v6, prefix % (bits + 1), number >> (128 - bits))
    })
}

fn any_value(data_type: DataType) -> BoxedStrategy<Value> {
    match data_type {
        DataType::SmallInt => any::<i16>().prop_map(Value::SmallInt).boxed(),
        DataType::Integer => any::<i32>().prop_map(Value::Integer).boxed(),
        DataType::BigInt => any::<i64>().prop_map(Value::BigInt).boxed(),
        TEXT => "\\PC{0,40}".prop_map(Value::text).boxed(),
        DataType::Bytea => any::<Vec<u8>>().prop_map(|bytes| Value::Bytea(bytes.into())).boxed(),
        DataType::Range(_) | DataType::Multirange(_) => prop::sample::select(samples(data_type)).boxed(),
        DataType::Inet => any_address().prop_map(Value::Inet).boxed(),
        DataType::Cidr => any_address().prop_map(|address| Value::Cidr(address.network())).boxed(),
        DataType::Oid => any::<u32>().prop_map(Value::Oid).boxed(),
        DataType::MacAddr => any::<[u8; 6]>().prop_map(Value::MacAddr).boxed(),
        DataType::TsVector | DataType::TsQuery | DataType::Hstore | DataType::Citext => {
            prop::sample::select(samples(data_type)).boxed()
        }
        DataType::Bit(_) | DataType::VarBit(_) => {
            "[01]{0,40}".prop_map(move |text| types::parse_value(&text, data_type).expect("bits")).boxed()
        }
        other => panic!("write how to make a random {other}"),
    }
}

#[test]
fn what_never_fails_never_fails() {
    for function in all().filter(|function| !function.can_fail()) {
        for signature in signatures(function) {
            let values: Vec<_> = signature.arguments.iter().map(|argument| any_value(*argument)).collect();
            let check = |values: Vec<Value>| {
                let value = function.call(&values, signature.result);
                prop_assert!(value.is_ok(), "{:?} of {values:?}: {value:?}", function.names());
                Ok(())
            };
            let config = Config { failure_persistence: None, ..Config::default() };
            TestRunner::new(config).run(&values, check).unwrap_or_else(|failure| panic!("{failure}"));
        }
    }
}

#[test]
fn work_is_charged_before_it_is_done() {
    let long = Value::text("x".repeat(1 << 20));
    let reverse = resolve("reverse", &[TEXT], ExecutionVersion::NEWEST)
        .expect("it is there")
        .expect("it is there")
        .function;
    let (value, steps) = work::measured(10, || reverse.call(std::slice::from_ref(&long), TEXT));
    assert_eq!(value.map_err(|error| error.state), Err(SqlState::QUERY_CANCELED));
    assert_eq!(steps, 1024);
}

#[test]
fn forms_are_for_their_comparison_and_bounds() {
    let array = samples(array_of(DataType::Integer)).swap_remove(1);
    let (one, missing) = (Value::Integer(1), Value::Integer(77));
    let truth = |function: &Function, value: &Value| {
        function.call(&[value.clone(), array.clone()], DataType::Boolean).expect("it compares")
    };
    // The array is 1, 2, 0, -3 and the largest integer.
    assert_eq!(truth(any_element(Comparison::Equal), &one), Value::Boolean(true));
    assert_eq!(truth(any_element(Comparison::Equal), &missing), Value::Boolean(false));
    assert_eq!(truth(all_elements(Comparison::NotEqual), &missing), Value::Boolean(true));
    assert_eq!(truth(any_element(Comparison::Greater), &Value::Integer(-3)), Value::Boolean(false));
    assert_eq!(truth(all_elements(Comparison::LessOrEqual), &Value::Integer(-3)), Value::Boolean(true));
    assert_eq!(truth(all_elements(Comparison::Less), &Value::Integer(-3)), Value::Boolean(false));
    assert_eq!(
        truth(any_element(Comparison::GreaterOrEqual), &Value::Integer(i32::MIN)),
        Value::Boolean(false)
    );
    let length = |lower: Option<i32>, upper: Option<i32>| {
        let bound = |bound: Option<i32>| bound.map_or(Value::Boolean(false), Value::Integer);
        let values = [array.clone(), bound(lower), bound(upper)];
        let part = SLICE.call(&values, array_of(DataType::Integer));
        match part.expect("a part") {
            Value::Array(part) => part.values().len(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(length(None, None), 5);
    assert_eq!(length(Some(4), None), 2);
    assert_eq!(length(None, Some(4)), 4);
    assert_eq!(length(Some(4), Some(4)), 1);
}
