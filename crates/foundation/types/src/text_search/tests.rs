use super::*;
use crate::{DataType, ExecutionVersion, Key, SqlState, Value, format_value, parse_value, with_types_of};
use proptest::prelude::*;

fn vector(text: &str) -> Value {
    parse_value(text, DataType::TsVector).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn query(text: &str) -> Value {
    parse_value(text, DataType::TsQuery).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn shown(value: &Value) -> String {
    format_value(value).expect("not NULL")
}

/// Any document, also those that no text makes.
fn vectors() -> impl Strategy<Value = TsVector> {
    let position = (1..=POSITION_MAX, 0..4_usize)
        .prop_map(|(place, weight)| Position::new(place.into(), Weight::ALL[weight]));
    let lexeme = ("[a-c'\\\\ é:]{1,4}", proptest::collection::vec(position, 0..4));
    proptest::collection::vec(lexeme, 0..6).prop_map(|lexemes| TsVector::new(lexemes).expect("short"))
}

fn queries() -> impl Strategy<Value = TsQuery> {
    let word = ("[a-c'\\\\ é:]{1,3}", 0..16_u8, any::<bool>()).prop_map(|(text, bits, is_prefix)| {
        let weights = Weights::of_bits(bits).expect("four bits");
        vec![QueryItem::Operand { text: text.as_str().into(), weights, is_prefix }]
    });
    let tree = word.prop_recursive(5, 24, 2, |part| {
        let operator =
            prop_oneof![Just(QueryItem::And), Just(QueryItem::Or), (0..4_u16).prop_map(QueryItem::Phrase)];
        prop_oneof![
            part.clone().prop_map(|part| [part, vec![QueryItem::Not]].concat()),
            (part.clone(), part, operator)
                .prop_map(|(left, right, operator)| [left, right, vec![operator]].concat()),
        ]
    });
    let any = prop_oneof![1 => Just(Vec::new()), 9 => tree];
    any.prop_map(|items| TsQuery::new(items).expect("short").expect("whole"))
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(vector in vectors(), query in queries()) {
        for value in [Value::TsVector(vector), Value::TsQuery(query)] {
            prop_assert_eq!(crate::decode_exactly::<Value>(&crate::encode(&value)).expect("encoded"), value.clone());
            let read = parse_value(&shown(&value), value.data_type()).expect("written");
            // `a & (b & c)` is written without parentheses, as in PostgreSQL.
            prop_assert_eq!(shown(&read), shown(&value));
            if value.data_type() == DataType::TsVector {
                prop_assert_eq!(read, value);
            }
        }
    }

    #[test]
    fn keys_are_ordered_as_values_are(vectors in proptest::collection::vec(vectors(), 2), queries in proptest::collection::vec(queries(), 2)) {
        let of = |one: &Value, other: &Value| {
            let key = |value: &Value| Key::encode([value]).expect("short");
            (one.compare(other), key(one).cmp(&key(other)))
        };
        let vectors: Vec<Value> = vectors.into_iter().map(Value::TsVector).collect();
        let queries: Vec<Value> = queries.into_iter().map(Value::TsQuery).collect();
        for pair in [&vectors, &queries] {
            let (compared, ordered) = of(&pair[0], &pair[1]);
            prop_assert_eq!(compared, Some(ordered));
        }
    }

    #[test]
    fn bytes_that_nobody_wrote_are_refused_or_written_again(tag in 30..32_u8, bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        let bytes = [vec![tag], (bytes.len() as u32).to_le_bytes().to_vec(), bytes].concat();
        if let Ok(value) = crate::decode_exactly::<Value>(&bytes) {
            prop_assert_eq!(crate::encode(&value), bytes);
        }
    }

    #[test]
    fn texts_never_panic(text in "[a-b0-9'\\\\:*,&|!()<>\\- \"éD]{0,24}") {
        for data_type in [DataType::TsVector, DataType::TsQuery] {
            if let Ok(value) = parse_value(&text, data_type) {
                prop_assert_eq!(parse_value(&shown(&value), data_type).expect("written"), value);
            }
        }
    }
}

#[test]
fn flipped_and_cut_bytes_never_panic() {
    for value in [vector("'a b':1A,2 fat:3 rat"), query("a & !(b:*A <2> c | d)")] {
        let bytes = crate::encode(&value);
        for at in 0..bytes.len() {
            assert!(crate::decode_exactly::<Value>(&bytes[..at]).is_err(), "{at} bytes");
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                if let Ok(other) = crate::decode_exactly::<Value>(&flipped) {
                    assert_eq!(crate::encode(&other), flipped);
                }
            }
        }
    }
}

#[test]
fn older_programs_know_neither() {
    for value in [vector("a"), query("a")] {
        let bytes = crate::encode(&value);
        let error = with_types_of(ExecutionVersion::V14, || crate::decode_exactly::<Value>(&bytes))
            .expect_err("unknown");
        assert_eq!(error.to_string(), format!("Unexpected variant tag: {}", bytes[0]));
        let array = crate::encode(&value.data_type().array());
        assert!(
            with_types_of(ExecutionVersion::V14, || crate::decode_exactly::<Option<DataType>>(&array))
                .is_err()
        );
    }
}

#[test]
fn long_chains_and_deep_parentheses_are_read_and_written() {
    let chain = vec!["a"; 50_000].join(" & ");
    assert_eq!(shown(&query(&chain)).len(), 50_000 * 6 - 3);
    let deep = ["(".repeat(100_000), "a".into(), ")".repeat(100_000)].concat();
    assert_eq!(shown(&query(&deep)), "'a'");
    let nots = ["!(".repeat(30_000), "a".into(), ")".repeat(30_000)].concat();
    let value = query(&nots);
    assert_eq!(value.compare(&query(&nots)), Some(std::cmp::Ordering::Equal));
    assert_eq!(shown(&value).len(), 30_000 + 3);
    let error =
        parse_value(&["!".repeat(33), "a".into()].concat(), DataType::TsQuery).expect_err("too many wait");
    assert_eq!(error.message, "tsquery stack too small");
    let error = parse_value(&["a".repeat(2_047)].concat(), DataType::TsVector).expect_err("too long");
    assert_eq!(
        (error.state, &*error.message),
        (SqlState::PROGRAM_LIMIT_EXCEEDED, "word is too long (2047 bytes, max 2046 bytes)")
    );
}
