//! How the rows of one table stand in its files: which columns there are, and rows to and from them.

use crate::from_columns::value;
use crate::kind::Kind;
use crate::names::{KEY_COLUMN, ROW_COLUMN, column_names};
use crate::to_columns::column;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch};
use arrow_schema::{ArrowError, DataType as ArrowType, Field, Schema, SchemaRef};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use types::{DataType, Key, Row, Table, Value, decode_exactly, encode};

/// The columns of one table, in files and in the schema of its Delta table.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    columns: Vec<LaidColumn>,
    /// Ordinals of the primary key's columns; none: each row's key stands in [`KEY_COLUMN`].
    primary_key: Vec<usize>,
    /// Whether there is [`ROW_COLUMN`].
    has_rows: bool,
    schema: SchemaRef,
}

#[derive(Clone, Debug)]
struct LaidColumn {
    name: String,
    kind: Kind,
    data_type: DataType,
}

/// A row of a file that is none of the table.
#[derive(Debug, PartialEq)]
pub(crate) struct WrongRow {
    /// Which one of the batch.
    pub(crate) row: usize,
    /// What is wrong with it.
    pub(crate) what: String,
}

impl Layout {
    pub(crate) fn of(table: &Table) -> Layout {
        Layout::of_columns(table, Kind::may_lose)
    }

    /// That of exports which know arrays of one dimension only: they are read and proved as they are, and written anew when they go on.
    pub(crate) fn of_plain_arrays(table: &Table) -> Layout {
        Layout::of_columns(table, Kind::may_lose_elements)
    }

    fn of_columns(table: &Table, may_lose: fn(&Kind) -> bool) -> Layout {
        let laid = |(column, name): (&types::Column, String)| LaidColumn {
            name,
            kind: Kind::of(column.data_type),
            data_type: column.data_type,
        };
        let columns: Vec<LaidColumn> = table.columns.iter().zip(column_names(table)).map(laid).collect();
        let has_rows = columns.iter().any(|column| may_lose(&column.kind));
        let mut fields: Vec<Field> =
            columns.iter().map(|column| Field::new(&column.name, column.kind.arrow_type(), true)).collect();
        if table.primary_key.is_empty() {
            fields.push(Field::new(KEY_COLUMN, ArrowType::Binary, true));
        }
        if has_rows {
            fields.push(Field::new(ROW_COLUMN, ArrowType::Binary, true));
        }
        Layout {
            columns,
            primary_key: table.primary_key.iter().map(|ordinal| usize::from(*ordinal)).collect(),
            has_rows,
            schema: Arc::new(Schema::new(fields)),
        }
    }

    /// That of its files.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// That of its Delta table, as Delta writes it.
    pub(crate) fn delta_schema(&self) -> Json {
        let field = |name: &str, kind: Json, sql: Option<String>| {
            let metadata = sql.map_or(json!({}), |sql| json!({"entente.type": sql}));
            json!({"name": name, "type": kind, "nullable": true, "metadata": metadata})
        };
        let columns = self.columns.iter();
        let mut fields: Vec<Json> = columns
            .map(|column| field(&column.name, column.kind.delta_type(), Some(column.data_type.to_string())))
            .collect();
        for name in [KEY_COLUMN, ROW_COLUMN] {
            if self.schema.index_of(name).is_ok() {
                fields.push(field(name, json!("binary"), None));
            }
        }
        json!({"type": "struct", "fields": fields})
    }

    /// Whether a column is a timestamp without time zone.
    pub(crate) fn has_local_time(&self) -> bool {
        self.columns.iter().any(|column| column.kind.has_local_time())
    }

