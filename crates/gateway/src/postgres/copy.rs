//! `COPY table [(columns)] FROM STDIN` in PostgreSQL's formats `text` and `csv`: its statement and its data. The
//! session sends the rows in chunks, each of which is a transaction of its own.

use super::decode::{CHARACTER_NOT_IN_REPERTOIRE, is_of_rows};
use super::script::{Kind, Lexeme, Statement, position};
use crate::limits;
use std::sync::Arc;
use types::limits::TEXT_BYTES_MAX;
use types::{Catalog, DataType, SearchPath, SqlError, SqlState, Table, Value, parse_value};

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
}

/// A COPY statement bound to the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CopyStatement {
    /// The table.
    pub(super) table: String,
    /// It is one of the session's temporary tables.
    pub(super) temporary: bool,
    /// Name and type of the columns that the data gives, in its order.
    pub(super) columns: Vec<(String, DataType)>,
    layout: Layout,
    delimiter: u8,
    null: String,
    header: Header,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Header {
    None,
    Skip,
    Match,
}

/// Reads the words of a COPY statement.
struct Reader<'a> {
    statement: &'a Statement<'a>,
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<&'a Lexeme<'a>> {
        self.statement.lexemes.get(self.at)
    }

    fn error(&self) -> SqlError {
        let statement = self.statement;
        let (message, byte) = match self.peek() {
            Some(lexeme) => {
                (format!("syntax error at or near \"{}\"", lexeme.text), lexeme.start - statement.start)
            }
            None => ("syntax error at end of input".to_string(), statement.text.len()),
        };
        SqlError::new(SqlState::SYNTAX_ERROR, message).at(position(statement.text, byte))
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.peek().is_some_and(|lexeme| lexeme.is(word));
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, word: &str) -> Result<(), SqlError> {
        if self.take(word) { Ok(()) } else { Err(self.error()) }
    }

    fn name(&mut self) -> Result<String, SqlError> {
        let lexeme = self
            .peek()
            .filter(|l| l.kind == Kind::Word || l.text.starts_with('"'))
            .ok_or_else(|| self.error())?;
        self.at += 1;
        Ok(lexeme.value())
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

/// The options as written; what depends on the format is filled in afterwards.
#[derive(Default)]
struct Options {
    csv: bool,
    delimiter: Option<String>,
    null: Option<String>,
    quote: Option<String>,
    escape: Option<String>,
    header: Option<Header>,
}

/// Reads and binds a COPY statement.
pub(super) fn parse(
    statement: &Statement<'_>,
    catalog: &Catalog,
    search_path: &SearchPath,
) -> Result<CopyStatement, SqlError> {
    let mut reader = Reader { statement, at: 0 };
    reader.expect("copy")?;
    if reader.peek().is_some_and(|lexeme| lexeme.is("(")) {
        return Err(SqlError::unsupported("COPY of a query").hint("run the query itself"));
    }
    let table_at = reader.peek().map_or(0, |lexeme| lexeme.start - statement.start);
    let mut name = reader.name()?;
    if reader.take(".") {
        let schema = std::mem::replace(&mut name, reader.name()?);
        catalog.check_schema(&schema).map_err(|error| error.at(position(statement.text, table_at)))?;
        name = format!("{schema}.{name}");
    }
    let is_temporary = catalog.tables.get(&name).is_some_and(|table| table.id.is_temporary());
    let found = if is_temporary {
        name.clone()
    } else {
        search_path.find_or_missing(&name, |found| catalog.has_relation(found))
    };
    let table = catalog.tables.get(&found).ok_or_else(|| {
        SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist"))
            .at(position(statement.text, table_at))
    })?;
    let (columns, temporary) = (read_columns(&mut reader, table)?, table.id.is_temporary());
    if reader.take("to") {
        return Err(SqlError::unsupported("COPY TO").hint("use SELECT, or psql's \\g with a file"));
    }
    reader.expect("from")?;
    if !reader.take("stdin") {
        return match reader.peek() {
            Some(lexeme) if lexeme.kind == Kind::Quoted || lexeme.is("program") => {
                Err(SqlError::unsupported("COPY from a file of the server")
                    .hint("use FROM STDIN, or psql's \\copy"))
            }
            _ => Err(reader.error()),
        };
    }
    let options = read_options(&mut reader)?;
    Ok(CopyStatement { temporary, ..bind(&found, columns, options)? })
}

fn read_columns(reader: &mut Reader<'_>, table: &Arc<Table>) -> Result<Vec<(String, DataType)>, SqlError> {
    if !reader.take("(") {
        return Ok(table.columns.iter().map(|column| (column.name.clone(), column.data_type)).collect());
    }
    let mut columns: Vec<(String, DataType)> = Vec::new();
    loop {
        let name = reader.name()?;
        let Some(ordinal) = table.ordinal(&name) else {
            let message = format!("column \"{name}\" of relation \"{}\" does not exist", table.object_name());
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
        };
        if columns.iter().any(|(other, _)| *other == name) {
            let message = format!("column \"{name}\" specified more than once");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
        columns.push((name, table.columns[ordinal].data_type));
        if !reader.take(",") {
            reader.expect(")")?;
            return Ok(columns);
        }
    }
}

/// `[WITH] (option [value], …)`, or the older form `[WITH] CSV HEADER DELIMITER 'c' …`.
fn read_options(reader: &mut Reader<'_>) -> Result<Options, SqlError> {
    let mut options = Options::default();
    reader.take("with");
    let list = reader.take("(");
    while let Some(lexeme) = reader.peek() {
        if list && reader.take(")") {
            break;
        }
        let option = lexeme.text.to_ascii_lowercase();
        reader.at += 1;
        if !list {
            reader.take("as");
        }
        match option.as_str() {
            "format" => match reader.switch()?.as_str() {
                "text" => options.csv = false,
                "csv" => options.csv = true,
                "binary" => {
                    return Err(SqlError::unsupported("COPY in binary format").hint("use text or csv"));
                }
                other => {
                    let message = format!("COPY format \"{other}\" not recognized");
                    return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
                }
            },
            "csv" if !list => options.csv = true,
            "binary" if !list => {
                return Err(SqlError::unsupported("COPY in binary format").hint("use text or csv"));
            }
            "delimiter" | "delimiters" => options.delimiter = Some(reader.text()?),
            "null" => options.null = Some(reader.text()?),
            "quote" => options.quote = Some(reader.text()?),
            "escape" => options.escape = Some(reader.text()?),
            "header" if list => {
                options.header = Some(match reader.switch()?.as_str() {
                    "on" | "true" | "1" => Header::Skip,
                    "off" | "false" | "0" => Header::None,
                    "match" => Header::Match,
                    _ => {
                        return Err(SqlError::new(
                            SqlState::SYNTAX_ERROR,
                            "header requires a Boolean value or \"match\"",
                        ));
                    }
                });
            }
            "header" => options.header = Some(Header::Skip),
            "encoding" => {
                let encoding = reader.text()?;
                if !matches!(encoding.to_ascii_lowercase().replace('-', "").as_str(), "utf8" | "unicode") {
                    return Err(
                        SqlError::unsupported(format!("COPY in the encoding {encoding}")).hint("use UTF8")
                    );
                }
            }
            // How PostgreSQL marks the rows; they are the same.
            "freeze" if list => {
                reader.take("on");
                reader.take("true");
            }
            "freeze" | "force_quote" | "force_not_null" | "force_null" | "force" | "on_error" | "default"
            | "where" => {
                return Err(SqlError::unsupported(format!("COPY with {}", option.to_uppercase())));
            }
            _ => {
                reader.at -= 1;
                return Err(reader.error());
            }
        }
        if list && !reader.take(",") {
            reader.expect(")")?;
            break;
        }
    }
    if reader.peek().is_some() { Err(reader.error()) } else { Ok(options) }
}

fn bind(table: &str, columns: Vec<(String, DataType)>, options: Options) -> Result<CopyStatement, SqlError> {
    let byte = |text: Option<String>, otherwise: u8, what: &str| match text.as_deref().map(str::as_bytes) {
        None => Ok(otherwise),
        Some([byte]) if !matches!(byte, b'\n' | b'\r' | 0) => Ok(*byte),
        Some(_) => {
            let message = format!("COPY {what} must be a single one-byte character");
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
        }
    };
    let csv_only = |set: bool, what: &str| {
        if set && !options.csv {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("COPY {what} available only in CSV mode"),
            ));
        }
        Ok(())
    };
    csv_only(options.quote.is_some(), "quote")?;
    csv_only(options.escape.is_some(), "escape")?;
    let delimiter = byte(options.delimiter, if options.csv { b',' } else { b'\t' }, "delimiter")?;
    if !options.csv
        && (delimiter.is_ascii_lowercase() || delimiter.is_ascii_digit() || b"\\.".contains(&delimiter))
    {
        let message = format!("COPY delimiter cannot be \"{}\"", char::from(delimiter));
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    let layout = if options.csv {
        let quote = byte(options.quote, b'"', "quote")?;
        Layout::Csv { quote, escape: byte(options.escape, quote, "escape")? }
    } else {
        Layout::Text
    };
    let null = options.null.unwrap_or_else(|| if options.csv { String::new() } else { "\\N".to_string() });
    if null.contains(['\n', '\r']) {
        let message = "COPY null representation cannot use newline or carriage return";
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    let header = options.header.unwrap_or(Header::None);
    Ok(CopyStatement { table: table.to_string(), temporary: false, columns, layout, delimiter, null, header })
}

/// A row of the data as values, with its line.
#[derive(Debug)]
pub(super) struct CopyRow {
    /// Number of its first line, from 1.
    pub(super) line: u64,
    /// One value per column of the statement.
    pub(super) values: Vec<Value>,
    /// Bytes that it takes in a transaction, roughly.
    pub(super) bytes: usize,
}

/// What is wrong with the data, and where.
#[derive(Debug)]
pub(super) struct CopyError {
    /// The error.
    pub(super) error: SqlError,
    /// PostgreSQL's CONTEXT: `COPY t, line 3, column a: "x"`.
    pub(super) context: String,
}

/// Reads rows from the bytes of CopyData messages, which may end anywhere.
pub(super) struct CopyReader {
    statement: Arc<CopyStatement>,
    pending: Vec<u8>,
    /// Bytes of `pending` that hold no line end; looked at once.
    scanned: usize,
    in_quotes: bool,
    line: u64,
    ended: bool,
}

impl CopyReader {
    pub(super) fn new(statement: Arc<CopyStatement>) -> CopyReader {
        CopyReader { statement, pending: Vec::new(), scanned: 0, in_quotes: false, line: 0, ended: false }
    }

    /// Takes the next bytes and appends the rows that are whole.
    pub(super) fn feed(&mut self, bytes: &[u8], rows: &mut Vec<CopyRow>) -> Result<(), CopyError> {
        if self.ended {
            return Ok(());
        }
        self.pending.extend_from_slice(bytes);
        let pending = std::mem::take(&mut self.pending);
        let mut start = 0;
        let mut result = Ok(());
        while let Some(end) = self.find_end(&pending) {
            result = self.take_line(&pending[start..end], rows);
            start = end + 1;
            if result.is_err() || self.ended {
                break;
            }
        }
        self.pending = pending[start..].to_vec();
        self.scanned -= start.min(self.scanned);
        result?;
        if self.pending.len() > limits::COPY_LINE_BYTES_MAX {
            let limit = limits::COPY_LINE_BYTES_MAX;
            let message = format!("a line of COPY data has more than {limit} bytes (COPY_LINE_BYTES_MAX)");
            self.line += 1;
            return Err(self.at_line(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)));
        }
        Ok(())
    }

    /// Takes what is left when the client has sent everything: a last line may come without its end.
    pub(super) fn finish(&mut self, rows: &mut Vec<CopyRow>) -> Result<(), CopyError> {
        if self.ended || self.pending.is_empty() {
            return Ok(());
        }
        if self.in_quotes {
            self.line += 1;
            return Err(
                self.at_line(SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, "unterminated CSV quoted field"))
            );
        }
        let last = std::mem::take(&mut self.pending);
        self.take_line(&last, rows)
    }

    /// The next line end in `pending` from `scanned` on that ends a row.
    fn find_end(&mut self, pending: &[u8]) -> Option<usize> {
        let mut at = self.scanned;
        while at < pending.len() {
            let byte = pending[at];
            match self.statement.layout {
                // A backslash hides what follows, a line end too.
                Layout::Text if byte == b'\\' => {
                    if at + 1 == pending.len() {
                        self.scanned = at;
                        return None;
                    }
                    at += 1;
                }
                Layout::Csv { quote, escape } if self.in_quotes && escape != quote && byte == escape => {
                    if at + 1 == pending.len() {
                        self.scanned = at;
                        return None;
                    }
                    at += usize::from([quote, escape].contains(&pending[at + 1]));
                }
                Layout::Csv { quote, .. } if byte == quote => self.in_quotes = !self.in_quotes,
                _ if byte == b'\n' && !self.in_quotes => {
                    self.scanned = at + 1;
                    return Some(at);
                }
                _ => {}
            }
            at += 1;
        }
        self.scanned = at;
        None
    }

    fn take_line(&mut self, line: &[u8], rows: &mut Vec<CopyRow>) -> Result<(), CopyError> {
        let first = self.line + 1;
        self.line = first + line.iter().filter(|byte| **byte == b'\n').count() as u64;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line == b"\\." {
            self.ended = true;
            return Ok(());
        }
        let statement = Arc::clone(&self.statement);
        let fields = match statement.layout {
            Layout::Text => text_fields(line, &statement),
            Layout::Csv { quote, escape } => csv_fields(line, &statement, quote, escape),
        };
        let fields = fields.map_err(|error| self.at_line(error))?;
        if first == 1 && statement.header != Header::None {
            return self.check_header(&fields);
        }
        let values = self.values(&statement, fields)?;
        rows.push(CopyRow { line: first, values, bytes: line.len() + 8 * statement.columns.len() + 8 });
        Ok(())
    }

    fn check_header(&self, fields: &[Option<String>]) -> Result<(), CopyError> {
        let statement = &self.statement;
        if statement.header == Header::Skip {
            return Ok(());
        }
        let names: Vec<&str> = statement.columns.iter().map(|(name, _)| name.as_str()).collect();
        let found: Vec<&str> = fields.iter().map(|field| field.as_deref().unwrap_or("")).collect();
        if names == found {
            return Ok(());
        }
        let message = format!("the header names {}, expected {}", found.join(", "), names.join(", "));
        Err(self.at_line(SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message)))
    }

    fn values(
        &self,
        statement: &CopyStatement,
        fields: Vec<Option<String>>,
    ) -> Result<Vec<Value>, CopyError> {
        let bad = |message| SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message);
        if let Some((name, _)) = statement.columns.get(fields.len()) {
            return Err(self.at_line(bad(format!("missing data for column \"{name}\""))));
        }
        if fields.len() > statement.columns.len() {
            return Err(self.at_line(bad("extra data after last expected column".to_string())));
        }
        let columns = statement.columns.iter();
        let value = |(field, (name, data_type)): (Option<String>, &(String, DataType))| match field {
            None => Ok(Value::Null),
            Some(text) => {
                let at_column = |error| {
                    let shown: String = text.chars().take(100).collect();
                    let context =
                        format!("COPY {}, line {}, column {name}: \"{shown}\"", statement.table, self.line);
                    CopyError { error, context }
                };
                if text.len() > TEXT_BYTES_MAX {
                    let message = format!("a value has more than {TEXT_BYTES_MAX} bytes (TEXT_BYTES_MAX)");
                    return Err(at_column(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)));
                }
                match is_of_rows(*data_type) {
                    // Whoever inserts it knows the catalog.
                    true => Ok(Value::text(text)),
                    false => parse_value(&text, *data_type).map_err(at_column),
                }
            }
        };
        fields.into_iter().zip(columns).map(value).collect()
    }

    fn at_line(&self, error: SqlError) -> CopyError {
        let context = format!("COPY {}, line {}", self.statement.table, self.line);
        CopyError { error, context }
    }
}

