use crate::DataType;
use borsh::{BorshDeserialize, BorshSerialize};

/// A type of ranges; each has a type of multiranges.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, BorshSerialize, BorshDeserialize)]
pub enum RangeType {
    /// `int4range`, of `integer`
    Int4,
    /// `int8range`, of `bigint`
    Int8,
    /// `numrange`, of `numeric`
    Num,
    /// `daterange`, of `date`
    Date,
    /// `tsrange`, of `timestamp`
    Ts,
    /// `tstzrange`, of `timestamp with time zone`
    TsTz,
}

impl RangeType {
    /// All of them.
    pub const ALL: [RangeType; 6] =
        [RangeType::Int4, RangeType::Int8, RangeType::Num, RangeType::Date, RangeType::Ts, RangeType::TsTz];

    /// The type of what the ranges are of.
    pub fn element(self) -> DataType {
        match self {
            RangeType::Int4 => DataType::Integer,
            RangeType::Int8 => DataType::BigInt,
            RangeType::Num => DataType::Numeric(None),
            RangeType::Date => DataType::Date,
            RangeType::Ts => DataType::Timestamp,
            RangeType::TsTz => DataType::TimestampTz,
        }
    }

    /// The ranges of a type of elements, where there are any.
    pub fn of_element(element: DataType) -> Option<RangeType> {
        RangeType::ALL.into_iter().find(|known| known.element() == element.family())
    }

    /// The type of ranges or multiranges of which this holds, of its object identifier and its name.
    pub fn type_where(is: impl Fn((u32, &str)) -> bool) -> Option<DataType> {
        let both = RangeType::ALL.into_iter().flat_map(|of| [DataType::Range(of), DataType::Multirange(of)]);
        both.into_iter().find(|known| is((known.oid(), known.internal_name())))
    }

    /// Whether each element has a next one, so that ranges are written from an included to an excluded bound.
    pub fn is_discrete(self) -> bool {
        matches!(self, RangeType::Int4 | RangeType::Int8 | RangeType::Date)
    }

    /// Object identifier and name of the ranges in PostgreSQL's `pg_type`.
    pub fn range(self) -> (u32, &'static str) {
        match self {
            RangeType::Int4 => (3904, "int4range"),
            RangeType::Int8 => (3926, "int8range"),
            RangeType::Num => (3906, "numrange"),
            RangeType::Date => (3912, "daterange"),
            RangeType::Ts => (3908, "tsrange"),
            RangeType::TsTz => (3910, "tstzrange"),
        }
    }

    /// The same of multiranges.
    pub fn multirange(self) -> (u32, &'static str) {
        match self {
            RangeType::Int4 => (4451, "int4multirange"),
            RangeType::Int8 => (4536, "int8multirange"),
            RangeType::Num => (4532, "nummultirange"),
            RangeType::Date => (4535, "datemultirange"),
            RangeType::Ts => (4533, "tsmultirange"),
            RangeType::TsTz => (4534, "tstzmultirange"),
        }
    }
}
