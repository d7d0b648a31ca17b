use super::*;
use crate::session_format::{SessionFormat, within_format};
use crate::{DataType, Key, ValueLimits, limits};
use crate::{ExecutionVersion, decode_exactly, encode, format_value, parse_value, with_types_of};
use proptest::prelude::*;
use std::sync::Arc;

fn range(text: &str, range_type: RangeType) -> Range {
    parse_range(text, range_type).expect(text)
}

fn multirange(text: &str, range_type: RangeType) -> Multirange {
    parse_multirange(text, range_type).expect(text)
}

fn bounds(lower: Option<(Value, bool)>, upper: Option<(Value, bool)>) -> Bounds {
    let bound = |(value, is_included)| Bound { value, is_included };
    Bounds { lower: lower.map(bound), upper: upper.map(bound) }
}

/// Whole numbers as bounds, each in the range or not.
fn whole(lower: (i32, bool), upper: (i32, bool)) -> Bounds {
    let value = |(number, is_included)| Some((Value::Integer(number), is_included));
    bounds(value(lower), value(upper))
}

#[test]
fn ranges_are_read_and_written_as_in_postgresql() {
    use RangeType::{Date, Int4, Int8, Num, Ts};
    for (written, range_type, expected) in [
        ("[1,5]", Int4, "[1,6)"),
        ("(1,2)", Int4, "empty"),
        ("(1,3)", Int4, "[2,3)"),
        (" \t[ 1 , 5 ) \n", Int4, "[1,5)"),
        ("[\"1\",5\\0]", Int4, "[1,51)"),
        ("[,]", Int4, "(,)"),
        ("(,5]", Int8, "(,6)"),
        ("[3,3)", Int4, "empty"),
        ("EmPtY ", Int4, "empty"),
        ("(1.50,1.5]", Num, "empty"),
        ("[1.50,1.5]", Num, "[1.50,1.5]"),
        ("[0,NaN]", Num, "[0,NaN]"),
        ("(-Infinity,Infinity)", Num, "(-Infinity,Infinity)"),
        ("(2020-01-01,2020-01-03]", Date, "[2020-01-02,2020-01-04)"),
        ("(2020-01-01,infinity]", Date, "[2020-01-02,infinity]"),
        ("(-infinity,2020-01-01)", Date, "(-infinity,2020-01-01)"),
        ("[infinity,infinity]", Date, "[infinity,infinity]"),
        ("[2020-01-01,2020-01-01 10:00]", Ts, "[\"2020-01-01 00:00:00\",\"2020-01-01 10:00:00\"]"),
        ("[infinity,]", Ts, "[infinity,)"),
        ("[\"0044-03-15 BC\",)", Date, "[\"0044-03-15 BC\",)"),
    ] {
        assert_eq!(format_range(&range(written, range_type)), expected, "{written}");
    }
}

#[test]
fn multiranges_are_read_and_written_as_in_postgresql() {
    use RangeType::{Int4, Num, Ts};
    for (written, range_type, expected) in [
        ("{}", Int4, "{}"),
        (" { } ", Int4, "{}"),
        ("{empty, EMPTY}", Int4, "{}"),
        ("{[5,7), [1,3] ,empty,[4,4]}", Int4, "{[1,7)}"),
        ("{[1,2),[3,4)}", Int4, "{[1,2),[3,4)}"),
        ("{[1,2),[2,3]}", Num, "{[1,3]}"),
        ("{[1,2),(2,3]}", Num, "{[1,2),(2,3]}"),
        ("{[1,10],(2,3]}", Num, "{[1,10]}"),
        ("{(,1),(0,)}", Num, "{(,)}"),
        ("{[\"1\",\"3\"\"\\]\",4\\)}", Int4, ""),
        ("{[2020-01-01,\"2020-01-02 10:00\")}", Ts, "{[\"2020-01-01 00:00:00\",\"2020-01-02 10:00:00\")}"),
    ] {
        match parse_multirange(written, range_type) {
            Ok(read) => assert_eq!(format_multirange(&read), expected, "{written}"),
            Err(_) => assert_eq!("", expected, "{written}"),
        }
    }
}

