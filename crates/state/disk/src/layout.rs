//! What stands in files, byte for byte.
//!
//! | key | value |
//! | --- | --- |
//! | `r`, number of the table (4 bytes, big endian), primary key | the row's values, borsh |
//!
//! Keys stand in byte order, which is that of tables and of primary keys.

use state::StoreError;
use std::path::{Path, PathBuf};
use types::{Key, Row, TableId, decode_exactly, encode};

/// Bytes in front of a row's primary key.
const PREFIX: usize = 5;
const ROW: u8 = b'r';
/// What names of folders of stores begin with.
const FOLDER: &str = "store-";

/// The folder of a store.
pub(crate) fn store_folder(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{FOLDER}{number}"))
}

/// Whether this is the folder of a store.
pub(crate) fn is_store(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.and_then(|name| name.strip_prefix(FOLDER)).is_some_and(|number| number.parse::<u64>().is_ok())
}

/// The key of a row.
pub(crate) fn row_key(table: TableId, key: &Key) -> Vec<u8> {
    let mut bytes = table_key(table);
    bytes.extend_from_slice(key.as_bytes());
    bytes
}

/// What the keys of all rows of a table begin with.
pub(crate) fn table_key(table: TableId) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PREFIX + 16);
    bytes.push(ROW);
    bytes.extend_from_slice(&table.0.to_be_bytes());
    bytes
}

/// Behind the keys of all rows of a table.
pub(crate) fn behind_table(table: TableId) -> Vec<u8> {
    match table.0.checked_add(1) {
        Some(next) => table_key(TableId(next)),
        None => vec![ROW + 1],
    }
}

/// The primary key in the key of a row.
pub(crate) fn primary_key(bytes: &[u8]) -> Option<Key> {
    bytes.get(PREFIX..).map(Key::from_bytes)
}

/// The bytes of a row's values.
pub(crate) fn row_bytes(row: &Row) -> Vec<u8> {
    encode(row)
}

/// A row's values.
///
/// # Errors
/// The bytes are none; `place` says where they stand.
pub(crate) fn row_of(bytes: &[u8], place: &Path) -> Result<Row, StoreError> {
    decode_exactly(bytes)
        .map_err(|error| StoreError::read(place.display(), format_args!("a row of it: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::Value;

    #[test]
    fn keys_stand_as_tables_and_primary_keys_do() {
        let key = |number: i64| Key::encode([&Value::BigInt(number)]).expect("a key");
        let mut keys = Vec::new();
        for table in [0, 1, 255, 256, u32::MAX] {
            assert_eq!(primary_key(&row_key(TableId(table), &key(-7))), Some(key(-7)));
            keys.push(table_key(TableId(table)));
            keys.extend([i64::MIN, -1, 0, 1, i64::MAX].map(|number| row_key(TableId(table), &key(number))));
            keys.push(behind_table(TableId(table)));
        }
        keys.dedup();
        assert!(keys.is_sorted());
    }

    #[test]
    fn a_row_comes_back_and_nothing_else_is_one() {
        let row: Row = [Value::BigInt(7), Value::text("seven"), Value::Null].into_iter().collect();
        let bytes = row_bytes(&row);
        let place = Path::new("rows");
        assert_eq!(row_of(&bytes, place).expect("a row"), row);
        for length in 0..bytes.len() {
            assert!(row_of(&bytes[..length], place).is_err(), "{length} of {} bytes", bytes.len());
        }
        assert!(row_of(&[&bytes[..], &[0]].concat(), place).is_err());
    }
}
