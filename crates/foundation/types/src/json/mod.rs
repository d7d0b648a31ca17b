//! JSON: texts that are checked, and values of type `jsonb`, which are normalised.
//!
//! A `jsonb` is one piece of bytes that nothing changes, so that copying it costs a reference count, storing it a copy, and
//! equal bytes are equal states. It is a node:
//!
//! | first byte | value | what follows |
//! | --- | --- | --- |
//! | `0`, `1`, `2` | null, false, true | |
//! | `3` | a number | its length, and its digits as `numeric` writes them: `1.50` |
//! | `4` | a string | its length, and its characters in UTF-8 |
//! | `5` | an array | the length of the rest, how many elements, and these: nodes |
//! | `6` | an object | the length of the rest, how many members, and these: the key as its length and characters, then a node |
//!
//! Lengths and counts have seven bits a byte, the lowest first, in as few bytes as they take. The keys of an object are
//! different and sorted, shorter ones first, as in PostgreSQL.

mod node;
mod number;
mod order;
mod part;
mod syntax;
mod tree;
mod write;

pub use node::{JsonElements, JsonMembers, JsonNode, JsonView, compare_json_keys};
pub(crate) use order::push_json_key;
pub use part::JsonPart;
pub(crate) use part::check_length;
pub use syntax::{JsonText, check_json, split_json};
pub use write::{quoted_json, write_json_string};

use crate::{SqlError, SqlState, limits};
use borsh::{BorshDeserialize, BorshSerialize};
use std::cmp::Ordering;
use std::io;
use std::sync::Arc;

/// What the encodings of both begin with as values.
const JSON_TAG: u8 = 19;
const JSONB_TAG: u8 = 20;

/// A value of type `jsonb`: at most [`limits::TEXT_BYTES_MAX`] bytes as a text, nested at most
/// [`limits::JSON_NESTING_MAX`] deep.
///
/// `==` is identity: `1.0` and `1.00` differ, as they do as `numeric`. SQL compares with [`Jsonb::compare`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Jsonb(Arc<[u8]>);

impl Jsonb {
    /// Reads a text as PostgreSQL's input function does.
    ///
    /// # Errors
    /// `22P02` where it is no JSON, `22P05` for `\u0000`, `22003` for a number with too many digits, `54000` and `54001` where
    /// it is too long or too deep.
    pub fn parse(text: &str) -> Result<Jsonb, SqlError> {
        Jsonb::new(&syntax::parse_json(text)?)
    }

    /// The value that a part is when nothing encloses it.
    ///
    /// # Errors
    /// `54000` and `54001` where it is too long or too deep.
    pub fn new(part: &JsonPart<'_>) -> Result<Jsonb, SqlError> {
        let jsonb = Jsonb(Arc::from(part.bytes()));
        jsonb.check_limits()?;
        Ok(jsonb)
    }

    /// What it is made of.
    pub fn node(&self) -> JsonNode<'_> {
        JsonNode::whole(&self.0)
    }

    /// The bytes that it is stored in.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether it is a copy of the other one, so that both take the memory of one.
    pub fn shares_bytes(&self, other: &Jsonb) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// As PostgreSQL writes it: `{"a": 1, "b": [1, 2]}`.
    pub fn to_text(&self) -> String {
        let mut text = String::with_capacity(self.0.len());
        write::write_node(&mut text, self.node());
        text
    }

    /// Bytes of that text.
    pub fn text_bytes(&self) -> usize {
        write::text_bytes(self.node(), 0).unwrap_or(crate::text_bytes_max())
    }

    /// The order of PostgreSQL, by which objects come last and nulls first.
    pub fn compare(&self, other: &Jsonb) -> Ordering {
        order::compare_roots(self.node(), other.node())
    }

    fn check_limits(&self) -> Result<(), SqlError> {
        let bytes = write::text_bytes(self.node(), 0)?;
        if bytes > crate::text_bytes_max() {
            return Err(too_long(bytes));
        }
        Ok(())
    }
}

impl BorshSerialize for Jsonb {
    fn serialize<W: io::Write>(&self, writer: &mut W) -> io::Result<()> {
        self.0.serialize(writer)
    }
}

impl BorshDeserialize for Jsonb {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<Jsonb> {
        crate::unknown_types::check_known(JSONB_TAG, crate::ExecutionVersion::V7)?;
        let bytes = Vec::<u8>::deserialize_reader(reader)?;
        if !node::is_canonical(&bytes) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "expected a value of type jsonb"));
        }
        let jsonb = Jsonb(Arc::from(bytes));
        jsonb.check_limits().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(jsonb)
    }
}

/// Reads the text of a value of type `json`, which is one.
pub(crate) fn read_json<R: io::Read>(reader: &mut R) -> io::Result<Arc<str>> {
    crate::unknown_types::check_known(JSON_TAG, crate::ExecutionVersion::V7)?;
    let text = String::deserialize_reader(reader)?;
    check_json(&text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(Arc::from(text))
}

#[cold]
pub(crate) fn too_long(bytes: usize) -> SqlError {
    let limit = crate::text_bytes_max();
    let message =
        format!("the JSON value has {bytes} bytes as a text, the limit is {limit} (TEXT_BYTES_MAX)");
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
}

/// The error of what is nested deeper than [`limits::JSON_NESTING_MAX`].
#[cold]
pub fn json_too_deep() -> SqlError {
    let limit = limits::JSON_NESTING_MAX;
    let message = format!("a JSON value is nested more than {limit} levels deep (JSON_NESTING_MAX)");
    SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message)
}

#[cfg(test)]
mod tests;
