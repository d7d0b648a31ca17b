//! Indexes, and the keys that stand in them.

use crate::{ColumnSet, Deferral, Key, SqlError, TableId, Value};
use borsh::{BorshDeserialize, BorshSerialize};

/// An index on columns of a table.
///
/// Its entries are ordered by the columns and then by the primary key, and follow from the table's rows
/// ([`Index::entries`]). A unique index has besides one row per key that is taken ([`Index::unique_entries`]), which
/// transactions write like any row: who takes a key that is taken is stopped at its place in the order.
///
/// ```text
/// encoding: number ‖ name ‖ columns ‖ unique ‖ 0 | 1 (a constraint) | 2 (one that can be deferred) ‖ deferral ‖ primary
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Its number; tables and indexes share the numbers.
    pub number: u32,
    /// Its name without the schema, which is that of its table.
    pub name: String,
    /// Ordinals of its columns, in order.
    pub columns: Vec<u16>,
    /// No two rows have the same values without a NULL.
    pub unique: bool,
    /// It was made by a UNIQUE constraint.
    pub constraint: bool,
    /// When the constraint is held: that of an index without one is never deferred.
    pub deferral: Deferral,
    /// The constraint is a PRIMARY KEY that can be deferred: rows stand under hidden keys then.
    pub primary: bool,
}

/// The kinds of an encoded index.
const PLAIN: u8 = 0;
const CONSTRAINT: u8 = 1;
const DEFERRABLE: u8 = 2;

impl BorshSerialize for Index {
    fn serialize<W: borsh::io::Write>(&self, writer: &mut W) -> borsh::io::Result<()> {
        (self.number, &self.name, &self.columns, self.unique).serialize(writer)?;
        match self.deferral {
            Deferral::Never => if self.constraint { CONSTRAINT } else { PLAIN }.serialize(writer),
            deferral => (DEFERRABLE, deferral, self.primary).serialize(writer),
        }
    }
}

impl BorshDeserialize for Index {
    fn deserialize_reader<R: borsh::io::Read>(reader: &mut R) -> borsh::io::Result<Index> {
        let (number, name, columns, unique) = <(u32, String, Vec<u16>, bool)>::deserialize_reader(reader)?;
        let kind = u8::deserialize_reader(reader)?;
        let (deferral, primary) = match kind {
            PLAIN | CONSTRAINT => (Deferral::Never, false),
            DEFERRABLE => <(Deferral, bool)>::deserialize_reader(reader)?,
            found => return Err(wrong(format!("expected a kind of index, 0 to 2, found {found}"))),
        };
        if kind == DEFERRABLE && (deferral == Deferral::Never || !unique) {
            return Err(wrong(
                "a constraint that can be deferred is not what an index says it is".to_string(),
            ));
        }
        Ok(Index { number, name, columns, unique, constraint: kind != PLAIN, deferral, primary })
    }
}

fn wrong(message: String) -> borsh::io::Error {
    borsh::io::Error::new(borsh::io::ErrorKind::InvalidData, message)
}

impl Index {
    /// Where its ordered entries stand.
    pub fn entries(&self) -> TableId {
        TableId(self.number | TableId::ENTRIES)
    }

    /// Where the keys stand that are taken, of a unique index.
    pub fn unique_entries(&self) -> TableId {
        TableId(self.number | TableId::UNIQUE)
    }

    /// Its columns as a set.
    pub fn column_set(&self) -> ColumnSet {
        self.columns.iter().fold(ColumnSet::EMPTY, |set, c| set | ColumnSet::column(usize::from(*c)))
    }

    /// Whether two images of a row have the same entry.
    pub fn is_same_entry(&self, before: &[Value], after: &[Value]) -> bool {
        self.columns.iter().all(|ordinal| before[usize::from(*ordinal)] == after[usize::from(*ordinal)])
    }

    /// The ordered entry of the row with this primary key.
    pub fn entry(&self, key: &Key, row: &[Value]) -> Key {
        Key::index_entry(self.columns.iter().map(|ordinal| &row[usize::from(*ordinal)]), key)
    }

    /// The key that a row takes in a unique index; `None` where one of its columns is NULL.
    ///
    /// # Errors
    /// `54000` where it is too long.
    pub fn unique_entry(&self, row: &[Value]) -> Result<Option<Key>, SqlError> {
        let values = || self.columns.iter().map(|ordinal| &row[usize::from(*ordinal)]);
        if values().any(Value::is_null) {
            return Ok(None);
        }
        Key::encode(values()).map(Some).map_err(|error| SqlError {
            message: error
                .message
                .replace("the primary key has", &format!("the key in index \"{}\" has", self.name)),
            hint: Some("Use shorter values in the columns of the index.".into()),
            ..error
        })
    }
}
