//! A table of the ledger and its copy in the organisation's database, with all SQL that is about the two.

use crate::DatabaseError;
use crate::dialect::{Dialect, ForeignType, text_of};
use crate::error::ErrorKind;
use crate::session::TextRow;
use std::fmt::Write;
use std::sync::Arc;
use types::{Table, Value};

/// A table in both places.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SharedTable {
    /// As the ledger has it.
    pub(crate) table: Arc<Table>,
    pub(crate) dialect: Dialect,
    /// Its name in the database, quoted and with its schema.
    pub(crate) name: String,
    /// Schema and name in the database, not quoted; MariaDB has no schema.
    pub(crate) parts: (String, String),
    /// Quoted names and types of the columns, in the ledger's order.
    pub(crate) columns: Vec<(String, ForeignType)>,
    /// Ordinals of the key's columns.
    pub(crate) key: Vec<usize>,
    /// The table of its changes, of the connection alone.
    stage: String,
}

/// What a staged change is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operation {
    Insert,
    Update,
    Delete,
}

impl Operation {
    fn letter(self) -> &'static str {
        match self {
            Operation::Insert => "i",
            Operation::Update => "u",
            Operation::Delete => "d",
        }
    }

    fn of(text: &str) -> Operation {
        match text {
            "i" => Operation::Insert,
            "u" => Operation::Update,
            _ => Operation::Delete,
        }
    }
}

/// A staged change and the row that was found in its place.
pub(crate) struct Found {
    pub(crate) key: TextRow,
    pub(crate) old: Option<TextRow>,
    pub(crate) row: Option<TextRow>,
}

impl SharedTable {
    /// A table that both can have.
    ///
    /// # Errors
    /// All reasons why they cannot.
    pub(crate) fn new(table: Arc<Table>, dialect: Dialect) -> Result<SharedTable, DatabaseError> {
        let mut reasons = Vec::new();
        if table.primary_key.is_empty() {
            reasons.push("it has no primary key; add one, so that rows can be told apart".to_string());
        }
        let key: Vec<usize> = table.primary_key.iter().map(|ordinal| usize::from(*ordinal)).collect();
        let mut columns = Vec::new();
        for (ordinal, column) in table.columns.iter().enumerate() {
            match dialect.column_type(column, key.contains(&ordinal)) {
                Ok(kind) => columns.push((dialect.quoted(&column.name), kind)),
                Err(reason) => reasons.push(reason),
            }
        }
        if !reasons.is_empty() {
            let reasons = reasons.join("; ");
            return Err(DatabaseError::new(ErrorKind::Unfit, format!("table {}: {reasons}", table.name)));
        }
        let parts = dialect.parts(&table.name);
        let name = match dialect {
            Dialect::Postgres => format!("{}.{}", dialect.quoted(&parts.0), dialect.quoted(&parts.1)),
            Dialect::MariaDb => dialect.quoted(&parts.1),
        };
        let stage = match dialect {
            Dialect::Postgres => format!("pg_temp.entente_stage_{}", table.id.0),
            Dialect::MariaDb => format!("`entente_stage_{}`", table.id.0),
        };
        Ok(SharedTable { table, dialect, name, parts, columns, key, stage })
    }

    /// Whether both can have a table.
    pub(crate) fn is_possible(table: &Table, dialect: Dialect) -> bool {
        let mut columns = table.columns.iter().enumerate();
        let fits = |(ordinal, column)| {
            let in_key = table.primary_key.contains(&(ordinal as u16));
            dialect.column_type(column, in_key).is_ok()
        };
        !table.primary_key.is_empty() && columns.all(fits)
    }

    /// A row as text.
    pub(crate) fn texts(&self, row: &[Value]) -> TextRow {
        self.columns.iter().zip(row).map(|((_, kind), value)| text_of(self.dialect, kind, value)).collect()
    }

    /// The key in a row of text.
    pub(crate) fn key_of(&self, row: &TextRow) -> TextRow {
        self.key.iter().map(|ordinal| row[*ordinal].clone()).collect()
    }