#[test]
fn bounds_are_read_and_written_as_the_session_has_its_dates_and_instants() {
    let format = |dates: &str, zone: &str| {
        let format =
            SessionFormat::default().changed_by("datestyle", dates).expect("a style").expect("it is known");
        format.changed_by("timezone", zone).expect("a zone").expect("it is known")
    };
    let multirange = |text: &str| {
        let read = parse_multirange(text, RangeType::Date).expect(text);
        format_multirange(&read)
    };
    within_format(format("postgres, dmy", "Europe/Berlin"), || {
        let read = range("[2020-01-01 10:00+00,2020-07-01 12:00)", RangeType::TsTz);
        let expected = "[\"Wed 01 Jan 11:00:00 2020 CET\",\"Wed 01 Jul 12:00:00 2020 CEST\")";
        assert_eq!(format_range(&read), expected);
        assert_eq!(multirange("{[01-02-2020,05-02-2020]}"), "{[01-02-2020,06-02-2020)}");
    });
    within_format(format("german", "UTC"), || {
        let read = range("[01.02.2020,\"03.02.2020 10:00\"]", RangeType::Ts);
        assert_eq!(format_range(&read), "[\"01.02.2020 00:00:00\",\"03.02.2020 10:00:00\"]");
    });
    // The longest ones are no longer than is counted.
    let last = "[294276-12-31 23:59:58.999999 UTC,294276-12-31 23:59:59.999999 UTC]";
    let first = "[\"4714-11-24 10:11:12.123456 BC\",\"4714-11-25 10:11:12.123456 BC\"]";
    for (style, zone) in [
        ("iso", "Asia/Kathmandu"),
        ("postgres", "America/Caracas"),
        ("sql", "Europe/Dublin"),
        ("german", "UTC"),
    ] {
        within_format(format(style, zone), || {
            for text in [last, first] {
                let read = range(text, RangeType::TsTz);
                let written = format_range(&read);
                assert!(read.bounds().map_or(0, text_bytes) > written.len(), "{written}");
            }
        });
    }
}

#[test]
fn what_is_no_range_is_refused_as_in_postgresql() {
    let refusal = |text: &str, data_type: DataType| {
        let error = parse_value(text, data_type).expect_err(text);
        (error.state.to_string(), error.message, error.detail.unwrap_or_default())
    };
    let malformed = [
        ("", "Missing left parenthesis or bracket."),
        ("1,2)", "Missing left parenthesis or bracket."),
        ("[1", "Unexpected end of input."),
        ("[1,2", "Unexpected end of input."),
        ("[\"1,2)", "Unexpected end of input."),
        ("[1)", "Missing comma after lower bound."),
        ("[1,2,3)", "Too many commas."),
        ("[1,2) x", "Junk after right parenthesis or bracket."),
        ("emptyx", "Junk after \"empty\" key word."),
    ];
    for (text, detail) in malformed {
        let message = format!("malformed range literal: \"{text}\"");
        let expected = ("22P02".to_string(), message, detail.to_string());
        assert_eq!(refusal(text, DataType::Range(RangeType::Int4)), expected);
    }
    let malformed = [
        ("", "Missing left brace."),
        ("[1,2)", "Missing left brace."),
        ("{", "Unexpected end of input."),
        ("{[1,2)", "Unexpected end of input."),
        ("{[1,2", "Unexpected end of input."),
        ("{1}", "Expected range start."),
        ("{[1,2),}", "Expected range start."),
        ("{[1,2) [3,4)}", "Expected comma or end of multirange."),
        ("{emptyx}", "Expected comma or end of multirange."),
        ("{} x", "Junk after closing right brace."),
    ];
    for (text, detail) in malformed {
        let message = format!("malformed multirange literal: \"{text}\"");
        let expected = ("22P02".to_string(), message, detail.to_string());
        assert_eq!(refusal(text, DataType::Multirange(RangeType::Int4)), expected);
    }
    for (text, range_type, state, message) in [
        (
            "[5,1)",
            RangeType::Int4,
            "22000",
            "range lower bound must be less than or equal to range upper bound",
        ),
        ("[1,2147483647]", RangeType::Int4, "22003", "integer out of range"),
        ("(9223372036854775807,)", RangeType::Int8, "22003", "bigint out of range"),
        ("(5874897-12-31,)", RangeType::Date, "22008", "date out of range"),
        ("[a,)", RangeType::Int4, "22P02", "invalid input syntax for type integer: \"a\""),
        ("[\"\",)", RangeType::Num, "22P02", "invalid input syntax for type numeric: \"\""),
    ] {
        let found = refusal(text, DataType::Range(range_type));
        assert_eq!((found.0.as_str(), found.1.as_str()), (state, message), "{text}");
    }
}

