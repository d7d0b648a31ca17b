use crate::data_type::{FIRST_COMPOSITE_OID, composite_oid};
use crate::unknown_types::check_known;
use crate::{DataType, ExecutionVersion, RangeType, TimeType, TypeId};
use borsh::{BorshDeserialize, BorshSerialize};
use std::io;

/// The type of the elements of an array: any [`DataType`] that is neither an array nor unknown.
///
/// A [`DataType`] cannot hold another one and stay as small as a word, so this holds its place in a table and its
/// length, precision and scale. Encoded it is the element's [`DataType`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct ElementType {
    family: u8,
    /// Length, or precision × 256 + scale, each plus one; 0 where there is none. The number of a composite type or an enum.
    modifier: u32,
}

/// Families of elements: the type, and the object identifier and internal name of its arrays. A new one comes last.
const FAMILIES: [(DataType, u32, &str); 42] = [
    (DataType::Boolean, 1000, "_bool"),
    (DataType::Integer, 1007, "_int4"),
    (DataType::BigInt, 1016, "_int8"),
    (DataType::Numeric(None), 1231, "_numeric"),
    (DataType::Double, 1022, "_float8"),
    (DataType::Text(None), 1009, "_text"),
    (DataType::TimestampTz, 1185, "_timestamptz"),
    (DataType::SmallInt, 1005, "_int2"),
    (DataType::Real, 1021, "_float4"),
    (DataType::Date, 1182, "_date"),
    (DataType::Timestamp, 1115, "_timestamp"),
    (DataType::Time, 1183, "_time"),
    (DataType::Interval, 1187, "_interval"),
    (DataType::Char(None), 1014, "_bpchar"),
    (DataType::Bytea, 1001, "_bytea"),
    (DataType::Uuid, 2951, "_uuid"),
    (DataType::Record, 2287, "_record"),
    (DataType::Json, 199, "_json"),
    (DataType::Jsonb, 3807, "_jsonb"),
    (DataType::Inet, 1041, "_inet"),
    (DataType::Cidr, 651, "_cidr"),
    (DataType::MacAddr, 1040, "_macaddr"),
    (DataType::Bit(None), 1561, "_bit"),
    (DataType::VarBit(None), 1563, "_varbit"),
    (DataType::TimeTz, 1270, "_timetz"),
    (DataType::Range(RangeType::Int4), 3905, "_int4range"),
    (DataType::Multirange(RangeType::Int4), 6150, "_int4multirange"),
    (DataType::Range(RangeType::Int8), 3927, "_int8range"),
    (DataType::Multirange(RangeType::Int8), 6157, "_int8multirange"),
    (DataType::Range(RangeType::Num), 3907, "_numrange"),
    (DataType::Multirange(RangeType::Num), 6151, "_nummultirange"),
    (DataType::Range(RangeType::Date), 3913, "_daterange"),
    (DataType::Multirange(RangeType::Date), 6155, "_datemultirange"),
    (DataType::Range(RangeType::Ts), 3909, "_tsrange"),
    (DataType::Multirange(RangeType::Ts), 6152, "_tsmultirange"),
    (DataType::Range(RangeType::TsTz), 3911, "_tstzrange"),
    (DataType::Multirange(RangeType::TsTz), 6153, "_tstzmultirange"),
    (DataType::TsVector, 3643, "_tsvector"),
    (DataType::TsQuery, 3645, "_tsquery"),
    (DataType::Hstore, 15_101, "_hstore"),
    (DataType::Citext, 15_103, "_citext"),
    (DataType::Oid, 1028, "_oid"),
];

/// The family of all composite types, behind the others.
const COMPOSITE: u8 = FAMILIES.len() as u8;

/// The family of all enums, behind that.
const ENUM: u8 = COMPOSITE + 1;

/// Arrays of `varchar(n)`.
const VARCHAR_ARRAY: (u32, &str) = (1015, "_varchar");

impl ElementType {
    /// `text`
    pub const TEXT: ElementType = ElementType { family: 5, modifier: 0 };
    /// `real`
    pub const REAL: ElementType = ElementType { family: 8, modifier: 0 };

