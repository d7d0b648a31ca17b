//! Which function a call means, by its name and the types of its arguments.

use crate::functions::signature::Signature;
use crate::functions::{Function, array, bytes, number, regular, time};
use types::{DataType, SqlError};

/// The function that PostgreSQL calls; `None` where there is none.
///
/// # Errors
/// `0A000` where the last digits of its values differ between machines.
pub fn resolve(name: &str, arguments: &[DataType]) -> Result<Option<Signature>, SqlError> {
    let found = number::resolve(name, arguments)
        .or_else(|| regular::resolve(name, arguments))
        .or_else(|| resolve_other(name, arguments));
    if found.is_none() {
        number::refuse_inexact(name, arguments)?;
    }
    Ok(found)
}

/// All but those of numbers.
fn resolve_other(name: &str, arguments: &[DataType]) -> Option<Signature> {
    use DataType::{Double, Integer, Real, SmallInt};
    const TEXT: DataType = DataType::Text(None);
    const NUMERIC: DataType = DataType::Numeric(None);
    let signature = |function, arguments: &[DataType], result| {
        Some(Signature { function, arguments: arguments.to_vec(), result })
    };
    let family: Vec<DataType> = arguments.iter().map(|argument| argument.family()).collect();
    let number = |function| match family.as_slice() {
        [NUMERIC] => signature(function, &[NUMERIC], NUMERIC),
        // PostgreSQL prefers double precision among the types that an integer can become.
        [SmallInt | Integer | DataType::BigInt | Real | Double | DataType::Unknown] => {
            signature(function, &[Double], Double)
        }
        _ => None,
    };
    let trim = |function| match family.len() {
        1 => signature(function, &[TEXT], TEXT),
        2 => signature(function, &[TEXT, TEXT], TEXT),
        _ => None,
    };
    // They share names with functions of texts.
    if let Some(signature) = bytes::resolve(name, &family) {
        return Some(signature);
    }
    match name {
        "abs" | "@" => match family.as_slice() {
            [number @ (SmallInt | Integer | DataType::BigInt | Real)] => {
                signature(Function::Abs, &[*number], *number)
            }
            _ => number(Function::Abs),
        },
        "ceil" | "ceiling" => number(Function::Ceil),
        "floor" => number(Function::Floor),
        "sign" => number(Function::Sign),
        "round" | "trunc" => {
            let function = if name == "round" { Function::Round } else { Function::Trunc };
            match family.len() {
                2 => signature(function, &[NUMERIC, Integer], NUMERIC),
                _ => number(function),
            }
        }
        "length" | "char_length" | "character_length" => signature(Function::Length, &[TEXT], Integer),
        "octet_length" => signature(Function::OctetLength, &[TEXT], Integer),
        "lower" => signature(Function::Lower, &[TEXT], TEXT),
        "upper" => signature(Function::Upper, &[TEXT], TEXT),
        "substr" | "substring" => match family.len() {
            2 if family[1] == TEXT => None,
            2 => signature(Function::Substring, &[TEXT, Integer], TEXT),
            _ => signature(Function::Substring, &[TEXT, Integer, Integer], TEXT),
        },
        "btrim" => trim(Function::TrimBoth),
        "ltrim" => trim(Function::TrimLeft),
        "rtrim" => trim(Function::TrimRight),
        "replace" => signature(Function::Replace, &[TEXT, TEXT, TEXT], TEXT),
        "strpos" => signature(Function::Position, &[TEXT, TEXT], Integer),
        "left" => signature(Function::Left, &[TEXT, Integer], TEXT),
        "right" => signature(Function::Right, &[TEXT, Integer], TEXT),
        "repeat" => signature(Function::Repeat, &[TEXT, Integer], TEXT),
        "reverse" => signature(Function::Reverse, &[TEXT], TEXT),
        "quote_ident" => signature(Function::QuoteIdent, &[TEXT], TEXT),
        "initcap" => signature(Function::InitialCapitals, &[TEXT], TEXT),
        "lpad" => signature(Function::PadLeft, &[TEXT, Integer, TEXT], TEXT),
        "rpad" => signature(Function::PadRight, &[TEXT, Integer, TEXT], TEXT),
        "split_part" => signature(Function::SplitPart, &[TEXT, TEXT, Integer], TEXT),
        "translate" => signature(Function::Translate, &[TEXT, TEXT, TEXT], TEXT),
        "ascii" => signature(Function::Ascii, &[TEXT], Integer),
        "chr" => signature(Function::Character, &[Integer], TEXT),
        "overlay" => match family.len() {
            3 => signature(Function::Overlay, &[TEXT, TEXT, Integer], TEXT),
            _ => signature(Function::Overlay, &[TEXT, TEXT, Integer, Integer], TEXT),
        },
        "starts_with" => signature(Function::StartsWith, &[TEXT, TEXT], DataType::Boolean),
        "to_hex" => match family.as_slice() {
            [DataType::BigInt] => signature(Function::ToHex, &[DataType::BigInt], TEXT),
            _ => signature(Function::ToHex, &[Integer], TEXT),
        },
        "bit_length" => signature(Function::BitLength, &[TEXT], Integer),
        "gcd" | "lcm" => {
            let function = if name == "gcd" { Function::GreatestDivisor } else { Function::LeastMultiple };
            let both = if family.contains(&DataType::BigInt) { DataType::BigInt } else { Integer };
            signature(function, &[both, both], both)
        }
        "sqrt" | "|/" => signature(Function::SquareRoot, &[Double], Double),
        _ => time::resolve(name, arguments).or_else(|| array::resolve(name, arguments)),
    }
}

/// A function whose value differs between nodes or depends on the session, and what to use instead.
pub fn refused(name: &str) -> Option<&'static str> {
    Some(match name {
        "random" | "setseed" | "random_normal" => "Pass a random number as an argument.",
        "gen_random_uuid" | "uuid_generate_v4" | "uuid_generate_v1" => "Pass the identifier as an argument.",
        "row_to_json" | "to_json" | "to_jsonb" | "array_to_json" | "json_build_object"
        | "jsonb_build_object" | "json_build_array" | "jsonb_build_array" | "json_object"
        | "jsonb_object" | "json_agg" | "jsonb_agg" | "json_object_agg" | "jsonb_object_agg" => {
            "There is no JSON: give rows, a composite type or an array, or make a text with format()."
        }
        "clock_timestamp" | "statement_timestamp" | "timeofday" => "Use now(), the time of the block.",
        "current_time" => "Use localtime, the time of the block.",
        "pg_sleep" | "txid_current" | "pg_backend_pid" | "pg_current_xact_id" => {
            "Every node must compute the same; leave it out."
        }
        "current_user" | "session_user" | "user" | "current_role" | "version" | "current_database"
        | "current_schema" | "current_catalog" => "It depends on the session; pass it as an argument.",
        _ => return None,
    })
}
