use super::*;
use crate::{DataType, ElementType, ExecutionVersion, SqlState, Value, ValueLimits};

#[test]
fn arrays_read_back() {
    let element = ElementType::new(DataType::Text(None)).expect("an element type");
    let array = parse_array(" { a , NULL,\"NULL\", \"q\\\"\\\\\" ,\"\",b c } ", element).expect("an array");
    assert_eq!(format_array(&array), "{a,NULL,\"NULL\",\"q\\\"\\\\\",\"\",\"b c\"}");
    let read: Array = crate::decode_exactly(&crate::encode(&array)).expect("what encode wrote");
    assert_eq!(read, array);
    for wrong in ["", "{", "{a", "{a,}", "{,a}", "a}", "{a}b", "{\"a}", "{a\"b\"}"] {
        assert!(parse_array(wrong, element).is_err(), "{wrong}");
    }
}

#[test]
fn an_array_in_an_array_is_refused_when_read() {
    let element = ElementType::new(DataType::Integer).expect("an element type");
    let array = Array::new(element, vec![Value::Integer(1)]).expect("small");
    let mut bytes = crate::encode(&Value::Array(std::sync::Arc::new(array)));
    let tag = bytes[0];
    bytes[6] = tag;
    assert!(crate::decode_exactly::<Value>(&bytes).is_err());
}

fn integers(text: &str) -> Array {
    parse_array(text, ElementType::new(DataType::Integer).expect("an element type")).expect(text)
}

#[test]
fn dimensions_read_back_as_text_and_bytes() {
    for text in ["{{1,2},{3,4}}", "[0:1]={1,2}", "[2:3][-1:-1]={{1},{NULL}}", "{{{1,2}}}", "{}"] {
        let array = integers(text);
        assert_eq!(format_array(&array), text);
        let read: Array = crate::decode_exactly(&crate::encode(&array)).expect(text);
        assert_eq!(read, array);
    }
    // What is said and follows anyway is not kept.
    assert_eq!(integers("[1:2]={1,2}"), integers("{1,2}"));
    assert!(integers("{1,2}").is_plain() && !integers("{{1,2}}").is_plain());
}

#[test]
fn an_array_of_one_dimension_is_encoded_as_ever() {
    let bytes = crate::encode(&integers("{7,NULL}"));
    assert_eq!(bytes[bytes.len() - 10..], [2, 0, 0, 0, 2, 7, 0, 0, 0, 0], "{bytes:?}");
}

#[test]
fn dimensions_that_are_none_of_the_array_are_refused() {
    let array = integers("{{1,2},{3,4}}");
    let bytes = crate::encode(&array);
    let at = bytes.iter().rposition(|byte| *byte == 0x80).expect("the mark of dimensions");
    // How many dimensions, a first subscript, a length, a first subscript far away, how many elements.
    for (place, byte, is_refused) in [
        (at + 1, 1, true),
        (at + 1, 7, true),
        (at + 2, 9, false),
        (at + 6, 1, true),
        (at + 5, 0x7f, false),
        (at - 3, 5, true),
    ] {
        let mut changed = bytes.clone();
        changed[place] = byte;
        let read = crate::decode_exactly::<Array>(&changed);
        assert_eq!(read.is_err(), is_refused, "{place}");
        assert!(read.map_or(true, |other| other != array), "{place}");
    }
    // One from 1 has another encoding.
    let mut plain = bytes[..at + 1].to_vec();
    plain.extend([1, 1, 0, 0, 0, 4, 0, 0, 0]);
    plain.extend(&bytes[at + 1 + 1 + 16..]);
    assert!(crate::decode_exactly::<Array>(&plain).is_err());
}

#[test]
fn before_version_16_there_is_one_dimension_from_1() {
    let element = ElementType::new(DataType::Integer).expect("an element type");
    let before = ValueLimits::of(ExecutionVersion::V15);
    for (text, message) in [
        ("{{1,2},{3,4}}", "an array of more than one dimension is not supported"),
        ("[0:1]={1,2}", "an array with bounds is not supported"),
        ("{1,{2}}", "an array of more than one dimension is not supported"),
    ] {
        let error = before.within(|| parse_array(text, element)).expect_err(text);
        assert_eq!((error.state, error.message.as_str()), (SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let plain = integers("{1}");
    before.within(|| {
        assert_eq!(parse_array("{1}", element), Ok(plain.clone()));
        let grown = plain.with_element(&[3], Value::Integer(3)).expect("small");
        assert_eq!(format_array(&grown), "{1,NULL,3}");
        let none = Array::new(element, Vec::new()).expect("small");
        assert_eq!(format_array(&none.with_element(&[2], Value::Integer(3)).expect("small")), "{NULL,3}");
        let error = plain.with_element(&[i64::from(i32::MAX)], Value::Null).expect_err("too long");
        assert_eq!(error.message, "the array has 16385 elements, the limit is 16384 (ARRAY_ELEMENTS_MAX)");
    });
    let bytes = crate::encode(&Value::Array(std::sync::Arc::new(integers("{{1}}"))));
    let read = || crate::decode_exactly::<Value>(&bytes).map_err(|error| error.to_string());
    assert!(read().is_ok());
    let refused = crate::with_types_of(ExecutionVersion::V15, read).expect_err("it is too large");
    assert!(refused.contains("expected at most ARRAY_ELEMENTS_MAX elements"), "{refused}");
}

#[test]
fn keys_tell_dimensions_apart() {
    let texts = ["{1,2}", "{{1,2}}", "{{1},{2}}", "[0:1]={1,2}", "[2:3]={1,2}", "{1}"];
    let keys: Vec<_> = texts
        .iter()
        .map(|text| crate::Key::encode([&Value::Array(std::sync::Arc::new(integers(text)))]).expect("short"))
        .collect();
    for (number, key) in keys.iter().enumerate() {
        assert!(!keys[number + 1..].contains(key), "{}", texts[number]);
    }
}

#[test]
fn what_grows_too_far_is_refused_before_it_is_made() {
    let array = integers("{1}");
    let far = i64::from(i32::MAX);
    for (subscripts, value) in [(&[far][..], 1), (&[-far], 1), (&[far - 1], 1)] {
        let error = array.with_element(subscripts, Value::Integer(value)).expect_err("too far");
        assert_eq!(error.state, SqlState::PROGRAM_LIMIT_EXCEEDED);
    }
    let none = Array::new(array.element(), Vec::new()).expect("small");
    assert_eq!(
        format_array(&none.with_element(&[7, -7], Value::Integer(1)).expect("one")),
        "[7:7][-7:-7]={{1}}"
    );
    let wide = none.with_slice(&[(Some(1), Some(far - 1)), (Some(1), Some(far - 1))], array.values());
    assert_eq!(wide.expect_err("too few").state, SqlState::ARRAY_SUBSCRIPT_ERROR);
}
