//! Parameters as the Postgres protocol brings them, in text and in binary, as values.

use super::decode_range;
use super::encode::Format;
use super::hstore_wire;
use super::text_search_wire;
use bytes::Buf;
use std::sync::Arc;
use types::datetime::{check_timestamp, is_finite_timestamp};
use types::limits::{NUMERIC_SCALE_MAX, TEXT_BYTES_MAX};
use types::{
    Array, Catalog, CompositeTypes, DataType, Dimension, Dimensions, ElementType, ExecutionVersion, Interval,
    Numeric, SqlError, SqlState, Value, array_elements_max, arrays_are_plain, check_bytes_length,
    check_dimensions, elements_in, format_value, parse_value,
};

/// `22P03` binary parameter that is no value of its type.
pub(super) const INVALID_BINARY_REPRESENTATION: SqlState = SqlState(*b"22P03");
/// `22021` bytes that are no text in UTF-8.
pub(super) const CHARACTER_NOT_IN_REPERTOIRE: SqlState = SqlState(*b"22021");

/// Bytes of a bytea in text: two digits for each byte, and two characters in front of them.
const BYTEA_TEXT_BYTES_MAX: usize = 2 * TEXT_BYTES_MAX + 2;

/// Object identifier of `void`, which no value has.
pub(super) const VOID: u32 = 2278;

/// Object identifier of `oid` itself.
const OID: u32 = 26;

/// The type that a client means by an object identifier; `Unknown` for those that Entente does not have.
pub(super) fn type_of_oid(oid: u32) -> DataType {
    DataType::from_oid(oid).unwrap_or(DataType::Unknown)
}

/// Whether a type came with a later version of the rules than a ledger is executed with: to the ledger it is no type at all. An `oid` is
/// a number to older ones.
pub(super) fn is_newer(oid: u32, version: ExecutionVersion) -> bool {
    let data_type = if oid == OID { DataType::BigInt } else { type_of_oid(oid) };
    let one = data_type.element().unwrap_or(data_type);
    (version < ExecutionVersion::V10 && one.is_of_version_10())
        || (version < ExecutionVersion::V15 && one.is_of_version_15())
        || (version < ExecutionVersion::V16 && one.is_of_version_16())
}

/// The same of several, of which the ledger may have made some, or the open block: `catalog` gives what the session knows, where that
/// is needed. The ledger is executed with this version.
pub(super) fn types_of_oids(
    oids: &[u32],
    catalog: impl FnOnce() -> Arc<Catalog>,
    version: ExecutionVersion,
) -> Vec<DataType> {
    let known = |oid: u32| match oid {
        OID if version < ExecutionVersion::V16 => DataType::BigInt.oid(),
        oid if is_newer(oid, version) => 0,
        oid => oid,
    };
    let oids: Vec<u32> = oids.iter().map(|oid| known(*oid)).collect();
    let types: Vec<DataType> = oids
        .iter()
        .map(|oid| match *oid {
            // Nothing asks for what such a parameter is.
            VOID => DataType::Text(None),
            oid => type_of_oid(oid),
        })
        .collect();
    if !types.iter().any(|data_type| data_type.needs_catalog()) {
        return types;
    }
    let catalog = catalog();
    let known = CompositeTypes::new(&catalog);
    oids.iter().map(|oid| known.of_number(*oid).unwrap_or(DataType::Unknown)).collect()
}

/// Where bytes stand, as errors say it.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// The parameter with this number, from 0.
    Parameter(usize),
    /// A field of a row; which, the error's context says.
    Field,
}

/// Reads parameter number `index` (from 0). `oid` says how its bytes are meant, `data_type` what the statement wants.
pub(super) fn decode_parameter(
    index: usize,
    bytes: Option<&[u8]>,
    format: Format,
    oid: u32,
    data_type: DataType,
) -> Result<Value, SqlError> {
    let Some(bytes) = bytes else { return Ok(Value::Null) };
    let value = match format {
        Format::Text => {
            let wanted = if data_type == DataType::Unknown { type_of_oid(oid) } else { data_type };
            let text = match wanted {
                DataType::Bytea => text_within(bytes, BYTEA_TEXT_BYTES_MAX)?,
                _ => text(bytes)?,
            };
            return parse(text, wanted);
        }
        // As in PostgreSQL, the binary form is the label.
        Format::Binary if matches!(data_type, DataType::Enum(_)) => Value::text(text(bytes)?),
        Format::Binary => decode_binary(Place::Parameter(index), bytes, oid)?,
    };
    coerce(value, data_type)
}

