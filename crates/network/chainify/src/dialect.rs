//! How the two kinds of databases write types, names, values and comparisons.
//!
//! A value is compared as text, in a form that does not depend on settings: PostgreSQL's own on PostgreSQL, and on MariaDB that of the
//! reference (`oracle/chainify/canon.py`), on which both agree.

use crate::address::Kind;
use std::fmt::Write;
use types::{
    Column, DataType, PUBLIC_SCHEMA, SqlError, Value, format_value, limits, parse_value, split_catalog_name,
};

/// The kind of a database, where SQL is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Postgres,
    MariaDb,
}

impl From<Kind> for Dialect {
    fn from(kind: Kind) -> Dialect {
        match kind {
            Kind::Postgres => Dialect::Postgres,
            Kind::MariaDb => Dialect::MariaDb,
        }
    }
}

/// The type of a column as both sides understand it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ForeignType {
    Boolean,
    SmallInt,
    Integer,
    BigInt,
    Numeric {
        precision: u16,
        scale: u16,
    },
    Text(Option<u32>),
    Date,
    Timestamp,
    TimestampTz,
    Bytea,
    Uuid,
    /// One that PostgreSQL alone has as the ledger has it, by its name.
    Postgres(String),
}

/// The longest text in characters that a key of MariaDB's can have beside others of its size: 3,072 bytes for all.
const KEY_CHARACTERS_MAX: u32 = 768;
/// Digits of MariaDB's `decimal`.
const DECIMAL_DIGITS_MAX: u16 = 65;
const DECIMAL_SCALE_MAX: i16 = 38;

impl Dialect {
    /// Schema and name that a table of the ledger has in the database; MariaDB has no schema.
    pub(crate) fn parts(self, table: &str) -> (String, String) {
        let (schema, object) = split_catalog_name(table);
        match self {
            Dialect::Postgres => (schema.to_string(), object.to_string()),
            Dialect::MariaDb if schema == PUBLIC_SCHEMA => (String::new(), object.to_string()),
            Dialect::MariaDb => (String::new(), format!("{schema}_{object}")),
        }
    }

    /// The type that a column of the ledger has in the database.
    ///
    /// # Errors
    /// Why there is none, and what to do.
    pub(crate) fn column_type(self, column: &Column, in_key: bool) -> Result<ForeignType, String> {
        let Column { name, data_type, .. } = column;
        let refused = |why: &str| Err(format!("column {name} of type {data_type}: {why}"));
        // What is rounded is so when the ledger hands it over.
        let common = match &data_type.unrounded() {
            DataType::Boolean => ForeignType::Boolean,
            DataType::SmallInt => ForeignType::SmallInt,
            DataType::Integer => ForeignType::Integer,
            DataType::BigInt => ForeignType::BigInt,
            DataType::Date => ForeignType::Date,
            DataType::Timestamp => ForeignType::Timestamp,
            DataType::TimestampTz => ForeignType::TimestampTz,
            DataType::Bytea => ForeignType::Bytea,
            DataType::Uuid => ForeignType::Uuid,
            varchar if *varchar == DataType::VARCHAR => ForeignType::Text(None),
            DataType::Text(length) => ForeignType::Text(*length),
            DataType::Numeric(Some((precision, scale))) if *scale >= 0 && *scale <= *precision as i16 => {
                ForeignType::Numeric { precision: *precision, scale: *scale as u16 }
            }
            DataType::Enum(_) if in_key => {
                return refused(
                    "its values sort by their definition, and texts outside do not; take it out of the key",
                );
            }
            DataType::Enum(_) => ForeignType::Text(Some(limits::NAME_BYTES_MAX as u32)),
            DataType::Array(element) if matches!(element.data_type(), DataType::Enum(_)) => {
                return refused(
                    "arrays of an enum have no counterpart in a database outside; use an array of text",
                );
            }
            DataType::Domain(_) => {
                return refused(
                    "a domain has no counterpart in a database outside; use the type that it is of, with a CHECK",
                );
            }
            DataType::Composite(_) => {
                return refused("a composite type has no counterpart in a database outside");
            }
            one if one.element().unwrap_or(*one).is_of_extension() => {
                return refused(
                    "the type of an extension has no counterpart in a database outside; use jsonb for an hstore, and text for a citext",
                );
            }
            other if in_key && is_never_in_key(*other) => {
                return refused("such a column cannot be part of the key");
            }
            other => ForeignType::Postgres(other.to_string()),
        };
        if self == Dialect::Postgres {
            return Ok(common);
        }
        match &common {
            ForeignType::Postgres(_) => match data_type {
                DataType::Double | DataType::Real => refused(
                    "MariaDB writes and compares floating-point numbers differently; use numeric(p, s)",
                ),
                DataType::Numeric(_) => refused(
                    "MariaDB's decimal has a precision up to 65 and a scale from 0 to 38; say numeric(p, s)",
                ),
                DataType::Json | DataType::Jsonb => {
                    refused("MariaDB keeps and compares JSON differently; use text, or columns of their own")
                }
                _ => refused("MariaDB has no such type that compares and writes values as the ledger does"),
            },
            ForeignType::Numeric { precision, scale }
                if *precision > DECIMAL_DIGITS_MAX || *scale > DECIMAL_SCALE_MAX as u16 =>
            {
                refused("MariaDB's decimal has a precision up to 65 and a scale up to 38")
            }
            ForeignType::Text(length) if in_key => match length {
                Some(length) if *length <= KEY_CHARACTERS_MAX => Ok(common),
                _ => refused("a key of MariaDB's holds text up to varchar(768)"),
            },
            ForeignType::Bytea if in_key => {
                refused("bytea cannot be part of a key of MariaDB's; use uuid or varchar")
            }
            _ => Ok(common),
        }
    }

