//! Functions of `bytea`.

use crate::functions::Function;
use crate::functions::length::check_length;
use crate::functions::signature::Signature;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use std::sync::Arc;
use types::{
    DataType, SqlError, SqlState, Value, check_bytes_length, format_hexadecimal, parse_escaped,
    parse_hexadecimal,
};

/// A function of `bytea` that is NULL where an argument is NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BytesFunction {
    /// `length(bytea)` and `octet_length(bytea)`
    Length,
    /// `bit_length(bytea)`
    BitLength,
    /// `substring(bytea, from [, count])`
    Substring,
    /// `position(part in bytea)`
    Position,
    /// `get_byte(bytea, offset)`
    GetByte,
    /// `set_byte(bytea, offset, value)`
    SetByte,
    /// `encode(bytea, format)`
    Encode,
    /// `decode(text, format)`
    Decode,
    /// `sha224(bytea)`
    Sha224,
    /// `sha256(bytea)`
    Sha256,
    /// `sha384(bytea)`
    Sha384,
    /// `sha512(bytea)`
    Sha512,
    /// `convert_from(bytea, 'UTF8')`
    ConvertFrom,
    /// `convert_to(text, 'UTF8')`
    ConvertTo,
}

impl BytesFunction {
    /// The function's value; `None` where it was bound for other types.
    pub fn of(self, values: &[Value]) -> Option<Result<Value, SqlError>> {
        use BytesFunction as F;
        let digest = |bytes: &[u8]| Ok(Value::Bytea(Arc::from(bytes)));
        Some(match (self, values) {
            (F::Length, [Value::Bytea(bytes)]) => Ok(Value::Integer(bytes.len() as i32)),
            (F::BitLength, [Value::Bytea(bytes)]) => Ok(Value::Integer(bytes.len() as i32 * 8)),
            (F::Substring, [Value::Bytea(bytes), Value::Integer(from)]) => substring(bytes, *from, None),
            (F::Substring, [Value::Bytea(bytes), Value::Integer(from), Value::Integer(count)]) => {
                substring(bytes, *from, Some(*count))
            }
            (F::Position, [Value::Bytea(bytes), Value::Bytea(part)]) => {
                let found = match part.len() {
                    0 => Some(0),
                    length => bytes.windows(length).position(|window| *window == **part),
                };
                Ok(Value::Integer(found.map_or(0, |at| at as i32 + 1)))
            }
            (F::GetByte, [Value::Bytea(bytes), Value::Integer(offset)]) => {
                index(bytes, *offset).map(|index| Value::Integer(i32::from(bytes[index])))
            }
            (F::SetByte, [Value::Bytea(bytes), Value::Integer(offset), Value::Integer(value)]) => {
                index(bytes, *offset).map(|index| {
                    let mut changed = bytes.to_vec();
                    changed[index] = *value as u8;
                    Value::Bytea(changed.into())
                })
            }
            (F::Encode, [Value::Bytea(bytes), Value::Text(format)]) => encode(bytes, format),
            (F::Decode, [Value::Text(text), Value::Text(format)]) => decode(text, format),
            (F::Sha224, [Value::Bytea(bytes)]) => digest(&Sha224::digest(bytes)),
            (F::Sha256, [Value::Bytea(bytes)]) => digest(&Sha256::digest(bytes)),
            (F::Sha384, [Value::Bytea(bytes)]) => digest(&Sha384::digest(bytes)),
            (F::Sha512, [Value::Bytea(bytes)]) => digest(&Sha512::digest(bytes)),
            (F::ConvertFrom, [Value::Bytea(bytes), Value::Text(encoding)]) => {
                utf8(encoding).and_then(|()| convert_from(bytes))
            }
            (F::ConvertTo, [Value::Text(text), Value::Text(encoding)]) => {
                utf8(encoding).map(|()| Value::Bytea(Arc::from(text.as_bytes())))
            }
            _ => return None,
        })
    }
}

fn substring(bytes: &[u8], from: i32, count: Option<i32>) -> Result<Value, SqlError> {
    let start = i64::from(from) - 1;
    let end = match count {
        Some(count) if count < 0 => {
            return Err(SqlError::new(SqlState(*b"22011"), "negative substring length not allowed"));
        }
        Some(count) => start + i64::from(count),
        None => i64::MAX,
    };
    let within = |position: i64| position.clamp(0, bytes.len() as i64) as usize;
    let (start, end) = (within(start), within(end));
    Ok(Value::Bytea(Arc::from(&bytes[start..end.max(start)])))
}

fn index(bytes: &[u8], offset: i32) -> Result<usize, SqlError> {
    usize::try_from(offset).ok().filter(|offset| *offset < bytes.len()).ok_or_else(|| {
        let message = format!("index {offset} out of valid range, 0..{}", bytes.len() as i64 - 1);
        SqlError::new(SqlState(*b"2202E"), message)
    })
}

fn unknown_format(format: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("unrecognized encoding: \"{format}\""))
}

fn encode(bytes: &[u8], format: &str) -> Result<Value, SqlError> {
    let text = match format.to_ascii_lowercase().as_str() {
        "hex" => format_hexadecimal(bytes),
        "base64" => encode_base64(bytes),
        "escape" => {
            let mut text = String::new();
            for byte in bytes {
                match byte {
                    b'\\' => text.push_str("\\\\"),
                    0 | 128.. => text.push_str(&format!("\\{byte:03o}")),
                    byte => text.push(char::from(*byte)),
                }
            }
            text
        }
        _ => return Err(unknown_format(format)),
    };
    check_length(text.len())?;
    Ok(Value::text(text))
}

