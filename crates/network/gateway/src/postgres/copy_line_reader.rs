//! Reading the rows of COPY FROM STDIN from its data, in PostgreSQL's formats `text` and `csv`.

use super::copy::CopyStatement;
use super::copy_format::{Header, Layout};
use super::copy_reader::{CopyError, CopyRow};
use super::decode::{CHARACTER_NOT_IN_REPERTOIRE, is_of_rows};
use crate::limits;
use std::sync::Arc;
use types::limits::TEXT_BYTES_MAX;
use types::{CompositeTypes, DataType, SqlError, SqlState, Value, parse_value};

/// Reads rows from the bytes of CopyData messages, which may end anywhere.
pub(super) struct LineReader {
    statement: Arc<CopyStatement>,
    pending: Vec<u8>,
    /// Bytes of `pending` that hold no line end; looked at once.
    scanned: usize,
    in_quotes: bool,
    line: u64,
    ended: bool,
    /// What values of composite types are, where they have to be read as the session says.
    types: Option<CompositeTypes>,
}

impl LineReader {
    pub(super) fn new(statement: Arc<CopyStatement>, types: Option<CompositeTypes>) -> LineReader {
        let pending = Vec::new();
        LineReader { statement, pending, scanned: 0, in_quotes: false, line: 0, ended: false, types }
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
            match self.statement.format.layout {
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
        let fields = fields(line, &statement).map_err(|error| self.at_line(error))?;
        if first == 1 && statement.format.header != Header::None {
            return self.check_header(&fields);
        }
        let values = self.values(&statement, fields)?;
        rows.push(CopyRow { line: first, values, bytes: line.len() + 8 * statement.columns.len() + 8 });
        Ok(())
    }

    fn check_header(&self, fields: &[Option<String>]) -> Result<(), CopyError> {
        let statement = &self.statement;
        if statement.format.header == Header::Names {
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
                    CopyError { error, context: Some(context) }
                };
                if text.len() > TEXT_BYTES_MAX {
                    let message = format!("a value has more than {TEXT_BYTES_MAX} bytes (TEXT_BYTES_MAX)");
                    return Err(at_column(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)));
                }
                match (is_of_rows(*data_type), &self.types) {
                    // Whoever inserts it knows the catalog.
                    (true, None) => Ok(Value::text(text)),
                    // Whether a domain takes the value is found out where it is inserted.
                    (true, Some(types)) => {
                        let base = types.base_of(*data_type);
                        types.assign(Value::text(text.as_str()), base).map_err(at_column)
                    }
                    (false, _) => parse_value(&text, *data_type).map_err(at_column),
                }
            }
        };
        fields.into_iter().zip(columns).map(value).collect()
    }

    fn at_line(&self, error: SqlError) -> CopyError {
        let context = format!("COPY {}, line {}", self.statement.table, self.line);
        CopyError { error, context: Some(context) }
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

/// The fields of a row.
fn fields(line: &[u8], statement: &CopyStatement) -> Result<Vec<Option<String>>, SqlError> {
    match statement.format.layout {
        Layout::Csv { quote, escape } => csv_fields(line, statement, quote, escape),
        _ => text_fields(line, statement),
    }
}

/// The fields of a line in the text format; `None` is NULL, which is told before escapes are resolved.
fn text_fields(line: &[u8], statement: &CopyStatement) -> Result<Vec<Option<String>>, SqlError> {
    let mut fields = Vec::with_capacity(statement.columns.len());
    let (mut start, mut at) = (0, 0);
    loop {
        if at >= line.len() || line[at] == statement.format.delimiter {
            let raw = &line[start..at.min(line.len())];
            fields.push(if raw == statement.format.null.as_bytes() {
                None
            } else {
                Some(utf8(unescape(raw))?)
            });
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
            Some(byte) if byte != statement.format.delimiter => field.push(byte),
            end => {
                let text = utf8(std::mem::take(&mut field))?;
                fields.push(if !quoted && text == statement.format.null { None } else { Some(text) });
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
    use super::super::copy::CopyCommand;
    use super::super::copy::tests::statement as parse;
    use super::*;

    /// Raw fields, so that the tests need no reading of values.
    fn read(sql: &str, data: &[u8], step: usize) -> Vec<Vec<Option<String>>> {
        let Ok(CopyCommand::From(statement)) = parse(sql) else { panic!("no COPY FROM: {sql}") };
        let statement = Arc::new(statement);
        let mut reader = LineReader::new(Arc::clone(&statement), None);
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
        lines.iter().map(|line| fields(line, &statement).expect("fields")).collect()
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
}
