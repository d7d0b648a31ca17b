//! Properties of values: keys sort as values do, texts read back, numeric arithmetic is exact.

use num_bigint::BigInt;
use num_traits::{Signed, Zero};
use proptest::prelude::*;
use std::cmp::Ordering;
use std::sync::Arc;
use types::{
    Array, Bound, Catalog, Composite, CompositeType, CompositeTypes, DataType, Dimension, ElementType,
    EnumPlace, EnumValue, Interval, Key, Multirange, NetworkAddress, Numeric, OutputColumn, Range, RangeType,
    TimeTz, TypeId, TypeKind, Value, assign, cast, elements_in, format_value, limits, parse_value,
};

fn numeric() -> impl Strategy<Value = Numeric> {
    let any = (any::<i128>(), 0u32..39, 0u8..80);
    let wide =
        any.prop_map(|(mantissa, digits, scale)| Numeric::new(mantissa % 10i128.pow(digits.min(38)), scale));
    let long = "-?[0-9]{1,120}(\\.[0-9]{1,120})?".prop_map(|text| Numeric::parse(&text).expect("a number"));
    let far =
        (-200i128..200, prop_oneof![8 => -400i32..400, 1 => -16_380i32..-16_370, 1 => 131_000i32..131_069])
            .prop_map(|(mantissa, exponent)| {
                Numeric::parse(&format!("{mantissa}e{exponent}")).expect("in range")
            });
    let near = (-200i128..200, 0u8..4).prop_map(|(mantissa, scale)| Numeric::new(mantissa, scale));
    let padded = (-20i128..20, 0u8..30)
        .prop_map(|(mantissa, zeros)| Numeric::new(mantissa * 10i128.pow(u32::from(zeros)), zeros));
    prop_oneof![4 => wide, 4 => near, 4 => padded, 4 => long, 1 => far]
}

fn double() -> impl Strategy<Value = f64> {
    let special =
        prop::sample::select(vec![0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -f64::NAN, 1.0]);
    prop_oneof![special, any::<u64>().prop_map(f64::from_bits), (-5i8..5).prop_map(f64::from)]
}

/// Arrays of one dimension from 1, and of others.
fn array(element: ElementType) -> BoxedStrategy<Value> {
    let element_value = prop_oneof![4 => value(element.data_type()), 1 => Just(Value::Null)];
    let dimension = (-2i32..4, 1u32..3).prop_map(|(lower, length)| Dimension { lower, length });
    let shape = prop_oneof![
        3 => (0usize..4).prop_map(|length| vec![Dimension::of(length)]),
        1 => prop::collection::vec(dimension, 1..4),
    ];
    (shape, prop::collection::vec(element_value, 8))
        .prop_map(move |(dimensions, mut values)| {
            values.truncate(elements_in(&dimensions));
            Value::Array(Array::shaped(element, &dimensions, values).expect("small").into())
        })
        .boxed()
}

