//! Reading the rows of COPY FROM STDIN from its data, in PostgreSQL's format `binary`.
//!
//! ```text
//!  signature │ flags │ length, bytes of an extension │ count, (length, bytes of a field)… │ … │ −1
//!  └──────────────── head ───────────────────────┘   └───────────── a row ────────────┘       end
//! ```
//!
//! All numbers are big-endian; counts have two bytes, the others four. The length −1 is NULL.

use super::copy::CopyStatement;
use super::copy_format::BINARY_SIGNATURE;
use super::copy_reader::{CopyError, CopyRow};
use super::decode::{decode_field, is_of_rows};
use crate::limits;
use std::sync::Arc;
use types::{CompositeTypes, DataType, SqlError, SqlState, Value};

/// Flags whose meaning a reader has to know.
const CRITICAL_FLAGS: u32 = 0xffff_0000;

/// Rows have object identifiers in front.
const HAS_OIDS: u32 = 1 << 16;

/// What the next bytes are.
enum Next {
    Signature,
    Flags,
    ExtensionLength,
    /// So many bytes that say nothing here.
    Extension(usize),
    /// How many fields the next row has.
    Count,
    Length,
    /// So many bytes of a field.
    Field(usize),
    /// Nothing: the data has said that it ends.
    End,
}

/// Reads rows from the bytes of CopyData messages, which may end anywhere. It holds no more than a row.
pub(super) struct BinaryReader {
    statement: Arc<CopyStatement>,
    types: CompositeTypes,
    /// Less than what comes next has.
    pending: Vec<u8>,
    next: Next,
    /// Number of the row, from 1.
    line: u64,
    /// Fields of the row that were read.
    values: Vec<Value>,
    /// Bytes of these.
    bytes: usize,
}

impl BinaryReader {
    pub(super) fn new(statement: Arc<CopyStatement>, types: CompositeTypes) -> BinaryReader {
        let (pending, values) = (Vec::new(), Vec::new());
        BinaryReader { statement, types, pending, next: Next::Signature, line: 0, values, bytes: 0 }
    }

    /// Takes the next bytes and appends the rows that are whole.
    pub(super) fn feed(&mut self, bytes: &[u8], rows: &mut Vec<CopyRow>) -> Result<(), CopyError> {
        self.pending.extend_from_slice(bytes);
        let pending = std::mem::take(&mut self.pending);
        let mut rest = pending.as_slice();
        while self.step(&mut rest, rows)? {}
        // A long field that comes in small pieces is not copied with each of them.
        self.pending = if rest.len() == pending.len() { pending } else { rest.to_vec() };
        Ok(())
    }

    /// Looks at what is left when the client has sent everything. As in PostgreSQL the data may end without saying so.
    pub(super) fn finish(&self) -> Result<(), CopyError> {
        match self.next {
            Next::Signature => Err(in_head(NO_SIGNATURE)),
            Next::Flags => Err(in_head("invalid COPY file header (missing flags)")),
            Next::ExtensionLength => Err(in_head(NO_LENGTH)),
            Next::Extension(_) => Err(in_head("invalid COPY file header (wrong length)")),
            Next::Count | Next::End => Ok(()),
            Next::Length | Next::Field(_) => Err(self.at_column(bad("unexpected EOF in COPY data"))),
        }
    }

    /// Reads what comes next; false if its bytes are not there yet.
    fn step(&mut self, rest: &mut &[u8], rows: &mut Vec<CopyRow>) -> Result<bool, CopyError> {
        match self.next {
            Next::Signature => {
                let Some(signature) = take(rest, BINARY_SIGNATURE.len()) else { return Ok(false) };
                if signature != BINARY_SIGNATURE {
                    return Err(in_head(NO_SIGNATURE));
                }
                self.next = Next::Flags;
            }
            Next::Flags => {
                let Some(flags) = take_number(rest) else { return Ok(false) };
                check_flags(flags)?;
                self.next = Next::ExtensionLength;
            }
            Next::ExtensionLength => {
                let Some(length) = take_number(rest) else { return Ok(false) };
                let length = i32::try_from(length).map_err(|_| in_head(NO_LENGTH))?;
                self.next = extension(length as usize);
            }
            Next::Extension(length) => {
                let skipped = length.min(rest.len());
                if skipped == 0 {
                    return Ok(false);
                }
                *rest = &rest[skipped..];
                self.next = extension(length - skipped);
            }
            Next::Count => return self.take_count(rest, rows),
            Next::Length => return self.take_length(rest, rows),
            Next::Field(length) => {
                let Some(bytes) = take(rest, length) else { return Ok(false) };
                let value = self.value(bytes).map_err(|error| self.at_column(error))?;
                self.push(value, rows);
            }
            Next::End if rest.is_empty() => return Ok(false),
            Next::End => return Err(self.at_line(bad("received copy data after EOF marker"))),
        }
        Ok(true)
    }

