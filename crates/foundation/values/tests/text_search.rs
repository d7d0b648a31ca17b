//! Compares full text search with what PostgreSQL 15 gave for the same arguments: `data/text_search.tsv`, made by `data/text_search.sql`; and what
//! would take long ends.

use types::{
    DataType, ElementType, ExecutionVersion, SqlError, SqlState, Value, cast, format_value, parse_value,
};
use values::functions::resolve;
use values::work;

const TEXTS: DataType = DataType::Array(ElementType::TEXT);

fn data_type(name: &str) -> DataType {
    match name {
        "tsvector" => DataType::TsVector,
        "tsquery" => DataType::TsQuery,
        "integer" => DataType::Integer,
        "json" => DataType::Json,
        "jsonb" => DataType::Jsonb,
        "real[]" => DataType::Array(ElementType::REAL),
        "text[]" | "\"char\"[]" => TEXTS,
        "text" | "regconfig" | "regdictionary" | "\"char\"" => DataType::Text(None),
        _ => panic!("unknown type {name}"),
    }
}

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
    if name == "<" {
        let is_less = values[0].compare(&values[1]).is_some_and(std::cmp::Ordering::is_lt);
        return Ok(("boolean".to_string(), is_less.to_string()));
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

#[test]
fn full_text_search_answers_as_in_postgresql() {
    let (mut count, mut complaints) = (0, Vec::new());
    for line in include_str!("data/text_search.tsv").lines() {
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

fn call(name: &str, arguments: Vec<Value>) -> Result<Value, SqlError> {
    let types: Vec<DataType> = arguments.iter().map(Value::data_type).collect();
    let signature = resolve(name, &types, ExecutionVersion::NEWEST)?.expect("it is there");
    signature.function.call(&arguments, signature.result)
}

/// A document with so many different words, each in several places.
fn document(words: u32) -> Value {
    let word = |number: u32| {
        format!(
            "a{number}:{} ",
            (0..40).map(|place| (number % 97 + place * 97 + 1).to_string()).collect::<Vec<_>>().join(",")
        )
    };
    parse_value(&(0..words).map(word).collect::<String>(), DataType::TsVector).expect("a document")
}

#[test]
fn what_grows_with_the_square_of_a_text_ends() {
    let query = |text: &str| parse_value(text, DataType::TsQuery).expect("a query");
    let long = "a b ".repeat(100_000);
    for (name, arguments) in [
        ("ts_rank_cd", vec![document(5_000), query("a:* <-> a1:* <-> zz | a:* & zz")]),
        ("ts_headline", vec![Value::text("simple"), Value::text(long.as_str()), query("a & b & !c & zz")]),
    ] {
        let (found, steps) = work::measured(u64::MAX, || call(name, arguments.clone()));
        let state = found.err().map(|error| error.state);
        assert_eq!(state, Some(SqlState::PROGRAM_LIMIT_EXCEEDED), "{name} after {steps} steps");
        let (found, _) = work::measured(1_000, || call(name, arguments));
        assert_eq!(found.err().map(|error| error.state), Some(SqlState::QUERY_CANCELED), "{name}");
    }
}

#[test]
fn deep_queries_are_asked_without_recursion() {
    let deep = |operator: &str| {
        let text = [format!("(a {operator} ").repeat(20_000), "a".into(), ")".repeat(20_000)].concat();
        parse_value(&text, DataType::TsQuery).expect("a query")
    };
    let vector = parse_value("a:1,2,3 b", DataType::TsVector).expect("a document");
    for (operator, expected) in [("&", true), ("|", true), ("<->", false), ("& !", true)] {
        // `a & !(a & !(…))` is true at an even depth.
        let found = call("@@", vec![vector.clone(), deep(operator)]);
        assert_eq!(found, Ok(Value::Boolean(expected)), "{operator}");
    }
}
