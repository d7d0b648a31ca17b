//! Compares functions and operators of extensions with what PostgreSQL 15 gave for the same arguments: `data/extensions.tsv`, made by
//! `data/extensions.sql`; and what would take long ends.

mod support;

use support::{call, compare};
use types::{DataType, ElementType, ExecutionVersion, SqlState, Value};
use values::functions::resolve;
use values::work;

const TEXTS: DataType = DataType::Array(ElementType::TEXT);

fn data_type(name: &str) -> DataType {
    match name {
        "hstore" => DataType::Hstore,
        "citext" => DataType::Citext,
        "integer" => DataType::Integer,
        "text[]" => TEXTS,
        "text" | "regdictionary" => DataType::Text(None),
        _ => panic!("unknown type {name}"),
    }
}

#[test]
fn extensions_answer_as_in_postgresql() {
    compare(include_str!("data/extensions.tsv"), data_type);
}

#[test]
fn what_grows_with_the_square_of_a_text_is_charged() {
    let words = Value::text("ab ".repeat(20_000));
    for name in ["word_similarity", "strict_word_similarity"] {
        let arguments = vec![Value::text("ab ba"), words.clone()];
        let (found, _) = work::measured(10_000, || call(name, arguments.clone()));
        assert_eq!(found.err().map(|error| error.state), Some(SqlState::QUERY_CANCELED), "{name}");
    }
}

#[test]
fn earlier_versions_have_no_such_functions() {
    let (hstore, text) = (DataType::Hstore, DataType::Text(None));
    for (name, types) in [("akeys", vec![hstore]), ("similarity", vec![text, text]), ("unaccent", vec![text])]
    {
        let of = |version| resolve(name, &types, version).expect("no error").is_some();
        assert!(!of(ExecutionVersion::V15) && of(ExecutionVersion::V16), "{name}");
    }
}
