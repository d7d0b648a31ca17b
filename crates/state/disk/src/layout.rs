//! What stands in files, byte for byte. Values are borsh.
//!
//! | key | value |
//! | --- | --- |
//! | `c` | the catalog |
//! | `d`, version (8 bytes, big endian), part (4 bytes, big endian) | what has changed up to that version since the durable point before: [`ChangedList`] |
//! | `l`, height (8 bytes, big endian) | the ids that the block has admitted: [`AdmittedRecord`] |
//! | `m` | what the rows are: [`Meta`] |
//! | `r`, number of the table (4 bytes, big endian), primary key | the row's values |
//! | `s` | which state the groups of the tree are of: [`TreeRecord`] |
//! | `t`, number of the table (4 bytes, big endian), first key | a group of the tree: [`state::GroupRecord`] |
//!
//! Keys stand in byte order, which is that of tables and of primary keys. Every run is written whole or not at all, so that
//! these always belong together.

use borsh::{BorshDeserialize, BorshSerialize};
use crypto::PublicKey;
use proofs::state::TreeShape;
use state::{LiveRequest, ResumePoint, RowId, StoreError, Version};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use types::{ClientId, Key, RequestId, Row, TableId, TransactionId, decode_exactly, encode};

/// Bytes in front of a row's primary key.
const PREFIX: usize = 5;
const ROW: u8 = b'r';
const GROUP: u8 = b't';
/// Key of the catalog.
pub(crate) const CATALOG: &[u8] = b"c";
/// Key of [`Meta`].
pub(crate) const META: &[u8] = b"m";
/// Key of [`TreeRecord`].
pub(crate) const TREE: &[u8] = b"s";
/// What keys of [`ChangedList`] begin with.
pub(crate) const CHANGED: u8 = b'd';
/// What keys of [`AdmittedRecord`] begin with.
pub(crate) const ADMITTED: u8 = b'l';
/// What names of folders of stores begin with.
const STORE: &str = "store-";
/// What names of folders of checkpoints begin with.
const CHECKPOINT: &str = "checkpoint-";
/// Of everything here.
const FORMAT: u32 = 1;

/// What the rows are.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub(crate) struct Meta {
    format: u32,
    /// Who executes blocks can go on here; `None`: a block was not over.
    pub(crate) point: Option<ResumePoint>,
    /// Rows of each table.
    pub(crate) counts: BTreeMap<TableId, u64>,
    /// Entries of ordered indexes stand there like rows. A store that has all rows in memory makes its own.
    pub(crate) has_entries: bool,
}

/// What has changed from one durable point to the next.
#[derive(Clone, PartialEq, Eq, Debug, Default, BorshSerialize, BorshDeserialize)]
pub(crate) struct ChangedList {
    /// Tables that have gone, ascending.
    pub(crate) dropped: Vec<TableId>,
    /// Rows of other tables that were written, by table and key.
    pub(crate) rows: Vec<(TableId, Vec<Key>)>,
}

/// Ids that a block has admitted.
#[derive(Clone, PartialEq, Eq, Debug, Default, BorshSerialize, BorshDeserialize)]
pub(crate) struct AdmittedRecord {
    /// Keys of their clients, each once.
    clients: Vec<PublicKey>,
    /// Of each id: number of the client's key, request, id, position in the block, blocks to its expiry.
    ids: Vec<(u32, RequestId, TransactionId, u32, u32)>,
}

/// Which state the groups are of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub(crate) struct TreeRecord {
    pub(crate) shape: TreeShape,
    version: u64,
}

impl Meta {
    pub(crate) fn new(point: Option<ResumePoint>, counts: BTreeMap<TableId, u64>, has_entries: bool) -> Meta {
        Meta { format: FORMAT, point, counts, has_entries }
    }
}

impl TreeRecord {
    pub(crate) fn new(shape: TreeShape, version: Version) -> TreeRecord {
        TreeRecord { shape, version: version.number() }
    }

    pub(crate) fn version(&self) -> Version {
        Version::of_number(self.version)
    }
}

impl AdmittedRecord {
    /// All of one block.
    pub(crate) fn of(admitted: &[LiveRequest]) -> AdmittedRecord {
        let mut clients: Vec<PublicKey> = admitted.iter().map(|one| one.client.key).collect();
        clients.sort_unstable();
        clients.dedup();
        let id = |one: &LiveRequest| {
            let client = clients.partition_point(|key| *key < one.client.key) as u32;
            let ahead = u32::try_from(one.expires_at - one.height).expect("ids expire within 2^32 blocks");
            (client, one.client.request, one.id, one.index, ahead)
        };
        let ids = admitted.iter().map(id).collect();
        AdmittedRecord { clients, ids }
    }

    /// Ids that the block at `height` has admitted; `None`: one is that of no client.
    pub(crate) fn requests(&self, height: u64) -> Option<Vec<LiveRequest>> {
        let request = |(client, request, id, index, ahead): &(u32, RequestId, TransactionId, u32, u32)| {
            let key = *self.clients.get(*client as usize)?;
            let client = ClientId { key, request: *request };
            let expires_at = height.checked_add(u64::from(*ahead))?;
            Some(LiveRequest { client, id: *id, height, index: *index, expires_at })
        };
        self.ids.iter().map(request).collect()
    }
}