fn utf8(bytes: Vec<u8>) -> Result<String, SqlError> {
    let wrong = |at: usize| {
        let message = format!("invalid byte sequence for encoding \"UTF8\": byte {at} of the field");
        SqlError::new(CHARACTER_NOT_IN_REPERTOIRE, message)
    };
    if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
        return Err(wrong(at));
    }
    String::from_utf8(bytes).map_err(|error| wrong(error.utf8_error().valid_up_to()))
}

/// The fields of a line in the text format; `None` is NULL, which is told before escapes are resolved.
fn text_fields(line: &[u8], statement: &CopyStatement) -> Result<Vec<Option<String>>, SqlError> {
    let mut fields = Vec::with_capacity(statement.columns.len());
    let (mut start, mut at) = (0, 0);
    loop {
        if at >= line.len() || line[at] == statement.delimiter {
            let raw = &line[start..at.min(line.len())];
            fields.push(if raw == statement.null.as_bytes() { None } else { Some(utf8(unescape(raw))?) });
            if at >= line.len() {
                return Ok(fields);
            }
            start = at + 1;
        } else if line[at] == b'\\' {
            at += 1;
        }
        at += 1;
    }
}

fn unescape(raw: &[u8]) -> Vec<u8> {
    if !raw.contains(&b'\\') {
        return raw.to_vec();
    }
    let mut bytes = Vec::with_capacity(raw.len());
    let mut at = 0;
    while at < raw.len() {
        let byte = raw[at];
        at += 1;
        if byte != b'\\' || at == raw.len() {
            bytes.push(byte);
            continue;
        }
        let escaped = raw[at];
        at += 1;
        let digits = |from: usize, count: usize, radix: u32| {
            raw[from..]
                .iter()
                .take(count)
                .map_while(|byte| char::from(*byte).to_digit(radix))
                .collect::<Vec<u32>>()
        };
        let number =
            |digits: &[u32], radix: u32| digits.iter().fold(0, |number, digit| number * radix + digit) as u8;
        match escaped {
            b'b' => bytes.push(8),
            b'f' => bytes.push(12),
            b'n' => bytes.push(b'\n'),
            b'r' => bytes.push(b'\r'),
            b't' => bytes.push(b'\t'),
            b'v' => bytes.push(11),
            b'0'..=b'7' => {
                let octal = digits(at - 1, 3, 8);
                at += octal.len() - 1;
                bytes.push(number(&octal, 8));
            }
            b'x' if raw.get(at).is_some_and(u8::is_ascii_hexdigit) => {
                let hexadecimal = digits(at, 2, 16);
                at += hexadecimal.len();
                bytes.push(number(&hexadecimal, 16));
            }
            other => bytes.push(other),
        }
    }
    bytes
}