    fn take_count(&mut self, rest: &mut &[u8], rows: &mut Vec<CopyRow>) -> Result<bool, CopyError> {
        let Some(count) = take(rest, 2) else { return Ok(false) };
        let count = i16::from_be_bytes([count[0], count[1]]);
        self.line += 1;
        if count == -1 {
            self.next = Next::End;
            return Ok(true);
        }
        let expected = self.statement.columns.len();
        if usize::try_from(count) != Ok(expected) {
            return Err(self.at_line(bad(&format!("row field count is {count}, expected {expected}"))));
        }
        self.next = Next::Length;
        self.end_row(rows);
        Ok(true)
    }

    fn take_length(&mut self, rest: &mut &[u8], rows: &mut Vec<CopyRow>) -> Result<bool, CopyError> {
        let Some(length) = take_number(rest) else { return Ok(false) };
        if length == u32::MAX {
            self.push(Value::Null, rows);
            return Ok(true);
        }
        let length = i32::try_from(length).map_err(|_| self.at_column(bad("invalid field size")))? as usize;
        self.bytes += length;
        if self.bytes > limits::COPY_LINE_BYTES_MAX {
            let limit = limits::COPY_LINE_BYTES_MAX;
            let message = format!("a row of COPY data has more than {limit} bytes (COPY_LINE_BYTES_MAX)");
            return Err(self.at_column(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)));
        }
        self.next = Next::Field(length);
        Ok(true)
    }

    fn value(&self, bytes: &[u8]) -> Result<Value, SqlError> {
        let declared = self.statement.columns.get(self.values.len());
        // Whether a domain takes the value is found out where it is inserted.
        let data_type = declared.map_or(DataType::Unknown, |(_, declared)| self.types.base_of(*declared));
        let value = decode_field(bytes, data_type)?;
        if is_of_rows(data_type) { self.types.assign(value, data_type) } else { Ok(value) }
    }

    fn push(&mut self, value: Value, rows: &mut Vec<CopyRow>) {
        self.values.push(value);
        self.next = Next::Length;
        self.end_row(rows);
    }

    /// The row, if it has all of its fields.
    fn end_row(&mut self, rows: &mut Vec<CopyRow>) {
        let columns = self.statement.columns.len();
        if self.values.len() == columns {
            let values = std::mem::replace(&mut self.values, Vec::with_capacity(columns));
            let bytes = std::mem::take(&mut self.bytes) + 8 * columns + 8;
            rows.push(CopyRow { line: self.line, values, bytes });
            self.next = Next::Count;
        }
    }

    fn at_line(&self, error: SqlError) -> CopyError {
        let context = format!("COPY {}, line {}", self.statement.table, self.line);
        CopyError { error, context: Some(context) }
    }

    fn at_column(&self, error: SqlError) -> CopyError {
        let column = self.statement.columns.get(self.values.len()).map_or("", |(name, _)| name.as_str());
        let context = format!("COPY {}, line {}, column {column}", self.statement.table, self.line);
        CopyError { error, context: Some(context) }
    }
}

const NO_SIGNATURE: &str = "COPY file signature not recognized";
const NO_LENGTH: &str = "invalid COPY file header (missing length)";

fn bad(message: &str) -> SqlError {
    SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message)
}

fn in_head(message: &str) -> CopyError {
    CopyError { error: bad(message), context: None }
}

fn check_flags(flags: u32) -> Result<(), CopyError> {
    match flags & CRITICAL_FLAGS {
        0 => Ok(()),
        critical if critical & HAS_OIDS != 0 => Err(in_head("invalid COPY file header (WITH OIDS)")),
        _ => Err(in_head("unrecognized critical flags in COPY file header")),
    }
}

