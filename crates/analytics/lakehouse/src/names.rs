//! Names of folders and columns: those of the ledger, without what Delta, Parquet and file systems do not take.

use std::collections::BTreeSet;
use std::fmt::Write;
use types::{Table, split_catalog_name};

/// The column that has the hidden key of each row, in tables without a primary key.
pub const KEY_COLUMN: &str = "_entente_key";
/// The column that has the row itself, in its canonical encoding, where the other columns do not say everything.
pub const ROW_COLUMN: &str = "_entente_row";

/// What a column's name in a Delta table must not have.
const REFUSED: &str = " ,;{}()\n\t=";

/// The folder of a table below that of the export: its schema, then its name. Other characters than letters, digits, `_` and `-`,
/// and a `_` in front, become `~` and the hexadecimal digits of their bytes, because readers hide and decode such names.
///
/// ```
/// assert_eq!(lakehouse::table_folder("accounts"), "public/accounts");
/// assert_eq!(lakehouse::table_folder("sales.Order lines"), "sales/Order~20lines");
/// ```
pub fn table_folder(name: &str) -> String {
    let (schema, table) = split_catalog_name(name);
    format!("{}/{}", folder(schema), folder(table))
}

fn folder(name: &str) -> String {
    let mut folder = String::with_capacity(name.len());
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => folder.push(char::from(byte)),
            b'_' if at > 0 => folder.push('_'),
            // Writing to a string cannot fail.
            _ => drop(write!(folder, "~{byte:02x}")),
        }
    }
    folder
}

/// Names of a table's columns, in their order: without what Delta refuses, and different without regard to case, because many
/// readers do not distinguish it.
pub(crate) fn column_names(table: &Table) -> Vec<String> {
    let mut taken: BTreeSet<String> = [KEY_COLUMN, ROW_COLUMN].map(String::from).into();
    let free = |name: &str, taken: &BTreeSet<String>| !taken.contains(&name.to_lowercase());
    let named = |column: &types::Column| {
        let plain: String =
            column.name.chars().map(|one| if REFUSED.contains(one) { '_' } else { one }).collect();
        let numbered = (2..).map(|number| format!("{plain}_{number}"));
        let mut names = std::iter::once(plain.clone()).chain(numbered);
        let name = names.find(|name| free(name, &taken)).unwrap_or(plain.clone());
        taken.insert(name.to_lowercase());
        name
    };
    table.columns.iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::{Column, DataType, TableId};

    #[test]
    fn different_tables_have_different_folders_that_readers_see() {
        let names =
            ["a", "public.a b", "s.a", "s.a~", "s._a", "s.~5fa", "_s.a", "s.ä", "s./", "s..", "s.a.b"];
        let folders: BTreeSet<String> = names.iter().map(|name| table_folder(name)).collect();
        assert_eq!(folders.len(), names.len(), "{folders:?}");
        for folder in &folders {
            let parts: Vec<&str> = folder.split('/').collect();
            assert_eq!(parts.len(), 2, "{folder}");
            assert!(parts.iter().all(|part| !part.starts_with(['_', '.'])), "{folder}");
        }
    }

    #[test]
    fn columns_get_names_that_delta_takes() {
        let column = |name: &str| Column {
            name: name.into(),
            data_type: DataType::BigInt,
            not_null: false,
            default: None,
            generated: false,
        };
        let table = Table {
            id: TableId(1),
            name: "t".into(),
            columns: ["id", "Id", "a b", "a_b", "_entente_row", "a,b"].map(column).into(),
            primary_key: vec![0],
            primary_key_name: "t_pkey".into(),
            checks: Vec::new(),
            endorsement: None,
            row_security: types::RowSecurity::default(),
            partitioning: None,
            materialized: None,
        };
        assert_eq!(column_names(&table), ["id", "Id_2", "a_b", "a_b_2", "_entente_row_2", "a_b_3"]);
    }
}