#[test]
fn what_is_not_in_the_form_of_its_type_is_refused_when_read() {
    let of = |range_type: RangeType, bounds: Bounds| {
        Value::Range(Arc::new(Range { range_type, bounds: Some(bounds) }))
    };
    let several = |ranges: &[Bounds]| {
        Value::Multirange(Arc::new(Multirange { range_type: RangeType::Int4, ranges: ranges.to_vec() }))
    };
    let (integer, date) =
        (|number| Some((Value::Integer(number), true)), |day| Some((Value::Date(day), true)));
    let numeric = |text: &str, is_included| {
        Some((parse_value(text, DataType::Numeric(None)).expect("a number"), is_included))
    };
    for wrong in [
        of(RangeType::Int4, whole((1, true), (5, true))),
        of(RangeType::Int4, whole((1, false), (5, false))),
        of(RangeType::Int4, whole((5, true), (5, false))),
        of(RangeType::Int4, whole((6, true), (5, false))),
        of(RangeType::Int8, whole((1, true), (5, false))),
        of(RangeType::Int4, bounds(Some((Value::Null, true)), None)),
        of(RangeType::Int4, bounds(None, Some((Value::text("5"), false)))),
        of(RangeType::Date, bounds(date(5), date(9))),
        of(RangeType::Date, bounds(date(i32::MAX), Some((Value::Date(i32::MAX), false)))),
        of(RangeType::Num, bounds(numeric("1", true), numeric("1.00", false))),
        of(RangeType::Num, bounds(numeric("2", true), numeric("1", true))),
        of(RangeType::Ts, bounds(Some((Value::TimestampTz(1), true)), None)),
        several(&[whole((5, true), (7, false)), whole((1, true), (3, false))]),
        several(&[whole((1, true), (3, false)), whole((3, true), (7, false))]),
        several(&[whole((1, true), (3, false)), whole((2, true), (7, false))]),
        several(&[whole((1, true), (3, false)), whole((1, true), (3, false))]),
        several(&[bounds(integer(1), None), whole((2, true), (7, false))]),
        several(&[whole((1, true), (3, true))]),
    ] {
        assert!(decode_exactly::<Value>(&encode(&wrong)).is_err(), "{wrong:?}");
    }
    for right in [
        of(RangeType::Date, bounds(date(5), date(i32::MAX))),
        of(RangeType::Num, bounds(numeric("1", true), numeric("1.00", true))),
        several(&[whole((1, true), (3, false)), whole((4, true), (7, false))]),
    ] {
        assert_eq!(decode_exactly::<Value>(&encode(&right)).ok(), Some(right));
    }
}

#[test]
fn counts_and_depths_of_bytes_are_not_believed() {
    // A range whose bound is a range, and so on.
    let mut bytes = Vec::new();
    for _ in 0..100_000 {
        bytes.extend_from_slice(&[28, 0, 1, 1]);
    }
    assert!(decode_exactly::<Value>(&bytes).is_err());
    assert!(decode_exactly::<Value>(&[29, 0, 255, 255, 255, 255]).is_err());
    assert!(decode_exactly::<Value>(&[28, 6, 0]).is_err(), "there is no seventh type");
    assert!(decode_exactly::<Value>(&[28, 0, 2]).is_err());
}

#[test]
fn programs_before_version_10_know_no_ranges() {
    let (range, multirange) = (range("[1,2)", RangeType::Int4), multirange("{}", RangeType::Int4));
    for (value, tag) in [(Value::Range(range.into()), 28), (Value::Multirange(multirange.into()), 29)] {
        let bytes = encode(&value);
        let read = |version| with_types_of(version, || decode_exactly::<Value>(&bytes));
        let error = read(ExecutionVersion::V9).expect_err("it is unknown");
        assert_eq!(error.to_string(), format!("Unexpected variant tag: {tag}"));
        assert_eq!(read(ExecutionVersion::V10).ok(), Some(value));
    }
}