    /// The type as a definition of a column names it.
    pub(crate) fn type_name(self, column: &ForeignType) -> String {
        const BINARY: &str = "CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin";
        match (self, column) {
            (Dialect::Postgres, ForeignType::Text(Some(length))) => {
                format!("varchar({length}) COLLATE \"C\"")
            }
            (Dialect::Postgres, ForeignType::Text(None)) => "text COLLATE \"C\"".to_string(),
            (Dialect::MariaDb, ForeignType::Text(Some(length))) if *length <= 16_383 => {
                format!("varchar({length}) {BINARY}")
            }
            (Dialect::MariaDb, ForeignType::Text(_)) => format!("longtext {BINARY}"),
            (_, ForeignType::SmallInt) => "smallint".to_string(),
            (_, ForeignType::Integer) => "integer".to_string(),
            (_, ForeignType::BigInt) => "bigint".to_string(),
            (_, ForeignType::Date) => "date".to_string(),
            (Dialect::Postgres, ForeignType::Numeric { precision, scale }) => {
                format!("numeric({precision},{scale})")
            }
            (Dialect::MariaDb, ForeignType::Numeric { precision, scale }) => {
                format!("decimal({precision},{scale})")
            }
            (Dialect::Postgres, ForeignType::Boolean) => "boolean".to_string(),
            (Dialect::MariaDb, ForeignType::Boolean) => "tinyint(1)".to_string(),
            (Dialect::Postgres, ForeignType::Timestamp) => "timestamp".to_string(),
            (Dialect::Postgres, ForeignType::TimestampTz) => "timestamptz".to_string(),
            (Dialect::MariaDb, ForeignType::Timestamp | ForeignType::TimestampTz) => {
                "datetime(6)".to_string()
            }
            (Dialect::Postgres, ForeignType::Bytea) => "bytea".to_string(),
            (Dialect::MariaDb, ForeignType::Bytea) => "longblob".to_string(),
            (Dialect::Postgres, ForeignType::Uuid) => "uuid".to_string(),
            (Dialect::MariaDb, ForeignType::Uuid) => {
                "char(36) CHARACTER SET ascii COLLATE ascii_bin".to_string()
            }
            (_, ForeignType::Postgres(name)) => name.clone(),
        }
    }

    /// A name in quotes.
    pub(crate) fn quoted(self, name: &str) -> String {
        match self {
            Dialect::Postgres => format!("\"{}\"", name.replace('"', "\"\"")),
            Dialect::MariaDb => format!("`{}`", name.replace('`', "``")),
        }
    }

    /// An expression that writes a value as [`text_of`] does.
    pub(crate) fn text(self, column: &ForeignType, value: &str) -> String {
        match (self, column) {
            (Dialect::Postgres, ForeignType::Boolean) => {
                format!("CASE WHEN {value} THEN 't' WHEN NOT {value} THEN 'f' END")
            }
            (Dialect::Postgres, _) => format!("{value}::text"),
            (Dialect::MariaDb, ForeignType::Boolean) => {
                format!(
                    "IF({value} IS NULL,NULL,IF({value} IN (0,1),IF({value},'t','f'),CONCAT('?',{value})))"
                )
            }
            (Dialect::MariaDb, ForeignType::Date) => format!("DATE_FORMAT({value},'%Y-%m-%d')"),
            (Dialect::MariaDb, ForeignType::Timestamp | ForeignType::TimestampTz) => {
                format!("DATE_FORMAT({value},'%Y-%m-%d %H:%i:%s.%f')")
            }
            (Dialect::MariaDb, ForeignType::Bytea) => format!("LOWER(HEX({value}))"),
            (Dialect::MariaDb, ForeignType::Text(_)) => format!("CONVERT({value} USING utf8mb4)"),
            (Dialect::MariaDb, _) => format!("CAST({value} AS CHAR CHARACTER SET utf8mb4)"),
        }
    }

