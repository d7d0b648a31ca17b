use crate::composite_type::{UNNAMED, UNNAMED_DOMAIN, UNNAMED_ENUM};
use crate::{ElementType, Polymorphic, RangeType, TimeType, TypeId};
use borsh::{BorshDeserialize, BorshSerialize};
use std::{fmt, io};

/// The type of a column, variable or expression.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, BorshSerialize, BorshDeserialize)]
pub enum DataType {
    /// `boolean`
    Boolean,
    /// `integer`, 32 bits
    Integer,
    /// `bigint`, 64 bits
    BigInt,
    /// `numeric` (`None`) or `numeric(precision, scale)`; a negative scale rounds before the point
    Numeric(
        #[borsh(serialize_with = "write_precision", deserialize_with = "read_precision")] Option<(u16, i16)>,
    ),
    /// `double precision`
    Double,
    /// `text` (`None`) or `varchar(n)`, `n` in characters; [`DataType::VARCHAR`] has no length
    Text(Option<u32>),
    /// `timestamp with time zone`, microseconds since 2000-01-01 00:00 UTC as in PostgreSQL
    TimestampTz,
    /// The type of a bare `NULL` and of a string literal whose type the context decides.
    Unknown,
    /// `smallint`, 16 bits
    SmallInt,
    /// `real`, 32 bits
    Real,
    /// `date`, days since 2000-01-01
    Date,
    /// `timestamp without time zone`, microseconds since 2000-01-01 00:00
    Timestamp,
    /// `time without time zone`, microseconds since midnight
    Time,
    /// `interval`: months, days and microseconds
    Interval,
    /// `char(n)`, `n` in characters; `None` is `bpchar`, of any length
    Char(Option<u32>),
    /// `bytea`
    Bytea,
    /// `uuid`
    Uuid,
    /// A one-dimensional array
    Array(ElementType),
    /// A composite type, by its number
    Composite(TypeId),
    /// `record`, the type of anonymous rows
    Record,
    /// `refcursor`: the name of a cursor, a text
    RefCursor,
    /// What stands for another type in each call; only parameters and results of functions have it
    Polymorphic(Polymorphic),
    /// `json`: a text
    Json,
    /// `jsonb`
    Jsonb,
    /// An enum, by its number
    Enum(TypeId),
    /// A domain, by its number: a column's type in the catalog. Expressions have the type that it is of
    Domain(TypeId),
    /// `inet`: an address of a host in a network
    Inet,
    /// `cidr`: a network
    Cidr,
    /// `macaddr`
    MacAddr,
    /// `bit(n)`, `n` bits; `None` as a literal of bits is, of any length
    Bit(Option<u32>),
    /// `bit varying(n)`, at most `n` bits
    VarBit(Option<u32>),
    /// `time with time zone`
    TimeTz,
    /// Ranges of numbers, dates or timestamps
    Range(RangeType),
    /// Multiranges of them
    Multirange(RangeType),
    /// A type of time with fewer than six digits of a second: that of a column, variable or cast. Expressions have the type with all
    /// digits
    Rounded(TimeType, #[borsh(deserialize_with = "crate::datetime::read_digits")] u8),
    /// `tsvector`: the lexemes of a document
    TsVector,
    /// `tsquery`: lexemes that are looked for
    TsQuery,
    /// `hstore`: texts by keys
    Hstore,
    /// `citext`: a text whose large and small letters are the same to comparisons
    Citext,
    /// `oid`: the number of an object, 32 bits without a sign
    Oid,
}

/// Object identifiers of the types of extensions, which PostgreSQL has none for: it numbers them where they are created. Those from
/// 10000 on are nobody's until a database is made. Their arrays have the next numbers.
const HSTORE_OID: u32 = 15_100;
const CITEXT_OID: u32 = 15_102;

/// Object identifiers of the ledger's own types and of their arrays take turns from here on.
pub(crate) const FIRST_COMPOSITE_OID: u32 = 1_500_000_000;

/// Object identifier of a type of the ledger; the next one is that of its arrays.
pub(crate) fn composite_oid(id: TypeId) -> u32 {
    FIRST_COMPOSITE_OID.saturating_add(id.0.saturating_mul(2))
}

/// One byte each for precision and scale where they fit, and two each behind another tag where they do not.
fn write_precision<W: io::Write>(precision: &Option<(u16, i16)>, writer: &mut W) -> io::Result<()> {
    let Some((precision, scale)) = *precision else { return 0u8.serialize(writer) };
    match (u8::try_from(precision), i8::try_from(scale)) {
        (Ok(precision), Ok(scale)) => (1u8, precision, scale).serialize(writer),
        _ => (2u8, precision, scale).serialize(writer),
    }
}

fn read_precision<R: io::Read>(reader: &mut R) -> io::Result<Option<(u16, i16)>> {
    let refused = || io::Error::new(io::ErrorKind::InvalidData, "expected the precision of a numeric type");
    Ok(match u8::deserialize_reader(reader)? {
        0 => None,
        1 => {
            let (precision, scale) = <(u8, i8)>::deserialize_reader(reader)?;
            Some((u16::from(precision), i16::from(scale)))
        }
        2 => {
            let (precision, scale) = <(u16, i16)>::deserialize_reader(reader)?;
            if u8::try_from(precision).is_ok() && i8::try_from(scale).is_ok() {
                return Err(refused());
            }
            Some((precision, scale))
        }
        _ => return Err(refused()),
    })
}

/// The length of a `varchar` that has none. No text is as long, so that what fits texts into a length needs no case for it, nor for
/// those below, which tell clients of more types that are texts.
const UNBOUNDED: u32 = u32::MAX - 1;

impl DataType {
    /// `varchar` without a length. Execution version 1 takes `text` for it.
    pub const VARCHAR: DataType = DataType::Text(Some(UNBOUNDED));
    /// `name`, as clients know columns of the catalogue: a text.
    pub const NAME: DataType = DataType::Text(Some(UNBOUNDED - 1));
    /// `"char"`, likewise: one letter, or none.
    pub const LETTER: DataType = DataType::Text(Some(UNBOUNDED - 2));

