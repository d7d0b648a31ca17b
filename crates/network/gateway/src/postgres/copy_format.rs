//! The options of a COPY statement: how rows are written in its data.

use super::script::Kind;
use super::words::Words;
use types::{SqlError, SqlState};

/// What data in binary begins with.
pub(super) const BINARY_SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

/// How rows are written in the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// One row per line, backslash escapes.
    Text,
    /// Fields may be quoted, quoted ones may hold line ends.
    Csv {
        /// Opens and closes a quoted field.
        quote: u8,
        /// In a quoted field, makes a quote out of the next quote.
        escape: u8,
    },
    /// Numbers of bytes, and the bytes of values as parameters have them in binary.
    Binary,
}

/// Whether the first line names the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    None,
    Names,
    /// As `Names`; reading compares them.
    Match,
}

/// Which values a csv puts in quotes that need none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum ForceQuote {
    #[default]
    None,
    All,
    Columns(Vec<String>),
}

/// What the options of a statement come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CopyFormat {
    pub(super) layout: Layout,
    pub(super) delimiter: u8,
    pub(super) null: String,
    pub(super) header: Header,
    pub(super) force_quote: ForceQuote,
}

/// Which way rows go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    From,
    To,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Text,
    Csv,
    Binary,
}

/// The options as written; what depends on the format is filled in afterwards.
#[derive(Default)]
struct Options {
    name: Option<Name>,
    delimiter: Option<String>,
    null: Option<String>,
    quote: Option<String>,
    escape: Option<String>,
    header: Option<Header>,
    force_quote: ForceQuote,
}

impl Words<'_, '_> {
    fn skip(&mut self) {
        self.at += 1;
    }

    fn back(&mut self) {
        self.at -= 1;
    }

    fn text(&mut self) -> Result<String, SqlError> {
        let lexeme = self
            .peek()
            .filter(|l| l.kind == Kind::Quoted && !l.text.starts_with('"'))
            .ok_or_else(|| self.error())?;
        self.at += 1;
        Ok(lexeme.value())
    }

    /// The value of an option that may be left out, which means on.
    fn switch(&mut self) -> Result<String, SqlError> {
        match self.peek() {
            Some(lexeme) if !lexeme.is(",") && !lexeme.is(")") => {
                self.at += 1;
                Ok(lexeme.value().to_ascii_lowercase())
            }
            _ => Ok("on".to_string()),
        }
    }
}

/// Reads the options to the end of the statement: `[WITH] (option [value], …)`, or the older form
/// `[WITH] CSV HEADER DELIMITER 'c' …`. The oldest one is `COPY BINARY …`, which is read before.
pub(super) fn read_format(
    words: &mut Words<'_, '_>,
    direction: Direction,
    is_binary: bool,
) -> Result<CopyFormat, SqlError> {
    let options = read_options(words, direction, is_binary)?;
    options.check_binary()?;
    options.finish()
}

fn read_options(
    words: &mut Words<'_, '_>,
    direction: Direction,
    is_binary: bool,
) -> Result<Options, SqlError> {
    let name = is_binary.then_some(Name::Binary);
    let mut options = Options { name, ..Options::default() };
    words.take("with");
    let list = words.take("(");
    while let Some(lexeme) = words.peek() {
        if list && words.take(")") {
            break;
        }
        let option = lexeme.text.to_ascii_lowercase();
        words.skip();
        if !list {
            words.take("as");
        }
        match option.as_str() {
            "format" if list => {
                let name = words.switch()?;
                options.set_name(&name)?;
            }
            "csv" | "binary" if !list => options.set_name(&option)?,
            "delimiter" | "delimiters" => options.delimiter = Some(words.text()?),
            "null" => options.null = Some(words.text()?),
            "quote" => options.quote = Some(words.text()?),
            "escape" => options.escape = Some(words.text()?),
            "header" => options.header = Some(read_header(words, list, direction)?),
            "force_quote" if list => options.force_quote = force_quote(words, direction, list)?,
            "force" if !list && words.take("quote") => {
                options.force_quote = force_quote(words, direction, list)?;
            }
            "encoding" => {
                let encoding = words.text()?;
                if !matches!(encoding.to_ascii_lowercase().replace('-', "").as_str(), "utf8" | "unicode") {
                    return Err(
                        SqlError::unsupported(format!("COPY in the encoding {encoding}")).hint("use UTF8")
                    );
                }
            }
            // How PostgreSQL marks the rows; they are the same.
            "freeze" if list => {
                words.take("on");
                words.take("true");
            }
            "freeze" | "force_not_null" | "force_null" | "force" | "on_error" | "default" | "where" => {
                return Err(SqlError::unsupported(format!("COPY with {}", option.to_uppercase())));
            }
            _ => {
                words.back();
                return Err(words.error());
            }
        }
        if list && !words.take(",") {
            words.expect(")")?;
            break;
        }
    }
    if words.peek().is_some() { Err(words.error()) } else { Ok(options) }
}