    /// A value with its length, or that it is NULL: what digests are made of, so that no two rows write the same.
    pub(crate) fn field(self, column: &ForeignType, value: &str, not_null: bool) -> String {
        let text = self.text(column, value);
        let (field, nothing) = match self {
            Dialect::Postgres => (format!("'V'||octet_length({text})||':'||{text}"), "coalesce"),
            Dialect::MariaDb => (format!("CONCAT('V',OCTET_LENGTH({text}),':',{text})"), "COALESCE"),
        };
        if not_null { field } else { format!("{nothing}({field},'N')") }
    }

    /// Pieces of text one behind the other.
    pub(crate) fn concatenated(self, pieces: &[String]) -> String {
        match self {
            Dialect::Postgres => pieces.join("||"),
            Dialect::MariaDb => format!("CONCAT({})", pieces.join(",")),
        }
    }

    /// Whether two values are the same, NULL and NULL being so.
    pub(crate) fn same(self, left: &str, right: &str) -> String {
        match self {
            Dialect::Postgres => format!("{left} IS NOT DISTINCT FROM {right}"),
            Dialect::MariaDb => format!("{left} <=> {right}"),
        }
    }

    /// Writes a value that [`text_of`] has made as a constant.
    pub(crate) fn push_literal(self, sql: &mut String, column: &ForeignType, text: &str) {
        match (self, column) {
            (
                Dialect::MariaDb,
                ForeignType::SmallInt
                | ForeignType::Integer
                | ForeignType::BigInt
                | ForeignType::Numeric { .. },
            ) if text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.')) => {
                sql.push_str(text)
            }
            (Dialect::MariaDb, ForeignType::Boolean) => sql.push(if text == "t" { '1' } else { '0' }),
            (Dialect::MariaDb, ForeignType::Bytea) if text.is_empty() => sql.push_str("''"),
            (Dialect::MariaDb, ForeignType::Bytea) => {
                let _ = write!(sql, "x'{text}'");
            }
            (Dialect::MariaDb, _) => self.push_text(sql, text),
            (Dialect::Postgres, column) => {
                self.push_text(sql, text);
                sql.push_str("::");
                sql.push_str(&self.type_name(column));
            }
        }
    }

    /// Writes text as a constant.
    pub(crate) fn push_text(self, sql: &mut String, text: &str) {
        sql.push('\'');
        for character in text.chars() {
            match (self, character) {
                (_, '\'') => sql.push_str("''"),
                (Dialect::MariaDb, '\\') => sql.push_str("\\\\"),
                (_, character) => sql.push(character),
            }
        }
        sql.push('\'');
    }

    /// Text as a constant.
    pub(crate) fn text_literal(self, text: &str) -> String {
        let mut sql = String::with_capacity(text.len() + 2);
        self.push_text(&mut sql, text);
        sql
    }

    /// A column in an order by bytes, whatever the database compares text with.
    pub(crate) fn in_byte_order(self, column: &ForeignType, name: &str) -> String {
        match (self, column) {
            (Dialect::Postgres, ForeignType::Text(_)) => format!("{name} COLLATE \"C\""),
            _ => name.to_string(),
        }
    }
}

/// A value as text; `None` for NULL.
pub(crate) fn text_of(dialect: Dialect, column: &ForeignType, value: &Value) -> Option<String> {
    let text = format_value(value)?;
    if dialect == Dialect::Postgres {
        // The cast to text takes the spaces off that fill up a char.
        let is_filled_up = matches!(value, Value::Char(_));
        return Some(if is_filled_up { text.trim_end_matches(' ').to_string() } else { text });
    }
    Some(match column {
        ForeignType::Timestamp | ForeignType::TimestampTz => {
            let text = text.strip_suffix("+00").unwrap_or(&text);
            match text.split_once('.') {
                Some((seconds, fraction)) => format!("{seconds}.{fraction:0<6}"),
                None => format!("{text}.000000"),
            }
        }
        ForeignType::Bytea => text.strip_prefix("\\x").unwrap_or(&text).to_string(),
        _ => text,
    })
}

