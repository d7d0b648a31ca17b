use crate::{Key, SqlError, SqlState, Table, object_name, parse_value};

impl Table {
    /// The primary key whose columns have these values, each as text, in the order of the key.
    ///
    /// # Errors
    /// `42809` where the table has no primary key, `22023` where it has another number of columns, and the error of a text
    /// that is no value of its column's type.
    pub fn key_of_texts(&self, texts: &[impl AsRef<str>]) -> Result<Key, SqlError> {
        let table = object_name(&self.name);
        let columns: Vec<_> =
            self.primary_key.iter().map(|column| &self.columns[usize::from(*column)]).collect();
        if columns.is_empty() {
            let message = format!("table \"{table}\" has no primary key, so that nothing names its rows");
            return Err(SqlError::new(SqlState(*b"42809"), message)
                .hint("ALTER TABLE ... ADD PRIMARY KEY gives it one."));
        }
        if columns.len() != texts.len() {
            let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
            let message = format!(
                "expected {} for the primary key of table \"{table}\" ({}), found {}",
                match columns.len() {
                    1 => "1 value".to_string(),
                    count => format!("{count} values"),
                },
                names.join(", "),
                texts.len()
            );
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        let values =
            columns.iter().zip(texts).map(|(column, text)| parse_value(text.as_ref(), column.data_type));
        Key::encode(&values.collect::<Result<Vec<_>, _>>()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, DataType, TableId, Value};

    #[test]
    fn keys_are_read_by_the_types_of_their_columns() {
        let column = |name: &str, data_type| Column {
            name: name.into(),
            data_type,
            not_null: true,
            default: None,
            generated: false,
        };
        let mut table = Table {
            id: TableId(1),
            name: "sales.orders".to_string(),
            columns: vec![
                column("n", DataType::BigInt),
                column("day", DataType::Date),
                column("name", DataType::Text(None)),
            ],
            primary_key: vec![2, 0],
            primary_key_name: "orders_pkey".to_string(),
            checks: Vec::new(),
            endorsement: None,
            row_security: crate::RowSecurity::default(),
            partitioning: None,
            materialized: None,
        };
        let expected = Key::encode([&Value::text("O'Neil"), &Value::BigInt(-7)]).expect("short");
        assert_eq!(table.key_of_texts(&["O'Neil", "-7"]), Ok(expected));
        let failed = |table: &Table, texts: &[&str]| {
            let SqlError { state, message, .. } = table.key_of_texts(texts).expect_err("no key");
            (state, message)
        };
        let (state, message) = failed(&table, &["O'Neil"]);
        assert_eq!(state, SqlState::INVALID_PARAMETER_VALUE);
        assert!(
            message.contains("2 values") && message.contains("(name, n)") && message.contains("found 1"),
            "{message}"
        );
        assert_eq!(failed(&table, &["O'Neil", "seven"]).0, SqlState::INVALID_TEXT_REPRESENTATION);
        table.primary_key.clear();
        assert_eq!(failed(&table, &[]).0, SqlState(*b"42809"));
    }
}