    /// Why the database cannot hold a row, if so.
    pub(crate) fn unfit(&self, row: &TextRow) -> Option<String> {
        if self.dialect == Dialect::Postgres {
            return None;
        }
        let is_wrong = |kind: &ForeignType, text: &str| match kind {
            ForeignType::Date | ForeignType::Timestamp | ForeignType::TimestampTz => {
                let is_of_four_digits = text.len() > 4 && text.as_bytes()[4] == b'-';
                !is_of_four_digits || text.ends_with("BC") || text.starts_with("0000")
            }
            ForeignType::Numeric { .. } => text.starts_with(|first: char| first.is_ascii_alphabetic()),
            _ => false,
        };
        let wrong = self.columns.iter().zip(row).enumerate().find_map(|(ordinal, ((_, kind), value))| {
            let text = value.as_ref().filter(|text| is_wrong(kind, text))?;
            Some((ordinal, kind, text))
        });
        let (ordinal, kind, text) = wrong?;
        let (table, key) = (&self.table.name, self.shown_key(&self.key_of(row)));
        let (column, kind) = (&self.table.columns[ordinal].name, self.dialect.type_name(kind));
        Some(format!(
            "table {table}, {key}: column {column} is {text}, which MariaDB's {kind} cannot hold; change the row through the ledger, \
             and keep such values out by a CHECK"
        ))
    }

    /// A row or a key for people: `id=5, name='x'`.
    pub(crate) fn shown(&self, ordinals: impl Iterator<Item = usize>, values: &TextRow) -> String {
        let mut text = String::new();
        for (ordinal, value) in ordinals.zip(values) {
            let separator = if text.is_empty() { "" } else { ", " };
            let name = &self.table.columns[ordinal].name;
            let _ = match value {
                Some(value) => write!(text, "{separator}{name}={value}"),
                None => write!(text, "{separator}{name} is NULL"),
            };
        }
        text
    }

    pub(crate) fn shown_key(&self, key: &TextRow) -> String {
        self.shown(self.key.iter().copied(), key)
    }

    pub(crate) fn shown_row(&self, row: &TextRow) -> String {
        self.shown(0..self.columns.len(), row)
    }

    /// Makes the table where there is none. `checks`: its CHECK constraints, where it has any there.
    pub(crate) fn create(&self, checks: &[String]) -> String {
        let mut parts: Vec<String> = Vec::new();
        for (ordinal, (name, kind)) in self.columns.iter().enumerate() {
            let not_null = self.table.columns[ordinal].not_null || self.key.contains(&ordinal);
            let constraint = if not_null { " NOT NULL" } else { "" };
            parts.push(format!("{name} {}{constraint}", self.dialect.type_name(kind)));
        }
        parts.push(format!("PRIMARY KEY ({})", self.key_names("").join(", ")));
        parts.extend_from_slice(checks);
        let engine = match self.dialect {
            Dialect::Postgres => "",
            Dialect::MariaDb => " ENGINE=InnoDB",
        };
        format!("CREATE TABLE {} ({}){engine}", self.name, parts.join(", "))
    }

    fn key_names(&self, prefix: &str) -> Vec<String> {
        self.key.iter().map(|ordinal| format!("{prefix}{}", self.columns[*ordinal].0)).collect()
    }

    // ---- staged changes

    /// Makes the table of changes: what they are, the keys, the old and the new values.
    pub(crate) fn create_stage(&self) -> String {
        let mut parts = vec!["op char(1)".to_string()];
        for (position, ordinal) in self.key.iter().enumerate() {
            parts.push(format!("k{position} {}", self.stage_type(&self.columns[*ordinal].1)));
        }
        for side in ["o", "n"] {
            let of_side = self.columns.iter().enumerate();
            parts.extend(
                of_side.map(|(ordinal, (_, kind))| format!("{side}{ordinal} {}", self.stage_type(kind))),
            );
        }
        match self.dialect {
            Dialect::Postgres => {
                let name = self.stage.trim_start_matches("pg_temp.");
                format!(
                    "CREATE TEMPORARY TABLE IF NOT EXISTS {name} ({}) ON COMMIT DELETE ROWS",
                    parts.join(", ")
                )
            }
            Dialect::MariaDb => {
                let (stage, parts) = (&self.stage, parts.join(", "));
                format!("CREATE TEMPORARY TABLE IF NOT EXISTS {stage} ({parts}) ENGINE=InnoDB")
            }
        }
    }

    /// Without an order of its own, so that the table's counts where the two are compared and its index is of use.
    fn stage_type(&self, kind: &ForeignType) -> String {
        self.dialect.type_name(kind).replace(" COLLATE \"C\"", "")
    }

