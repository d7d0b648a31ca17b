//! Values of the ledger's own types in binary: what their fields and labels are, only a catalog tells.

use super::decode::{INVALID_BINARY_REPRESENTATION, decode_field, is_of_rows};
use bytes::Buf;
use std::sync::Arc;
use types::limits::ARRAY_ELEMENTS_MAX;
use types::{Array, Composite, CompositeTypes, DataType, ElementType, SqlError, SqlState, Value};

/// Object identifier of `unknown`, with which a field that is NULL may come.
const UNKNOWN: u32 = 705;

/// Reads a field of binary data that is no NULL, in a column of this type.
///
/// # Errors
/// `22P03`, `42804` and `08P01` what is no value of the type.
pub(super) fn decode_known(
    bytes: &[u8],
    data_type: DataType,
    types: &CompositeTypes,
) -> Result<Value, SqlError> {
    // Whether a domain takes the value is found out where it is inserted.
    let data_type = types.base_of(data_type);
    match data_type {
        DataType::Composite(_) => decode_composite(bytes, data_type, types),
        DataType::Array(element)
            if types.of(element.data_type()).is_some_and(|known| known.is_composite()) =>
        {
            decode_array(bytes, element, types)
        }
        of_catalog if is_of_rows(of_catalog) => types.assign(decode_field(bytes, of_catalog)?, of_catalog),
        plain => decode_field(bytes, plain),
    }
}

fn too_short() -> SqlError {
    SqlError::new(SqlState::PROTOCOL_VIOLATION, "insufficient data left in message")
}

fn wrong() -> SqlError {
    SqlError::new(INVALID_BINARY_REPRESENTATION, "incorrect binary data format")
}

fn take_number(rest: &mut &[u8]) -> Result<u32, SqlError> {
    if rest.len() < 4 {
        return Err(too_short());
    }
    Ok(rest.get_u32())
}

/// The bytes of a value, with their length in front; `None` is NULL.
fn take_bytes<'b>(rest: &mut &'b [u8]) -> Result<Option<&'b [u8]>, SqlError> {
    let length = take_number(rest)?;
    if length == u32::MAX {
        return Ok(None);
    }
    let short = || SqlError { state: INVALID_BINARY_REPRESENTATION, ..too_short() };
    let (bytes, after) =
        usize::try_from(length).ok().and_then(|length| rest.split_at_checked(length)).ok_or_else(short)?;
    *rest = after;
    Ok(Some(bytes))
}

/// PostgreSQL's `record_recv`: the number of fields, then for each its type and its value with the length in front.
fn decode_composite(bytes: &[u8], data_type: DataType, types: &CompositeTypes) -> Result<Value, SqlError> {
    let fields = types.of(data_type).map(|known| known.fields.as_slice()).unwrap_or_default();
    let mut rest = bytes;
    let count = take_number(&mut rest)? as i32;
    if usize::try_from(count) != Ok(fields.len()) {
        let message = format!("wrong number of columns: {count}, expected {}", fields.len());
        return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
    }
    let mut values = Vec::with_capacity(fields.len());
    for (at, field) in fields.iter().enumerate() {
        let oid = take_number(&mut rest)?;
        let bytes = take_bytes(&mut rest)?;
        if !is_meant(oid, field.data_type, types) && !(oid == UNKNOWN && bytes.is_none()) {
            return Err(other_type(oid, field.data_type, at, types));
        }
        values.push(match bytes {
            None => Value::Null,
            Some(bytes) => decode_known(bytes, field.data_type, types)?,
        });
    }
    if !rest.is_empty() {
        return Err(wrong());
    }
    let row = Value::Composite(Arc::new(Composite::new(None, values)?));
    types.assign(row, data_type)
}

/// Whether values of this type come under an object identifier: their own, that of the type that a domain is of, or that of all texts.
fn is_meant(oid: u32, data_type: DataType, types: &CompositeTypes) -> bool {
    let base = types.base_of(data_type);
    [data_type.oid(), base.oid(), base.family().oid()].contains(&oid)
}

fn other_type(oid: u32, expected: DataType, at: usize, types: &CompositeTypes) -> SqlError {
    let found = types.of_number(oid).map_or_else(|| "???".to_string(), |known| types.name_of(known));
    let message = format!(
        "binary data has type {oid} ({found}) instead of expected {} ({}) in record column {}",
        expected.oid(),
        types.name_of(expected),
        at + 1
    );
    SqlError::new(SqlState::DATATYPE_MISMATCH, message)
}

/// PostgreSQL's `array_recv`, for arrays of rows.
fn decode_array(bytes: &[u8], element: ElementType, types: &CompositeTypes) -> Result<Value, SqlError> {
    let mut rest = bytes;
    let (dimensions, _has_nulls) = (take_number(&mut rest)?, take_number(&mut rest)?);
    let oid = take_number(&mut rest)?;
    if oid != element.data_type().oid() {
        return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, "wrong element type"));
    }
    let count = match dimensions {
        0 => 0,
        1 => {
            let (count, first) = (take_number(&mut rest)?, take_number(&mut rest)?);
            if first != 1 {
                let what = format_args!("an array that begins at subscript {}", first as i32);
                return Err(SqlError::unsupported(what).hint("Subscripts begin at 1."));
            }
            count as usize
        }
        _ => return Err(SqlError::unsupported("an array of more than one dimension")),
    };
    let mut values = Vec::new();
    // One more than there may be, which whoever makes the array refuses.
    for _ in 0..count.min(ARRAY_ELEMENTS_MAX + 1) {
        values.push(match take_bytes(&mut rest)? {
            None => Value::Null,
            Some(bytes) => decode_known(bytes, element.data_type(), types)?,
        });
    }
    let array = Array::new(element, values)?;
    if array.values().len() != count || !rest.is_empty() {
        return Err(wrong());
    }
    Ok(Value::Array(Arc::new(array)))
}