fn decode(text: &str, format: &str) -> Result<Value, SqlError> {
    let bytes = match format.to_ascii_lowercase().as_str() {
        "hex" => parse_hexadecimal(text)?,
        "base64" => decode_base64(text)?,
        "escape" => parse_escaped(text)?,
        _ => return Err(unknown_format(format)),
    };
    check_bytes_length(bytes.len())?;
    Ok(Value::Bytea(bytes.into()))
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// With a line break behind every 76 characters, as PostgreSQL writes it.
fn encode_base64(bytes: &[u8]) -> String {
    const LINE: usize = 76;
    let mut text = String::new();
    let mut column = 0;
    for group in bytes.chunks(3) {
        let mut bits = [0; 3];
        bits[..group.len()].copy_from_slice(group);
        let bits = u32::from(bits[0]) << 16 | u32::from(bits[1]) << 8 | u32::from(bits[2]);
        for position in 0..4 {
            let digit = BASE64[(bits >> (18 - 6 * position) & 63) as usize];
            text.push(if position <= group.len() { char::from(digit) } else { '=' });
        }
        column += 4;
        if column == LINE {
            text.push('\n');
            column = 0;
        }
    }
    if column == 0 {
        text.truncate(text.trim_end_matches('\n').len());
    }
    text
}

fn decode_base64(text: &str) -> Result<Vec<u8>, SqlError> {
    let wrong = |message: String| {
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
            .hint("Input data is missing padding, is truncated, or is otherwise corrupted.")
    };
    let incomplete = || wrong("invalid base64 end sequence".to_string());
    let (mut bytes, mut bits, mut digits, mut padding) = (Vec::new(), 0_u32, 0, 0);
    for character in text.chars() {
        if matches!(character, ' ' | '\t' | '\n' | '\r') {
            continue;
        }
        let value = match character {
            '=' if padding > 0 || digits >= 2 => {
                padding += 1;
                0
            }
            '=' => return Err(wrong("unexpected \"=\" while decoding base64 sequence".to_string())),
            _ if padding > 0 => return Err(incomplete()),
            _ => {
                let position = BASE64.iter().position(|digit| char::from(*digit) == character);
                let message =
                    || format!("invalid symbol \"{character}\" found while decoding base64 sequence");
                position.ok_or_else(|| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message()))? as u32
            }
        };
        bits = bits << 6 | value;
        digits += 1;
        if digits == 4 {
            let kept = 3_usize.saturating_sub(padding);
            bytes.extend_from_slice(&bits.to_be_bytes()[1..=kept]);
            (bits, digits) = (0, 0);
        }
    }
    if digits == 0 { Ok(bytes) } else { Err(incomplete()) }
}

fn utf8(encoding: &str) -> Result<(), SqlError> {
    match encoding.to_ascii_lowercase().as_str() {
        "utf8" | "utf-8" | "unicode" => Ok(()),
        other => Err(SqlError::unsupported(format_args!("the encoding {other}")).hint("Use UTF8.")),
    }
}

fn convert_from(bytes: &[u8]) -> Result<Value, SqlError> {
    let invalid = |at: usize| {
        let shown: Vec<String> = bytes[at..].iter().take(1).map(|byte| format!("0x{byte:02x}")).collect();
        let message = format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" "));
        SqlError::new(SqlState(*b"22021"), message)
    };
    let text = std::str::from_utf8(bytes).map_err(|error| invalid(error.valid_up_to()))?;
    match text.find('\0') {
        Some(at) => Err(invalid(at)),
        None => Ok(Value::text(text)),
    }
}

/// The function that PostgreSQL calls; `None` where there is none.
pub(super) fn resolve(name: &str, arguments: &[DataType]) -> Option<Signature> {
    use BytesFunction as F;
    use DataType::{Bytea, Integer};
    const TEXT: DataType = DataType::Text(None);
    let signature = |function, arguments: &[DataType], result: DataType| {
        Some(Signature { function: Function::Bytes(function), arguments: arguments.to_vec(), result })
    };
    match (name, arguments) {
        ("length" | "octet_length", [Bytea]) => signature(F::Length, &[Bytea], Integer),
        ("bit_length", [Bytea]) => signature(F::BitLength, &[Bytea], Integer),
        ("substr" | "substring", [Bytea, _]) => signature(F::Substring, &[Bytea, Integer], Bytea),
        ("substr" | "substring", [Bytea, _, _]) => signature(F::Substring, &[Bytea, Integer, Integer], Bytea),
        ("strpos", [Bytea, _]) => signature(F::Position, &[Bytea, Bytea], Integer),
        ("get_byte", [_, _]) => signature(F::GetByte, &[Bytea, Integer], Integer),
        ("set_byte", [_, _, _]) => signature(F::SetByte, &[Bytea, Integer, Integer], Bytea),
        ("encode", [_, _]) => signature(F::Encode, &[Bytea, TEXT], TEXT),
        ("decode", [_, _]) => signature(F::Decode, &[TEXT, TEXT], Bytea),
        ("sha224", [_]) => signature(F::Sha224, &[Bytea], Bytea),
        ("sha256", [_]) => signature(F::Sha256, &[Bytea], Bytea),
        ("sha384", [_]) => signature(F::Sha384, &[Bytea], Bytea),
        ("sha512", [_]) => signature(F::Sha512, &[Bytea], Bytea),
        ("convert_from", [_, _]) => signature(F::ConvertFrom, &[Bytea, TEXT], TEXT),
        ("convert_to", [_, _]) => signature(F::ConvertTo, &[TEXT, TEXT], Bytea),
        _ => None,
    }
}
