//! Compares functions of addresses, strings of bits and times with zones with what PostgreSQL 15 gave for the same arguments:
//! `data/addresses.txt`, made by `data/addresses.sql`.

use types::{DataType, ExecutionVersion, Value, cast, format_value, parse_value};
use values::functions::resolve;

fn data_type(name: &str) -> DataType {
    match name {
        "boolean" => DataType::Boolean,
        "integer" => DataType::Integer,
        "bigint" => DataType::BigInt,
        "numeric" => DataType::Numeric(None),
        "double precision" => DataType::Double,
        "text" => DataType::Text(None),
        "date" => DataType::Date,
        "interval" => DataType::Interval,
        "timestamp with time zone" => DataType::TimestampTz,
        "inet" => DataType::Inet,
        "cidr" => DataType::Cidr,
        "macaddr" => DataType::MacAddr,
        "bit" => DataType::Bit(None),
        "bit varying" => DataType::VarBit(None),
        "time with time zone" => DataType::TimeTz,
        _ => panic!("unknown type {name}"),
    }
}

/// What a call gives here: the name of its type or SQLSTATE, and its text or message.
fn found(name: &str, arguments: &[(DataType, &str)]) -> (String, String) {
    let types: Vec<DataType> = arguments.iter().map(|(data_type, _)| *data_type).collect();
    let signature = match resolve(name, &types, ExecutionVersion::NEWEST) {
        Ok(Some(signature)) => signature,
        _ => return ("42883".to_string(), "no function".to_string()),
    };
    let values = arguments.iter().zip(&signature.arguments).map(|((data_type, text), target)| {
        cast(parse_value(text, *data_type).expect("an argument"), *target).expect("a cast")
    });
    let values: Vec<Value> = values.collect();
    match signature.function.call(&values, signature.result) {
        Ok(value) => (signature.result.to_string(), format_value(&value).unwrap_or_default()),
        Err(error) => (error.state.to_string(), error.message),
    }
}

#[test]
fn functions_answer_as_in_postgresql() {
    let lines = include_str!("data/addresses.txt").lines();
    let (mut count, mut complaints) = (0, Vec::new());
    for line in lines {
        let parts: Vec<&str> = line.split(';').collect();
        let [name, result_type, result, arguments @ ..] = parts.as_slice() else { panic!("{line}") };
        let arguments: Vec<(DataType, &str)> =
            arguments.chunks(2).map(|pair| (data_type(pair[0]), pair[1])).collect();
        let answer = found(name, &arguments);
        // What is no function has a message with the place of the call.
        let is_same = answer.0 == *result_type && (answer.1 == *result || answer.0 == "42883");
        if !is_same {
            complaints.push(format!("{line}: {answer:?}"));
        }
        count += 1;
    }
    assert!(count > 5_000);
    assert!(complaints.is_empty(), "{} of {count}:\n{}", complaints.len(), complaints.join("\n"));
}
