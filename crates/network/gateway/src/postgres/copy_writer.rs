//! Writing rows as COPY TO STDOUT does, in PostgreSQL's formats `text`, `csv` and `binary`.

use super::copy_format::{BINARY_SIGNATURE, CopyFormat, Header, Layout};
use super::encode::{Format, put_value, wire_type};
use super::rows_out::WriteRows;
use bytes::{BufMut, BytesMut};
use types::{DataType, OutputColumn, SqlError, Value, format_value};

/// Makes CopyData messages of rows, one of each.
pub(super) struct CopyWriter {
    format: CopyFormat,
    columns: Vec<OutputColumn>,
    /// Which of them are put in quotes whatever they hold.
    quoted: Vec<bool>,
    /// Something has been written.
    begun: bool,
    rows: u64,
}

impl CopyWriter {
    /// # Errors
    /// FORCE_QUOTE of a column that is not there.
    pub(super) fn new(format: CopyFormat, columns: Vec<OutputColumn>) -> Result<CopyWriter, SqlError> {
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let quoted = format.force_quote.of(&names)?;
        Ok(CopyWriter { format, columns, quoted, begun: false, rows: 0 })
    }

    /// Rows that were written.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }
}

impl WriteRows for CopyWriter {
    fn row(&mut self, output: &mut BytesMut, row: &[Value]) {
        self.begin(output);
        self.rows += 1;
        let binary_head = self.format.layout == Layout::Binary && self.rows == 1;
        message(output, |output| {
            if binary_head {
                put_binary_head(output);
            }
            self.put_row(output, row);
        });
    }

    fn finish(&mut self, output: &mut BytesMut) {
        self.begin(output);
        if self.format.layout == Layout::Binary {
            let rows = self.rows;
            message(output, |output| {
                if rows == 0 {
                    put_binary_head(output);
                }
                output.put_i16(-1);
            });
        }
    }
}

impl CopyWriter {
    /// The names of the columns, where they are asked for.
    fn begin(&mut self, output: &mut BytesMut) {
        if std::mem::replace(&mut self.begun, true) || self.format.header == Header::None {
            return;
        }
        message(output, |output| {
            for (index, column) in self.columns.iter().enumerate() {
                self.separate(output, index);
                self.put_field(output, column.name.as_bytes(), false);
            }
            output.put_u8(b'\n');
        });
    }

    fn separate(&self, output: &mut BytesMut, index: usize) {
        if index > 0 {
            output.put_u8(self.format.delimiter);
        }
    }

    fn put_row(&self, output: &mut BytesMut, row: &[Value]) {
        if self.format.layout == Layout::Binary {
            output.put_i16(row.len() as i16);
            for (index, value) in row.iter().enumerate() {
                let data_type = self.columns.get(index).map_or(DataType::Unknown, |column| column.data_type);
                put_value(output, value, wire_type(data_type), Format::Binary);
            }
            return;
        }
        for (index, value) in row.iter().enumerate() {
            self.separate(output, index);
            match format_value(value) {
                None => output.put_slice(self.format.null.as_bytes()),
                Some(text) => {
                    self.put_field(output, text.as_bytes(), self.quoted.get(index) == Some(&true));
                }
            }
        }
        output.put_u8(b'\n');
    }

    fn put_field(&self, output: &mut BytesMut, text: &[u8], quoted: bool) {
        match self.format.layout {
            Layout::Csv { quote, escape } => self.put_csv(output, text, quoted, (quote, escape)),
            Layout::Text | Layout::Binary => self.put_text(output, text),
        }
    }

    fn put_text(&self, output: &mut BytesMut, text: &[u8]) {
        for byte in text {
            let escaped = match byte {
                8 => b'b',
                12 => b'f',
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                11 => b'v',
                byte if *byte == b'\\' || *byte == self.format.delimiter => *byte,
                byte => {
                    output.put_u8(*byte);
                    continue;
                }
            };
            output.put_slice(&[b'\\', escaped]);
        }
    }

    fn put_csv(&self, output: &mut BytesMut, text: &[u8], quoted: bool, (quote, escape): (u8, u8)) {
        let special = |byte: &u8| [self.format.delimiter, quote, b'\n', b'\r'].contains(byte);
        let quoted = quoted
            || text == self.format.null.as_bytes()
            // Alone in its line it would end the data.
            || (self.columns.len() == 1 && text == b"\\.")
            || text.iter().any(special);
        if !quoted {
            return output.put_slice(text);
        }
        output.put_u8(quote);
        for byte in text {
            if *byte == quote || *byte == escape {
                output.put_u8(escape);
            }
            output.put_u8(*byte);
        }
        output.put_u8(quote);
    }
}

/// The signature, flags, and the length of what else may be said.
fn put_binary_head(output: &mut BytesMut) {
    output.put_slice(BINARY_SIGNATURE);
    output.put_u64(0);
}

/// Appends a CopyData message.
fn message(output: &mut BytesMut, body: impl FnOnce(&mut BytesMut)) {
    output.put_u8(b'd');
    let start = output.len();
    output.put_i32(0);
    body(output);
    let length = (output.len() - start) as i32;
    output[start..start + 4].copy_from_slice(&length.to_be_bytes());
}