    /// The same type without length, precision and scale.
    pub fn family(self) -> DataType {
        match self {
            DataType::Numeric(_) => DataType::Numeric(None),
            DataType::Text(_) => DataType::Text(None),
            DataType::Char(_) => DataType::Char(None),
            DataType::Bit(_) => DataType::Bit(None),
            DataType::VarBit(_) => DataType::VarBit(None),
            DataType::Rounded(of, _) => of.data_type(),
            DataType::Array(element) => DataType::Array(element.family()),
            other => other,
        }
    }

    /// The type with all digits of a second, where it has fewer; another type as it is.
    pub fn unrounded(self) -> DataType {
        match self {
            DataType::Rounded(of, _) => of.data_type(),
            other => other,
        }
    }

    /// The type of the elements, where it is an array.
    pub fn element(self) -> Option<DataType> {
        match self {
            DataType::Array(element) => Some(element.data_type().unrounded()),
            _ => None,
        }
    }

    /// The type of arrays of this type; `None` for arrays and unknown types.
    pub fn array(self) -> Option<DataType> {
        ElementType::new(self).map(DataType::Array)
    }

    /// True for `smallint`, `integer` and `bigint`, whose values meet in arithmetic and comparisons as they are.
    pub fn is_integer(self) -> bool {
        matches!(self, DataType::SmallInt | DataType::Integer | DataType::BigInt)
    }

    /// True for `json` and `jsonb`.
    pub fn is_json(self) -> bool {
        matches!(self, DataType::Json | DataType::Jsonb)
    }

    /// Whether values of the type, or in values of it, are of type `json`, which has no order and no equality.
    pub fn is_unordered(self) -> bool {
        self == DataType::Json || self.element() == Some(DataType::Json)
    }

    /// True for the types that came with execution version 10.
    pub fn is_of_version_10(self) -> bool {
        matches!(
            self,
            DataType::Inet
                | DataType::Cidr
                | DataType::MacAddr
                | DataType::Bit(_)
                | DataType::VarBit(_)
                | DataType::TimeTz
                | DataType::Range(_)
                | DataType::Multirange(_)
                | DataType::Rounded(..)
        )
    }

    /// True for the types that came with execution version 15.
    pub fn is_of_version_15(self) -> bool {
        matches!(self, DataType::TsVector | DataType::TsQuery)
    }

    /// True for the types that came with execution version 16: those of extensions, and `oid`.
    pub fn is_of_version_16(self) -> bool {
        self.is_of_extension() || self == DataType::Oid
    }

    /// True for the types that PostgreSQL has in extensions.
    pub fn is_of_extension(self) -> bool {
        matches!(self, DataType::Hstore | DataType::Citext)
    }

    /// Whether values have parts that an inverted index has entries for: lexemes, elements, keys.
    pub fn has_parts(self) -> bool {
        matches!(self, DataType::TsVector | DataType::Jsonb | DataType::Array(_) | DataType::Hstore)
    }

    /// True for composite types and `record`.
    pub fn is_composite(self) -> bool {
        matches!(self, DataType::Composite(_) | DataType::Record)
    }

    /// True for what only a catalog can make of a text: its fields or labels are there.
    pub fn needs_catalog(self) -> bool {
        let one = self.element().unwrap_or(self);
        one.is_composite() || matches!(one, DataType::Enum(_) | DataType::Domain(_))
    }