    /// The element type; `None` for arrays and unknown types.
    pub fn new(data_type: DataType) -> Option<ElementType> {
        if let DataType::Composite(id) = data_type {
            return Some(ElementType { family: COMPOSITE, modifier: id.0 });
        }
        if let DataType::Enum(id) = data_type {
            return Some(ElementType { family: ENUM, modifier: id.0 });
        }
        let family = FAMILIES.iter().position(|(known, ..)| *known == data_type.family())?;
        let modifier = match data_type {
            DataType::Numeric(Some((precision, scale))) => {
                (u32::from(precision) << 16) + u32::from(scale.cast_unsigned()) + 1
            }
            DataType::Text(Some(length))
            | DataType::Char(Some(length))
            | DataType::Bit(Some(length))
            | DataType::VarBit(Some(length)) => length.checked_add(1)?,
            DataType::Rounded(_, digits) => u32::from(digits) + 1,
            _ => 0,
        };
        Some(ElementType { family: family as u8, modifier })
    }

    /// The type of an element.
    pub fn data_type(self) -> DataType {
        if self.family == COMPOSITE {
            return DataType::Composite(TypeId(self.modifier));
        }
        if self.family == ENUM {
            return DataType::Enum(TypeId(self.modifier));
        }
        let modifier = self.modifier.checked_sub(1);
        match (FAMILIES[usize::from(self.family)].0, modifier) {
            (DataType::Numeric(_), Some(modifier)) => {
                DataType::Numeric(Some(((modifier >> 16) as u16, (modifier as u16).cast_signed())))
            }
            (DataType::Text(_), Some(length)) => DataType::Text(Some(length)),
            (DataType::Char(_), Some(length)) => DataType::Char(Some(length)),
            (DataType::Bit(_), Some(length)) => DataType::Bit(Some(length)),
            (DataType::VarBit(_), Some(length)) => DataType::VarBit(Some(length)),
            (DataType::Timestamp, Some(digits)) => TimeType::Timestamp.rounded(digits as u8),
            (DataType::TimestampTz, Some(digits)) => TimeType::TimestampTz.rounded(digits as u8),
            (DataType::Time, Some(digits)) => TimeType::Time.rounded(digits as u8),
            (DataType::TimeTz, Some(digits)) => TimeType::TimeTz.rounded(digits as u8),
            (DataType::Interval, Some(digits)) => TimeType::Interval.rounded(digits as u8),
            (family, _) => family,
        }
    }

    /// The same type without length, precision and scale.
    pub fn family(self) -> ElementType {
        if self.family >= COMPOSITE { self } else { ElementType { modifier: 0, ..self } }
    }

    /// Object identifier of the arrays in PostgreSQL's `pg_type`.
    pub fn array_oid(self) -> u32 {
        match self.data_type() {
            DataType::Text(Some(_)) => VARCHAR_ARRAY.0,
            DataType::Composite(id) | DataType::Enum(id) => composite_oid(id) + 1,
            _ => FAMILIES[usize::from(self.family)].1,
        }
    }

    /// Internal name of the arrays.
    pub fn array_name(self) -> &'static str {
        match self.data_type() {
            DataType::Text(Some(_)) => VARCHAR_ARRAY.1,
            DataType::Composite(_) => "_record",
            DataType::Enum(_) => "anyarray",
            _ => FAMILIES[usize::from(self.family)].2,
        }
    }

    /// The element type of the arrays with this internal name.
    pub fn from_array_name(name: &str) -> Option<ElementType> {
        if name == VARCHAR_ARRAY.1 {
            return ElementType::from_array_oid(VARCHAR_ARRAY.0);
        }
        let family = FAMILIES.iter().position(|(_, _, known)| *known == name)?;
        Some(ElementType { family: family as u8, modifier: 0 })
    }

    /// The element type of the arrays with this object identifier.
    pub fn from_array_oid(oid: u32) -> Option<ElementType> {
        if oid > FIRST_COMPOSITE_OID && !oid.is_multiple_of(2) {
            return ElementType::new(DataType::Composite(TypeId((oid - FIRST_COMPOSITE_OID) / 2)));
        }
        let oid = if oid == VARCHAR_ARRAY.0 { 1009 } else { oid };
        let family = FAMILIES.iter().position(|(_, known, _)| *known == oid)?;
        Some(ElementType { family: family as u8, modifier: 0 })
    }
}

