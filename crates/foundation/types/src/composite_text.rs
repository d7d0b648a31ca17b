//! Rows as texts, in PostgreSQL's form: `(1,,"a b")`, where nothing is NULL.

use crate::quoted_field::{is_space, push_field, take_field};
use crate::{Composite, SqlError, SqlState, format_value};

/// Writes a row as PostgreSQL does.
pub(crate) fn format_composite(row: &Composite) -> String {
    let mut text = String::from("(");
    for (position, value) in row.values().iter().enumerate() {
        if position > 0 {
            text.push(',');
        }
        match format_value(value) {
            None => {}
            Some(field) => push_field(&mut text, &field, &['(', ')', ',']),
        }
    }
    text.push(')');
    text
}

/// The texts of so many fields; `None` is NULL.
///
/// # Errors
/// `22P02` where it is malformed or has another number of fields.
pub(crate) fn split_composite(text: &str, fields: usize) -> Result<Vec<Option<String>>, SqlError> {
    let malformed = |detail: &str| {
        let message = format!("malformed record literal: \"{text}\"");
        SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message).detail(detail)
    };
    let end = || malformed("Unexpected end of input.");
    let Some(mut rest) = text.trim_start_matches(is_space).strip_prefix('(') else {
        return Err(malformed("Missing left parenthesis."));
    };
    let mut found = Vec::with_capacity(fields);
    for position in 0..fields {
        if position > 0 {
            rest = rest.strip_prefix(',').ok_or_else(|| malformed("Too few columns."))?;
        }
        if rest.starts_with([',', ')']) {
            found.push(None);
            continue;
        }
        let (field, behind) = take_field(rest, &[',', ')']).ok_or_else(end)?;
        rest = behind;
        found.push(Some(field));
    }
    let Some(rest) = rest.strip_prefix(')') else { return Err(malformed("Too many columns.")) };
    match rest.trim_start_matches(is_space).is_empty() {
        true => Ok(found),
        false => Err(malformed("Junk after right parenthesis.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    #[test]
    fn rows_split_as_postgresql_splits_them() {
        let split = |text: &str, fields: usize| split_composite(text, fields).map_err(|error| error.detail);
        let some = |text: &str| Some(text.to_string());
        assert_eq!(split(" (1,,\"a \"\"b\\\"\" ) ", 3), Ok(vec![some("1"), None, some("a \"b\" ")]));
        assert_eq!(split("( a b ,\"\")", 2), Ok(vec![some(" a b "), some("")]));
        assert_eq!(split("()", 1), Ok(vec![None]));
        assert_eq!(split("()", 0), Ok(Vec::new()));
        for (wrong, fields, detail) in [
            ("1,2", 2, "Missing left parenthesis."),
            ("(1)", 2, "Too few columns."),
            ("(1,2,3)", 2, "Too many columns."),
            ("(1,2) x", 2, "Junk after right parenthesis."),
            ("(1,\"2)", 2, "Unexpected end of input."),
            ("(1,2", 2, "Unexpected end of input."),
            ("(1,2\\", 2, "Unexpected end of input."),
        ] {
            assert_eq!(split(wrong, fields), Err(Some(detail.to_string())), "{wrong}");
        }
    }

    #[test]
    fn every_row_of_texts_reads_back() {
        // Texts of every shape that quoting looks at, in every place.
        let parts = ["", " ", "a", "\"", "\\", "(", ")", ",", "\n", "é", "\"\"", "\\\"", "a b", "null"];
        for first in parts {
            for second in parts {
                let texts = vec![first.to_string(), format!("{first}{second}"), format!("{second}x{first}")];
                let values = texts.iter().map(|text| Value::text(text.as_str())).collect();
                let row = Composite::new(None, values).expect("a small row");
                let read = split_composite(&format_composite(&row), 3).expect("what was written");
                assert_eq!(read.into_iter().flatten().collect::<Vec<_>>(), texts);
            }
        }
    }
}