    /// The smallest and the largest value of a type of integers.
    pub fn integer_range(self) -> Option<(i64, i64)> {
        match self {
            DataType::SmallInt => Some((i64::from(i16::MIN), i64::from(i16::MAX))),
            DataType::Integer => Some((i64::from(i32::MIN), i64::from(i32::MAX))),
            DataType::BigInt => Some((i64::MIN, i64::MAX)),
            _ => None,
        }
    }

    /// Object identifier of the type in PostgreSQL's `pg_type`.
    pub fn oid(self) -> u32 {
        match self {
            DataType::Boolean => 16,
            DataType::Integer => 23,
            DataType::BigInt => 20,
            DataType::Numeric(_) => 1700,
            DataType::Double => 701,
            DataType::Text(None) => 25,
            DataType::NAME => 19,
            DataType::LETTER => 18,
            DataType::Text(Some(_)) => 1043,
            DataType::TimestampTz => 1184,
            DataType::Unknown => 705,
            DataType::SmallInt => 21,
            DataType::Real => 700,
            DataType::Date => 1082,
            DataType::Timestamp => 1114,
            DataType::Time => 1083,
            DataType::Interval => 1186,
            DataType::Char(_) => 1042,
            DataType::Bytea => 17,
            DataType::Uuid => 2950,
            DataType::Array(element) => element.array_oid(),
            DataType::Composite(id) | DataType::Enum(id) | DataType::Domain(id) => composite_oid(id),
            DataType::Record => 2249,
            DataType::RefCursor => 1790,
            DataType::Polymorphic(polymorphic) => polymorphic.oid(),
            DataType::Json => 114,
            DataType::Jsonb => 3802,
            DataType::Inet => 869,
            DataType::Cidr => 650,
            DataType::MacAddr => 829,
            DataType::Bit(_) => 1560,
            DataType::VarBit(_) => 1562,
            DataType::TimeTz => 1266,
            DataType::Range(range) => range.range().0,
            DataType::Multirange(range) => range.multirange().0,
            DataType::Rounded(of, _) => of.data_type().oid(),
            DataType::TsVector => 3614,
            DataType::TsQuery => 3615,
            DataType::Hstore => HSTORE_OID,
            DataType::Citext => CITEXT_OID,
            DataType::Oid => 26,
        }
    }

    /// The type with this object identifier, as clients name it; `None` for those that Entente does not have. Which kind
    /// of type a number of the ledger's own is, only a catalog knows: `CompositeTypes::of_number`.
    pub fn from_oid(oid: u32) -> Option<DataType> {
        Some(match oid {
            16 => DataType::Boolean,
            21 => DataType::SmallInt,
            23 => DataType::Integer,
            20 => DataType::BigInt,
            26 => DataType::Oid,
            1700 => DataType::Numeric(None),
            700 => DataType::Real,
            701 => DataType::Double,
            // "char", name
            18 | 19 | 25 | 1043 => DataType::Text(None),
            1042 => DataType::Char(None),
            1082 => DataType::Date,
            1083 => DataType::Time,
            1114 => DataType::Timestamp,
            1184 => DataType::TimestampTz,
            1186 => DataType::Interval,
            17 => DataType::Bytea,
            2950 => DataType::Uuid,
            114 => DataType::Json,
            3802 => DataType::Jsonb,
            2249 => DataType::Record,
            869 => DataType::Inet,
            650 => DataType::Cidr,
            829 => DataType::MacAddr,
            1560 => DataType::Bit(None),
            1562 => DataType::VarBit(None),
            1266 => DataType::TimeTz,
            3614 => DataType::TsVector,
            3615 => DataType::TsQuery,
            HSTORE_OID => DataType::Hstore,
            CITEXT_OID => DataType::Citext,
            FIRST_COMPOSITE_OID.. if oid.is_multiple_of(2) => {
                DataType::Composite(TypeId((oid - FIRST_COMPOSITE_OID) / 2))
            }
            1790 => DataType::RefCursor,
            _ => {
                let of_ranges = RangeType::type_where(|(known, _)| known == oid);
                return of_ranges.or_else(|| ElementType::from_array_oid(oid).map(DataType::Array));
            }
        })
    }

