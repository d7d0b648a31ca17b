//! One table of functions.
//!
//! A function is one entry in the file of its kind: its names, the types that it takes and gives, and its code; behind
//! these what is not as usual: that it sees NULL, what it costs, that it never fails.
//!
//! ```text
//! Function::new(&["starts_with"], &[To(TEXT), To(TEXT)], Is(Boolean), code!(
//!     [Value::Text(text), Value::Text(prefix)] => Ok(Value::Boolean(text.starts_with(&**prefix))),
//! )).never_fails(),
//! ```
//!
//! Functions of one name are told apart by the types that they take; the first one that fits is called.

mod array;
mod bit_string;
mod bytes;
mod citext;
mod entry;
mod hash;
mod hstore;
mod json;
mod network;
mod number;
mod number_format;
mod number_parse;
mod of_text;
mod range;
mod real;
mod refused;
mod regular;
mod regular_syntax;
mod template;
#[cfg(test)]
mod tests;
mod text;
mod text_search;
mod time;
mod time_tz;
mod to_char;
mod trigram;
mod unaccent;
mod unaccent_rules;

pub use array::{
    ASSIGN, ASSIGN_SLICE, CONSTRUCT, CONTAINS, ELEMENT, NEST, OVERLAPS, SLICE, accumulated, all_elements,
    any_element, check_accumulated, nested,
};
pub use bit_string::{bits_and, bits_or, bits_xor};
pub use entry::{Function, Signature};
pub use hstore::{HSTORE_ASSIGN, HSTORE_OF_ROW};
pub use json::{
    Counting, JSON_ARRAY, JSON_ASSIGN, JSON_KEY, JSON_OBJECT, JSON_SUBSCRIPT, JSONB_ARRAY, JSONB_OBJECT,
    JsonRows, RecordShape, TO_JSON, TO_JSONB, TO_LINES, aggregated_json, json_record, json_shape,
};
pub use range::{MULTIRANGE_OF_ARRAY, RANGES_OF_MULTIRANGE, range_intersection, range_union_all};
pub use refused::refused;
pub use text::{CONCATENATE, CONCATENATE_ARRAY, FORMAT_ARRAY, JOIN, JOIN_ARRAY, QUOTE_LITERAL};
pub use text_search::names_configuration;
pub use time::ROUND_TIME;
use types::{DataType, ExecutionVersion, SqlError};

/// The functions that calls name, by kind. Where two kinds share a name, the one that asks more of its arguments comes
/// first.
static FUNCTIONS: [&[Function]; 37] = [
    citext::FUNCTIONS,
    hstore::FUNCTIONS,
    network::FUNCTIONS,
    bit_string::FUNCTIONS,
    time_tz::FUNCTIONS,
    number::FUNCTIONS,
    real::FUNCTIONS,
    regular::FUNCTIONS,
    bytes::FUNCTIONS,
    hash::FUNCTIONS,
    text_search::DOCUMENTS,
    text_search::QUERIES,
    text_search::MATCHES,
    text_search::RANKS,
    text_search::RANKS_BY_COVERS,
    text_search::HEADLINES,
    text_search::HEADLINES_OF_JSON,
    text_search::HEADLINES_OF_JSONB,
    range::CONSTRUCTORS,
    range::PARTS,
    range::SETS,
    &range::CONTAINS,
    &range::CONTAINED,
    &range::OVERLAPS,
    &range::BEFORE,
    &range::AFTER,
    &range::NOT_RIGHT,
    &range::NOT_LEFT,
    &range::ADJACENT,
    &range::ELEMENTS,
    text::FUNCTIONS,
    time::FUNCTIONS,
    time::ZONES,
    array::FUNCTIONS,
    json::FUNCTIONS,
    trigram::FUNCTIONS,
    unaccent::FUNCTIONS,
];

/// All functions: those that calls name, and those that the grammar has forms for.
pub fn all() -> impl Iterator<Item = &'static Function> {
    let forms = text::FORMS
        .iter()
        .chain(array::FORMS)
        .chain(hstore::FORMS)
        .chain(json::FORMS)
        .chain(range::FORMS)
        .chain(time::FORMS)
        .flat_map(|forms| forms.iter());
    FUNCTIONS.iter().flat_map(|functions| functions.iter()).chain(forms)
}

/// The function that PostgreSQL calls; `None` where this version of the rules of execution has none.
///
/// # Errors
/// `0A000` where the last digits of its values would differ between machines.
pub fn resolve(
    name: &str,
    arguments: &[DataType],
    version: ExecutionVersion,
) -> Result<Option<Signature>, SqlError> {
    let found = signature_of(name, arguments, version)
        .or_else(|| as_doubles(arguments, version).and_then(|doubles| signature_of(name, &doubles, version)));
    if found.is_none() {
        number::refuse_inexact(name, arguments, version)?;
    }
    Ok(found)
}

/// Whether a function takes the numerics among these only as doubles, so that one that takes them as they are comes first.
pub fn takes_as_doubles(name: &str, arguments: &[DataType], version: ExecutionVersion) -> bool {
    let takes = |types: &[DataType]| signature_of(name, types, version).is_some();
    as_doubles(arguments, version).is_some_and(|doubles| !takes(arguments) && takes(&doubles))
}

fn signature_of(name: &str, arguments: &[DataType], version: ExecutionVersion) -> Option<Signature> {
    let mut named = FUNCTIONS.iter().flat_map(|functions| functions.iter());
    named.find_map(|function| match function.names().contains(&name) && function.is_in(version) {
        true => function.signature(arguments),
        false => None,
    })
}

/// What numerics become by themselves where no function takes them: double precision. `None` where there are none, and before
/// version 13.
fn as_doubles(arguments: &[DataType], version: ExecutionVersion) -> Option<Vec<DataType>> {
    let is_numeric = |data_type: &DataType| matches!(data_type, DataType::Numeric(_));
    let any = version >= ExecutionVersion::V13 && arguments.iter().any(is_numeric);
    let becomes = |data_type: &DataType| if is_numeric(data_type) { DataType::Double } else { *data_type };
    any.then(|| arguments.iter().map(becomes).collect())
}