    /// Rows in columns.
    pub(crate) fn batch(&self, rows: &[(Key, Row)]) -> Result<RecordBatch, ArrowError> {
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        let null = Value::Null;
        let mut lost = vec![false; rows.len()];
        for (ordinal, laid) in self.columns.iter().enumerate() {
            let values: Vec<&Value> = rows.iter().map(|(_, row)| row.get(ordinal).unwrap_or(&null)).collect();
            let array = column(&laid.kind, &values);
            if laid.kind.may_lose() {
                let all = lost.iter_mut().zip(&values).enumerate();
                all.for_each(|(row, (lost, value))| *lost |= laid.loses(value, array.as_ref(), row));
            }
            arrays.push(array);
        }
        if self.primary_key.is_empty() {
            let keys = rows.iter().map(|(key, _)| Some(key.as_bytes()));
            arrays.push(Arc::new(keys.collect::<BinaryArray>()));
        }
        if self.has_rows {
            let whole = rows.iter().zip(lost).map(|((_, row), lost)| lost.then(|| encode(row)));
            arrays.push(Arc::new(whole.collect::<BinaryArray>()));
        }
        RecordBatch::try_new(self.schema.clone(), arrays)
    }

    /// The rows that stand in columns; `batch` has this schema.
    pub(crate) fn rows(&self, batch: &RecordBatch) -> Result<Vec<(Key, Row)>, WrongRow> {
        let rows = 0..batch.num_rows();
        rows.map(|row| self.row(batch, row).map_err(|what| WrongRow { row, what })).collect()
    }

    fn row(&self, batch: &RecordBatch, at: usize) -> Result<(Key, Row), String> {
        let binary = |name: &str| {
            let column = batch.column_by_name(name).map(|column| column.as_binary::<i32>());
            column.filter(|column| column.is_valid(at)).map(|column| column.value(at))
        };
        let row = match binary(ROW_COLUMN) {
            Some(bytes) => self.whole_row(batch, at, bytes)?,
            None => {
                let columns = self.columns.iter().zip(batch.columns());
                let values = columns.map(|(laid, column)| {
                    value(&laid.kind, laid.data_type, column.as_ref(), at)
                        .map_err(|what| format!("column {}: {what}", laid.name))
                });
                values.collect::<Result<Vec<Value>, String>>()?.into()
            }
        };
        let key = match self.primary_key.as_slice() {
            [] => Key::from_bytes(binary(KEY_COLUMN).ok_or_else(|| format!("{KEY_COLUMN} is NULL"))?),
            ordinals => {
                let values = ordinals.iter().filter_map(|ordinal| row.get(*ordinal));
                Key::encode(values).map_err(|error| error.message)?
            }
        };
        Ok((key, row))
    }

    /// A row that the other columns do not say exactly. They must say what can be said of it, because people read them.
    fn whole_row(&self, batch: &RecordBatch, at: usize, bytes: &[u8]) -> Result<Row, String> {
        let row: Row = decode_exactly(bytes).map_err(|error| format!("{ROW_COLUMN}: {error}"))?;
        if row.len() != self.columns.len() {
            let (expected, found) = (self.columns.len(), row.len());
            return Err(format!("{ROW_COLUMN}: expected {expected} values, found {found}"));
        }
        for ((laid, shown), value) in self.columns.iter().zip(batch.columns()).zip(row.iter()) {
            if column(&laid.kind, &[value]).as_ref() != shown.slice(at, 1).as_ref() {
                return Err(format!("column {} is not what {ROW_COLUMN} says", laid.name));
            }
        }
        Ok(row)
    }
}