/// Reads a field of binary data that is no NULL, in a column of this type. Values of the ledger's own types are still to
/// be made of what is returned.
pub(super) fn decode_field(bytes: &[u8], data_type: DataType) -> Result<Value, SqlError> {
    match data_type {
        DataType::Enum(_) => Ok(Value::text(text(bytes)?)),
        _ => coerce(decode_binary(Place::Field, bytes, data_type.oid())?, data_type),
    }
}

fn text(bytes: &[u8]) -> Result<&str, SqlError> {
    text_within(bytes, TEXT_BYTES_MAX)
}

fn text_within(bytes: &[u8], limit: usize) -> Result<&str, SqlError> {
    if bytes.len() > limit {
        let message = format!("a value has {} bytes, the limit is {limit} (TEXT_BYTES_MAX)", bytes.len());
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    let wrong = |what| {
        SqlError::new(
            CHARACTER_NOT_IN_REPERTOIRE,
            format!("invalid byte sequence for encoding \"UTF8\": {what}"),
        )
    };
    if bytes.contains(&0) {
        return Err(wrong("0x00".to_string()));
    }
    std::str::from_utf8(bytes).map_err(|error| wrong(format!("byte {} of the value", error.valid_up_to())))
}

/// Whether its values, or those in its arrays, are made of texts by who knows the catalog.
pub(super) fn is_of_rows(data_type: DataType) -> bool {
    data_type.needs_catalog()
}

fn parse(text: &str, data_type: DataType) -> Result<Value, SqlError> {
    match data_type {
        DataType::Unknown => Ok(Value::text(text)),
        // Only a catalog knows its fields or labels.
        rows if is_of_rows(rows) => Ok(Value::text(text)),
        other => parse_value(text, other),
    }
}

/// The value as one of `data_type`; what fits is converted as an assignment would.
fn coerce(value: Value, data_type: DataType) -> Result<Value, SqlError> {
    match (&value, data_type) {
        (Value::SmallInt(number), DataType::Integer) => Ok(Value::Integer(i32::from(*number))),
        (Value::Real(number), DataType::Double) => Ok(Value::Double(f64::from(*number))),
        // By the rules of assignment where it is another point in time, an array of others, or of a length.
        (
            Value::Date(_)
            | Value::Timestamp(_)
            | Value::TimestampTz(_)
            | Value::Time(_)
            | Value::Interval(_)
            | Value::Array(_),
            wanted,
        ) if wanted != DataType::Unknown && !is_of_rows(wanted) => types::assign(value, wanted),
        (Value::Integer(number), DataType::BigInt) => Ok(Value::BigInt(i64::from(*number))),
        (Value::Integer(number), DataType::Double) => Ok(Value::Double(f64::from(*number))),
        (_, DataType::Unknown) => Ok(value),
        (_, wanted) if is_of_rows(wanted) => Ok(value),
        (_, wanted) if value.data_type() == wanted => Ok(value),
        // Length, precision and scale are checked where the text is read.
        (_, wanted) => parse_value(&format_value(&value).unwrap_or_default(), wanted),
    }
}

fn decode_binary(place: Place, bytes: &[u8], oid: u32) -> Result<Value, SqlError> {
    let wrong = || {
        let message = match place {
            Place::Parameter(index) => {
                format!("incorrect binary data format in bind parameter {}", index + 1)
            }
            Place::Field => "incorrect binary data format".to_string(),
        };
        SqlError::new(INVALID_BINARY_REPRESENTATION, message).detail(format!(
            "{} bytes are no value of the type with the object identifier {oid}",
            bytes.len()
        ))
    };
    Ok(match oid {
        16 => match bytes {
            [0] => Value::Boolean(false),
            [1] => Value::Boolean(true),
            _ => return Err(wrong()),
        },
        21 => Value::SmallInt(i16::from_be_bytes(bytes.try_into().map_err(|_| wrong())?)),
        23 => Value::Integer(i32::from_be_bytes(bytes.try_into().map_err(|_| wrong())?)),
        OID => Value::Oid(u32::from_be_bytes(bytes.try_into().map_err(|_| wrong())?)),
        20 => Value::BigInt(i64::from_be_bytes(bytes.try_into().map_err(|_| wrong())?)),
        700 => Value::Real(f32::from_be_bytes(bytes.try_into().map_err(|_| wrong())?)),
        701 => Value::Double(f64::from_be_bytes(bytes.try_into().map_err(|_| wrong())?)),
        1082 => Value::Date(i32::from_be_bytes(bytes.try_into().map_err(|_| wrong())?)),
        1083 | 1114 | 1184 => {
            let microseconds = i64::from_be_bytes(bytes.try_into().map_err(|_| wrong())?);
            if oid != 1083 && is_finite_timestamp(microseconds) {
                check_timestamp(Some(microseconds))?;
            }
            match oid {
                1083 => Value::Time(microseconds),
                1114 => Value::Timestamp(microseconds),
                _ => Value::TimestampTz(microseconds),
            }
        }
        1186 => Value::Interval(decode_interval(bytes).ok_or_else(wrong)?),
        1700 => Value::Numeric(decode_numeric(bytes)?),
        17 => {
            check_bytes_length(bytes.len())?;
            Value::Bytea(Arc::from(bytes))
        }
        2950 => Value::Uuid(bytes.try_into().map_err(|_| wrong())?),
        114 => parse_value(text(bytes)?, DataType::Json)?,
        3802 => match bytes {
            [1, text_form @ ..] => parse_value(text(text_form)?, DataType::Jsonb)?,
            [version, ..] => {
                let message = format!("unsupported jsonb version number {version}");
                return Err(SqlError::new(SqlState::INTERNAL_ERROR, message));
            }
            [] => return Err(wrong()),
        },
        0 | 18 | 19 | 25 | 705 | 1042 | 1043 => Value::text(text(bytes)?),
        array if ElementType::from_array_oid(array).is_some() => {
            decode_array(place, bytes)?.ok_or_else(wrong)?
        }
        3614 => text_search_wire::vector(bytes)?.map(Value::TsVector).ok_or_else(wrong)?,
        3615 => text_search_wire::query(bytes)?.map(Value::TsQuery).ok_or_else(wrong)?,
        other if type_of_oid(other) == DataType::Hstore => {
            hstore_wire::hstore(bytes)?.map(Value::Hstore).ok_or_else(wrong)?
        }
        other if type_of_oid(other) == DataType::Citext => parse_value(text(bytes)?, DataType::Citext)?,
        of_version_10 if type_of_oid(of_version_10).is_of_version_10() => {
            let read = |bytes: &[u8], oid: u32| decode_binary(place, bytes, oid);
            decode_range::decode(bytes, type_of_oid(oid), &read)?.ok_or_else(wrong)?
        }
        other => return Err(no_such_type(place, other)),
    })
}

/// The error of a value in binary of a type that the ledger has not.
pub(super) fn no_such_type(place: Place, oid: u32) -> SqlError {
    let message = match place {
        Place::Parameter(index) => {
            format!("parameter {} has the type with the object identifier {oid}", index + 1)
        }
        Place::Field => format!("the type with the object identifier {oid} in binary"),
    };
    SqlError::unsupported(message).hint(
        "use boolean, a number, text, bytea, uuid, json, jsonb, a date, time, timestamp or interval, an array of these, or send text",
    )
}

/// PostgreSQL's `interval_recv`: microseconds, days, months.
fn decode_interval(bytes: &[u8]) -> Option<Interval> {
    let mut rest = bytes;
    (bytes.len() == 16).then(|| Interval {
        microseconds: rest.get_i64(),
        days: rest.get_i32(),
        months: rest.get_i32(),
    })
}

/// PostgreSQL's `array_recv`; `None` where the bytes are none.
fn decode_array(place: Place, bytes: &[u8]) -> Result<Option<Value>, SqlError> {
    let mut rest = bytes;
    if rest.len() < 12 {
        return Ok(None);
    }
    let (dimensions, _has_nulls, oid) = (rest.get_i32(), rest.get_i32(), rest.get_u32());
    // Those of a type of the ledger are texts: its labels.
    let (element, oid) = match DataType::from_oid(oid) {
        Some(DataType::Composite(_)) => (Some(DataType::Text(None)), 25),
        known => (known, oid),
    };
    let Some(element) = element.and_then(ElementType::new) else { return Ok(None) };
    let Ok(dimensions) = usize::try_from(dimensions) else { return Ok(None) };
    if arrays_are_plain() && dimensions > 1 {
        return Err(SqlError::unsupported("an array of more than one dimension"));
    }
    check_dimensions(dimensions)?;
    if rest.len() < 8 * dimensions {
        return Ok(None);
    }
    let mut found = Dimensions::new();
    for _ in 0..dimensions {
        let (length, lower) = (rest.get_i32(), rest.get_i32());
        if arrays_are_plain() && lower != 1 {
            let what = format_args!("an array that begins at subscript {lower}");
            return Err(SqlError::unsupported(what).hint("Subscripts begin at 1."));
        }
        let Ok(length) = u32::try_from(length) else { return Ok(None) };
        let dimension = Dimension { lower, length };
        Dimension::spanning(&dimension.span())?;
        found.push(dimension);
    }
    let count = elements_in(&found);
    let mut values = Vec::new();
    for _ in 0..count {
        if rest.len() < 4 {
            return Ok(None);
        }
        let length = rest.get_i32();
        if length == -1 {
            values.push(Value::Null);
        } else {
            let Some(length) = usize::try_from(length).ok().filter(|length| *length <= rest.len()) else {
                return Ok(None);
            };
            let (value, after) = rest.split_at(length);
            values.push(coerce(decode_binary(place, value, oid)?, element.family().data_type())?);
            rest = after;
        }
        if values.len() > array_elements_max() {
            // Says the limit.
            return Array::new(element, values).map(|_| None);
        }
    }
    if !rest.is_empty() {
        return Ok(None);
    }
    Ok(Some(Value::Array(Arc::new(Array::shaped(element, &found, values)?))))
}

/// PostgreSQL's `numeric_recv`.
pub(super) fn decode_numeric(bytes: &[u8]) -> Result<Numeric, SqlError> {
    let wrong = |what: &str| {
        SqlError::new(INVALID_BINARY_REPRESENTATION, format!("invalid {what} in external \"numeric\" value"))
    };
    let mut rest = bytes;
    if rest.len() < 8 {
        return Err(wrong("length"));
    }
    let (count, weight, sign, scale) = (rest.get_i16(), rest.get_i16(), rest.get_u16(), rest.get_i16());
    if usize::try_from(count).map(|count| count * 2) != Ok(rest.len()) {
        return Err(wrong("length"));
    }
    let negative = match sign {
        0 => false,
        0x4000 => true,
        0xC000 => return Ok(Numeric::NAN),
        0xD000 => return Ok(Numeric::INFINITY),
        0xF000 => return Ok(Numeric::NEGATIVE_INFINITY),
        _ => return Err(wrong("sign")),
    };
    let scale = u16::try_from(scale).ok().filter(|scale| *scale <= NUMERIC_SCALE_MAX);
    let scale = scale.ok_or_else(|| wrong("scale"))?;
    let mut written = String::with_capacity(rest.len() * 2 + 16);
    if negative {
        written.push('-');
    }
    written.push('0');
    for _ in 0..count {
        let digit = rest.get_i16();
        if !(0..10_000).contains(&digit) {
            return Err(wrong("digit"));
        }
        written.push_str(&format!("{digit:04}"));
    }
    // Cut off at the scale, as PostgreSQL does.
    written.push_str(&format!("e{}", (i32::from(weight) - i32::from(count) + 1) * 4));
    Numeric::parse_truncated(&written, scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::RangeType;

    #[test]
    fn binary_parameters_are_read_by_the_type_the_client_names() {
        let read = |bytes: &[u8], oid, wanted| decode_parameter(0, Some(bytes), Format::Binary, oid, wanted);
        assert!(matches!(read(&[0, 7], 21, DataType::Integer), Ok(Value::Integer(7))));
        assert!(matches!(read(&[0, 0, 0, 7], 23, DataType::BigInt), Ok(Value::BigInt(7))));
        assert!(matches!(read(b"abc", 25, DataType::Unknown), Ok(Value::Text(_))));
        assert!(matches!(decode_parameter(0, None, Format::Binary, 23, DataType::Integer), Ok(Value::Null)));
        for (bytes, oid) in [(&[1, 2][..], 23), (&[2], 16), (&[0; 7], 20), (&[0; 3], 1700)] {
            let error = read(bytes, oid, DataType::Unknown).expect_err("wrong length");
            assert_eq!(error.state, INVALID_BINARY_REPRESENTATION);
        }
        assert_eq!(
            read(b"a\0b", 25, DataType::Unknown).expect_err("zero byte").state,
            CHARACTER_NOT_IN_REPERTOIRE
        );
        assert_eq!(
            read(&[0; 12], 600, DataType::Unknown).expect_err("point").state,
            SqlState::FEATURE_NOT_SUPPORTED
        );
    }

    #[test]
    fn json_is_read_in_both_forms() {
        let read = |bytes: &[u8], format, oid, wanted| decode_parameter(0, Some(bytes), format, oid, wanted);
        let written = |value: Result<Value, SqlError>| format_value(&value.expect("JSON"));
        let jsonb = read(b"\x01{\"a\":1}", Format::Binary, 3802, DataType::Jsonb);
        assert_eq!(written(jsonb).as_deref(), Some("{\"a\": 1}"));
        let json = read(b"{\"a\":1}", Format::Binary, 114, DataType::Json);
        assert_eq!(written(json).as_deref(), Some("{\"a\":1}"));
        for (oid, format) in
            [(0, Format::Text), (25, Format::Text), (3802, Format::Text), (25, Format::Binary)]
        {
            let value = read(b"[1,  2]", format, oid, DataType::Jsonb);
            assert_eq!(written(value).as_deref(), Some("[1, 2]"), "{oid}");
        }
        for (bytes, state) in
            [(&b""[..], INVALID_BINARY_REPRESENTATION), (b"\x02{}", SqlState::INTERNAL_ERROR)]
        {
            let error = read(bytes, Format::Binary, 3802, DataType::Jsonb).expect_err("no version 1");
            assert_eq!(error.state, state);
        }
        for (bytes, oid) in [(&b"\x01{"[..], 3802), (b"{", 114), (b"", 114)] {
            let error = read(bytes, Format::Binary, oid, DataType::Unknown).expect_err("no JSON");
            assert_eq!(error.state, SqlState::INVALID_TEXT_REPRESENTATION);
        }
    }

    /// What PostgreSQL 15's send functions give.
    #[test]
    fn values_of_many_types_are_read_as_postgresql_sends_them() {
        let ranges = |of| DataType::Range(of);
        for (hexadecimal, data_type, text) in [
            ("020800040a010203", DataType::Inet, "10.1.2.3/8"),
            ("0380001000000000000000000000000000000001", DataType::Inet, "::1"),
            ("020801040a000000", DataType::Cidr, "10.0.0.0/8"),
            ("08002b010203", DataType::MacAddr, "08:00:2b:01:02:03"),
            ("fffffffe", DataType::Oid, "4294967294"),
            ("00000003a0", DataType::Bit(None), "101"),
            ("0000000a8040", DataType::VarBit(None), "1000000001"),
            ("0000000a0eebb000ffffe3e0", DataType::TimeTz, "12:00:00+02"),
            ("0200000004000000010000000400000005", ranges(RangeType::Int4), "[1,5)"),
            ("100000000c000200000000000100011388", ranges(RangeType::Num), "(1.5,)"),
            ("01", ranges(RangeType::Date), "empty"),
            (
                "00000002000000110200000004000000010000000400000002000000110200000004000000050000000400000007",
                DataType::Multirange(RangeType::Int4),
                "{[1,2),[5,7)}",
            ),
            ("00000000", DataType::Multirange(RangeType::Int4), "{}"),
            (
                "00000002000000010000001700000002000000010000000200000001000000040000000100000004000000020000000400000003ffffffff",
                DataType::Integer.array().expect("it has arrays"),
                "{{1,2},{3,NULL}}",
            ),
            (
                "000000010000000000000019000000020000000000000001610000000162",
                DataType::Array(ElementType::TEXT),
                "[0:1]={a,b}",
            ),
            ("000000000000000000000017", DataType::Integer.array().expect("it has arrays"), "{}"),
        ] {
            let mut bytes = types::parse_hexadecimal(hexadecimal).expect("digits");
            let read =
                |bytes: &[u8]| decode_parameter(0, Some(bytes), Format::Binary, data_type.oid(), data_type);
            let value = read(&bytes).expect(text);
            assert_eq!(format_value(&value).as_deref(), Some(text));
            let mut written = bytes::BytesMut::new();
            crate::postgres::encode::put_value(&mut written, &value, data_type, Format::Binary);
            assert_eq!(written[4..], bytes[..], "{text}");
            bytes.push(0);
            for wrong in [&bytes[..], &bytes[..bytes.len() - 2]] {
                assert!(read(wrong).is_err(), "{text}: {wrong:?}");
            }
        }
    }

    #[test]
    fn older_rules_take_the_number_of_an_object_for_a_bigint() {
        let array = DataType::Oid.array().expect("it has arrays");
        let types =
            |version| types_of_oids(&[26, 1028, 23], || unreachable!("none of the ledger's"), version);
        assert_eq!(types(ExecutionVersion::V16), [DataType::Oid, array, DataType::Integer]);
        let older = types(ExecutionVersion::V15);
        assert_eq!(older, [DataType::BigInt, DataType::Unknown, DataType::Integer]);
        assert!(!is_newer(26, ExecutionVersion::V15) && is_newer(1028, ExecutionVersion::V15));
        for (format, bytes) in [(Format::Binary, &[255; 4][..]), (Format::Text, b"4294967295")] {
            let value = decode_parameter(0, Some(bytes), format, 26, older[0]);
            assert_eq!(value, Ok(Value::BigInt(4_294_967_295)));
        }
    }

    #[test]
    fn a_binary_moment_is_one_that_there_is() {
        let read = |microseconds: i64, oid, wanted| {
            decode_parameter(0, Some(&microseconds.to_be_bytes()), Format::Binary, oid, wanted)
        };
        for (oid, wanted) in [(1184, DataType::TimestampTz), (1114, DataType::Timestamp)] {
            for microseconds in [i64::MIN + 1, i64::MAX - 1] {
                let Err(error) = read(microseconds, oid, wanted) else { panic!("{microseconds}") };
                assert_eq!(error.state.to_string(), "22008");
            }
            for microseconds in [i64::MIN, 0, i64::MAX] {
                assert!(read(microseconds, oid, wanted).is_ok(), "{microseconds}");
            }
        }
    }

    #[test]
    fn numerics_that_are_none_are_refused() {
        for bytes in [
            &[0, 1, 0, 0, 0, 0, 0, 0][..],
            &[0, 1, 0, 0, 0, 0, 0, 0, 0x7f, 0xff],
            &[0, 0, 0, 0, 0xE0, 0, 0, 0],
            &[0, 0, 0, 0, 0, 0, 0x7f, 0xff],
            &[0xff, 0xff, 0, 0, 0, 0, 0, 0],
        ] {
            assert!(decode_numeric(bytes).is_err(), "{bytes:?}");
        }
    }
}
