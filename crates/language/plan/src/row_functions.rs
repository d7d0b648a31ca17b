//! The names of functions that are built in and give rows.

use types::{DataType, ExecutionVersion};
use values::functions::JsonRows;

/// Gives the parts of an array that have so many dimensions: FOREACH … SLICE. No identifier can be this.
pub const SLICES: &str = "\0slices";

/// Whether a function of this name is built in and gives rows.
pub fn is_row_function(name: &str, version: ExecutionVersion) -> bool {
    matches!(name, "generate_series" | "unnest" | "regexp_split_to_table")
        || (version >= ExecutionVersion::V16
            && (name == "generate_subscripts" || hstore_rows(name).is_some()))
        || (version >= ExecutionVersion::V7 && json_rows(name).is_some() && !gives_record(name))
}

/// What a function of this name makes of an hstore.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum HstoreRows {
    /// Its keys.
    Keys,
    /// Its values.
    Values,
    /// Both side by side.
    Pairs,
}

/// What a function of this name makes of an hstore; `None` where none is called so.
pub(crate) fn hstore_rows(name: &str) -> Option<HstoreRows> {
    match name {
        "skeys" => Some(HstoreRows::Keys),
        "svals" => Some(HstoreRows::Values),
        "each" => Some(HstoreRows::Pairs),
        _ => None,
    }
}

/// Whether a function makes one row of JSON, which is a value where it does not stand in FROM.
fn gives_record(name: &str) -> bool {
    matches!(name, "json_populate_record" | "jsonb_populate_record")
}

/// Whether a function of this name gives rows in FROM.
pub(crate) fn gives_rows_in_from(name: &str, version: ExecutionVersion) -> bool {
    is_row_function(name, version)
        || (version >= ExecutionVersion::V7 && gives_record(name))
        || name == SLICES
}

/// What a function of this name makes of JSON. The fields of its records are known where it is called.
pub(crate) fn json_rows(name: &str) -> Option<JsonRows> {
    let of_both = name.strip_prefix("jsonb_").or_else(|| name.strip_prefix("json_"))?;
    Some(match of_both {
        "array_elements" => JsonRows::Elements(false),
        "array_elements_text" => JsonRows::Elements(true),
        "each" => JsonRows::Members(false),
        "each_text" => JsonRows::Members(true),
        "object_keys" => JsonRows::Keys,
        "to_record" | "populate_record" => JsonRows::Record(Vec::new()),
        "to_recordset" | "populate_recordset" => JsonRows::Records(Vec::new()),
        _ => return None,
    })
}

/// How many arguments a function of this name takes that makes rows of JSON; `None` where none is called so.
pub(crate) fn json_arguments(name: &str) -> Option<usize> {
    json_rows(name).map(|_| if name.contains("_populate_") { 2 } else { 1 })
}

/// The type of JSON that a function of this name takes.
pub(crate) fn json_type_of(name: &str) -> DataType {
    if name.starts_with("jsonb_") { DataType::Jsonb } else { DataType::Json }
}