#[test]
fn what_is_too_long_cannot_be_made() {
    let state = |made: Result<Value, SqlError>| made.map(|_| ()).map_err(|error| error.state);
    let many = |count: usize| {
        let ranges: Vec<String> = (0..count).map(|number| format!("[{0}1,{0}2)", number * 10)).collect();
        format!("{{{}}}", ranges.join(","))
    };
    let (data_type, refused) = (DataType::Multirange(RangeType::Int4), Err(SqlState::PROGRAM_LIMIT_EXCEEDED));
    assert_eq!(state(parse_value(&many(5_000), data_type)), Ok(()));
    assert_eq!(state(parse_value(&many(limits::ARRAY_ELEMENTS_MAX + 1), data_type)), refused);
    let digits = "7".repeat(100_000);
    let data_type = DataType::Range(RangeType::Num);
    assert_eq!(state(parse_value(&format!("[{digits},)"), data_type)), Ok(()));
    let long = format!("[{digits},{digits}8]");
    assert_eq!(state(parse_value(&long, data_type)), Ok(()));
    let before = ValueLimits::of(ExecutionVersion::V13);
    assert_eq!(before.within(|| state(parse_value(&long, data_type))), refused);
    let many = |count: u8| {
        let ranges: Vec<String> =
            (1..=count).map(|first| format!("[{first}{digits},{first}{digits})")).collect();
        parse_value(
            &format!("{{{}}}", ranges.join(",").replace("7)", "8)")),
            DataType::Multirange(RangeType::Num),
        )
    };
    assert_eq!(state(many(4)), Ok(()));
    assert_eq!(state(many(6)), refused);
}

fn element(range_type: RangeType) -> BoxedStrategy<Value> {
    let small = -4i32..5;
    let moment = prop_oneof![
        8 => (-3i64..4).prop_map(|hours| hours * 3_600_000_000),
        1 => prop::sample::select(vec![i64::MIN, i64::MAX]),
    ];
    match range_type {
        RangeType::Int4 => small.prop_map(Value::Integer).boxed(),
        RangeType::Int8 => small.prop_map(|number| Value::BigInt(i64::from(number) << 40)).boxed(),
        RangeType::Num => {
            prop::sample::select(vec!["-Infinity", "-1.5", "0", "0.0", "1", "1.00", "2", "NaN"])
                .prop_map(|text| parse_value(text, DataType::Numeric(None)).expect("a number"))
                .boxed()
        }
        RangeType::Date => prop_oneof![8 => small, 1 => prop::sample::select(vec![i32::MIN, i32::MAX])]
            .prop_map(Value::Date)
            .boxed(),
        RangeType::Ts => moment.prop_map(Value::Timestamp).boxed(),
        RangeType::TsTz => moment.prop_map(Value::TimestampTz).boxed(),
    }
}

fn any_range(range_type: RangeType) -> impl Strategy<Value = Range> {
    let bound = || {
        prop::option::weighted(0.85, (element(range_type), any::<bool>()))
            .prop_map(|bound| bound.map(|(value, is_included)| Bound { value, is_included }))
    };
    (bound(), bound())
        .prop_filter_map("bounds in order", move |(lower, upper)| Range::new(range_type, lower, upper).ok())
}

fn any_multirange(range_type: RangeType) -> impl Strategy<Value = Multirange> {
    prop::collection::vec(any_range(range_type), 0..5)
        .prop_map(move |ranges| Multirange::new(range_type, &ranges).expect("a short one"))
}

fn any_type() -> impl Strategy<Value = RangeType> {
    prop::sample::select(RangeType::ALL.to_vec())
}

fn any_value() -> impl Strategy<Value = Value> {
    any_type().prop_flat_map(value_of)
}

fn value_of(range_type: RangeType) -> BoxedStrategy<Value> {
    let range = any_range(range_type).prop_map(|range| Value::Range(Arc::new(range)));
    let multirange = any_multirange(range_type).prop_map(|ranges| Value::Multirange(Arc::new(ranges)));
    prop_oneof![range, multirange].boxed()
}