    /// Where changes are staged: the table and its columns.
    pub(crate) fn stage_columns(&self) -> (String, Vec<(String, ForeignType)>) {
        let mut columns = vec![("op".to_string(), ForeignType::Text(Some(1)))];
        let key = self.key.iter().enumerate();
        columns.extend(
            key.map(|(position, ordinal)| (format!("k{position}"), self.columns[*ordinal].1.clone())),
        );
        for side in ["o", "n"] {
            let of_side = self.columns.iter().enumerate();
            columns.extend(of_side.map(|(ordinal, (_, kind))| (format!("{side}{ordinal}"), kind.clone())));
        }
        (self.stage.clone(), columns)
    }

    /// A change as a row of that table.
    pub(crate) fn staged(&self, key: TextRow, old: Option<TextRow>, new: Option<TextRow>) -> TextRow {
        let operation = match (&old, &new) {
            (Some(_), Some(_)) => Operation::Update,
            (Some(_), None) => Operation::Delete,
            (None, _) => Operation::Insert,
        };
        let nothing = || vec![None; self.columns.len()];
        let mut row = vec![Some(operation.letter().to_string())];
        row.extend(key);
        row.extend(old.unwrap_or_else(nothing));
        row.extend(new.unwrap_or_else(nothing));
        row
    }

    /// Empties the table of changes.
    pub(crate) fn clear_stage(&self) -> String {
        format!("DELETE FROM {}", self.stage)
    }

    fn same_key(&self) -> String {
        let key = self.key.iter().enumerate();
        let pairs = key.map(|(position, ordinal)| format!("t.{} = s.k{position}", self.columns[*ordinal].0));
        pairs.collect::<Vec<_>>().join(" AND ")
    }

    fn same_old(&self) -> String {
        let columns = self.columns.iter().enumerate().filter(|(ordinal, _)| !self.key.contains(ordinal));
        let same = columns.map(|(ordinal, (name, kind))| {
            let sides = [format!("t.{name}"), format!("s.o{ordinal}")];
            // PostgreSQL has no equality of them but that of their texts.
            let [left, right] = match kind {
                ForeignType::Postgres(json) if json == "json" => sides.map(|side| format!("{side}::text")),
                _ => sides,
            };
            format!(" AND {}", self.dialect.same(&left, &right))
        });
        same.collect()
    }

    /// Takes rows away that are as they were.
    pub(crate) fn guarded_delete(&self) -> String {
        self.delete(&format!("s.op = 'd' AND {}{}", self.same_key(), self.same_old()))
    }

    /// Takes rows away that must not be there, whatever they are.
    pub(crate) fn forced_delete(&self) -> String {
        self.delete(&format!("s.n{} IS NULL AND {}", self.key[0], self.same_key()))
    }

    fn delete(&self, condition: &str) -> String {
        let (name, stage) = (&self.name, &self.stage);
        match self.dialect {
            Dialect::Postgres => format!("DELETE FROM {name} t USING {stage} s WHERE {condition}"),
            Dialect::MariaDb => format!("DELETE t FROM {stage} s STRAIGHT_JOIN {name} t WHERE {condition}"),
        }
    }

    /// Changes rows that are as they were.
    pub(crate) fn guarded_update(&self) -> String {
        self.update(&format!("s.op = 'u' AND {}{}", self.same_key(), self.same_old()))
    }

    /// Changes rows, whatever they are.
    pub(crate) fn forced_update(&self) -> String {
        self.update(&format!("s.n{} IS NOT NULL AND {}", self.key[0], self.same_key()))
    }

    fn update(&self, condition: &str) -> String {
        let (name, stage) = (&self.name, &self.stage);
        let target = match self.dialect {
            Dialect::Postgres => "",
            Dialect::MariaDb => "t.",
        };
        // The key, too: equal numbers may have more digits.
        let columns = self.columns.iter().enumerate();
        let changed = columns.map(|(ordinal, (name, _))| format!("{target}{name} = s.n{ordinal}"));
        let changed = changed.collect::<Vec<_>>().join(", ");
        match self.dialect {
            Dialect::Postgres => format!("UPDATE {name} t SET {changed} FROM {stage} s WHERE {condition}"),
            Dialect::MariaDb => {
                format!("UPDATE {stage} s STRAIGHT_JOIN {name} t SET {changed} WHERE {condition}")
            }
        }
    }

    /// Adds rows; that there is one already is an error, which is looked into.
    pub(crate) fn guarded_insert(&self) -> String {
        self.insert(&format!("{} s WHERE s.op = 'i'", self.stage))
    }

    /// Adds the rows that are not there.
    pub(crate) fn forced_insert(&self) -> String {
        let (stage, name, first) = (&self.stage, &self.name, self.key[0]);
        let (same, column) = (self.same_key(), &self.columns[first].0);
        self.insert(&format!(
            "{stage} s LEFT JOIN {name} t ON {same} WHERE s.n{first} IS NOT NULL AND t.{column} IS NULL"
        ))
    }