impl LaidColumn {
    /// Whether the column does not say this value exactly.
    fn loses(&self, original: &Value, array: &dyn Array, row: usize) -> bool {
        match self.kind {
            Kind::Decimal { .. } | Kind::TimestampTz | Kind::Timestamp => {
                array.is_null(row) && *original != Value::Null
            }
            _ => match value(&self.kind, self.data_type, array, row) {
                Ok(read) => encode(&read) != encode(original),
                Err(_) => true,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::{Column, ElementType, Numeric, RangeType, TableId, parse_value};

    fn table(types: &[DataType], primary_key: Vec<u16>) -> Table {
        let column = |(number, data_type): (usize, &DataType)| Column {
            name: format!("c{number}"),
            data_type: *data_type,
            not_null: false,
            default: None,
            generated: false,
        };
        Table {
            id: TableId(7),
            name: "t".into(),
            columns: types.iter().enumerate().map(column).collect(),
            primary_key,
            primary_key_name: "t_pkey".into(),
            checks: Vec::new(),
            endorsement: None,
            row_security: types::RowSecurity::default(),
            partitioning: None,
            materialized: None,
        }
    }

    fn array(element: DataType) -> DataType {
        DataType::Array(ElementType::new(element).expect("an element"))
    }

    /// Texts of values of every type, those at the edges among them.
    fn samples() -> Vec<(DataType, Vec<&'static str>)> {
        let moments = vec![
            "2026-11-25 16:00:00.123456",
            "4714-11-24 00:00:00 BC",
            "294276-12-31 23:59:59",
            "infinity",
            "-infinity",
        ];
        vec![
            (DataType::Boolean, vec!["t", "f"]),
            (DataType::SmallInt, vec!["-32768", "32767"]),
            (DataType::Integer, vec!["-2147483648", "0"]),
            (DataType::BigInt, vec!["-9223372036854775808", "9223372036854775807"]),
            (DataType::Real, vec!["1.5", "NaN", "-0", "Infinity"]),
            (DataType::Double, vec!["-1e300", "NaN", "-0", "-Infinity"]),
            (DataType::Numeric(Some((12, 2))), vec!["-9999999999.99", "0.10", "NaN", "0"]),
            (DataType::Numeric(Some((38, 38))), vec!["0.99999999999999999999999999999999999999"]),
            (DataType::Numeric(Some((39, 0))), vec!["999999999999999999999999999999999999999", "NaN"]),
            (DataType::Numeric(Some((5, -2))), vec!["1234500", "-300"]),
            (DataType::Numeric(None), vec!["1.50", "1.5", "-0.00", "Infinity", "1e-1000"]),
            (DataType::Text(None), vec!["", "Zürich \u{1f600}", "a\nb"]),
            (DataType::Text(Some(5)), vec!["abc"]),
            (DataType::Char(Some(5)), vec!["ab", "     "]),
            (DataType::Bytea, vec!["\\x", "\\x00ff"]),
            (DataType::Date, vec!["2026-11-25", "4714-11-24 BC", "5874897-12-31", "infinity", "-infinity"]),
            (DataType::TimestampTz, moments.clone()),
            (DataType::Timestamp, moments),
            (DataType::Time, vec!["00:00:00", "24:00:00", "12:34:56.789"]),
            (DataType::Interval, vec!["1 year 2 mons -3 days 04:05:06.7", "0"]),
            (DataType::Uuid, vec!["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
            (DataType::Json, vec!["{\"a\" : 1}", "null"]),
            (DataType::Jsonb, vec!["{\"a\": [1.50, \"x\"]}", "[]"]),
            (DataType::Inet, vec!["10.1.2.3/8", "::1", "255.255.255.255"]),
            (DataType::Cidr, vec!["10.0.0.0/8", "2001:db8::/32"]),
            (DataType::Oid, vec!["0", "4294967295"]),
            (DataType::MacAddr, vec!["08:00:2b:01:02:03"]),
            (DataType::TsVector, vec!["'a':1A,2 'b'", ""]),
            (DataType::Hstore, vec![r#""a"=>"1", "b"=>NULL"#, ""]),
            (DataType::Citext, vec!["Anna", ""]),
            (DataType::TsQuery, vec!["'a' & !'b':*A", ""]),
            (DataType::Bit(Some(4)), vec!["1010", "0000"]),
            (DataType::VarBit(None), vec!["", "1"]),
            (DataType::TimeTz, vec!["12:34:56.789+02", "24:00:00-15:59"]),
            (DataType::Range(RangeType::TsTz), vec!["[2026-11-25,infinity)", "empty", "(,)"]),
            (DataType::Range(RangeType::Num), vec!["(1.50,2.5]", "[1.5,1.50]"]),
            (DataType::Multirange(RangeType::Int4), vec!["{}", "{(,1),[3,5)}"]),
            (array(DataType::Range(RangeType::Date)), vec!["{NULL,\"[2026-01-01,2026-02-01)\"}"]),
            (array(DataType::Jsonb), vec!["{1,NULL,\"{\\\"a\\\": 1}\"}"]),
            (array(DataType::Integer), vec!["{}", "{1,NULL,3}"]),
            (array(DataType::Numeric(None)), vec!["{1.50,NaN}"]),
            (array(DataType::TimestampTz), vec!["{infinity,294276-12-31 23:59:59+00}"]),
            (array(DataType::Char(None)), vec!["{ab,c }"]),
        ]
    }

    /// Each sample, and NULL, under a key of its own.
    fn sample_rows(data_type: DataType, texts: &[&str]) -> Vec<(Key, Row)> {
        let values = texts.iter().map(|text| parse_value(text, data_type).expect(text));
        let row = |(number, value): (usize, Value)| {
            let number = Value::Integer(number as i32);
            (Key::encode([&number]).expect("short"), Row::from([number, value]))
        };
        values.chain([Value::Null]).enumerate().map(row).collect()
    }

    #[test]
    fn every_value_of_every_type_comes_back() {
        for (data_type, texts) in samples() {
            let layout = Layout::of(&table(&[DataType::Integer, data_type], vec![0]));
            let rows = sample_rows(data_type, &texts);
            let batch = layout.batch(&rows).expect("columns of one length");
            let back = layout.rows(&batch).expect("they were rows");
            assert_eq!(encode(&back), encode(&rows), "{data_type}");
        }
    }

    #[test]
    fn what_a_column_cannot_say_stands_in_the_row_itself_and_both_must_agree() {
        let types = [DataType::Integer, DataType::Numeric(Some((12, 2)))];
        let layout = Layout::of(&table(&types, vec![0]));
        let rows = sample_rows(types[1], &["1.25", "NaN"]);
        let batch = layout.batch(&rows).expect("columns of one length");
        let whole = batch.column_by_name(ROW_COLUMN).expect("a decimal may lose");
        assert_eq!([0, 1, 2].map(|row| whole.is_valid(row)), [false, true, false]);
        assert!(batch.column(1).is_null(1), "readers see that there is no number");
        // Somebody shows a number where the ledger has none.
        let mut columns = batch.columns().to_vec();
        let shown = [Value::Numeric(Numeric::new(125, 2)), Value::Numeric(Numeric::new(700, 2)), Value::Null];
        columns[1] = column(&Kind::of(types[1]), &[&shown[0], &shown[1], &shown[2]]);
        let forged = RecordBatch::try_new(layout.schema().clone(), columns).expect("of one length");
        let wrong = layout.rows(&forged).expect_err("the row says NaN");
        assert_eq!((wrong.row, wrong.what.as_str()), (1, "column c1 is not what _entente_row says"));
    }

    #[test]
    fn rows_without_a_primary_key_keep_their_hidden_one() {
        let layout = Layout::of(&table(&[DataType::Integer], Vec::new()));
        let rows: Vec<(Key, Row)> =
            (0..3u8).map(|number| (Key::from_bytes(&[number, 1]), Row::from([Value::Integer(7)]))).collect();
        let batch = layout.batch(&rows).expect("columns of one length");
        assert_eq!(layout.rows(&batch).expect("they were rows"), rows);
        assert!(batch.column_by_name(ROW_COLUMN).is_none(), "integers lose nothing");
    }

    #[test]
    fn delta_and_files_have_the_same_columns() {
        let types: Vec<DataType> = samples().into_iter().map(|(data_type, _)| data_type).collect();
        let layout = Layout::of(&table(&types, Vec::new()));
        let delta = layout.delta_schema();
        let names: Vec<&str> = delta["fields"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|field| field["name"].as_str())
            .collect();
        let files: Vec<&str> = layout.schema().fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names, files);
    }
}