fn value(data_type: DataType) -> BoxedStrategy<Value> {
    match data_type {
        DataType::Boolean => any::<bool>().prop_map(Value::Boolean).boxed(),
        DataType::Integer => prop_oneof![any::<i32>(), -3i32..3].prop_map(Value::Integer).boxed(),
        DataType::BigInt => prop_oneof![any::<i64>(), -3i64..3].prop_map(Value::BigInt).boxed(),
        DataType::Numeric(_) => numeric().prop_map(Value::Numeric).boxed(),
        DataType::Double => double().prop_map(Value::Double).boxed(),
        DataType::Text(_) | DataType::Unknown => {
            prop_oneof!["[\u{0}-\u{2}a]{0,4}", "[a-c]{0,3}", ".{0,6}"].prop_map(Value::text).boxed()
        }
        DataType::TimestampTz => any::<i64>().prop_map(Value::TimestampTz).boxed(),
        DataType::SmallInt => prop_oneof![any::<i16>(), -3i16..3].prop_map(Value::SmallInt).boxed(),
        DataType::Real => double().prop_map(|number| Value::Real(number as f32)).boxed(),
        DataType::Date => (-2_451_545i32..2_145_031_949).prop_map(Value::Date).boxed(),
        DataType::Timestamp => any::<i64>().prop_map(Value::Timestamp).boxed(),
        DataType::Time => (0i64..=86_400_000_000).prop_map(Value::Time).boxed(),
        DataType::Interval => interval().prop_map(Value::Interval).boxed(),
        DataType::Char(_) => "[a-c]{0,2} {0,2}".prop_map(|text| Value::Char(text.into())).boxed(),
        DataType::Bytea => {
            prop::collection::vec(0u8..4, 0..4).prop_map(|bytes| Value::Bytea(bytes.into())).boxed()
        }
        DataType::Uuid => any::<[u8; 16]>().prop_map(Value::Uuid).boxed(),
        DataType::Json => json().prop_map(|text| Value::Json(text.into())).boxed(),
        DataType::Jsonb => {
            json().prop_map(|text| Value::Jsonb(types::Jsonb::parse(&text).expect("it is JSON"))).boxed()
        }
        DataType::Inet => address().prop_map(Value::Inet).boxed(),
        DataType::Cidr => address().prop_map(|address| Value::Cidr(address.network())).boxed(),
        DataType::MacAddr => any::<[u8; 6]>().prop_map(Value::MacAddr).boxed(),
        DataType::Bit(_) | DataType::VarBit(_) => {
            "[01]{0,20}".prop_map(move |text| parse_value(&text, data_type).expect("bits")).boxed()
        }
        DataType::TimeTz => (0i64..=24, -1i64..2, -57_599i64..57_600)
            .prop_map(|(hour, microseconds, east)| {
                let time = (hour * 3_600_000_000 + microseconds).clamp(0, 86_400_000_000);
                Value::TimeTz(TimeTz::new(time, east).expect("in range"))
            })
            .boxed(),
        DataType::Array(element) => array(element),
        DataType::Composite(id) => {
            let types = composite_types();
            let fields = &types.get(id).expect("one of these").fields;
            let field = |data_type| prop_oneof![4 => value(data_type), 1 => Just(Value::Null)];
            let fields: Vec<_> = fields.iter().map(|column| field(column.data_type)).collect();
            fields
                .prop_filter_map("a row is no longer than a text may be, some numerics are", move |values| {
                    let row = Composite::new(Some(id), values).ok()?;
                    Some(Value::Composite(row.into()))
                })
                .boxed()
        }
        DataType::Enum(id) => {
            let types = composite_types();
            let known = types.enum_values(DataType::Enum(id)).expect("one of these").to_vec();
            prop::sample::select(known).prop_map(Value::Enum).boxed()
        }
        DataType::Range(range_type) => range(range_type).prop_map(|range| Value::Range(range.into())).boxed(),
        DataType::Multirange(range_type) => prop::collection::vec(range(range_type), 0..4)
            .prop_map(move |ranges| {
                Value::Multirange(Multirange::new(range_type, &ranges).expect("small").into())
            })
            .boxed(),
        DataType::TsVector => written(data_type, "([a-c]:[1-9](,[1-9][A-D]?)?( b)?)?"),
        // Quotes and backslashes in values have a backslash in front of them.
        DataType::Hstore => written(data_type, r#"("[abé]{0,3}"=>(NULL|"([a-d]|\\\\|\\"){0,4}"),){0,4}"#),
        DataType::Oid => prop_oneof![any::<u32>(), Just(u32::MAX), 0..3u32].prop_map(Value::Oid).boxed(),
        DataType::Citext => written(data_type, "[aAbBäÄ \u{1}\u{2}]{0,4}"),
        DataType::TsQuery => written(data_type, "([a-c] & !b:*A?( \\| c)?)?"),
        DataType::Rounded(..) => unreachable!("values are of the types with all digits"),
        DataType::Record | DataType::RefCursor | DataType::Polymorphic(_) | DataType::Domain(_) => {
            unreachable!("rows are of composite types here, and no value is of the others")
        }
    }
}

/// Values of the texts that a pattern describes.
fn written(data_type: DataType, pattern: &'static str) -> BoxedStrategy<Value> {
    pattern.prop_map(move |text| parse_value(&text, data_type).expect("a value")).boxed()
}

/// A range whose bounds can be read, which not all timestamps can.
fn range(range_type: RangeType) -> impl Strategy<Value = Range> {
    let element = match range_type {
        RangeType::Ts => (-9i64..9).prop_map(|hours| Value::Timestamp(hours * 3_600_000_001)).boxed(),
        RangeType::TsTz => (-9i64..9).prop_map(|hours| Value::TimestampTz(hours * 3_600_000_001)).boxed(),
        _ => value(range_type.element()),
    };
    let bound = prop::option::of((element, any::<bool>()));
    (bound.clone(), bound).prop_map(move |bounds| {
        let bound =
            |bound: Option<(Value, bool)>| bound.map(|(value, is_included)| Bound { value, is_included });
        let made = Range::new(range_type, bound(bounds.0.clone()), bound(bounds.1.clone()));
        made.or_else(|_| Range::new(range_type, bound(bounds.1), bound(bounds.0)))
            .unwrap_or_else(|_| Range::empty(range_type))
    })
}

/// Networks in one another and far from one another.
fn address() -> impl Strategy<Value = NetworkAddress> {
    let number = prop_oneof![any::<u128>(), 0u128..3, (0u32..128).prop_map(|bits| 1 << bits)];
    (any::<bool>(), any::<u8>(), number).prop_map(|(is_v6, prefix, number)| {
        let bits = if is_v6 { 128 } else { 32 };
        let number = if is_v6 { number } else { number & u128::from(u32::MAX) };
        NetworkAddress::of_number(is_v6, prefix % (bits + 1), number)
    })
}

fn json() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        prop::sample::select(vec![
            "null", "true", "1", "1.0", "1.00", "-2e3", "\"\"", "\"a\\n\"", "[]", "{}"
        ])
        .prop_map(String::from),
        any::<i32>().prop_map(|number| number.to_string()),
    ];
    scalar.prop_recursive(3, 12, 3, |inner| {
        let member = ("[ab]{0,2}", inner.clone()).prop_map(|(key, value)| format!("\"{key}\":{value}"));
        prop_oneof![
            prop::collection::vec(inner, 0..3).prop_map(|all| format!("[{}]", all.join(", "))),
            prop::collection::vec(member, 0..3).prop_map(|all| format!("{{{}}}", all.join(","))),
        ]
    })
}