    fn insert(&self, from: &str) -> String {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
        let values: Vec<String> = (0..self.columns.len()).map(|ordinal| format!("s.n{ordinal}")).collect();
        let (name, names, values) = (&self.name, names.join(", "), values.join(", "));
        format!("INSERT INTO {name} ({names}) SELECT {values} FROM {from}")
    }

    /// All staged changes with the rows that stand in their places.
    pub(crate) fn select_found(&self) -> String {
        let mut wanted = vec!["s.op".to_string()];
        let key = self.key.iter().enumerate();
        wanted.extend(key.map(|(position, ordinal)| {
            self.dialect.text(&self.columns[*ordinal].1, &format!("s.k{position}"))
        }));
        for (ordinal, (_, kind)) in self.columns.iter().enumerate() {
            wanted.push(self.dialect.text(kind, &format!("s.o{ordinal}")));
        }
        for (name, kind) in &self.columns {
            wanted.push(self.dialect.text(kind, &format!("t.{name}")));
        }
        format!(
            "SELECT {} FROM {} s LEFT JOIN {} t ON {}",
            wanted.join(", "),
            self.stage,
            self.name,
            self.same_key()
        )
    }

    /// What a row of [`SharedTable::select_found`] says.
    pub(crate) fn found(&self, mut row: TextRow) -> Found {
        let operation = Operation::of(row[0].as_deref().unwrap_or_default());
        let (keys, columns) = (self.key.len(), self.columns.len());
        let mut rest = row.split_off(1);
        let mut behind = rest.split_off(keys);
        let found = behind.split_off(columns);
        let is_there = self.key.iter().all(|ordinal| found[*ordinal].is_some());
        let old = (operation != Operation::Insert).then_some(behind);
        Found { key: rest, old, row: is_there.then_some(found) }
    }

    // ---- comparing

    fn row_fields(&self) -> String {
        let fields: Vec<String> = self
            .columns
            .iter()
            .enumerate()
            .map(|(ordinal, (name, kind))| {
                self.dialect.field(kind, &format!("t.{name}"), self.key.contains(&ordinal))
            })
            .collect();
        self.dialect.concatenated(&fields)
    }

    fn order(&self) -> String {
        let columns = self.key.iter().map(|ordinal| {
            let (name, kind) = &self.columns[*ordinal];
            self.dialect.in_byte_order(kind, &format!("t.{name}"))
        });
        columns.collect::<Vec<_>>().join(", ")
    }

    /// The number of rows of an interval of keys, and the SHA-256 of all of them one behind the other. Of at most so many: more are
    /// not what is expected anyway.
    pub(crate) fn select_digest(&self, from: Option<&TextRow>, to: Option<&TextRow>, most: usize) -> String {
        let (fields, name, order) = (self.row_fields(), &self.name, self.order());
        let interval = self.interval(from, to);
        match self.dialect {
            Dialect::Postgres => format!(
                "SELECT count(*)::text, encode(sha256(convert_to(coalesce(string_agg(r, ''), ''), 'UTF8')), 'hex') \
                 FROM (SELECT {fields} AS r FROM {name} t{interval} ORDER BY {order} LIMIT {most}) x"
            ),
            Dialect::MariaDb => {
                let keys = self.key.iter().enumerate();
                let named: Vec<String> = keys
                    .clone()
                    .map(|(position, ordinal)| format!("t.{} AS k{position}", self.columns[*ordinal].0))
                    .collect();
                let again: Vec<String> = keys.map(|(position, _)| format!("k{position}")).collect();
                let (named, again) = (named.join(", "), again.join(", "));
                format!(
                    "SELECT CAST(count(*) AS CHAR), SHA2(COALESCE(GROUP_CONCAT(r ORDER BY {again} SEPARATOR ''), ''), 256) \
                     FROM (SELECT {fields} AS r, {named} FROM {name} t{interval} ORDER BY {order} LIMIT {most}) x"
                )
            }
        }
    }

