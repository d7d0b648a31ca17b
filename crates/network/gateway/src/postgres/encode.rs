//! Values as the Postgres protocol writes them, in text and in binary.

use super::hstore_wire::put_hstore;
use super::text_search_wire::{put_query, put_vector};
use bytes::{BufMut, BytesMut};
use catalogue::{ColumnFacts, type_length, type_modifier};
use pgwire::messages::data::{FieldDescription, RowDescription};
use std::sync::Arc;
use types::{
    Array, Bound, Bounds, Catalog, ColumnOrigin, Composite, DataType, NetworkAddress, Numeric, OutputColumn,
    Value, format_value,
};

/// What the first byte of a range in binary says.
pub(super) mod range_flag {
    pub(crate) const EMPTY: u8 = 1;
    pub(crate) const LOWER_INCLUDED: u8 = 2;
    pub(crate) const UPPER_INCLUDED: u8 = 4;
    pub(crate) const LOWER_INFINITE: u8 = 8;
    pub(crate) const UPPER_INFINITE: u8 = 16;
}

/// How a value travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Format {
    /// As PostgreSQL's output functions write it.
    #[default]
    Text,
    /// As PostgreSQL's send functions write it.
    Binary,
}

impl Format {
    /// The format of column or parameter `index` by the codes of a Bind message: none means text, one is for all.
    pub(super) fn of(codes: &[i16], index: usize) -> Format {
        let code = match codes {
            [] => 0,
            [all] => *all,
            each => each.get(index).copied().unwrap_or(0),
        };
        if code == 1 { Format::Binary } else { Format::Text }
    }
}

/// The type as clients see it: a literal of unknown type is text.
pub(super) fn wire_type(data_type: DataType) -> DataType {
    match data_type {
        DataType::Unknown => DataType::Text(None),
        other => other.unrounded(),
    }
}

/// What clients are told of the columns of a result besides their names and the types of their values.
#[derive(Clone, Debug, Default)]
pub(super) struct ColumnsTold {
    /// Columns of which clients are told another type.
    pub(super) type_numbers: Vec<(usize, u32)>,
    /// By column, which column of a table or view it is; may be shorter.
    pub(super) facts: Vec<Option<ColumnFacts>>,
}

impl ColumnsTold {
    /// Of columns that come from these.
    pub(super) fn of(
        origins: &[Option<ColumnOrigin>],
        catalog: impl FnOnce() -> Arc<Catalog>,
    ) -> ColumnsTold {
        if origins.iter().all(Option::is_none) {
            return ColumnsTold::default();
        }
        let catalog = catalog();
        let facts = |origin: &Option<ColumnOrigin>| ColumnFacts::of(origin.as_ref()?, &catalog);
        ColumnsTold { type_numbers: Vec::new(), facts: origins.iter().map(facts).collect() }
    }
}

/// The message that describes `columns`.
pub(super) fn row_description(
    columns: &[OutputColumn],
    told: &ColumnsTold,
    formats: &[i16],
) -> RowDescription {
    let field = |(index, column): (usize, &OutputColumn)| {
        let data_type = wire_type(column.data_type);
        let format = i16::from(Format::of(formats, index) == Format::Binary);
        let facts = told.facts.get(index).copied().flatten();
        let (relation, attribute) = facts.map_or((0, 0), |facts| (facts.relation, facts.attribute));
        let modifier = facts.and_then(|facts| facts.modifier).unwrap_or_else(|| type_modifier(data_type));
        let number = told.type_numbers.iter().find(|(position, _)| *position == index);
        let oid = number.map_or(data_type.oid(), |(_, oid)| *oid);
        let length = type_length(data_type);
        FieldDescription::new(column.name.clone(), relation, attribute, oid, length, modifier, format)
    };
    RowDescription::new(columns.iter().enumerate().map(field).collect())
}

