use borsh::{BorshDeserialize, BorshSerialize};
use std::fmt;

/// A type of parameters and results that stands for another one in each call.
///
/// Those without `Compatible` stand for one type, which all arguments have; the others for the type that the arguments
/// have together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, BorshSerialize, BorshDeserialize)]
pub enum Polymorphic {
    /// `anyelement`
    Element,
    /// `anyarray`: arrays of it.
    Array,
    /// `anynonarray`: it, and it is no array.
    NonArray,
    /// `anycompatible`
    Compatible,
    /// `anycompatiblearray`
    CompatibleArray,
    /// `anycompatiblenonarray`
    CompatibleNonArray,
}

impl Polymorphic {
    const ALL: [Polymorphic; 6] = [
        Polymorphic::Element,
        Polymorphic::Array,
        Polymorphic::NonArray,
        Polymorphic::Compatible,
        Polymorphic::CompatibleArray,
        Polymorphic::CompatibleNonArray,
    ];

    /// PostgreSQL's name.
    pub fn name(self) -> &'static str {
        match self {
            Polymorphic::Element => "anyelement",
            Polymorphic::Array => "anyarray",
            Polymorphic::NonArray => "anynonarray",
            Polymorphic::Compatible => "anycompatible",
            Polymorphic::CompatibleArray => "anycompatiblearray",
            Polymorphic::CompatibleNonArray => "anycompatiblenonarray",
        }
    }

    /// The type of this name, in lower case.
    pub fn named(name: &str) -> Option<Polymorphic> {
        Polymorphic::ALL.into_iter().find(|known| known.name() == name)
    }

    /// Object identifier in PostgreSQL's `pg_type`.
    pub fn oid(self) -> u32 {
        match self {
            Polymorphic::Element => 2283,
            Polymorphic::Array => 2277,
            Polymorphic::NonArray => 2776,
            Polymorphic::Compatible => 5077,
            Polymorphic::CompatibleArray => 5078,
            Polymorphic::CompatibleNonArray => 5079,
        }
    }

    /// It stands for the type that arguments have together.
    pub fn is_compatible(self) -> bool {
        matches!(
            self,
            Polymorphic::Compatible | Polymorphic::CompatibleArray | Polymorphic::CompatibleNonArray
        )
    }

    /// It stands for arrays.
    pub fn is_array(self) -> bool {
        matches!(self, Polymorphic::Array | Polymorphic::CompatibleArray)
    }

    /// It stands for what is no array.
    pub fn is_no_array(self) -> bool {
        matches!(self, Polymorphic::NonArray | Polymorphic::CompatibleNonArray)
    }

    /// What the elements of its arrays are.
    pub fn element(self) -> Option<Polymorphic> {
        match self {
            Polymorphic::Array => Some(Polymorphic::Element),
            Polymorphic::CompatibleArray => Some(Polymorphic::Compatible),
            _ => None,
        }
    }
}

impl fmt::Display for Polymorphic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_and_number_is_that_of_one_type() {
        for (position, known) in Polymorphic::ALL.into_iter().enumerate() {
            assert_eq!(Polymorphic::named(known.name()), Some(known));
            assert!(Polymorphic::ALL[..position].iter().all(|other| other.oid() != known.oid()));
            assert_eq!(known.is_array(), known.element().is_some());
        }
        assert_eq!(Polymorphic::named("anyrange"), None);
    }
}