impl BorshSerialize for ElementType {
    fn serialize<W: io::Write>(&self, writer: &mut W) -> io::Result<()> {
        self.data_type().serialize(writer)
    }
}

impl BorshDeserialize for ElementType {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<ElementType> {
        // An array of arrays would be read recursively, as deep as somebody's bytes say.
        let variant = u8::deserialize_reader(reader)?;
        let array = borsh::to_vec(&DataType::Array(ElementType { family: 0, modifier: 0 }))?;
        let refused = || io::Error::new(io::ErrorKind::InvalidData, "expected a type that has arrays");
        if array.first() == Some(&variant) {
            return Err(refused());
        }
        // These and all behind them came with an execution version.
        let first_of = |data_type: DataType| crate::encode(&data_type).first().copied().unwrap_or(u8::MAX);
        if variant >= first_of(DataType::Json) {
            check_known(variant, ExecutionVersion::V7)?;
        }
        if variant >= first_of(DataType::Inet) {
            check_known(variant, ExecutionVersion::V10)?;
        }
        if variant >= first_of(DataType::TsVector) {
            check_known(variant, ExecutionVersion::V15)?;
        }
        if variant >= first_of(DataType::Hstore) {
            check_known(variant, ExecutionVersion::V16)?;
        }
        let data_type = <DataType as borsh::de::EnumExt>::deserialize_variant(reader, variant)?;
        ElementType::new(data_type).ok_or_else(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_keep_their_modifiers() {
        for element in [
            DataType::Text(Some(0)),
            DataType::Text(None),
            DataType::Numeric(Some((38, 10))),
            DataType::Numeric(Some((1000, -1000))),
            DataType::Char(Some(3)),
            DataType::Uuid,
            DataType::Record,
            DataType::Json,
            DataType::Jsonb,
            DataType::Bit(Some(3)),
            DataType::VarBit(None),
            DataType::Rounded(TimeType::Interval, 0),
            DataType::Multirange(RangeType::TsTz),
            DataType::TsVector,
            DataType::TsQuery,
            DataType::Hstore,
            DataType::Citext,
            DataType::Oid,
            DataType::Composite(TypeId(7)),
            DataType::Enum(TypeId(7)),
        ] {
            let array = element.array().expect("a type that has arrays");
            assert_eq!(array.element(), Some(element.unrounded()));
            // Arrays of the ledger's own types have their names in the catalog.
            if !matches!(element, DataType::Composite(_) | DataType::Enum(_)) {
                let family = array.element().and_then(ElementType::new).map(|one| one.family());
                assert_eq!(
                    ElementType::new(element).and_then(|one| ElementType::from_array_name(one.array_name())),
                    family
                );
            }
            assert_eq!(crate::decode_exactly::<DataType>(&crate::encode(&array)).ok(), Some(array));
            if !matches!(element, DataType::Enum(_)) {
                assert_eq!(DataType::from_oid(array.oid()).map(DataType::family), Some(array.family()));
            }
        }
        assert_eq!(ElementType::new(DataType::Text(None)), Some(ElementType::TEXT));
        assert_eq!(ElementType::new(DataType::Real), Some(ElementType::REAL));
        assert_eq!(DataType::Integer.array().and_then(DataType::array), None);
        assert_eq!(DataType::Unknown.array(), None);
    }

    #[test]
    fn numbers_that_are_no_type_are_none() {
        // Each was looked for among those before it, until the stack was full.
        for oid in [0, 1, 999, 3_000_000, 1_000_000_000, FIRST_COMPOSITE_OID - 1] {
            assert_eq!((DataType::from_oid(oid), ElementType::from_array_oid(oid)), (None, None), "{oid}");
        }
        let first = DataType::Composite(TypeId(0));
        assert_eq!(DataType::from_oid(FIRST_COMPOSITE_OID), Some(first));
        assert_eq!(DataType::from_oid(FIRST_COMPOSITE_OID + 1), first.array());
        assert!(DataType::from_oid(u32::MAX).is_some());
    }

    #[test]
    fn arrays_of_arrays_are_refused_when_read() {
        let mut bytes = crate::encode(&DataType::Integer.array());
        let array = bytes[1];
        bytes.splice(2..2, std::iter::repeat_n(array, 100_000));
        assert!(crate::decode_exactly::<Option<DataType>>(&bytes).is_err());
    }
}
