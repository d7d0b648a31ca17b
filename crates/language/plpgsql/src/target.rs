//! Where values go: variables, and what makes a value one of a variable's type.

use types::{DataType, TypeId};

/// How a value becomes one of the variable's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coercion {
    /// It is one.
    None,
    /// By the cast that an assignment makes.
    Assign(DataType),
    /// By writing it as text and reading that: what PL/pgSQL does where there is no cast.
    ThroughText(DataType),
}

/// Where a value goes.
#[derive(Debug)]
pub struct Store {
    /// The variable.
    pub slot: u16,
    /// How it becomes one of the variable's type.
    pub coercion: Coercion,
    /// Name of the variable if it refuses NULL.
    pub not_null: Option<Box<str>>,
    /// The domain that the value is held against.
    pub domain: Option<TypeId>,
}

/// Where a row goes: column by column; what the row does not have is NULL.
#[derive(Debug)]
pub struct RowTarget {
    /// By column.
    pub stores: Box<[Store]>,
    /// A record's flag that it has a row.
    pub flag: Option<u16>,
    /// STRICT
    pub strict: bool,
    /// The number of a record whose columns running tells: it takes the row as it is.
    pub record: Option<u16>,
}
