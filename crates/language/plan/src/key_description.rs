//! Keys as errors show them.

use types::{Value, format_value};

/// `Key (a, b)=(1, 2)`.
pub fn describe_key(columns: &str, values: &[Value]) -> String {
    let values: Vec<String> =
        values.iter().map(|value| format_value(value).unwrap_or_else(|| "null".to_string())).collect();
    format!("Key ({columns})=({})", values.join(", "))
}