fn read_header(words: &mut Words<'_, '_>, list: bool, direction: Direction) -> Result<Header, SqlError> {
    if !list {
        return Ok(Header::Names);
    }
    match words.switch()?.as_str() {
        "on" | "true" | "1" => Ok(Header::Names),
        "off" | "false" | "0" => Ok(Header::None),
        "match" if direction == Direction::From => Ok(Header::Match),
        "match" => {
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "cannot use \"match\" with HEADER in COPY TO"))
        }
        _ => Err(SqlError::new(SqlState::SYNTAX_ERROR, "header requires a Boolean value or \"match\"")),
    }
}

/// `FORCE_QUOTE (a, b)`, `FORCE_QUOTE *`, `FORCE QUOTE a, b`.
fn force_quote(words: &mut Words<'_, '_>, direction: Direction, list: bool) -> Result<ForceQuote, SqlError> {
    if direction == Direction::From {
        let message = "COPY force quote only available using COPY TO";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    if words.take("*") {
        return Ok(ForceQuote::All);
    }
    if list {
        words.expect("(")?;
    }
    let mut columns = vec![words.name()?];
    while words.take(",") {
        columns.push(words.name()?);
    }
    if list {
        words.expect(")")?;
    }
    Ok(ForceQuote::Columns(columns))
}

impl Options {
    fn set_name(&mut self, name: &str) -> Result<(), SqlError> {
        let name = match name {
            "text" => Name::Text,
            "csv" => Name::Csv,
            "binary" => Name::Binary,
            other => return Err(invalid(format!("COPY format \"{other}\" not recognized"))),
        };
        match self.name.replace(name) {
            None => Ok(()),
            Some(_) => Err(SqlError::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options")),
        }
    }

    /// The binary format has nothing to be said about it.
    fn check_binary(&self) -> Result<(), SqlError> {
        if self.name != Some(Name::Binary) {
            return Ok(());
        }
        let wrong =
            |state, what: &str| Err(SqlError::new(state, format!("cannot specify {what} in BINARY mode")));
        if self.delimiter.is_some() {
            return wrong(SqlState::SYNTAX_ERROR, "DELIMITER");
        }
        if self.null.is_some() {
            return wrong(SqlState::SYNTAX_ERROR, "NULL");
        }
        match self.header {
            None | Some(Header::None) => Ok(()),
            Some(_) => wrong(SqlState::FEATURE_NOT_SUPPORTED, "HEADER"),
        }
    }

    fn finish(self) -> Result<CopyFormat, SqlError> {
        let csv = self.name == Some(Name::Csv);
        for (set, what) in [
            (self.quote.is_some(), "quote"),
            (self.escape.is_some(), "escape"),
            (self.force_quote != ForceQuote::None, "force quote"),
        ] {
            if set && !csv {
                return Err(refused(format!("COPY {what} available only in CSV mode")));
            }
        }
        let delimiter = one_byte(self.delimiter, if csv { b',' } else { b'\t' }, "delimiter")?;
        let null = self.null.unwrap_or_else(|| if csv { String::new() } else { "\\N".to_string() });
        if null.contains(['\n', '\r']) {
            return Err(invalid(
                "COPY null representation cannot use newline or carriage return".to_string(),
            ));
        }
        let special =
            delimiter.is_ascii_lowercase() || delimiter.is_ascii_digit() || b"\\.".contains(&delimiter);
        if !csv && special {
            return Err(invalid(format!("COPY delimiter cannot be \"{}\"", char::from(delimiter))));
        }
        let layout = match self.name {
            None | Some(Name::Text) => Layout::Text,
            Some(Name::Binary) => Layout::Binary,
            Some(Name::Csv) => {
                let quote = one_byte(self.quote, b'"', "quote")?;
                Layout::Csv { quote, escape: one_byte(self.escape, quote, "escape")? }
            }
        };
        if null.as_bytes().contains(&delimiter) && layout != Layout::Binary {
            return Err(refused("COPY delimiter must not appear in the NULL specification".to_string()));
        }
        if let Layout::Csv { quote, .. } = layout {
            if quote == delimiter {
                return Err(invalid("COPY delimiter and quote must be different".to_string()));
            }
            if null.as_bytes().contains(&quote) {
                return Err(refused(
                    "CSV quote character must not appear in the NULL specification".to_string(),
                ));
            }
        }
        let header = self.header.unwrap_or(Header::None);
        Ok(CopyFormat { layout, delimiter, null, header, force_quote: self.force_quote })
    }
}

fn one_byte(text: Option<String>, otherwise: u8, what: &str) -> Result<u8, SqlError> {
    match text.as_deref().map(str::as_bytes) {
        None => Ok(otherwise),
        Some([byte]) if !matches!(byte, b'\n' | b'\r' | 0) => Ok(*byte),
        Some(_) => Err(refused(format!("COPY {what} must be a single one-byte character"))),
    }
}

fn refused(message: String) -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

fn invalid(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}
