//! Compares functions with what PostgreSQL 15 gave for the same arguments.
//!
//! A line of a file of answers has, with tabs between them: the name, the type of the result, the result, and for each argument its type and
//! text. Where there was an error its SQLSTATE and message stand for type and result.

use std::cmp::Ordering;
use types::{DataType, ExecutionVersion, SqlError, Value, cast, format_value, parse_value};
use values::functions::resolve;

/// Undoes the escapes of the file.
fn unescape(field: &str) -> String {
    let (mut text, mut characters) = (String::new(), field.chars());
    while let Some(character) = characters.next() {
        text.push(match character {
            '\\' => match characters.next().expect("an escape has two characters") {
                't' => '\t',
                'n' => '\n',
                other => other,
            },
            other => other,
        });
    }
    text
}

/// The name of the result's type and its text.
fn evaluate(name: &str, arguments: &[(DataType, String)]) -> Result<(String, String), SqlError> {
    let values = arguments.iter().map(|(data_type, text)| parse_value(text, *data_type));
    let values: Vec<Value> = values.collect::<Result<_, _>>()?;
    let compared = |holds: fn(Ordering) -> bool| {
        let truth = values[0].compare(&values[1]).is_some_and(holds);
        Ok(("boolean".to_string(), truth.to_string()))
    };
    match name {
        "<" => return compared(Ordering::is_lt),
        "<=" => return compared(Ordering::is_le),
        ">" => return compared(Ordering::is_gt),
        ">=" => return compared(Ordering::is_ge),
        "=" => return compared(Ordering::is_eq),
        "<>" => return compared(Ordering::is_ne),
        _ => {}
    }
    let types: Vec<DataType> = arguments.iter().map(|(data_type, _)| *data_type).collect();
    let signature = resolve(name, &types, ExecutionVersion::NEWEST)?;
    let signature = signature.unwrap_or_else(|| panic!("no function {name} of {types:?}"));
    let cast_to = |(value, target): (Value, &DataType)| cast(value, *target);
    let values = values.into_iter().zip(&signature.arguments).map(cast_to).collect::<Result<Vec<_>, _>>()?;
    let value = signature.function.call(&values, signature.result)?;
    let text = match value {
        Value::Boolean(truth) => truth.to_string(),
        other => format_value(&other).unwrap_or_else(|| "\\N".to_string()),
    };
    Ok((signature.result.to_string(), text))
}

/// Compares all answers of a file, and panics with those that differ. `data_type`: the type that a name means.
pub fn compare(answers: &str, data_type: impl Fn(&str) -> DataType) {
    let (mut count, mut complaints) = (0, Vec::new());
    for line in answers.lines() {
        let fields: Vec<String> = line.split('\t').map(unescape).collect();
        let [name, result_type, result, arguments @ ..] = fields.as_slice() else { panic!("{line}") };
        let arguments: Vec<(DataType, String)> =
            arguments.chunks(2).map(|pair| (data_type(&pair[0]), pair[1].clone())).collect();
        let found = match evaluate(name, &arguments) {
            Ok(found) => found,
            Err(error) => (error.state.to_string(), error.message),
        };
        if found != (result_type.clone(), result.clone()) {
            complaints.push(format!("{line}\n    {found:?}"));
        }
        count += 1;
    }
    assert!(count > 3_000, "{count}");
    let shown = complaints.iter().take(40).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(complaints.is_empty(), "{} of {count}:\n{shown}", complaints.len());
}

/// Calls a function.
///
/// # Errors
/// What it raises.
pub fn call(name: &str, arguments: Vec<Value>) -> Result<Value, SqlError> {
    let types: Vec<DataType> = arguments.iter().map(Value::data_type).collect();
    let signature = resolve(name, &types, ExecutionVersion::NEWEST)?.expect("it is there");
    signature.function.call(&arguments, signature.result)
}
