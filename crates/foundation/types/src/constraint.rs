//! Constraints of tables: CHECK and FOREIGN KEY, and when constraints are held.

use crate::TableId;
use borsh::{BorshDeserialize, BorshSerialize};

/// When a constraint is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, BorshSerialize, BorshDeserialize)]
pub enum Deferral {
    /// NOT DEFERRABLE: with each row, or at the end of each statement.
    #[default]
    Never,
    /// DEFERRABLE INITIALLY IMMEDIATE: at the end of each statement, unless SET CONSTRAINTS says otherwise.
    InitiallyImmediate,
    /// DEFERRABLE INITIALLY DEFERRED: at the end of the transaction, unless SET CONSTRAINTS says otherwise.
    InitiallyDeferred,
}

impl Deferral {
    /// Whether SET CONSTRAINTS may say when it is held.
    pub fn is_deferrable(self) -> bool {
        self != Deferral::Never
    }

    /// What definitions say of it, with a space in front.
    pub fn clause(self) -> &'static str {
        match self {
            Deferral::Never => "",
            Deferral::InitiallyImmediate => " DEFERRABLE",
            Deferral::InitiallyDeferred => " DEFERRABLE INITIALLY DEFERRED",
        }
    }
}

/// A CHECK constraint.
///
/// ```text
/// encoding: name ‖ condition    (as before there was NOT VALID)
///           the length that no name has ‖ name ‖ condition, of one that is not valid
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The name that an error shows.
    pub name: String,
    /// The condition, as SQL.
    pub condition: String,
    /// Rows that were there before it have been held against it: not after ADD … NOT VALID.
    pub valid: bool,
}

/// Stands where the length of a name stands.
const NOT_VALID: u32 = u32::MAX;

impl BorshSerialize for Check {
    fn serialize<W: borsh::io::Write>(&self, writer: &mut W) -> borsh::io::Result<()> {
        if !self.valid {
            NOT_VALID.serialize(writer)?;
        }
        (&self.name, &self.condition).serialize(writer)
    }
}

impl BorshDeserialize for Check {
    fn deserialize_reader<R: borsh::io::Read>(reader: &mut R) -> borsh::io::Result<Check> {
        let first = u32::deserialize_reader(reader)?;
        let valid = first != NOT_VALID;
        let (name, condition) = match valid {
            true => {
                let length = first.to_le_bytes();
                BorshDeserialize::deserialize_reader(&mut borsh::io::Read::chain(&length[..], reader))?
            }
            false => BorshDeserialize::deserialize_reader(reader)?,
        };
        Ok(Check { name, condition, valid })
    }
}

/// What becomes of the rows that reference a key which goes or changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, BorshSerialize, BorshDeserialize)]
pub enum ReferentialAction {
    /// An error, at the end of the statement.
    #[default]
    NoAction,
    /// An error, at once.
    Restrict,
    /// They go, or change, too.
    Cascade,
    /// Their columns become NULL.
    SetNull,
    /// Their columns get their defaults.
    SetDefault,
}

/// A FOREIGN KEY constraint: where none of `columns` is NULL, a row of `parent` has these values in `referenced`.
///
/// ```text
/// encoding: number ‖ name ‖ columns ‖ parent ‖ referenced ‖ index ‖ ON DELETE ‖ ON UPDATE    (as before there was more to say)
///           the same with 128 + ON UPDATE ‖ deferral ‖ MATCH FULL ‖ NOT VALID ‖ columns of ON DELETE
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    /// Its number, which no table, index or other constraint has: they are looked at in this order.
    pub number: u32,
    /// The name that an error shows.
    pub name: String,
    /// Ordinals of the columns that reference.
    pub columns: Vec<u16>,
    /// The table that is referenced.
    pub parent: TableId,
    /// Ordinals of its columns: those of its primary key or of a unique index, in that order.
    pub referenced: Vec<u16>,
    /// Number of the unique index that has them; `None`: the primary key.
    pub index: Option<u32>,
    /// ON DELETE
    pub on_delete: ReferentialAction,
    /// ON UPDATE
    pub on_update: ReferentialAction,
    /// When it is held.
    pub deferral: Deferral,
    /// MATCH FULL: either all of its columns are NULL, or none.
    pub match_full: bool,
    /// Rows that were there before it have been held against it: not after ADD … NOT VALID.
    pub valid: bool,
    /// Ordinals of the columns that ON DELETE SET NULL or SET DEFAULT changes; none: all of `columns`.
    pub set_on_delete: Vec<u16>,
}

/// Added to ON UPDATE where more is said.
const MORE: u8 = 128;

impl ForeignKey {
    /// Whether it says more than programs knew before execution version 8.
    fn says_more(&self) -> bool {
        self.deferral != Deferral::Never || self.match_full || !self.valid || !self.set_on_delete.is_empty()
    }
}

impl BorshSerialize for ForeignKey {
    fn serialize<W: borsh::io::Write>(&self, writer: &mut W) -> borsh::io::Result<()> {
        (self.number, &self.name, &self.columns, self.parent).serialize(writer)?;
        (&self.referenced, self.index, self.on_delete).serialize(writer)?;
        if !self.says_more() {
            return self.on_update.serialize(writer);
        }
        (MORE + self.on_update as u8).serialize(writer)?;
        (self.deferral, self.match_full, !self.valid, &self.set_on_delete).serialize(writer)
    }
}

impl BorshDeserialize for ForeignKey {
    fn deserialize_reader<R: borsh::io::Read>(reader: &mut R) -> borsh::io::Result<ForeignKey> {
        let (number, name, columns, parent) = <(u32, String, Vec<u16>, TableId)>::deserialize_reader(reader)?;
        let (referenced, index, on_delete) = BorshDeserialize::deserialize_reader(reader)?;
        let kind = u8::deserialize_reader(reader)?;
        let on_update = ReferentialAction::try_from_slice(&[kind % MORE])?;
        let (deferral, match_full, not_valid, set_on_delete) = match kind {
            kind if kind < MORE => (Deferral::Never, false, false, Vec::new()),
            _ => BorshDeserialize::deserialize_reader(reader)?,
        };
        let read = ForeignKey {
            number,
            name,
            columns,
            parent,
            referenced,
            index,
            on_delete,
            on_update,
            deferral,
            match_full,
            valid: !not_valid,
            set_on_delete,
        };
        // One value has one encoding.
        match kind >= MORE && !read.says_more() {
            true => {
                let message = "a FOREIGN KEY says that it says more, and does not";
                Err(borsh::io::Error::new(borsh::io::ErrorKind::InvalidData, message))
            }
            false => Ok(read),
        }
    }
}
