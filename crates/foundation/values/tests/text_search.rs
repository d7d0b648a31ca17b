//! Compares full text search with what PostgreSQL 15 gave for the same arguments: `data/text_search.tsv`, made by `data/text_search.sql`; and what
//! would take long ends.

mod support;

use support::{call, compare};
use types::{DataType, ElementType, SqlState, Value, parse_value};
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
fn full_text_search_answers_as_in_postgresql() {
    compare(include_str!("data/text_search.tsv"), data_type);
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