/// Appends a DataRow message.
pub(super) fn data_row(output: &mut BytesMut, columns: &[OutputColumn], row: &[Value], formats: &[i16]) {
    output.put_u8(b'D');
    let start = output.len();
    output.put_i32(0);
    output.put_i16(row.len() as i16);
    for (index, value) in row.iter().enumerate() {
        let data_type = columns.get(index).map_or(DataType::Unknown, |column| column.data_type);
        put_value(output, value, wire_type(data_type), Format::of(formats, index));
    }
    let length = (output.len() - start) as i32;
    output[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Appends one value with its length in front; NULL is the length −1.
pub(super) fn put_value(output: &mut BytesMut, value: &Value, data_type: DataType, format: Format) {
    if value.is_null() {
        output.put_i32(-1);
        return;
    }
    let start = output.len();
    output.put_i32(0);
    match format {
        Format::Text => output.put_slice(format_value(value).unwrap_or_default().as_bytes()),
        Format::Binary => put_binary(output, value, data_type),
    }
    let length = (output.len() - start - 4) as i32;
    output[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// The binary form of a value in a column of type `data_type`: clients believe the column's type, so a value of
/// another numeric type is widened to it.
fn put_binary(output: &mut BytesMut, value: &Value, data_type: DataType) {
    match (value, data_type) {
        (Value::Null, _) => {}
        (Value::Boolean(value), DataType::Boolean) => output.put_u8(u8::from(*value)),
        (Value::Integer(value), DataType::Integer) => output.put_i32(*value),
        (Value::Integer(value), DataType::BigInt) => output.put_i64(i64::from(*value)),
        (Value::Integer(value), DataType::Numeric(_)) => {
            put_numeric(output, &Numeric::new(i128::from(*value), 0))
        }
        (Value::Integer(value), DataType::Double) => output.put_f64(f64::from(*value)),
        (Value::BigInt(value), DataType::BigInt) => output.put_i64(*value),
        (Value::BigInt(value), DataType::Numeric(_)) => {
            put_numeric(output, &Numeric::new(i128::from(*value), 0))
        }
        (Value::BigInt(value), DataType::Double) => output.put_f64(*value as f64),
        (Value::Numeric(value), DataType::Numeric(_)) => put_numeric(output, value),
        (Value::Double(value), DataType::Double) => output.put_f64(*value),
        (Value::TimestampTz(value), DataType::TimestampTz) => output.put_i64(*value),
        (Value::SmallInt(value), DataType::SmallInt) => output.put_i16(*value),
        (Value::SmallInt(value), _) => put_binary(output, &Value::Integer(i32::from(*value)), data_type),
        (Value::Real(value), DataType::Real) => output.put_f32(*value),
        (Value::Real(value), DataType::Double) => output.put_f64(f64::from(*value)),
        (Value::Date(value), DataType::Date) => output.put_i32(*value),
        (Value::Timestamp(value), DataType::Timestamp) | (Value::Time(value), DataType::Time) => {
            output.put_i64(*value);
        }
        (Value::Interval(value), DataType::Interval) => {
            output.put_i64(value.microseconds);
            output.put_i32(value.days);
            output.put_i32(value.months);
        }
        (Value::Bytea(value), DataType::Bytea) => output.put_slice(value),
        (Value::Uuid(value), DataType::Uuid) => output.put_slice(value),
        (Value::Inet(address), DataType::Inet) => put_network(output, address, false),
        (Value::Cidr(address), DataType::Cidr) => put_network(output, address, true),
        (Value::MacAddr(bytes), DataType::MacAddr) => output.put_slice(bytes),
        (Value::Oid(number), DataType::Oid) => output.put_u32(*number),
        (Value::TsVector(vector), DataType::TsVector) => put_vector(output, vector),
        (Value::TsQuery(query), DataType::TsQuery) => put_query(output, query),
        (Value::Hstore(store), DataType::Hstore) => put_hstore(output, store),
        (Value::Bit(bits), DataType::Bit(_)) | (Value::VarBit(bits), DataType::VarBit(_)) => {
            output.put_u32(bits.length());
            output.put_slice(bits.bytes());
        }
        (Value::TimeTz(time), DataType::TimeTz) => {
            output.put_i64(time.microseconds);
            output.put_i32(time.west);
        }
        (Value::Range(range), DataType::Range(_)) => put_range(output, range.bounds()),
        (Value::Multirange(ranges), DataType::Multirange(_)) => {
            output.put_i32(ranges.ranges().len() as i32);
            for bounds in ranges.ranges() {
                let start = output.len();
                output.put_i32(0);
                put_range(output, Some(bounds));
                let length = (output.len() - start - 4) as i32;
                output[start..start + 4].copy_from_slice(&length.to_be_bytes());
            }
        }
        // One is the version of the form.
        (Value::Jsonb(value), DataType::Jsonb) => {
            output.put_u8(1);
            output.put_slice(value.to_text().as_bytes());
        }
        // No letter is a zero.
        (Value::Text(text), DataType::LETTER) if text.is_empty() => output.put_u8(0),
        (Value::Array(array), DataType::Array(_)) => put_array(output, array),
        (Value::Composite(row), _) => put_composite(output, row),
        (value, _) => output.put_slice(format_value(value).unwrap_or_default().as_bytes()),
    }
}

/// PostgreSQL's `network_send`: family, length of the prefix, whether it is a network, number of bytes, bytes.
fn put_network(output: &mut BytesMut, address: &NetworkAddress, is_network: bool) {
    output.put_u8(if address.is_v6 { 3 } else { 2 });
    output.put_u8(address.prefix);
    output.put_u8(u8::from(is_network));
    output.put_u8(address.octets().len() as u8);
    output.put_slice(address.octets());
}

/// PostgreSQL's `range_send`: what there is of the range, then its bounds with their lengths in front.
fn put_range(output: &mut BytesMut, bounds: Option<&Bounds>) {
    let Some(Bounds { lower, upper }) = bounds else { return output.put_u8(range_flag::EMPTY) };
    let flag = |end: &Option<Bound>, included: u8, infinite: u8| match end {
        None => infinite,
        Some(end) if end.is_included => included,
        Some(_) => 0,
    };
    output.put_u8(
        flag(lower, range_flag::LOWER_INCLUDED, range_flag::LOWER_INFINITE)
            | flag(upper, range_flag::UPPER_INCLUDED, range_flag::UPPER_INFINITE),
    );
    for end in [lower, upper].into_iter().flatten() {
        put_value(output, &end.value, end.value.data_type(), Format::Binary);
    }
}

/// PostgreSQL's `record_send`: the number of fields, then for each its type and its value with the length in front. A field that
/// is NULL has no type here: `unknown`.
fn put_composite(output: &mut BytesMut, row: &Composite) {
    output.put_i32(row.values().len() as i32);
    for value in row.values() {
        let data_type = value.data_type();
        output.put_u32(data_type.oid());
        put_value(output, value, data_type, Format::Binary);
    }
}

/// PostgreSQL's `array_send`: dimensions (none for an empty array), whether there are NULLs, the elements' type, for
/// each dimension its length and first subscript (all i32), then the elements with their lengths in front.
fn put_array(output: &mut BytesMut, array: &Array) {
    let element = array.element().data_type();
    let values = array.values();
    let dimensions = array.dimensions();
    output.put_i32(dimensions.len() as i32);
    output.put_i32(i32::from(values.iter().any(Value::is_null)));
    output.put_u32(element.oid());
    for dimension in dimensions {
        output.put_i32(dimension.length as i32);
        output.put_i32(dimension.lower);
    }
    values.iter().for_each(|value| put_value(output, value, element, Format::Binary));
}

/// PostgreSQL's `numeric_send`: count of digits, weight, sign, display scale (all i16), then digits in base 10,000.
/// The value is the sum of `digit[i] × 10000^(weight − i)`.
fn put_numeric(output: &mut BytesMut, value: &Numeric) {
    if value.is_special() {
        let sign = if value.is_nan() {
            0xC000
        } else if value.is_negative() {
            0xF000
        } else {
            0xD000
        };
        [0, 0, sign, 0].into_iter().for_each(|part| output.put_u16(part));
        return;
    }
    let scale = usize::from(value.scale());
    // The decimal point must fall between two digits of base 10,000: pad the fraction to a multiple of four.
    let mut decimal = value.digits();
    decimal.extend(std::iter::repeat_n('0', (4 - scale % 4) % 4));
    let fraction_groups = scale.div_ceil(4);
    let lead = (4 - decimal.len() % 4) % 4;
    decimal.insert_str(0, &"0000"[..lead]);
    let group =
        |digits: &[u8]| digits.iter().fold(0_i16, |number, digit| number * 10 + i16::from(digit - b'0'));
    let mut groups: Vec<i16> = decimal.as_bytes().chunks(4).map(group).collect();
    let mut weight = groups.len() as i32 - fraction_groups as i32 - 1;
    let leading = groups.iter().take_while(|digit| **digit == 0).count();
    groups.drain(..leading);
    weight -= leading as i32;
    while groups.last() == Some(&0) {
        groups.pop();
    }
    if groups.is_empty() {
        weight = 0;
    }
    output.put_i16(groups.len() as i16);
    output.put_i16(weight as i16);
    output.put_i16(if value.is_negative() { 0x4000 } else { 0 });
    output.put_i16(scale as i16);
    groups.iter().for_each(|digit| output.put_i16(*digit));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::decode::decode_numeric;

    #[test]
    fn numerics_round_trip_through_the_binary_form() {
        for (mantissa, scale) in [
            (0, 0),
            (0, 2),
            (1, 0),
            (-1, 0),
            (12_345, 2),
            (10_000, 0),
            (100_000_000, 0),
            (-5, 3),
            (1, 10),
            (99_999_999_999_999_999_999_999_999_999_999_999_999, 0),
            (-99_999_999_999_999_999_999_999_999_999_999_999_999, 38),
            (120_000, 4),
            (1_200, 3),
        ] {
            let value = Numeric::new(mantissa, scale);
            let mut bytes = BytesMut::new();
            put_numeric(&mut bytes, &value);
            let read = decode_numeric(&bytes).expect("what put_numeric wrote");
            assert!(read.is_identical(&value), "{mantissa} {scale}: {read:?}");
        }
        let long = ["-1e131071", "9e131071", "1e-16383", "12345678901234567890123456789012345678901.5"]
            .map(|text| Numeric::parse(text).expect("a numeric value"));
        for value in [Numeric::NAN, Numeric::INFINITY, Numeric::NEGATIVE_INFINITY].into_iter().chain(long) {
            let mut bytes = BytesMut::new();
            put_numeric(&mut bytes, &value);
            let read = decode_numeric(&bytes).expect("what put_numeric wrote");
            assert!(read.is_identical(&value), "{value}: {read:?}");
        }
    }

    #[test]
    fn rows_are_written_as_record_send_writes_them() {
        let values = vec![Value::Integer(1), Value::text("ab"), Value::Null];
        let row = Composite::new(None, values).expect("a small row");
        let mut bytes = BytesMut::new();
        put_composite(&mut bytes, &row);
        // SELECT encode(record_send(ROW(1, 'ab'::text, NULL::unknown)), 'hex') on PostgreSQL 15.
        let expected = "000000030000001700000004000000010000001900000002616200000\
                        2c1ffffffff";
        let written: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(written, expected);
    }

    #[test]
    fn json_is_written_as_postgresql_sends_it() {
        // SELECT encode(jsonb_send('{"a": [1, "x"]}'), 'hex') on PostgreSQL 15, and its kind.
        for (text, data_type, expected) in [
            ("{\"a\":[1,\"x\"]}", DataType::Jsonb, "017b2261223a205b312c202278225d7d"),
            ("{\"a\":1}", DataType::Json, "7b2261223a317d"),
            (
                "{1,NULL}",
                DataType::Jsonb.array().expect("a type that has arrays"),
                "000000010000000100000eda0000000200000001000000020131ffffffff",
            ),
        ] {
            let value = types::parse_value(text, data_type).expect("JSON");
            let mut bytes = BytesMut::new();
            put_binary(&mut bytes, &value, data_type);
            let written: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(written, expected, "{text}");
        }
    }

    #[test]
    fn numeric_bytes_are_postgresqls() {
        let mut bytes = BytesMut::new();
        // SELECT encode(numeric_send(-12345.678), 'hex') on PostgreSQL 15.
        put_numeric(&mut bytes, &Numeric::new(-12_345_678, 3));
        assert_eq!(&bytes[..], [0, 3, 0, 1, 0x40, 0, 0, 3, 0, 1, 0x09, 0x29, 0x1a, 0x7c]);
    }
}