fn extension(length: usize) -> Next {
    if length == 0 { Next::Count } else { Next::Extension(length) }
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

fn take_number(rest: &mut &[u8]) -> Option<u32> {
    let (number, after) = rest.split_first_chunk::<4>()?;
    *rest = after;
    Some(u32::from_be_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::super::copy_format::{CopyFormat, ForceQuote, Header, Layout};
    use super::super::encode::{Format, put_value};
    use super::*;
    use bytes::{BufMut, BytesMut};
    use types::{
        Catalog, CompositeType, Domain, EnumPlace, EnumValue, RangeType, TypeId, TypeKind, parse_value,
    };

    /// An enum `mood` and a domain `positive` of integers.
    fn types() -> CompositeTypes {
        let label = |number, label: &str| {
            let label = label.into();
            Arc::new(EnumValue { type_id: TypeId(1), place: EnumPlace::nth(number), label })
        };
        let mood = TypeKind::Enum(vec![label(0, "sad"), label(1, "happy")]);
        let base = DataType::Integer;
        let positive = TypeKind::Domain(Domain { base, not_null: false, default: None, checks: Vec::new() });
        let mut catalog = Catalog::default();
        for (id, name, kind) in [(1, "mood", mood), (2, "positive", positive)] {
            let known = CompositeType { id: TypeId(id), name: name.to_string(), fields: Vec::new(), kind };
            catalog.types.insert(name.to_string(), Arc::new(known));
        }
        CompositeTypes::new(&catalog)
    }

    fn reader(columns: &[DataType]) -> BinaryReader {
        let named = |(at, data_type): (usize, &DataType)| (format!("c{at}"), *data_type);
        let format = CopyFormat {
            layout: Layout::Binary,
            delimiter: b'\t',
            null: String::new(),
            header: Header::None,
            force_quote: ForceQuote::None,
        };
        let columns = columns.iter().enumerate().map(named).collect();
        let statement = CopyStatement { table: "t".to_string(), temporary: false, columns, format };
        BinaryReader::new(Arc::new(statement), types())
    }

    /// What is read of data that comes in pieces of so many bytes, and the error's code, text and context.
    fn read(columns: &[DataType], data: &[u8], step: usize) -> (Vec<Vec<Value>>, Option<[String; 3]>) {
        let (mut reader, mut rows) = (reader(columns), Vec::new());
        let fed = data.chunks(step).try_for_each(|part| reader.feed(part, &mut rows));
        let error = fed.and_then(|()| reader.finish()).err();
        let rows = rows.into_iter().map(|row| row.values).collect();
        let shown = |CopyError { error, context }: CopyError| {
            [error.state.to_string(), error.message, context.unwrap_or_default()]
        };
        (rows, error.map(shown))
    }

    fn data(rows: &[&[Option<&[u8]>]]) -> Vec<u8> {
        let mut data = BytesMut::from(&b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0"[..]);
        for row in rows {
            data.put_i16(row.len() as i16);
            for field in *row {
                data.put_i32(field.map_or(-1, |bytes| bytes.len() as i32));
                data.put_slice(field.unwrap_or_default());
            }
        }
        data.to_vec()
    }

    /// A value of each type, in text.
    fn samples() -> Vec<(DataType, &'static str)> {
        let array = |element: DataType| element.array().expect("a type that has arrays");
        vec![
            (DataType::Boolean, "t"),
            (DataType::SmallInt, "-2"),
            (DataType::Integer, "7"),
            (DataType::BigInt, "1099511627776"),
            (DataType::Real, "0.1"),
            (DataType::Double, "-0.1"),
            (DataType::Numeric(None), "-12345.678"),
            (DataType::Numeric(Some((4, 2))), "12.34"),
            (DataType::Numeric(None), "NaN"),
            (DataType::Text(None), "naïve\ttext\n"),
            (DataType::Text(Some(3)), "abc"),
            (DataType::Char(Some(3)), "a  "),
            (DataType::Bytea, "\\x00ff"),
            (DataType::Date, "1999-12-31"),
            (DataType::Time, "01:00:00"),
            (DataType::TimeTz, "12:00:00+02"),
            (DataType::Timestamp, "2000-01-02 00:00:00.000001"),
            (DataType::TimestampTz, "infinity"),
            (DataType::Interval, "1 year 2 mons -3 days +00:00:00.000001"),
            (DataType::Uuid, "a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0"),
            (DataType::Json, "{\"a\":1}"),
            (DataType::Jsonb, "{\"a\": [1, null]}"),
            (DataType::Inet, "10.1.2.3/8"),
            (DataType::MacAddr, "08:00:2b:01:02:03"),
            (DataType::Bit(Some(3)), "101"),
            (DataType::VarBit(None), "1"),
            (DataType::Range(RangeType::Int4), "[1,5)"),
            (DataType::Multirange(RangeType::Int4), "{[1,2),[5,7)}"),
            (array(DataType::Integer), "{1,NULL}"),
            (array(DataType::Text(None)), "{\"a b\",\"NULL\"}"),
            (array(DataType::Numeric(Some((4, 2)))), "{1.50}"),
        ]
    }

    /// Columns, two rows of them in binary, and their values.
    fn every_type() -> (Vec<DataType>, Vec<u8>, Vec<Vec<Value>>) {
        let mut columns: Vec<DataType> = samples().iter().map(|(data_type, _)| *data_type).collect();
        let mut values: Vec<Value> =
            samples().iter().map(|(data_type, text)| parse_value(text, *data_type).expect(text)).collect();
        let mut fields: Vec<Option<Vec<u8>>> = Vec::new();
        for (value, data_type) in values.iter().zip(&columns) {
            let mut field = BytesMut::new();
            put_value(&mut field, value, data_type.unrounded(), Format::Binary);
            fields.push(Some(field[4..].to_vec()));
        }
        let happy = types().assign(Value::text("happy"), DataType::Enum(TypeId(1))).expect("a label");
        columns.extend([DataType::Enum(TypeId(1)), DataType::Domain(TypeId(2))]);
        values.extend([happy, Value::Integer(5)]);
        fields.extend([Some(b"happy".to_vec()), Some(vec![0, 0, 0, 5])]);
        let given: Vec<Option<&[u8]>> = fields.iter().map(Option::as_deref).collect();
        let nulls = vec![None; columns.len()];
        let data = data(&[&given, &nulls]);
        let null_values = vec![Value::Null; columns.len()];
        (columns, data, vec![values, null_values])
    }

    #[test]
    fn rows_are_read_wherever_messages_end() {
        let (columns, mut data, expected) = every_type();
        // The end may be said or not.
        for _ in 0..2 {
            for step in (1..40).chain([data.len()]) {
                assert_eq!(read(&columns, &data, step), (expected.clone(), None), "{step}");
            }
            data.extend([0xff, 0xff]);
        }
    }

    /// What PostgreSQL 15 says to the same data, for a table `t (c0 integer, c1 text)`.
    #[test]
    fn what_is_no_data_is_refused_as_postgresql_refuses_it() {
        let columns = [DataType::Integer, DataType::Text(None)];
        let head = |flags: u32, length: i32, rest: &[u8]| {
            [BINARY_SIGNATURE, &flags.to_be_bytes(), &length.to_be_bytes(), rest].concat()
        };
        let one: &[Option<&[u8]>] = &[Some(&[0, 0, 0, 1]), Some(b"a")];
        let long: &[Option<&[u8]>] = &[Some(&[0, 0, 0, 0, 1]), Some(b"a")];
        let after = |rest: &[u8]| [&data(&[one])[..], rest].concat();
        let cases: Vec<(Vec<u8>, &str, &str)> = vec![
            (Vec::new(), "COPY file signature not recognized", ""),
            (b"PGCOPY".to_vec(), "COPY file signature not recognized", ""),
            (b"1\tada\n2\tbob\n".to_vec(), "COPY file signature not recognized", ""),
            ([BINARY_SIGNATURE, &[0, 0]].concat(), "invalid COPY file header (missing flags)", ""),
            (head(1 << 16, 0, b""), "invalid COPY file header (WITH OIDS)", ""),
            (head(3 << 16, 0, b""), "invalid COPY file header (WITH OIDS)", ""),
            (head(1 << 17, 0, b""), "unrecognized critical flags in COPY file header", ""),
            (head(1 << 31, 0, b""), "unrecognized critical flags in COPY file header", ""),
            (head(0, -1, b""), "invalid COPY file header (missing length)", ""),
            ([BINARY_SIGNATURE, &[0; 5]].concat(), "invalid COPY file header (missing length)", ""),
            (head(0, 5, b"abc"), "invalid COPY file header (wrong length)", ""),
            (after(&[0, 3]), "row field count is 3, expected 2", "COPY t, line 2"),
            (after(&[0xff, 0xfe]), "row field count is -2, expected 2", "COPY t, line 2"),
            (after(&[0xff, 0xff, b'x']), "received copy data after EOF marker", "COPY t, line 2"),
            (after(&[0, 2, 0, 0]), "unexpected EOF in COPY data", "COPY t, line 2, column c0"),
            (after(&[0, 2, 0, 0, 0, 4, 0]), "unexpected EOF in COPY data", "COPY t, line 2, column c0"),
            (
                after(&[0, 2, 0xff, 0xff, 0xff, 0xff]),
                "unexpected EOF in COPY data",
                "COPY t, line 2, column c1",
            ),
            (after(&[0, 2, 0xff, 0xff, 0xff, 0xfe]), "invalid field size", "COPY t, line 2, column c0"),
            (data(&[one, long]), "incorrect binary data format", "COPY t, line 2, column c0"),
        ];
        for (data, message, context) in cases {
            for step in 1..=data.len().max(1) {
                let (_, error) = read(&columns, &data, step);
                let code = if message.starts_with("incorrect") { "22P03" } else { "22P04" };
                assert_eq!(error, Some([code, message, context].map(String::from)), "{data:?}");
            }
        }
        // Unknown flags of lesser weight and extensions are skipped, half a count at the end says nothing.
        for accepted in [head(1, 3, b"abc\xff\xff"), head(0, 0, b""), after(&[0])] {
            assert_eq!(read(&columns, &accepted, 2).1, None, "{accepted:?}");
        }
    }

    #[test]
    fn values_that_do_not_fit_are_refused_by_column() {
        let array = DataType::Integer.array().expect("a type that has arrays");
        for (data_type, bytes, code) in [
            (DataType::Text(Some(3)), &b"abcd"[..], "22001"),
            (DataType::Text(None), b"a\0", "22021"),
            (DataType::Text(None), b"\xff", "22021"),
            (DataType::Numeric(Some((4, 2))), &[0, 1, 0, 1, 0, 0, 0, 0, 0, 1], "22003"),
            (DataType::Bit(Some(3)), &[0, 0, 0, 4, 0xf0], "22026"),
            (DataType::Jsonb, b"\x01{", "22P02"),
            (DataType::Enum(TypeId(1)), b"angry", "22P02"),
            (DataType::Domain(TypeId(2)), b"5", "22P03"),
            (DataType::Timestamp, &[0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfb], "22008"),
            (array, &[0, 0, 0, 9], "22P03"),
            (DataType::Composite(TypeId(3)), b"", "0A000"),
        ] {
            let (rows, error) = read(&[DataType::Boolean, data_type], &data(&[&[None, Some(bytes)]]), 7);
            let [found, message, context] = error.unwrap_or_else(|| panic!("{data_type}: {rows:?}"));
            assert_eq!((found.as_str(), context.as_str()), (code, "COPY t, line 1, column c1"), "{message}");
        }
    }

    #[test]
    fn a_row_takes_no_more_memory_than_is_said() {
        let columns = [DataType::Text(None), DataType::Bytea];
        let limit = limits::COPY_LINE_BYTES_MAX;
        let mut huge = data(&[]);
        huge.extend([0, 2, 0x7f, 0xff, 0xff, 0xff]);
        let (_, error) = read(&columns, &huge, 5);
        let message = format!("a row of COPY data has more than {limit} bytes (COPY_LINE_BYTES_MAX)");
        assert_eq!(error, Some(["54000".to_string(), message, "COPY t, line 1, column c0".to_string()]));
        // An extension of the head takes none.
        let mut reader = reader(&columns);
        let mut rows = Vec::new();
        let head = [BINARY_SIGNATURE, &[0; 4], &i32::MAX.to_be_bytes()].concat();
        reader.feed(&head, &mut rows).expect("a head");
        for _ in 0..100 {
            reader.feed(&vec![7; limit], &mut rows).expect("an extension");
            assert!(reader.pending.is_empty());
        }
    }

    /// Data that was cut, changed in a byte, or is none: rows or an error, never a panic.
    #[test]
    fn garbage_is_refused() {
        let (columns, valid, _) = every_type();
        for length in 0..valid.len() {
            read(&columns, &valid[..length], 64);
        }
        for at in 0..valid.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = valid.clone();
                changed[at] = byte;
                read(&columns, &changed, 4_096);
            }
        }
        let mut state = 7_u64;
        for _ in 0..2_000 {
            let mut noise = data(&[]);
            noise.extend((columns.len() as u16).to_be_bytes());
            for _ in 0..200 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let byte = (state >> 33) as u8;
                // Lengths are small more often than not.
                noise.extend([0, 0, 0, byte % 20]);
                noise.extend(std::iter::repeat_n(byte, usize::from(byte % 20)));
            }
            read(&columns, &noise, 333);
        }
    }
}