fn interval() -> impl Strategy<Value = Interval> {
    let near = (-2i32..2, -40i32..40, -3i64..3).prop_map(|(months, days, hours)| Interval {
        months,
        days,
        microseconds: hours * 12 * 3_600_000_000,
    });
    let any = any::<(i32, i32, i64)>();
    prop_oneof![near, any.prop_map(|(months, days, microseconds)| Interval { months, days, microseconds })]
}

/// A type with fields of the others, and one with a field of that.
fn composite_types() -> CompositeTypes {
    let field = |name: &str, data_type| OutputColumn { name: name.to_string(), data_type };
    let texts = DataType::Text(None).array().expect("a type that has arrays");
    let inner = CompositeType {
        id: INNER,
        name: "inner".to_string(),
        fields: vec![field("t", DataType::Text(None)), field("n", DataType::Numeric(None))],
        kind: TypeKind::Composite,
    };
    let outer = CompositeType {
        id: OUTER,
        name: "outer".to_string(),
        fields: vec![
            field("b", DataType::Boolean),
            field("i", inner.data_type()),
            field("ts", texts),
            field("m", DataType::Enum(MOOD)),
        ],
        kind: TypeKind::Composite,
    };
    let value = |(number, label): (u16, &str)| {
        Arc::new(EnumValue { type_id: MOOD, place: EnumPlace::nth(number), label: label.into() })
    };
    let labels = ["sad", "(o,\"k\"", "happy"];
    let mood = CompositeType {
        id: MOOD,
        name: "mood".to_string(),
        fields: Vec::new(),
        kind: TypeKind::Enum((0..).zip(labels).map(value).collect()),
    };
    let types = [inner, outer, mood].map(|known| (known.name.clone(), Arc::new(known)));
    CompositeTypes::new(&Catalog { types: types.into(), ..Catalog::default() })
}

