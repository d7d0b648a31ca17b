use super::*;
use crate::{Key, Value, decode_exactly, encode};
use proptest::prelude::*;

fn jsonb(text: &str) -> Jsonb {
    Jsonb::parse(text).expect(text)
}

fn refusal(text: &str) -> SqlError {
    Jsonb::parse(text).expect_err(text)
}

fn key(value: &Jsonb) -> Key {
    Key::encode([&Value::Jsonb(value.clone())]).expect("a short value")
}

#[test]
fn a_value_is_normalised() {
    for (text, written) in [
        (" {\"bb\" : 1 ,\"a\":[ ], \"bb\":2}", "{\"a\": [], \"bb\": 2}"),
        ("[1.50, 1e3, -0, 0.10e1]", "[1.50, 1000, 0, 1.0]"),
        ("\"\\u00e9\\ud83d\\ude00\\n\\u0001\\/\"", "\"é😀\\n\\u0001/\""),
        ("{\"ab\":1,\"b\":2,\"a\":{},\"\":null}", "{\"\": null, \"a\": {}, \"b\": 2, \"ab\": 1}"),
        ("true", "true"),
    ] {
        let value = jsonb(text);
        assert_eq!(value.to_text(), written);
        assert_eq!(jsonb(written), value, "{text}");
        assert_eq!(value.text_bytes(), written.len(), "{text}");
    }
}

#[test]
fn what_is_no_json_is_refused_with_what_was_expected() {
    for (text, detail) in [
        ("", "The input string ended unexpectedly."),
        ("{\"a\":1", "The input string ended unexpectedly."),
        ("{\"a\":1,}", "Expected string, but found \"}\"."),
        ("{1:2}", "Expected string or \"}\", but found \"1\"."),
        ("{\"a\",1}", "Expected \":\", but found \",\"."),
        ("{\"a\":}", "Expected JSON value, but found \"}\"."),
        ("{\"a\":1 2}", "Expected \",\" or \"}\", but found \"2\"."),
        ("[1 2]", "Expected \",\" or \"]\", but found \"2\"."),
        ("[1,]", "Expected JSON value, but found \"]\"."),
        ("1 2", "Expected end of input, but found \"2\"."),
        ("trux", "Token \"trux\" is invalid."),
        ("é", "Token \"é\" is invalid."),
        ("'", "Token \"'\" is invalid."),
        ("01", "Token \"01\" is invalid."),
        ("1.", "Token \"1.\" is invalid."),
        ("-", "Token \"-\" is invalid."),
        ("1e+", "Token \"1e+\" is invalid."),
        ("\"abc", "Token \"\"abc\" is invalid."),
        ("\"a\nb\"", "Character with value 0x0a must be escaped."),
        ("\"\\x\"", "Escape sequence \"\\x\" is invalid."),
        ("\"\\u12g4\"", "\"\\u\" must be followed by four hexadecimal digits."),
        ("\"\\ud800\"", "Unicode low surrogate must follow a high surrogate."),
        ("\"\\ud800\\ud800\"", "Unicode high surrogate must not follow a high surrogate."),
        ("\"\\udc00\"", "Unicode low surrogate must follow a high surrogate."),
    ] {
        let error = refusal(text);
        assert_eq!(error.state, SqlState::INVALID_TEXT_REPRESENTATION, "{text}");
        assert_eq!(error.detail.as_deref(), Some(detail), "{text}");
    }
    assert_eq!(refusal("\"\\u0000\"").state, SqlState(*b"22P05"));
    assert!(check_json("[\"\\u0000\", \"\\ud800\"]").is_ok(), "json keeps escapes as they are");
}