/// The fields of a row in the csv format; a quoted field is never NULL.
fn csv_fields(
    line: &[u8],
    statement: &CopyStatement,
    quote: u8,
    escape: u8,
) -> Result<Vec<Option<String>>, SqlError> {
    let mut fields = Vec::with_capacity(statement.columns.len());
    let mut field = Vec::new();
    let (mut quoted, mut inside, mut at) = (false, false, 0);
    loop {
        let byte = line.get(at).copied();
        match byte {
            Some(byte) if inside => {
                let next = line.get(at + 1).copied();
                if byte == escape && next.is_some_and(|next| next == quote || next == escape) {
                    field.extend(next);
                    at += 1;
                } else if byte == quote {
                    inside = false;
                } else {
                    field.push(byte);
                }
            }
            None if inside => {
                return Err(SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, "unterminated CSV quoted field"));
            }
            Some(byte) if byte == quote => (quoted, inside) = (true, true),
            Some(byte) if byte != statement.delimiter => field.push(byte),
            end => {
                let text = utf8(std::mem::take(&mut field))?;
                fields.push(if !quoted && text == statement.null { None } else { Some(text) });
                quoted = false;
                if end.is_none() {
                    return Ok(fields);
                }
            }
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::script::split;
    use types::{Column, TableId};

    fn catalog() -> Catalog {
        let column =
            |name: &str, data_type| Column { name: name.into(), data_type, not_null: false, default: None };
        let table = Table {
            id: TableId(1),
            name: "t".into(),
            columns: vec![column("a", DataType::Text(None)), column("b", DataType::Text(None))],
            primary_key: Vec::new(),
            primary_key_name: String::new(),
            checks: Vec::new(),
            endorsement: None,
        };
        let mut catalog = Catalog::default();
        catalog.tables.insert("t".into(), Arc::new(table));
        catalog
    }

    fn statement(sql: &str) -> Result<CopyStatement, SqlError> {
        parse(&split(sql)[0], &catalog())
    }

    /// Raw fields, so that the tests need no reading of values.
    fn read(sql: &str, data: &[u8], step: usize) -> Vec<Vec<Option<String>>> {
        let statement = Arc::new(statement(sql).expect("a statement"));
        let mut reader = CopyReader::new(Arc::clone(&statement));
        let mut lines = Vec::new();
        let mut pending = Vec::new();
        for chunk in data.chunks(step) {
            pending.extend_from_slice(chunk);
            let mut start = 0;
            while let Some(end) = reader.find_end(&pending) {
                lines.push(pending[start..end].to_vec());
                start = end + 1;
            }
            pending.drain(..start);
            reader.scanned -= start;
        }
        let fields = |line: &Vec<u8>| match statement.layout {
            Layout::Text => text_fields(line, &statement).expect("fields"),
            Layout::Csv { quote, escape } => csv_fields(line, &statement, quote, escape).expect("fields"),
        };
        lines.iter().map(fields).collect()
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_string())
    }

    #[test]
    fn text_data_is_read_wherever_messages_end() {
        let data = b"a\tb\n\\N\tx\\ty\\\\\nline\\nend\t\\x41\\101\nsplit\\\nline\t\n";
        for step in 1..data.len() {
            let rows = read("copy t from stdin", data, step);
            assert_eq!(rows[0], [some("a"), some("b")]);
            assert_eq!(rows[1], [None, some("x\ty\\")]);
            assert_eq!(rows[2], [some("line\nend"), some("AA")]);
            assert_eq!(rows[3], [some("split\nline"), some("")]);
        }
    }

    #[test]
    fn csv_data_is_read_wherever_messages_end() {
        let data = b"a,\"b,\"\"c\"\"\nd\"\n,\"\"\n\"x\"y,z\n";
        for step in 1..data.len() {
            let rows = read("copy t from stdin with (format csv)", data, step);
            assert_eq!(rows[0], [some("a"), some("b,\"c\"\nd")]);
            assert_eq!(rows[1], [None, some("")]);
            assert_eq!(rows[2], [some("xy"), some("z")]);
        }
        let rows = read("copy t from stdin csv quote '''' escape '\\' delimiter ';'", b"'it\\'s';b\n", 3);
        assert_eq!(rows[0], [some("it's"), some("b")]);
    }

    #[test]
    fn statements_that_cannot_be_are_refused_by_name() {
        let state = |sql: &str| statement(sql).expect_err(sql).state;
        assert_eq!(state("copy u from stdin"), SqlState::UNDEFINED_TABLE);
        assert_eq!(state("copy t (c) from stdin"), SqlState::UNDEFINED_COLUMN);
        assert_eq!(state("copy t (a, a) from stdin"), SqlState::DUPLICATE_COLUMN);
        assert_eq!(state("copy t to stdout"), SqlState::FEATURE_NOT_SUPPORTED);
        assert_eq!(state("copy t from '/etc/passwd'"), SqlState::FEATURE_NOT_SUPPORTED);
        assert_eq!(state("copy t from stdin with (format binary)"), SqlState::FEATURE_NOT_SUPPORTED);
        assert_eq!(state("copy t from stdin with (nonsense)"), SqlState::SYNTAX_ERROR);
        assert_eq!(state("copy t from stdin (delimiter 'ab')"), SqlState::FEATURE_NOT_SUPPORTED);
        assert_eq!(state("copy"), SqlState::SYNTAX_ERROR);
        let columns = statement("COPY public.t (b) FROM STDIN WITH (FORMAT csv, HEADER, NULL 'x')")
            .expect("fine")
            .columns;
        assert_eq!(columns, [("b".to_string(), DataType::Text(None))]);
    }
}