const INNER: TypeId = TypeId(3);
const OUTER: TypeId = TypeId(7);
const MOOD: TypeId = TypeId(8);

const TYPES: [DataType; 30] = [
    DataType::Boolean,
    DataType::Integer,
    DataType::BigInt,
    DataType::Numeric(None),
    DataType::Double,
    DataType::Text(None),
    DataType::TimestampTz,
    DataType::SmallInt,
    DataType::Real,
    DataType::Date,
    DataType::Timestamp,
    DataType::Time,
    DataType::Interval,
    DataType::Char(None),
    DataType::Bytea,
    DataType::Uuid,
    DataType::Json,
    DataType::Jsonb,
    DataType::Hstore,
    DataType::Citext,
    DataType::Oid,
    DataType::Range(RangeType::Int4),
    DataType::Range(RangeType::Num),
    DataType::Multirange(RangeType::TsTz),
    DataType::Inet,
    DataType::Cidr,
    DataType::MacAddr,
    DataType::Bit(None),
    DataType::VarBit(None),
    DataType::TimeTz,
];

/// The types, and arrays of some of them.
fn all_types() -> impl Strategy<Value = DataType> {
    let arrays = [DataType::Integer, DataType::Text(None), DataType::Numeric(None), DataType::Bytea];
    let arrays = arrays.map(|element| element.array().expect("a type that has arrays"));
    let rows = [DataType::Composite(INNER), DataType::Composite(OUTER)];
    prop::sample::select(TYPES.into_iter().chain(arrays).chain(rows).collect::<Vec<_>>())
}

/// Two rows of values with the same types.
fn row_pairs() -> impl Strategy<Value = Vec<(Value, Value)>> {
    let pair = all_types().prop_flat_map(|data_type| {
        let (a, b) = (value(data_type), value(data_type));
        // Equal values are rare among random ones, and needed for the columns behind them to matter.
        prop_oneof![1 => (a.clone(), b).boxed(), 1 => a.prop_map(|a| (a.clone(), a)).boxed()]
    });
    prop::collection::vec(pair, 1..4)
}

/// Whether arrays with other dimensions than one from 1 are in it, whose keys do not stand in the order of SQL.
fn has_dimensions(value: &Value) -> bool {
    match value {
        Value::Array(array) => !array.is_plain() || array.values().iter().any(has_dimensions),
        Value::Composite(row) => row.values().iter().any(has_dimensions),
        _ => false,
    }
}