/// The value that [`Dialect::text`] has written so.
///
/// # Errors
/// The text is no value of the type.
pub(crate) fn value_of(
    dialect: Dialect,
    column: &ForeignType,
    data_type: DataType,
    text: Option<&str>,
) -> Result<Value, SqlError> {
    let Some(text) = text else { return Ok(Value::Null) };
    match (dialect, column) {
        (Dialect::MariaDb, ForeignType::Bytea) => parse_value(&format!("\\x{text}"), data_type),
        (Dialect::MariaDb, ForeignType::TimestampTz) => parse_value(&format!("{text}+00"), data_type),
        _ => parse_value(text, data_type),
    }
}

/// Types whose values the ledger and the database do not order or compare alike.
fn is_never_in_key(data_type: DataType) -> bool {
    matches!(
        data_type,
        DataType::Array(_)
            | DataType::Char(_)
            | DataType::Json
            | DataType::Jsonb
            | DataType::Bit(_)
            | DataType::VarBit(_)
            | DataType::Range(_)
            | DataType::Multirange(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::{ElementType, RangeType, TypeId};

    fn column(data_type: DataType) -> Column {
        Column { name: "c".to_string(), data_type, not_null: false, default: None, generated: false }
    }

    #[test]
    fn types_that_cannot_be_equal_are_refused_by_name() {
        let refused = [
            (DataType::Double, "floating-point"),
            (DataType::Real, "floating-point"),
            (DataType::Numeric(None), "say numeric(p, s)"),
            (DataType::Numeric(Some((70, 2))), "precision up to 65"),
            (DataType::Interval, "no such type"),
            (DataType::Jsonb, "use text"),
            (DataType::Json, "use text"),
            (DataType::Char(Some(3)), "no such type"),
            (DataType::Inet, "no such type"),
            (DataType::VarBit(None), "no such type"),
            (DataType::TimeTz, "no such type"),
            (DataType::Range(RangeType::Date), "no such type"),
            (DataType::Composite(TypeId(1)), "composite"),
            (DataType::Domain(TypeId(1)), "domain"),
            (DataType::Enum(TypeId(1)).array().expect("it has arrays"), "arrays of an enum"),
        ];
        for (data_type, expected) in refused {
            let error = Dialect::MariaDb.column_type(&column(data_type), false).expect_err("refused");
            assert!(error.starts_with("column c of type ") && error.contains(expected), "{error}");
        }
        for data_type in [DataType::Double, DataType::Interval, DataType::Numeric(None), DataType::Jsonb] {
            assert!(Dialect::Postgres.column_type(&column(data_type), false).is_ok());
        }
        assert!(
            Dialect::Postgres
                .column_type(
                    &column(DataType::Array(ElementType::new(DataType::Integer).expect("an element"))),
                    true
                )
                .is_err()
        );
        for dialect in [Dialect::Postgres, Dialect::MariaDb] {
            for data_type in [DataType::Hstore, DataType::Citext] {
                let error = dialect.column_type(&column(data_type), false).expect_err("refused");
                assert!(error.contains("an extension"), "{error}");
            }
            let labels = dialect.column_type(&column(DataType::Enum(TypeId(1))), false);
            assert_eq!(labels, Ok(ForeignType::Text(Some(63))));
            let error = dialect.column_type(&column(DataType::Enum(TypeId(1))), true).expect_err("refused");
            assert!(error.contains("out of the key"), "{error}");
        }
        for text in [None, Some(800)] {
            assert!(Dialect::MariaDb.column_type(&column(DataType::Text(text)), true).is_err());
            assert!(Dialect::MariaDb.column_type(&column(DataType::Text(text)), false).is_ok());
        }
    }

    #[test]
    fn constants_cannot_end_early() {
        let literal = |dialect: Dialect, column: &ForeignType, text| {
            let mut sql = String::new();
            dialect.push_literal(&mut sql, column, text);
            sql
        };
        let text = ForeignType::Text(None);
        assert_eq!(literal(Dialect::MariaDb, &text, r"a'b\'c"), r"'a''b\\''c'");
        assert_eq!(literal(Dialect::Postgres, &text, r"a'b\"), "'a''b\\'::text COLLATE \"C\"");
        assert_eq!(literal(Dialect::MariaDb, &ForeignType::BigInt, "-5"), "-5");
        assert_eq!(literal(Dialect::MariaDb, &ForeignType::BigInt, "1 OR 1"), "'1 OR 1'");
        assert_eq!(literal(Dialect::MariaDb, &ForeignType::Bytea, "00ff"), "x'00ff'");
    }
}