    /// The rows of an interval of keys, at most so many, in the ledger's order.
    pub(crate) fn select_rows(&self, from: Option<&TextRow>, to: Option<&TextRow>, most: usize) -> String {
        // Without names of their own the texts would be what PostgreSQL orders by.
        let wanted: Vec<String> = self
            .columns
            .iter()
            .enumerate()
            .map(|(ordinal, (name, kind))| {
                format!("{} AS c{ordinal}", self.dialect.text(kind, &format!("t.{name}")))
            })
            .collect();
        let (name, order, interval) = (&self.name, self.order(), self.interval(from, to));
        format!("SELECT {} FROM {name} t{interval} ORDER BY {order} LIMIT {most}", wanted.join(", "))
    }

    /// Begins with ` WHERE`, where there is a bound.
    fn interval(&self, from: Option<&TextRow>, to: Option<&TextRow>) -> String {
        let mut conditions = Vec::new();
        conditions.extend(from.map(|from| self.compared(from, ">", ">=")));
        conditions.extend(to.map(|to| self.compared(to, "<", "<")));
        match conditions.is_empty() {
            true => String::new(),
            false => format!(" WHERE {}", conditions.join(" AND ")),
        }
    }

    /// `(k0, k1) > (a, b)`, column by column: MariaDB looks nothing up by comparisons of rows.
    fn compared(&self, bound: &TextRow, strict: &str, last: &str) -> String {
        let columns: Vec<(String, String)> = self
            .key
            .iter()
            .zip(bound)
            .map(|(ordinal, value)| {
                let (name, kind) = &self.columns[*ordinal];
                let mut literal = String::new();
                self.dialect.push_literal(&mut literal, kind, value.as_deref().unwrap_or_default());
                (self.dialect.in_byte_order(kind, &format!("t.{name}")), literal)
            })
            .collect();
        let Some(((name, value), before)) = columns.split_last() else { return "TRUE".to_string() };
        let innermost = format!("{name} {last} {value}");
        let nested = before.iter().rev().fold(innermost, |inner, (name, value)| {
            format!("({name} {strict}= {value} AND ({name} {strict} {value} OR {inner}))")
        });
        format!("({nested})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::{Column, DataType, TableId};

    fn table(name: &str, columns: &[(&str, DataType)], key: &[u16]) -> Arc<Table> {
        let column = |(name, data_type): &(&str, DataType)| Column {
            name: name.to_string(),
            data_type: *data_type,
            not_null: false,
            default: None,
            generated: false,
        };
        Arc::new(Table {
            id: TableId(7),
            name: name.to_string(),
            columns: columns.iter().map(column).collect(),
            primary_key: key.to_vec(),
            primary_key_name: "k".to_string(),
            checks: Vec::new(),
            endorsement: None,
            row_security: types::RowSecurity::default(),
            partitioning: None,
            materialized: None,
        })
    }

    #[test]
    fn names_are_quoted_and_schemas_are_told_apart() {
        let columns = [("id", DataType::BigInt), ("a\"b", DataType::Text(None))];
        let name = |name, dialect| SharedTable::new(table(name, &columns, &[0]), dialect).expect("fits").name;
        assert_eq!(name("t", Dialect::Postgres), "\"public\".\"t\"");
        assert_eq!(name("s.t", Dialect::Postgres), "\"s\".\"t\"");
        assert_eq!(name("s.t", Dialect::MariaDb), "`s_t`");
        let shared = SharedTable::new(table("t", &columns, &[0]), Dialect::Postgres).expect("fits");
        assert!(shared.create(&[]).contains("\"a\"\"b\" text COLLATE \"C\""), "{}", shared.create(&[]));
    }

    #[test]
    fn all_reasons_are_named_at_once() {
        let columns = [("x", DataType::Double), ("y", DataType::Interval)];
        let error = SharedTable::new(table("t", &columns, &[]), Dialect::MariaDb).expect_err("refused");
        for expected in
            ["table t: ", "no primary key", "column x of type double precision", "column y of type interval"]
        {
            assert!(error.message.contains(expected), "{error}");
        }
    }

    #[test]
    fn intervals_of_several_columns_are_found_by_the_first() {
        let columns = [("a", DataType::Integer), ("b", DataType::Integer)];
        let shared = SharedTable::new(table("t", &columns, &[0, 1]), Dialect::MariaDb).expect("fits");
        let bound = |a: &str, b: &str| vec![Some(a.to_string()), Some(b.to_string())];
        assert_eq!(
            shared.interval(Some(&bound("1", "2")), Some(&bound("3", "4"))),
            " WHERE ((t.`a` >= 1 AND (t.`a` > 1 OR t.`b` >= 2))) AND ((t.`a` <= 3 AND (t.`a` < 3 OR t.`b` < 4)))"
        );
        assert_eq!(shared.interval(None, None), "");
    }
}