fn key<'a>(values: impl IntoIterator<Item = &'a Value>) -> Key {
    Key::encode(values).expect("short and not NULL")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn keys_sort_as_their_values_do_column_by_column(pairs in row_pairs()) {
        let expected = pairs
            .iter()
            .map(|(a, b)| a.compare(b).expect("not NULL"))
            .find(|order| *order != Ordering::Equal)
            .unwrap_or(Ordering::Equal);
        let (left, right) = (key(pairs.iter().map(|(a, _)| a)), key(pairs.iter().map(|(_, b)| b)));
        prop_assert_eq!(left.cmp(&right), left.as_bytes().cmp(right.as_bytes()));
        if pairs.iter().any(|(a, b)| has_dimensions(a) || has_dimensions(b)) {
            prop_assert_eq!(left == right, expected.is_eq());
        } else {
            prop_assert_eq!(left.cmp(&right), expected);
        }
    }

    #[test]
    fn a_prefix_selects_the_rows_with_its_values(pairs in row_pairs()) {
        let row = key(pairs.iter().map(|(a, _)| a));
        let prefix = key(pairs.iter().take(1).map(|(_, b)| b));
        let equal = pairs[0].0.compare(&pairs[0].1) == Some(Ordering::Equal);
        prop_assert_eq!(row.as_bytes().starts_with(prefix.as_bytes()), equal);
        let below_end = prefix.after_prefix().is_none_or(|end| row < end);
        prop_assert_eq!(row >= prefix && below_end, equal);
    }

    #[test]
    fn numeric_keys_ignore_the_scale(a in numeric(), zeros in 0i32..10) {
        if let Ok(padded) = a.round(i32::from(a.scale()) + zeros) {
            prop_assert_eq!(&a, &padded);
            prop_assert_eq!(key([&Value::Numeric(a)]), key([&Value::Numeric(padded)]));
        }
    }

    #[test]
    fn texts_read_back((data_type, value) in all_types().prop_flat_map(|t| (Just(t), value(t)))) {
        let text = format_value(&value).expect("not NULL");
        if data_type.is_composite() {
            match composite_types().assign(Value::text(text.as_str()), data_type) {
                Ok(read) => prop_assert_eq!(read, value),
                Err(error) => prop_assert!(text.contains('\0'), "{}", error),
            }
            return Ok(());
        }
        match (&value, parse_value(&text, data_type)) {
            (Value::Interval(_), Ok(read)) => prop_assert_eq!(read.compare(&value), Some(Ordering::Equal)),
            // A smallest number of months, days or hours has no positive counterpart to be written with.
            (Value::Interval(_), Err(error)) => prop_assert_eq!(error.state.to_string(), "22015"),
            (Value::Array(_), Err(error)) => prop_assert!(text.contains('\0'), "{}", error),
            (Value::Text(text), Err(error)) => prop_assert!(text.contains('\0'), "{}", error),
            (Value::TimestampTz(_) | Value::Timestamp(_), Err(error)) => prop_assert_eq!(error.state, types::SqlState::DATETIME_FIELD_OVERFLOW),
            (_, read) => prop_assert_eq!(read, Ok(value)),
        }
    }

    #[test]
    fn encodings_read_back(pairs in row_pairs()) {
        let values: Vec<Value> = pairs.into_iter().map(|(a, _)| a).collect();
        prop_assert_eq!(types::decode_exactly::<Vec<Value>>(&types::encode(&values)).ok(), Some(values));
    }

    #[test]
    fn any_text_is_read_or_refused_as_a_row(text in "[(),\"\\\\ {}ab1.t]{0,24}") {
        let types = composite_types();
        for id in [INNER, OUTER] {
            let data_type = DataType::Composite(id);
            if let Ok(value) = types.cast(Value::text(text.as_str()), data_type) {
                prop_assert!(types.fits(&value, data_type));
                let again = format_value(&value).expect("not NULL");
                prop_assert_eq!(types.cast(Value::text(again), data_type), Ok(value));
            }
        }
    }

    #[test]
    fn no_bytes_are_a_row_that_is_written_differently(
        value in value(DataType::Composite(OUTER)),
        at in any::<prop::sample::Index>(),
        with in any::<u8>(),
    ) {
        let mut bytes = types::encode(&value);
        let at = at.index(bytes.len());
        bytes[at] = with;
        if let Ok(read) = types::decode_exactly::<Value>(&bytes) {
            prop_assert_eq!(types::encode(&read), bytes);
            let _ = composite_types().fits(&read, DataType::Composite(OUTER));
            let _ = format_value(&read);
        }
    }

    #[test]
    fn no_bytes_are_an_address_or_bits_that_are_written_differently(
        value in prop::sample::select(&TYPES[TYPES.len() - 6..]).prop_flat_map(value),
        at in any::<prop::sample::Index>(),
        with in any::<u8>(),
    ) {
        let mut bytes = types::encode(&value);
        // Behind the tag.
        let at = 1 + at.index(bytes.len() - 1);
        bytes[at] = with;
        if let Ok(read) = types::decode_exactly::<Value>(&bytes) {
            prop_assert_eq!(types::encode(&read), bytes);
            let text = format_value(&read).expect("not NULL");
            prop_assert_eq!(parse_value(&text, read.data_type()), Ok(read));
        }
    }

    #[test]
    fn any_text_is_read_or_refused_as_any_type(text in ".{0,20}", number in "[ +-]?[0-9.]{0,50}[eE:T -]?[0-9:+.-]{0,20}") {
        for data_type in TYPES.into_iter().chain([DataType::Numeric(Some((5, 2))), DataType::Text(Some(3))]) {
            for text in [&text, &number] {
                if let Ok(value) = parse_value(text, data_type) {
                    prop_assert_eq!(value.data_type(), data_type.family());
                }
            }
        }
    }

    #[test]
    fn any_value_is_cast_or_refused(value in all_types().prop_flat_map(value)) {
        for target in TYPES.into_iter().chain([DataType::Numeric(Some((38, 38))), DataType::Text(Some(0))]) {
            for result in [cast(value.clone(), target), assign(value.clone(), target)].into_iter().flatten() {
                prop_assert_eq!(result.data_type(), target.family());
            }
        }
    }

    #[test]
    fn numeric_arithmetic_is_exact(a in numeric(), b in numeric()) {
        let scale = a.scale().max(b.scale());
        let (x, y) = (at_scale(&a, scale), at_scale(&b, scale));
        check(a.checked_add(&b), &x + &y, u32::from(scale))?;
        check(a.checked_sub(&b), &x - &y, u32::from(scale))?;
        let digits_after = u32::from(a.scale()) + u32::from(b.scale());
        if digits_after <= u32::from(limits::NUMERIC_SCALE_MAX) {
            check(a.checked_mul(&b), mantissa(&a) * mantissa(&b), digits_after)?;
        }
        if b.is_zero() {
            prop_assert!(a.checked_div(&b).is_err_and(|error| error.state == types::SqlState::DIVISION_BY_ZERO));
            prop_assert!(a.checked_rem(&b).is_err_and(|error| error.state == types::SqlState::DIVISION_BY_ZERO));
            return Ok(());
        }
        check(a.checked_rem(&b), &x % &y, u32::from(scale))?;
        if let Ok(quotient) = a.checked_div(&b) {
            // |a / b − quotient| ≤ half a unit of the last digit, and a unit is small against the quotient.
            let unit = BigInt::from(10).pow(u32::from(quotient.scale()));
            let difference = (&x * &unit - &y * mantissa(&quotient)).abs() * 2;
            prop_assert!(difference <= y.abs());
            let digits = if quotient.is_zero() { 0 } else { quotient.digits().len() };
            // A scale that is chosen ends at a thousand digits.
            let enough = digits >= 16 || quotient.scale() == 0 && digits > 12 || quotient.scale() == 1000;
            prop_assert!(x.is_zero() || enough, "{} digits", digits);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn numeric_rounding_is_to_the_nearest(a in numeric(), digits in -60i32..150) {
        let Ok(rounded) = a.round(digits) else { return Ok(()) };
        prop_assert_eq!(i32::from(rounded.scale()), digits.max(0));
        // Twice the difference is at most a unit, at a scale that has both.
        let scale = a.scale().max(rounded.scale());
        let difference: BigInt = (at_scale(&a, scale) - at_scale(&rounded, scale)).abs() * 2;
        let unit_exponent = i32::from(scale) - digits;
        let unit = BigInt::from(10).pow(unit_exponent.max(0).unsigned_abs());
        prop_assert!(difference <= unit || unit_exponent < 0 && difference.is_zero());
        let cut = a.trunc(digits).expect("no larger than the value");
        prop_assert!(cut.abs() <= a.abs() && cut.abs() <= rounded.abs());
    }

    #[test]
    fn numeric_roots_are_the_nearest(a in numeric()) {
        let Ok(root) = a.abs().sqrt() else { return Ok(()) };
        // (root ± half a unit)² is on both sides of the number.
        let squared = mantissa(&root) * mantissa(&root);
        let (scale, wanted) = (2 * u32::from(root.scale()), u32::from(a.scale()));
        let number = mantissa(&a.abs());
        let (squared, number, unit) = match scale >= wanted {
            true => (squared, number * BigInt::from(10).pow(scale - wanted), BigInt::from(1)),
            false => {
                let unit = BigInt::from(10).pow(wanted - scale);
                (squared * &unit, number, unit)
            }
        };
        let distance: BigInt = squared - number;
        prop_assert!(distance.abs() <= (mantissa(&root) + 1) * unit);
    }

    #[test]
    fn whole_powers_of_whole_numbers_are_exact(base in -2000i64..2000, exponent in 0i32..200) {
        let power = Numeric::from(base).power(&Numeric::from(exponent)).expect("in range");
        prop_assert_eq!(power.scale(), 16);
        let expected = BigInt::from(base).pow(exponent.unsigned_abs()) * BigInt::from(10).pow(16);
        prop_assert_eq!(mantissa(&power), expected);
    }

    #[test]
    fn a_logarithm_undoes_a_power(exponent in -1_000_000i64..1_000_000) {
        let exponent = Numeric::new(i128::from(exponent), 4);
        // With 60 digits after the point, more of them than the logarithm has are right.
        let power = exponent.checked_add(&Numeric::new(0, 60)).and_then(|exponent| exponent.exponential());
        let back = power.expect("in range").natural_logarithm().expect("positive");
        let difference = back.checked_sub(&exponent).expect("small").abs();
        prop_assert!(difference < Numeric::new(1, 14), "{difference}");
    }
}

fn mantissa(value: &Numeric) -> BigInt {
    let magnitude: BigInt = value.digits().parse().expect("digits");
    if value.is_negative() { -magnitude } else { magnitude }
}

fn at_scale(value: &Numeric, scale: u16) -> BigInt {
    mantissa(value) * BigInt::from(10).pow(u32::from(scale - value.scale()))
}

/// The exact result, or a refusal where it has too many digits.
fn check(
    found: Result<Numeric, types::SqlError>,
    expected: BigInt,
    scale: u32,
) -> Result<(), proptest::test_runner::TestCaseError> {
    match found {
        Ok(found) => {
            prop_assert_eq!(mantissa(&found), expected);
            prop_assert_eq!(u32::from(found.scale()), scale);
        }
        Err(error) => {
            let end = BigInt::from(10).pow(limits::NUMERIC_WHOLE_DIGITS_MAX + scale);
            prop_assert!(expected.abs() >= end, "{error}");
        }
    }
    Ok(())
}

#[test]
fn keys_refuse_null_and_excessive_length() {
    let state = |values: &[Value]| Key::encode(values).map(|_| ()).map_err(|error| error.state.to_string());
    assert_eq!(state(&[Value::Integer(1), Value::Null]), Err("23502".to_string()));
    let longest = Value::text("a".repeat(limits::KEY_BYTES_MAX - 1));
    assert_eq!(state(std::slice::from_ref(&longest)), Ok(()));
    assert_eq!(state(&[longest, Value::Boolean(true)]), Err("54000".to_string()));
    assert_eq!(state(&[Value::text("a".repeat(limits::KEY_BYTES_MAX))]), Err("54000".to_string()));
    assert_eq!(
        state(&[Value::text("\u{1}".repeat(limits::KEY_BYTES_MAX / 2 + 1))]),
        Err("54000".to_string())
    );
}

fn parsed(data_type: DataType, text: &str) -> Value {
    parse_value(text, data_type).expect("a value")
}

#[test]
fn keys_keep_their_bytes() {
    let parse = |text: &str, range_type| {
        let data_type = DataType::Multirange(range_type);
        parse_value(text, if text.starts_with('{') { data_type } else { DataType::Range(range_type) })
            .expect("a range")
    };
    let table = [
        (Value::Boolean(true), "0x01"),
        (Value::Integer(-1), "0x7fffffff"),
        (Value::BigInt(1), "0x8000000000000001"),
        (Value::TimestampTz(0), "0x8000000000000000"),
        (Value::SmallInt(-1), "0x7fff"),
        (Value::Real(1.0), "0xbf800000"),
        (Value::Date(0), "0x80000000"),
        (Value::Timestamp(-1), "0x7fffffffffffffff"),
        (Value::Time(0), "0x8000000000000000"),
        (
            Value::Interval(Interval { months: 0, days: 1, microseconds: 1 }),
            "0x8000000000000000000000141dd76001",
        ),
        (Value::Char("a ".into()), "0x6100"),
        (Value::Bytea([0, 255].into()), "0x0101ff00"),
        (Value::Citext("aB".into()), "0x616200"),
        (Value::Oid(4_294_967_295), "0xffffffff"),
        (Value::Oid(26), "0x0000001a"),
        (
            parse_value("a=>1, b=>NULL", DataType::Hstore).expect("an hstore"),
            "0x0161316200000000020000000100000000020000000003000000000301",
        ),
        (Value::Uuid([7; 16]), "0x07070707070707070707070707070707"),
        (Value::Jsonb(types::Jsonb::parse("[]").expect("JSON")), "0x00"),
        (
            Value::Jsonb(types::Jsonb::parse("{\"a\": [null, true, \"b\"]}").expect("JSON")),
            "0x060000000161000500000003010401026200",
        ),
        (
            Value::Array(
                Array::new(
                    types::ElementType::new(DataType::SmallInt).expect("an element type"),
                    vec![Value::SmallInt(1), Value::Null],
                )
                .expect("small")
                .into(),
            ),
            "0x0180010200",
        ),
        (parse("empty", RangeType::Int4), "0x00"),
        (parse("[1,)", RangeType::Int4), "0x02800000010001"),
        (parse("(,1]", RangeType::Num), "0x0100cd1401"),
        (parse("{[1,2),[4,)}", RangeType::Int4), "0x01028000000100008000000200010280000004000100"),
        (parsed(DataType::Inet, "10.1.2.3/8"), "0x000a000000080a010203"),
        (parsed(DataType::Cidr, "1::/16"), &format!("0x010001{0}100001{0}", "00".repeat(14))),
        (parsed(DataType::MacAddr, "08:00:2b:01:02:03"), "0x08002b010203"),
        (parsed(DataType::Bit(None), "1000000001"), "0x8040000000000a"),
        (parsed(DataType::TimeTz, "00:00:01+00:01"), "0x7ffffffffc7bbb407fffffc4"),
        (Value::Double(-0.0), "0x8000000000000000"),
        (Value::Double(1.0), "0xbff0000000000000"),
        (Value::Double(-1.0), "0x400fffffffffffff"),
        (Value::Double(f64::NAN), "0xfff8000000000000"),
        (Value::text("a\u{0}\u{1}b"), "0x61010101026200"),
        (Value::Numeric(Numeric::ZERO), "0x80"),
        (Value::Numeric(Numeric::new(123_450, 2)), "0xd0194564"),
        (Value::Numeric(Numeric::new(-1, 0)), "0x32eb"),
        (Value::Numeric(Numeric::new(1, 76)), "0x8114"),
        (Value::Numeric(Numeric::new(1, 77)), "0x81017fb414"),
        (Value::Numeric(Numeric::new(-1, 77)), "0x7efe804beb"),
        (Value::Numeric(Numeric::parse("9e131071").expect("in range")), "0xf300020000b4"),
    ];
    for (value, expected) in table {
        let found = format!("{:?}", key([&value]));
        assert_eq!(found, expected, "{value:?}");
    }
}