    /// PostgreSQL's internal name, as in `pg_type.typname`; that of arrays begins with `_`. That of a composite type is in
    /// the catalog.
    pub fn internal_name(self) -> &'static str {
        match self {
            DataType::Boolean => "bool",
            DataType::Integer => "int4",
            DataType::BigInt => "int8",
            DataType::Numeric(_) => "numeric",
            DataType::Double => "float8",
            DataType::Text(None) => "text",
            DataType::NAME => "name",
            DataType::LETTER => "char",
            DataType::Text(Some(_)) => "varchar",
            DataType::TimestampTz => "timestamptz",
            DataType::Unknown => "unknown",
            DataType::SmallInt => "int2",
            DataType::Real => "float4",
            DataType::Date => "date",
            DataType::Timestamp => "timestamp",
            DataType::Time => "time",
            DataType::Interval => "interval",
            DataType::Char(_) => "bpchar",
            DataType::Bytea => "bytea",
            DataType::Uuid => "uuid",
            DataType::Array(element) => element.array_name(),
            DataType::Composite(_) | DataType::Record => "record",
            DataType::Enum(_) => "anyenum",
            DataType::Domain(_) => "any",
            DataType::RefCursor => "refcursor",
            DataType::Polymorphic(polymorphic) => polymorphic.name(),
            DataType::Json => "json",
            DataType::Jsonb => "jsonb",
            DataType::Inet => "inet",
            DataType::Cidr => "cidr",
            DataType::MacAddr => "macaddr",
            DataType::Bit(_) => "bit",
            DataType::VarBit(_) => "varbit",
            DataType::TimeTz => "timetz",
            DataType::Range(range) => range.range().1,
            DataType::Multirange(range) => range.multirange().1,
            DataType::Rounded(of, _) => of.data_type().internal_name(),
            DataType::TsVector => "tsvector",
            DataType::TsQuery => "tsquery",
            DataType::Hstore => "hstore",
            DataType::Citext => "citext",
            DataType::Oid => "oid",
        }
    }
}

impl fmt::Display for DataType {
    /// The name that PostgreSQL shows.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            DataType::Boolean => f.write_str("boolean"),
            DataType::Integer => f.write_str("integer"),
            DataType::BigInt => f.write_str("bigint"),
            DataType::Numeric(None) => f.write_str("numeric"),
            DataType::Numeric(Some((precision, scale))) => write!(f, "numeric({precision},{scale})"),
            DataType::Double => f.write_str("double precision"),
            DataType::Text(None) => f.write_str("text"),
            DataType::VARCHAR => f.write_str("character varying"),
            DataType::NAME => f.write_str("name"),
            DataType::LETTER => f.write_str("\"char\""),
            DataType::Text(Some(length)) => write!(f, "character varying({length})"),
            DataType::TimestampTz => f.write_str("timestamp with time zone"),
            DataType::Unknown => f.write_str("unknown"),
            DataType::SmallInt => f.write_str("smallint"),
            DataType::Real => f.write_str("real"),
            DataType::Date => f.write_str("date"),
            DataType::Timestamp => f.write_str("timestamp without time zone"),
            DataType::Time => f.write_str("time without time zone"),
            DataType::Interval => f.write_str("interval"),
            DataType::Char(None) => f.write_str("character"),
            DataType::Char(Some(length)) => write!(f, "character({length})"),
            DataType::Bytea => f.write_str("bytea"),
            DataType::Uuid => f.write_str("uuid"),
            DataType::Array(element) => write!(f, "{}[]", element.data_type()),
            // Only a catalog knows its name: `CompositeTypes::named_in`.
            DataType::Composite(id) => write!(f, "{UNNAMED}{}", id.0),
            DataType::Enum(id) => write!(f, "{UNNAMED_ENUM}{}", id.0),
            DataType::Domain(id) => write!(f, "{UNNAMED_DOMAIN}{}", id.0),
            DataType::Record => f.write_str("record"),
            DataType::RefCursor => f.write_str("refcursor"),
            DataType::Polymorphic(polymorphic) => polymorphic.fmt(f),
            DataType::Json => f.write_str("json"),
            DataType::Jsonb => f.write_str("jsonb"),
            DataType::Bit(None) => f.write_str("bit"),
            DataType::Bit(Some(length)) => write!(f, "bit({length})"),
            DataType::VarBit(None) => f.write_str("bit varying"),
            DataType::VarBit(Some(length)) => write!(f, "bit varying({length})"),
            DataType::TimeTz => f.write_str("time with time zone"),
            DataType::Rounded(of, digits) => {
                // Behind the first word.
                let full = of.data_type().to_string();
                match full.split_once(' ') {
                    Some((first, rest)) => write!(f, "{first}({digits}) {rest}"),
                    None => write!(f, "{full}({digits})"),
                }
            }
            DataType::Inet
            | DataType::Cidr
            | DataType::MacAddr
            | DataType::Range(_)
            | DataType::Multirange(_)
            | DataType::TsVector
            | DataType::TsQuery
            | DataType::Hstore
            | DataType::Citext
            | DataType::Oid => f.write_str(self.internal_name()),
        }
    }
}
