//! PostgreSQL's types that only its catalogue has, as the nearest of ours.

use super::build::array_type;
use super::last;
use sqlparser::ast::{ArrayElemTypeDef, DataType, Ident, ObjectName};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;

/// Types whose values are names of objects.
const OBJECT_TYPES: &[&str] = &["regclass", "regtype", "regproc", "regprocedure", "regnamespace", "regrole"];

/// The name that a type is written with, without a schema and in lower case.
pub(crate) fn type_name(data_type: &DataType) -> Option<String> {
    match data_type {
        DataType::Custom(name, modifiers) if modifiers.is_empty() => {
            let name = last(name)?;
            Some(match name.quote_style {
                Some(_) => format!("\"{}\"", name.value),
                None => name.value.to_ascii_lowercase(),
            })
        }
        DataType::Regclass => Some("regclass".to_string()),
        other => Some(other.to_string().to_ascii_lowercase()),
    }
}

pub(crate) fn object_type_name(data_type: &DataType) -> Option<&'static str> {
    let name = type_name(data_type)?;
    OBJECT_TYPES.iter().find(|known| **known == name.trim_matches('"')).copied()
}

/// The function that finds an object by its name.
pub(crate) fn finder(object_type: &str) -> &'static str {
    match object_type {
        "regclass" => "entente_regclass",
        "regtype" => "entente_regtype",
        "regnamespace" => "entente_regnamespace",
        "regrole" => "entente_regrole",
        _ => "entente_regproc",
    }
}

/// The type `oid`.
pub(crate) fn oid() -> DataType {
    DataType::Custom(ObjectName::from(vec![Ident::new("oid")]), Vec::new())
}

/// The type as our SQL knows it: what it does not know stays.
pub(crate) fn plain_type(data_type: &mut DataType) {
    if let DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) = data_type {
        match object_type_name(element) {
            Some(_) => **element = DataType::Text,
            None => plain_type(element),
        }
        return;
    }
    let DataType::Custom(name, modifiers) = data_type else { return };
    let Some(plain) = last(name) else { return };
    let lower = plain.value.to_ascii_lowercase();
    let known = match lower.as_str() {
        "name" | "cstring" | "sql_identifier" | "character_data" | "yes_or_no" | "aclitem" | "inet"
        | "pg_lsn" | "pg_node_tree" => DataType::Text,
        "char" if plain.quote_style.is_some() => DataType::Text,
        "xid" | "cid" | "cardinal_number" => DataType::Integer(None),
        "int2vector" => array_type(DataType::SmallInt(None)),
        "oidvector" => array_type(oid()),
        // `pg_catalog.int4`
        _ if name.0.len() > 1 => {
            let modifiers =
                if modifiers.is_empty() { String::new() } else { format!("({})", modifiers.join(",")) };
            let written = format!("{lower}{modifiers}");
            let parsed = Parser::new(&PostgreSqlDialect {})
                .try_with_sql(&written)
                .and_then(|mut parser| parser.parse_data_type());
            match parsed {
                Ok(parsed) => parsed,
                Err(_) => return,
            }
        }
        _ => return,
    };
    *data_type = known;
}