/// The key of one part of a list of what has changed.
pub(crate) fn list_key(version: Version, part: u32) -> Vec<u8> {
    [&numbered_key(CHANGED, version.number())[..], &part.to_be_bytes()].concat()
}

/// A key of something that has a number.
pub(crate) fn numbered_key(kind: u8, number: u64) -> Vec<u8> {
    [&[kind][..], &number.to_be_bytes()].concat()
}

/// The number in such a key.
pub(crate) fn number_of(key: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(*key.get(1..)?.first_chunk()?))
}

/// Reads a value.
///
/// # Errors
/// It is none of the kind; `place` says where it stands.
pub(crate) fn value_of<T: BorshDeserialize>(bytes: &[u8], what: &str, place: &Path) -> Result<T, StoreError> {
    decode_exactly(bytes)
        .map_err(|error| StoreError::damaged(place.display(), format_args!("{what} of it: {error}")))
}

/// Reads what the rows are.
///
/// # Errors
/// Another program has written it.
pub(crate) fn meta_of(bytes: &[u8], place: &Path) -> Result<Meta, StoreError> {
    let format = bytes.first_chunk().map(|format| u32::from_le_bytes(*format));
    match format {
        Some(FORMAT) => value_of(bytes, "what its rows are", place),
        found => {
            let found = found.map_or("nothing".to_string(), |found| format!("format {found}"));
            let what = format_args!(
                "expected a store of format {FORMAT}, found {found}; use the program that wrote it"
            );
            Err(StoreError::read(place.display(), what))
        }
    }
}

/// The key of a group of the tree.
pub(crate) fn group_key(first: &RowId) -> Vec<u8> {
    prefixed(GROUP, first.table, first.key.as_bytes())
}

/// The group that a key names.
pub(crate) fn group_of(key: &[u8]) -> Option<RowId> {
    let table = u32::from_be_bytes(*key.get(1..)?.first_chunk()?);
    Some(RowId { table: TableId(table), key: primary_key(key)? })
}

/// What the keys of all groups stand between.
pub(crate) fn all_groups() -> (Vec<u8>, Vec<u8>) {
    (vec![GROUP], vec![GROUP + 1])
}

fn prefixed(kind: u8, table: TableId, key: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PREFIX + key.len());
    bytes.push(kind);
    bytes.extend_from_slice(&table.0.to_be_bytes());
    bytes.extend_from_slice(key);
    bytes
}

/// The folder of a store.
pub(crate) fn store_folder(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{STORE}{number}"))
}

/// The number of the store whose folder this is.
pub(crate) fn store_number(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_prefix(STORE)?.parse().ok()
}

/// The folder of a checkpoint. `number`: the same height may have been left behind before.
pub(crate) fn checkpoint_folder(folder: &Path, height: u64, number: u64) -> PathBuf {
    folder.join(format!("{CHECKPOINT}{height}-{number}"))
}

/// Height and number of the checkpoint whose folder this is.
pub(crate) fn checkpoint_of(path: &Path) -> Option<(u64, u64)> {
    let (height, number) = path.file_name()?.to_str()?.strip_prefix(CHECKPOINT)?.split_once('-')?;
    Some((height.parse().ok()?, number.parse().ok()?))
}

/// Stands beside the folders of stores and checkpoints where somebody has met a file that is damaged.
pub(crate) fn damage_mark(folder: &Path) -> PathBuf {
    folder.join("damaged")
}

/// Whether this is what is left of a folder that was not finished.
pub(crate) fn is_unfinished(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "unfinished")
}

/// The key of a row.
pub(crate) fn row_key(table: TableId, key: &Key) -> Vec<u8> {
    prefixed(ROW, table, key.as_bytes())
}

/// What the keys of all rows of a table begin with.
pub(crate) fn table_key(table: TableId) -> Vec<u8> {
    prefixed(ROW, table, &[])
}

/// Behind the keys of all rows of a table.
pub(crate) fn behind_table(table: TableId) -> Vec<u8> {
    match table.0.checked_add(1) {
        Some(next) => table_key(TableId(next)),
        None => vec![ROW + 1],
    }
}

/// The table in the key of a row.
pub(crate) fn table_of(bytes: &[u8]) -> Option<TableId> {
    let number = bytes.get(1..PREFIX)?;
    Some(TableId(u32::from_be_bytes(number.try_into().ok()?)))
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
        .map_err(|error| StoreError::damaged(place.display(), format_args!("a row of it: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::Value;

    #[test]
    fn folders_are_known_by_their_names() {
        let folder = Path::new("state");
        assert_eq!(store_number(&store_folder(folder, 7)), Some(7));
        assert_eq!(checkpoint_of(&checkpoint_folder(folder, 70, 2)), Some((70, 2)));
        for name in ["store-x", "store-", "checkpoint-7", "checkpoint-7-x", "checkpoint-7-1.unfinished"] {
            let path = folder.join(name);
            assert_eq!((store_number(&path), checkpoint_of(&path)), (None, None), "{name}");
        }
        assert!(is_unfinished(&folder.join("checkpoint-7-1.unfinished")));
    }

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