#[test]
fn nesting_and_length_have_limits() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(Jsonb::parse(&nested(limits::JSON_NESTING_MAX)).is_ok());
    for text in [nested(limits::JSON_NESTING_MAX + 1), "[".repeat(100_000), "{\"a\":".repeat(20_000)] {
        assert_eq!(refusal(&text).state, SqlState::STATEMENT_TOO_COMPLEX);
        assert_eq!(check_json(&text).map_err(|error| error.state), Err(SqlState::STATEMENT_TOO_COMPLEX));
    }
    let long = format!("[{}1]", "1,".repeat(400_000));
    assert_eq!(refusal(&long).state, SqlState::PROGRAM_LIMIT_EXCEEDED, "it is longer when it is written");
    assert!(check_json(&long).is_ok());
    let escapes = format!("\"{}\"", "\\u00e9".repeat(20_000));
    assert_eq!(jsonb(&escapes).text_bytes(), 40_002);
    assert_eq!(refusal("1e200000").state, SqlState::NUMERIC_VALUE_OUT_OF_RANGE);
}

#[test]
fn numbers_with_exponents_are_counted_before_they_are_written() {
    let many = |form: &str, count: usize| vec![form; count].join(",");
    let huge = "1e131000";
    for text in [
        format!("[{}]", many(huge, 10_000)),
        format!("[{}]", many(&format!("[{huge},{huge}]"), 6_000)),
        format!("{{\"a\":[{}]}}", many(huge, 9)),
    ] {
        assert_eq!(refusal(&text).state, SqlState::PROGRAM_LIMIT_EXCEEDED);
    }
    let again = format!("{{{}}}", many(&format!("\"a\":{huge}"), 8_000));
    assert_eq!(jsonb(&again), jsonb(&format!("{{\"a\":{huge}}}")), "the last of equal keys is there alone");
    for data_type in [crate::DataType::Jsonb, crate::DataType::Json] {
        let array = data_type.array().expect("a type that has arrays");
        let read = crate::parse_value(&format!("{{{}}}", many(huge, 10_000)), array);
        let made = read.and_then(|value| {
            crate::cast(value, crate::DataType::Jsonb.array().expect("a type that has arrays"))
        });
        assert_eq!(made.map_err(|error| error.state), Err(SqlState::PROGRAM_LIMIT_EXCEEDED));
    }
}

#[test]
fn parts_are_made_as_long_as_there_is_room() {
    let huge = jsonb("1e131000");
    let made = std::cell::Cell::new(0);
    let part = || {
        made.set(made.get() + 1);
        JsonPart::owned(&huge)
    };
    let array = JsonPart::array_of(10_000, (0..10_000).map(|_| Ok(part())));
    assert_eq!(array.map(|_| ()).map_err(|error| error.state), Err(SqlState::PROGRAM_LIMIT_EXCEEDED));
    assert_eq!(made.get(), 33);
    let member = |number: usize| Ok((number.to_string().into(), part()));
    let object = JsonPart::object_of((0..10_000).map(member));
    assert_eq!(object.map(|_| ()).map_err(|error| error.state), Err(SqlState::PROGRAM_LIMIT_EXCEEDED));
    assert!(made.get() < 132, "{}", made.get());
    let same = JsonPart::object_of((0..100).map(|_| Ok(("a".into(), part())))).expect("one member");
    assert_eq!(Jsonb::new(&same).expect("it is short"), jsonb("{\"a\": 1e131000}"));
}

#[test]
fn keys_tell_long_numbers_apart() {
    let number = |digits: &str| Value::Jsonb(jsonb(digits));
    let round = format!("1{}", "0".repeat(6_001));
    let odd = format!("1{}1", "0".repeat(6_000));
    for (one, same) in [(round.as_str(), "1e6001"), ("1.50", "15e-1"), ("-0", "0.0")] {
        let key = |digits| Key::encode([&number(digits)]).expect("few digits that are not zero");
        assert_eq!(key(one), key(same), "{one}");
    }
    for long in [odd.clone(), format!("-{odd}"), format!("{round}.5"), format!("[{odd}]"), "7".repeat(7_000)]
    {
        let state = Key::encode([&number(&long)]).map_err(|error| error.state);
        assert_eq!(state, Err(SqlState::PROGRAM_LIMIT_EXCEEDED), "no key has so many digits");
    }
    let ascending = [format!("-{odd}"), format!("-{round}"), round, odd];
    let prefixes: Vec<Key> = ascending.iter().map(|digits| Key::index_prefix([&number(digits)])).collect();
    assert!(prefixes.windows(2).all(|pair| pair[0] < pair[1]));
}

