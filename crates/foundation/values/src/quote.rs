//! Texts that become parts of other texts of SQL: `format()`, `quote_ident()`, `quote_literal()`.

use types::{SqlError, SqlState};

/// Words that PostgreSQL 15 does not take as a name without quotes, or not everywhere. In order.
#[rustfmt::skip]
const KEYWORDS: [&str; 151] = [
    "all", "analyse", "analyze", "and", "any", "array", "as", "asc", "asymmetric", "authorization",
    "between", "bigint", "binary", "bit", "boolean", "both", "case", "cast", "char", "character",
    "check", "coalesce", "collate", "collation", "column", "concurrently", "constraint", "create",
    "cross", "current_catalog", "current_date", "current_role", "current_schema", "current_time",
    "current_timestamp", "current_user", "dec", "decimal", "default", "deferrable", "desc", "distinct",
    "do", "else", "end", "except", "exists", "extract", "false", "fetch", "float", "for", "foreign",
    "freeze", "from", "full", "grant", "greatest", "group", "grouping", "having", "ilike", "in",
    "initially", "inner", "inout", "int", "integer", "intersect", "interval", "into", "is", "isnull",
    "join", "lateral", "leading", "least", "left", "like", "limit", "localtime", "localtimestamp",
    "national", "natural", "nchar", "none", "normalize", "not", "notnull", "null", "nullif", "numeric",
    "offset", "on", "only", "or", "order", "out", "outer", "overlaps", "overlay", "placing", "position",
    "precision", "primary", "real", "references", "returning", "right", "row", "select", "session_user",
    "setof", "similar", "smallint", "some", "substring", "symmetric", "table", "tablesample", "then",
    "time", "timestamp", "to", "trailing", "treat", "trim", "true", "union", "unique", "user", "using",
    "values", "varchar", "variadic", "verbose", "when", "where", "window", "with", "xmlattributes",
    "xmlconcat", "xmlelement", "xmlexists", "xmlforest", "xmlnamespaces", "xmlparse", "xmlpi",
    "xmlroot", "xmlserialize", "xmltable",
];

/// A name as SQL writes it: in quotes where it needs them.
pub fn quote_ident(name: &str) -> String {
    let begins = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_');
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if begins && name.chars().all(plain) && KEYWORDS.binary_search(&name).is_err() {
        return name.to_string();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as a literal of SQL.
pub fn quote_literal(text: &str) -> String {
    let doubled = text.replace('\'', "''");
    match doubled.contains('\\') {
        true => format!("E'{}'", doubled.replace('\\', "\\\\")),
        false => format!("'{doubled}'"),
    }
}

/// What stands behind a `%`.
struct Directive {
    /// Which argument, from 1; the next one where it is not said.
    argument: Option<usize>,
    left: bool,
    width: usize,
    kind: char,
}

/// `format(text, argument, …)`; `None` is NULL.
///
/// # Errors
/// `22023` for too few arguments or an unknown form, `22004` for NULL as a name.
pub fn format_text(format: &str, arguments: &[Option<String>]) -> Result<String, SqlError> {
    let mut output = String::new();
    let mut next = 0;
    let mut rest = format.chars().peekable();
    while let Some(character) = rest.next() {
        if character != '%' {
            output.push(character);
            continue;
        }
        if rest.next_if_eq(&'%').is_some() {
            output.push('%');
            continue;
        }
        let directive = read_directive(&mut rest, arguments, &mut next)?;
        let position = directive.argument.unwrap_or(next + 1);
        next = position;
        let Some(argument) = position.checked_sub(1).and_then(|index| arguments.get(index)) else {
            return Err(invalid("too few arguments for format()"));
        };
        let text = match (directive.kind, argument) {
            ('s', argument) => argument.clone().unwrap_or_default(),
            ('I', Some(name)) => quote_ident(name),
            ('I', None) => {
                let message = "null values cannot be formatted as an SQL identifier";
                return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
            }
            (_, Some(text)) => quote_literal(text),
            (_, None) => "NULL".to_string(),
        };
        let padding = directive.width.saturating_sub(text.chars().count());
        if output.len() + text.len() + padding > types::text_bytes_max() {
            let message =
                format!("the text is longer than {} bytes (TEXT_BYTES_MAX)", types::text_bytes_max());
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        let spaces = " ".repeat(padding);
        match directive.left {
            true => [text, spaces],
            false => [spaces, text],
        }
        .iter()
        .for_each(|part| output.push_str(part));
    }
    Ok(output)
}

/// `[position$][flags][width]type`
fn read_directive(
    rest: &mut std::iter::Peekable<std::str::Chars<'_>>,
    arguments: &[Option<String>],
    next: &mut usize,
) -> Result<Directive, SqlError> {
    let mut directive = Directive { argument: None, left: false, width: 0, kind: 's' };
    if let Some(number) = read_number(rest)? {
        if rest.next_if_eq(&'$').is_some() {
            if number == 0 {
                let message = "format specifies argument 0, but arguments are numbered from 1";
                return Err(invalid(message));
            }
            directive.argument = Some(number);
        } else {
            directive.width = number;
            directive.kind = read_kind(rest)?;
            return Ok(directive);
        }
    }
    while rest.next_if_eq(&'-').is_some() {
        directive.left = true;
    }
    if rest.next_if_eq(&'*').is_some() {
        let position = match read_number(rest)? {
            Some(number) if rest.next_if_eq(&'$').is_some() => number,
            Some(_) => return Err(invalid("width argument position must be ended by \"$\"")),
            None => *next + 1,
        };
        *next = position;
        let Some(width) = position.checked_sub(1).and_then(|index| arguments.get(index)) else {
            return Err(invalid("too few arguments for format()"));
        };
        let width =
            width.as_deref().unwrap_or("0").parse::<i32>().map_err(|_| invalid("number is out of range"))?;
        directive.left |= width < 0;
        directive.width = width.unsigned_abs() as usize;
    } else if let Some(number) = read_number(rest)? {
        directive.width = number;
    }
    directive.kind = read_kind(rest)?;
    Ok(directive)
}

fn read_number(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Option<usize>, SqlError> {
    let mut number: Option<usize> = None;
    while let Some(digit) = rest.next_if(char::is_ascii_digit).and_then(|digit| digit.to_digit(10)) {
        let longer = number.unwrap_or(0).checked_mul(10).and_then(|known| known.checked_add(digit as usize));
        let longer = longer.filter(|longer| *longer <= i32::MAX as usize);
        number =
            Some(longer.ok_or_else(|| {
                SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "number is out of range")
            })?);
    }
    Ok(number)
}

fn read_kind(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<char, SqlError> {
    match rest.next() {
        Some(kind @ ('s' | 'I' | 'L')) => Ok(kind),
        Some(other) => Err(invalid(&format!("unrecognized format() type specifier \"{other}\""))
            .hint("For a single \"%\" use \"%%\".")),
        None => Err(invalid("unterminated format() type specifier").hint("For a single \"%\" use \"%%\".")),
    }
}

fn invalid(message: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_keywords_are_sorted() {
        assert!(KEYWORDS.is_sorted());
    }

    proptest! {
        #[test]
        fn any_format_ends(format in "[%a-zI0-9$*L -]{0,20}", arguments in prop::collection::vec(prop::option::of("[a-z0-9]{0,3}"), 0..3)) {
            let _ = format_text(&format, &arguments);
        }
    }
}
