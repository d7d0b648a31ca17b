//! Functions of `bytea`.

use crate::functions::entry::Argument::{OneOf, To};
use crate::functions::entry::Gives::Is;
use crate::functions::entry::{Computed, Function, code};
use crate::length::check_length;
use DataType::{Bytea, Integer};
use md5::Md5;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use std::sync::Arc;
use types::{
    DataType, ExecutionVersion, SqlError, SqlState, Value, check_bytes_length, format_hexadecimal,
    parse_escaped, parse_hexadecimal,
};

const TEXT: DataType = DataType::Text(None);

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        &["length", "octet_length"],
        &[OneOf(&[Bytea])],
        Is(Integer),
        code!(
            [Value::Bytea(bytes)] => Ok(Value::Integer(bytes.len() as i32)),
        ),
    ),
    Function::new(
        &["bit_length"],
        &[OneOf(&[Bytea])],
        Is(Integer),
        code!(
            [Value::Bytea(bytes)] => Ok(Value::Integer(bytes.len() as i32 * 8)),
        ),
    ),
    Function::new(
        &["substring", "substr"],
        &[OneOf(&[Bytea]), To(Integer), To(Integer)],
        Is(Bytea),
        code!(
            [Value::Bytea(bytes), Value::Integer(from)] => substring(bytes, *from, None),
            [Value::Bytea(bytes), Value::Integer(from), Value::Integer(count)] => {
                substring(bytes, *from, Some(*count))
            }
        ),
    )
    .optional(1),
    Function::new(
        &["strpos"],
        &[OneOf(&[Bytea]), To(Bytea)],
        Is(Integer),
        code!(
            [Value::Bytea(bytes), Value::Bytea(part)] => {
                let found = match part.len() {
                    0 => Some(0),
                    length => bytes.windows(length).position(|window| *window == **part),
                };
                Ok(Value::Integer(found.map_or(0, |at| at as i32 + 1)))
            }
        ),
    )
    .shown_as("position"),
    Function::new(
        &["get_byte"],
        &[To(Bytea), To(Integer)],
        Is(Integer),
        code!(
            [Value::Bytea(bytes), Value::Integer(offset)] => {
                index(bytes, *offset).map(|index| Value::Integer(i32::from(bytes[index])))
            }
        ),
    ),
    Function::new(
        &["set_byte"],
        &[To(Bytea), To(Integer), To(Integer)],
        Is(Bytea),
        code!(
            [Value::Bytea(bytes), Value::Integer(offset), Value::Integer(value)] => {
                index(bytes, *offset).map(|index| {
                    let mut changed = bytes.to_vec();
                    changed[index] = *value as u8;
                    Value::Bytea(changed.into())
                })
            }
        ),
    ),
    Function::new(
        &["encode"],
        &[To(Bytea), To(TEXT)],
        Is(TEXT),
        code!(
            [Value::Bytea(bytes), Value::Text(format)] => encode(bytes, format),
        ),
    ),
    Function::new(
        &["decode"],
        &[To(TEXT), To(TEXT)],
        Is(Bytea),
        code!(
            [Value::Text(text), Value::Text(format)] => decode(text, format),
        ),
    ),
    Function::new(
        &["sha224"],
        &[To(Bytea)],
        Is(Bytea),
        code!(
            [Value::Bytea(bytes)] => digest(&Sha224::digest(bytes)),
        ),
    ),
    Function::new(
        &["md5"],
        &[OneOf(&[Bytea])],
        Is(TEXT),
        code!(
            [Value::Bytea(bytes)] => Ok(Value::text(format_hexadecimal(&Md5::digest(bytes)))),
        ),
    )
    .never_fails()
    .since(ExecutionVersion::V7),
    Function::new(
        &["md5"],
        &[To(TEXT)],
        Is(TEXT),
        code!(
            [Value::Text(text)] => Ok(Value::text(format_hexadecimal(&Md5::digest(text.as_bytes())))),
        ),
    )
    .never_fails()
    .since(ExecutionVersion::V7),
    // Of the extension pgcrypto.
    Function::new(
        &["digest"],
        &[OneOf(&[Bytea]), To(TEXT)],
        Is(Bytea),
        code!(
            [Value::Bytea(bytes), Value::Text(algorithm)] => digest_by_name(bytes, algorithm),
        ),
    )
    .since(ExecutionVersion::V7),
    Function::new(
        &["digest"],
        &[To(TEXT), To(TEXT)],
        Is(Bytea),
        code!(
            [Value::Text(text), Value::Text(algorithm)] => digest_by_name(text.as_bytes(), algorithm),
        ),
    )
    .since(ExecutionVersion::V7),
    Function::new(
        &["sha256"],
        &[To(Bytea)],
        Is(Bytea),
        code!(
            [Value::Bytea(bytes)] => digest(&Sha256::digest(bytes)),
        ),
    ),
    Function::new(
        &["sha384"],
        &[To(Bytea)],
        Is(Bytea),
        code!(
            [Value::Bytea(bytes)] => digest(&Sha384::digest(bytes)),
        ),
    ),
    Function::new(
        &["sha512"],
        &[To(Bytea)],
        Is(Bytea),
        code!(
            [Value::Bytea(bytes)] => digest(&Sha512::digest(bytes)),
        ),
    ),
    // From and to UTF-8.
    Function::new(
        &["convert_from"],
        &[To(Bytea), To(TEXT)],
        Is(TEXT),
        code!(
            [Value::Bytea(bytes), Value::Text(encoding)] => utf8(encoding).and_then(|()| convert_from(bytes)),
        ),
    )
    .stable(),
    Function::new(
        &["convert_to"],
        &[To(TEXT), To(TEXT)],
        Is(Bytea),
        code!(
            [Value::Text(text), Value::Text(encoding)] => {
                utf8(encoding).map(|()| Value::Bytea(Arc::from(text.as_bytes())))
            }
        ),
    )
    .stable(),
];

/// As pgcrypto calls the algorithms.
fn digest_by_name(data: &[u8], algorithm: &str) -> Computed {
    match algorithm.to_ascii_lowercase().as_str() {
        "md5" => digest(&Md5::digest(data)),
        "sha224" => digest(&Sha224::digest(data)),
        "sha256" => digest(&Sha256::digest(data)),
        "sha384" => digest(&Sha384::digest(data)),
        "sha512" => digest(&Sha512::digest(data)),
        "sha1" => Err(SqlError::unsupported("the algorithm \"sha1\"").hint("Use sha256.")),
        _ => {
            let message = format!("Cannot use \"{algorithm}\": No such hash algorithm");
            Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
        }
    }
}

fn digest(bytes: &[u8]) -> Computed {
    Ok(Value::Bytea(Arc::from(bytes)))
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