#[test]
fn values_have_the_order_of_postgresql() {
    let ascending = [
        "[]",
        "null",
        "\"\"",
        "\"a\"",
        "\"b\"",
        "-1",
        "0.5",
        "1",
        "10",
        "false",
        "true",
        "[null]",
        "[1]",
        "[[]]",
        "[{}]",
        "[1, 1]",
        "[1, 2]",
        "{}",
        "{\"a\": 1}",
        "{\"a\": 2}",
        "{\"b\": 0}",
        "{\"b\": 0, \"aa\": 1}",
    ];
    for (place, left) in ascending.iter().enumerate() {
        for (other, right) in ascending.iter().enumerate() {
            let (left, right) = (jsonb(left), jsonb(right));
            assert_eq!(left.compare(&right), place.cmp(&other), "{left:?} {right:?}");
            assert_eq!(key(&left).cmp(&key(&right)), place.cmp(&other), "{left:?} {right:?}");
        }
    }
    let (short, long) = (jsonb("{\"a\": 1.0}"), jsonb("{\"a\": 1.00}"));
    assert_eq!(
        (short.compare(&long), key(&short) == key(&long), short == long),
        (Ordering::Equal, true, false)
    );
}

#[test]
fn what_no_program_writes_is_refused() {
    let good = encode(&jsonb("{\"a\": [1.5, \"x\"], \"b\": null}"));
    for cut in 0..good.len() {
        assert!(decode_exactly::<Jsonb>(&good[..cut]).is_err(), "{cut}");
    }
    for position in 0..good.len() {
        for change in [1, 0x80, 0xff] {
            let mut bytes = good.clone();
            bytes[position] ^= change;
            // It is another value, or none: never bytes that another program writes differently.
            if let Ok(value) = decode_exactly::<Jsonb>(&bytes) {
                assert_eq!(encode(&jsonb(&value.to_text())), bytes);
            }
        }
    }
    let raw = |bytes: &[u8]| decode_exactly::<Jsonb>(&encode(&bytes.to_vec())).is_ok();
    assert!(raw(&[5, 1, 0]));
    assert!(!raw(&[5, 0x81, 0, 0]), "a length has one form");
    assert!(!raw(&[3, 2, b'0', b'1']), "a number has one form");
    assert!(!raw(&[3, 3, b'N', b'a', b'N']), "no JSON number");
    assert!(!raw(&[6, 7, 2, 1, b'b', 0, 1, b'a', 0]), "keys ascend");
    assert!(!raw(&[6, 7, 2, 1, b'a', 0, 1, b'a', 0]), "keys are different");
    assert!(!raw(&[7]) && !raw(&[]) && !raw(&[0, 0]));
    let mut deep = Vec::new();
    for _ in 0..limits::JSON_NESTING_MAX + 1 {
        let mut content = vec![1];
        content.extend_from_slice(if deep.is_empty() { &[0] } else { &deep });
        deep = vec![5];
        let mut length = content.len();
        while length >= 0x80 {
            deep.push(length as u8 | 0x80);
            length >>= 7;
        }
        deep.push(length as u8);
        deep.extend(content);
    }
    assert!(!raw(&deep), "too deep");
    assert!(decode_exactly::<Value>(&encode(&Value::Json(Arc::from("{")))).is_err(), "json is JSON");
}

#[test]
fn programs_that_do_not_know_json_refuse_its_tags() {
    let element = crate::DataType::Jsonb.array().expect("a type that has arrays");
    let array = crate::parse_value("{1}", element).expect("an array");
    let empty = crate::parse_value("{}", crate::DataType::Json.array().expect("arrays")).expect("an array");
    for (value, tag) in [
        (Value::Json(Arc::from("1")), JSON_TAG),
        (Value::Jsonb(jsonb("1")), JSONB_TAG),
        (array, encode(&crate::DataType::Jsonb)[0]),
        (empty, encode(&crate::DataType::Json)[0]),
    ] {
        let bytes = encode(&value);
        // Of what stands behind they have read nothing.
        for bytes in [&bytes[..], &bytes[..bytes.len() - 1]] {
            let error = crate::with_types_of(crate::ExecutionVersion::V6, || decode_exactly::<Value>(bytes))
                .expect_err("an unknown tag");
            assert_eq!(error.to_string(), format!("Unexpected variant tag: {tag}"));
        }
        assert_eq!(decode_exactly::<Value>(&bytes).ok(), Some(value));
    }
    assert_eq!(encode(&Value::Json(Arc::from("1")))[0], JSON_TAG);
    assert_eq!(encode(&Value::Jsonb(jsonb("1")))[0], JSONB_TAG);
}

