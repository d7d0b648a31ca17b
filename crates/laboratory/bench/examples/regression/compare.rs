//! Whether two answers are the same, and if not, why.

use crate::server::Answer;

/// The error class of what Entente says it does not have.
const NOT_SUPPORTED: &str = "0A000";

/// What sets Entente's answer apart from PostgreSQL's; nothing if they are the same.
pub fn difference(statement: &str, postgres: &Answer, entente: &Answer) -> Option<String> {
    match (postgres, entente) {
        (Answer::Rows { columns, rows }, Answer::Rows { columns: names, rows: found }) => {
            rows_difference(statement, columns, rows, names, found)
        }
        (Answer::Done { rows }, Answer::Done { rows: found }) if rows == found => None,
        (Answer::Done { .. }, Answer::Done { .. }) => Some("another number of rows changed".to_string()),
        (Answer::Error { code, .. }, Answer::Error { code: found, .. }) if code == found => None,
        (_, Answer::Error { code, message }) if code == NOT_SUPPORTED => Some(missing(message)),
        (Answer::Error { code, .. }, Answer::Error { code: found, message }) => {
            Some(format!("{found} {} instead of {code}", general(message)))
        }
        (_, Answer::Error { code, message }) => Some(format!("{code} {}", general(message))),
        (Answer::Error { code, message }, _) => {
            Some(format!("accepted instead of {code} {}", general(message)))
        }
        (_, Answer::None { why }) => Some(why.clone()),
        (Answer::None { why }, _) => Some(format!("PostgreSQL: {why}")),
        (Answer::Rows { .. }, Answer::Done { .. }) => Some("no rows returned".to_string()),
        (Answer::Done { .. }, Answer::Rows { .. }) => Some("rows returned".to_string()),
    }
}

fn rows_difference(
    statement: &str,
    columns: &[String],
    rows: &[Vec<Option<String>>],
    names: &[String],
    found: &[Vec<Option<String>>],
) -> Option<String> {
    if names.len() != columns.len() {
        return Some("another number of columns".to_string());
    }
    let sorted = |rows: &[Vec<Option<String>>]| {
        let mut rows = rows.to_vec();
        rows.sort();
        rows
    };
    if rows.len() != found.len() {
        Some("another number of rows".to_string())
    } else if sorted(rows) != sorted(found) {
        Some("other values".to_string())
    } else if is_ordered(statement) && rows != found {
        Some("the same rows, those that ORDER BY leaves equal in another order".to_string())
    } else if names != columns {
        Some("other column names".to_string())
    } else {
        None
    }
}

/// Whether ORDER BY stands outside of all parentheses.
fn is_ordered(statement: &str) -> bool {
    let mut depth = 0_usize;
    let mut outer = String::new();
    for c in statement.to_ascii_lowercase().chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => outer.push(c),
            _ => {}
        }
    }
    let words: Vec<&str> = outer.split_whitespace().collect();
    words.windows(2).any(|pair| pair == ["order", "by"])
}

/// The X of `X is not supported; …`.
fn missing(message: &str) -> String {
    let end = [" is not supported", " are not supported"].iter().filter_map(|end| message.find(end)).min();
    format!("not supported: {}", general(&message[..end.unwrap_or(message.len())]))
}

/// A message without the names and numbers of its statement, so that equal ones fall into one group.
fn general(message: &str) -> String {
    let mut text = String::new();
    let mut quoted = false;
    for c in message.lines().next().unwrap_or_default().chars() {
        match c {
            '"' => {
                text.push_str(if quoted { "…\"" } else { "\"" });
                quoted = !quoted;
            }
            _ if quoted => {}
            '0'..='9' => {
                if !text.ends_with('N') {
                    text.push('N');
                }
            }
            _ => text.push(c),
        }
    }
    text
}
