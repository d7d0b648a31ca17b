use crate::{SqlError, Value};
use borsh::{BorshDeserialize, BorshSerialize};
use smallvec::SmallVec;
use std::borrow::Borrow;
use std::fmt;
use std::io;

/// A primary key, encoded so that byte order is SQL order, column by column. Keys of up to 16 bytes (one bigint is 8)
/// need no allocation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Key(SmallVec<[u8; 16]>);

impl Key {
    /// The key of these values, which must not be NULL and must have the types of the key columns.
    ///
    /// # Errors
    /// `54000` where the key is longer than [`crate::limits::KEY_BYTES_MAX`].
    pub fn encode<'a>(values: impl IntoIterator<Item = &'a Value>) -> Result<Key, SqlError> {
        let _ = values.into_iter();
        todo!()
    }

    /// A key from bytes that an encoder of this module made.
    pub fn from_bytes(bytes: &[u8]) -> Key {
        Key(SmallVec::from_slice(bytes))
    }

    /// The encoded bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The smallest key that is greater than every key that starts with this one; `None` where there is none.
    pub fn after_prefix(&self) -> Option<Key> {
        let mut bytes = self.0.clone();
        while let Some(last) = bytes.pop() {
            if last < u8::MAX {
                bytes.push(last + 1);
                return Some(Key(bytes));
            }
        }
        None
    }
}

impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl BorshSerialize for Key {
    fn serialize<W: io::Write>(&self, writer: &mut W) -> io::Result<()> {
        self.0.as_slice().serialize(writer)
    }
}

impl BorshDeserialize for Key {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<Key> {
        let bytes = Vec::<u8>::deserialize_reader(reader)?;
        if bytes.len() > crate::limits::KEY_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "key longer than KEY_BYTES_MAX"));
        }
        Ok(Key(SmallVec::from_vec(bytes)))
    }
}