#[test]
fn a_text_is_taken_apart_as_it_is_written() {
    let split = split_json(" { \"a\" : [1 , 2] , \"a\":1.0}").expect("an object");
    let members = vec![("a".to_string(), "[1 , 2]"), ("a".to_string(), "1.0")];
    assert_eq!(split, JsonText::Object(members));
    assert_eq!(split_json("[ \"x\" ,{}]"), Ok(JsonText::Array(vec!["\"x\"", "{}"])));
    assert_eq!(split_json("\"\\u0041\""), Ok(JsonText::String("A".to_string())));
    assert!(split_json("[1}").is_err());
}

/// Values of every form, with keys and numbers that are near one another.
fn any_json() -> BoxedStrategy<String> {
    let scalar = prop_oneof![
        Just("null".to_string()),
        any::<bool>().prop_map(|truth| truth.to_string()),
        (-20i32..20).prop_map(|number| number.to_string()),
        (-500i64..500, 0usize..4).prop_map(|(number, zeros)| format!("{number}.5{}", "0".repeat(zeros))),
        any::<i64>().prop_map(|number| format!("{number}e-3")),
        "[ab\\n\"é\u{1}]{0,3}".prop_map(|text| quoted_json(&text)),
    ];
    scalar
        .prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(|all| format!("[{}]", all.join(","))),
                prop::collection::vec(("[abc]{0,2}", inner), 0..4).prop_map(|all| {
                    let members = all.iter().map(|(key, value)| format!("\"{key}\":{value}"));
                    format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
                }),
            ]
        })
        .boxed()
}

proptest! {
    #[test]
    fn every_value_reads_back(text in any_json()) {
        let value = jsonb(&text);
        prop_assert_eq!(&jsonb(&value.to_text()), &value);
        prop_assert_eq!(value.text_bytes(), value.to_text().len());
        let stored = Value::Jsonb(value.clone());
        prop_assert_eq!(decode_exactly::<Value>(&encode(&stored)).ok(), Some(stored));
        let json = Value::Json(Arc::from(text.as_str()));
        prop_assert_eq!(decode_exactly::<Value>(&encode(&json)).ok(), Some(json));
        let rebuilt = Jsonb::new(&JsonPart::from(value.node())).expect("it is a value");
        prop_assert_eq!(rebuilt, value);
    }

    #[test]
    fn keys_have_the_order_of_the_values(left in any_json(), right in any_json()) {
        let (left, right) = (jsonb(&left), jsonb(&right));
        prop_assert_eq!(key(&left).cmp(&key(&right)), left.compare(&right));
        prop_assert_eq!(right.compare(&left), left.compare(&right).reverse());
    }

    #[test]
    fn the_key_of_a_number_is_that_of_a_numeric(
        digits in "-?(0|[1-9][0-9]{0,30})(\\.0{0,3}[0-9]{1,30})?(e-?[0-9]{1,3})?",
    ) {
        let number = Value::Numeric(crate::Numeric::parse(&digits).expect("a number"));
        let (mut expected, found) = (key(&jsonb("0")), key(&jsonb(&digits)));
        let rank = expected.as_bytes()[0];
        expected = Key::encode([&number]).expect("a short key");
        prop_assert_eq!(found.as_bytes(), [&[rank], expected.as_bytes()].concat());
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[\\[\\]{}:,\"\\\\u0dc8 1e.tnéa-]{0,24}") {
        if let Ok(value) = Jsonb::parse(&text) {
            prop_assert!(check_json(&text).is_ok());
            prop_assert!(split_json(&text).is_ok());
            prop_assert_eq!(jsonb(&value.to_text()), value);
        }
    }
}