fn key(value: &Value) -> Key {
    Key::encode([value]).expect("a short key")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn values_read_back(value in any_value()) {
        let text = format_value(&value).expect("it is not NULL");
        let read = parse_value(&text, value.data_type());
        prop_assert_eq!(read.as_ref(), Ok(&value), "{}", text);
        prop_assert_eq!(decode_exactly::<Value>(&encode(&value)).ok(), Some(value.clone()));
        let estimated = crate::composite::written_bytes(&value, 1);
        prop_assert!(estimated >= text.len(), "{} {}", estimated, text);
    }

    #[test]
    fn no_bytes_are_a_range_that_is_written_differently(
        value in any_value(),
        at in any::<prop::sample::Index>(),
        with in any::<u8>(),
    ) {
        let mut bytes = encode(&value);
        // Another tag makes it a value of another kind.
        let at = 1 + at.index(bytes.len() - 1);
        bytes[at] = with;
        if let Ok(read) = decode_exactly::<Value>(&bytes) {
            prop_assert_eq!(encode(&read), bytes.clone());
            let made = match &read {
                Value::Range(range) => match range.bounds().cloned() {
                    Some(Bounds { lower, upper }) => Range::new(range.range_type, lower, upper),
                    None => Ok(Range::empty(range.range_type)),
                }
                .map(|range| Value::Range(Arc::new(range))),
                Value::Multirange(ranges) => {
                    let each: Vec<Range> = ranges.to_ranges().collect();
                    Multirange::new(ranges.range_type, &each).map(|ranges| Value::Multirange(Arc::new(ranges)))
                }
                other => Ok(other.clone()),
            };
            prop_assert_eq!(made, Ok(read));
        }
        for end in 0..bytes.len() {
            prop_assert!(decode_exactly::<Value>(&encode(&value)[..end]).is_err());
        }
    }

    #[test]
    fn keys_sort_as_ranges_compare(
        (left, right) in any_type().prop_flat_map(|range_type| (any_range(range_type), any_range(range_type))),
    ) {
        let order = left.compare(&right);
        prop_assert_eq!(right.compare(&left), order.reverse());
        let (left, right) = (Value::Range(left.into()), Value::Range(right.into()));
        prop_assert_eq!(key(&left).cmp(&key(&right)), order);
        prop_assert_eq!(Key::index_prefix([&left]).cmp(&Key::index_prefix([&right])), order);
    }

    #[test]
    fn keys_sort_as_multiranges_compare(
        (left, right) in any_type().prop_flat_map(|range_type| (any_multirange(range_type), any_multirange(range_type))),
    ) {
        let order = left.compare(&right);
        let (left, right) = (Value::Multirange(left.into()), Value::Multirange(right.into()));
        prop_assert_eq!(key(&left).cmp(&key(&right)), order);
        prop_assert_eq!(Key::index_prefix([&left]).cmp(&Key::index_prefix([&right])), order);
    }

    #[test]
    fn sets_of_whole_numbers_are_what_is_in_them(
        left in any_multirange(RangeType::Int4),
        right in any_multirange(RangeType::Int4),
    ) {
        let has = |ranges: &Multirange, number: i32| ranges.spans().contains_value(&Value::Integer(number));
        let (union, common) = (left.union(&right).expect("short"), left.intersection(&right).expect("short"));
        let rest = left.minus(&right).expect("short");
        // What lies further out is as the last ones are.
        let numbers = -7..8;
        for number in numbers.clone() {
            let (one, other) = (has(&left, number), has(&right, number));
            prop_assert_eq!(has(&union, number), one || other, "{}", number);
            prop_assert_eq!(has(&common, number), one && other, "{}", number);
            prop_assert_eq!(has(&rest, number), one && !other, "{}", number);
        }
        let mut all = numbers.clone().map(|number| (has(&left, number), has(&right, number)));
        prop_assert_eq!(left.spans().overlaps(right.spans()), all.any(|(one, other)| one && other));
        let mut all = numbers.map(|number| (has(&left, number), has(&right, number)));
        prop_assert_eq!(left.spans().contains(right.spans()), all.all(|(one, other)| one || !other));
    }

    #[test]
    fn sets_of_any_elements_go_together(
        (left, right) in any_type().prop_flat_map(|range_type| (any_multirange(range_type), any_multirange(range_type))),
    ) {
        let (one, other) = (left.spans(), right.spans());
        let common = left.intersection(&right).expect("short");
        let rest = left.minus(&right).expect("short");
        let union = left.union(&right).expect("short");
        prop_assert_eq!(one.overlaps(other), !common.spans().is_empty());
        prop_assert_eq!(one.contains(other), right.minus(&left).expect("short").spans().is_empty());
        prop_assert!(!rest.spans().overlaps(other));
        prop_assert!(union.spans().contains(one) && union.spans().contains(other));
        prop_assert!(rest.union(&common).expect("short").compare(&left).is_eq());
        prop_assert!(rest.union(&right).expect("short").compare(&union).is_eq());
        prop_assert!(!(one.is_before(other) && one.overlaps(other)));
        prop_assert!(left.hull().expect("short").spans().contains(one));
    }

    #[test]
    fn any_text_is_read_or_refused_as_a_range(text in "[\\[({]?[\\[(]?[0-3\",\\\\ )]{0,6},?[0-3\",\\\\ ]{0,3}[)\\]]?,?[)\\]}]?") {
        for data_type in [DataType::Range(RangeType::Int4), DataType::Multirange(RangeType::Num)] {
            if let Ok(value) = parse_value(&text, data_type) {
                let again = format_value(&value).expect("it is not NULL");
                prop_assert_eq!(parse_value(&again, data_type), Ok(value));
            }
        }
    }
}
