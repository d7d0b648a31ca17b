//! Operator classes of indexes: those that order as the values of their type are ordered. In the collation C those for patterns do too.

use plan::computed_index::ComputedIndex;
use types::{
    Catalog, CompositeTypes, DataType, ExecutionVersion, Index, IndexMethod, SqlError, SqlState, Table,
};

/// Classes, and the type that each is for, without length, precision and scale.
const CLASSES: [(&str, DataType); 33] = [
    ("bit_ops", DataType::Bit(None)),
    ("bool_ops", DataType::Boolean),
    ("bpchar_ops", DataType::Char(None)),
    ("bpchar_pattern_ops", DataType::Char(None)),
    ("btree_hstore_ops", DataType::Hstore),
    ("bytea_ops", DataType::Bytea),
    ("cidr_ops", DataType::Cidr),
    ("citext_ops", DataType::Citext),
    ("date_ops", DataType::Date),
    ("float4_ops", DataType::Real),
    ("float8_ops", DataType::Double),
    ("inet_ops", DataType::Inet),
    ("int2_ops", DataType::SmallInt),
    ("int4_ops", DataType::Integer),
    ("int8_ops", DataType::BigInt),
    ("interval_ops", DataType::Interval),
    ("jsonb_ops", DataType::Jsonb),
    ("macaddr_ops", DataType::MacAddr),
    ("numeric_ops", DataType::Numeric(None)),
    ("oid_ops", DataType::Oid),
    ("record_ops", DataType::Record),
    ("text_ops", DataType::Text(None)),
    ("text_pattern_ops", DataType::Text(None)),
    ("time_ops", DataType::Time),
    ("timestamp_ops", DataType::Timestamp),
    ("timestamptz_ops", DataType::TimestampTz),
    ("timetz_ops", DataType::TimeTz),
    ("tsquery_ops", DataType::TsQuery),
    ("tsvector_ops", DataType::TsVector),
    ("uuid_ops", DataType::Uuid),
    ("varbit_ops", DataType::VarBit(None)),
    ("varchar_ops", DataType::Text(None)),
    ("varchar_pattern_ops", DataType::Text(None)),
];

/// Classes of inverted indexes. Which operators are served does not depend on the class.
const OF_PARTS: [&str; 5] = ["array_ops", "gin_hstore_ops", "jsonb_ops", "jsonb_path_ops", "tsvector_ops"];

/// Whether a kind of index has an operator class.
pub(super) fn is_known_class(class: &str, rules: ExecutionVersion, method: IndexMethod) -> bool {
    let class = class.to_ascii_lowercase();
    if method == IndexMethod::Inverted {
        let is_new = class == "gin_hstore_ops" && rules < ExecutionVersion::V16;
        return OF_PARTS.contains(&class.as_str()) && !is_new;
    }
    CLASSES.iter().any(|(known, _)| *known == class) && rules >= since(&class)
}

/// The version of the rules of execution that brought a class.
fn since(class: &str) -> ExecutionVersion {
    match class {
        "jsonb_ops" => ExecutionVersion::V7,
        "bit_ops" | "cidr_ops" | "inet_ops" | "macaddr_ops" | "timetz_ops" | "varbit_ops" => {
            ExecutionVersion::V10
        }
        "tsquery_ops" | "tsvector_ops" => ExecutionVersion::V15,
        "btree_hstore_ops" | "citext_ops" | "oid_ops" => ExecutionVersion::V16,
        _ => ExecutionVersion::V1,
    }
}

/// Whether the class of a type goes without saying: it is the first one for it.
pub(super) fn is_usual(class: &str, data_type: DataType, method: IndexMethod) -> bool {
    if method == IndexMethod::Inverted {
        return class != "jsonb_path_ops" && takes(class, data_type, method);
    }
    let usual = CLASSES.iter().find(|(_, of)| *of == data_type.family());
    usual.is_some_and(|(known, _)| *known == class)
}

fn takes(class: &str, data_type: DataType, method: IndexMethod) -> bool {
    if method == IndexMethod::Inverted {
        return match data_type {
            DataType::TsVector => class == "tsvector_ops",
            DataType::Hstore => class == "gin_hstore_ops",
            DataType::Array(_) => class == "array_ops",
            DataType::Jsonb => matches!(class, "jsonb_ops" | "jsonb_path_ops"),
            _ => false,
        };
    }
    CLASSES.iter().any(|(known, of)| *known == class && *of == data_type.family())
}

/// Refuses operator classes that do not take the types of the parts.
///
/// # Errors
/// `42804`
pub(super) fn check_classes(
    catalog: &Catalog,
    table: &Table,
    index: &Index,
    computed: Option<&ComputedIndex>,
) -> Result<(), SqlError> {
    let types = CompositeTypes::new(catalog);
    for (place, order) in index.details.written.iter().enumerate() {
        let Some(class) = &order.class else { continue };
        let data_type = match computed {
            Some(computed) => computed.keys[place].data_type(),
            None => types.base_of(table.columns[usize::from(index.columns[place])].data_type),
        };
        if !takes(class, data_type, index.method) {
            let shown = types.name_of(data_type);
            let message = format!("operator class \"{class}\" does not accept data type {shown}");
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        }
    }
    Ok(())
}
