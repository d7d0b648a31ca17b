//! The relations of the catalogue: those of PostgreSQL 15 with their columns, and some of our own that functions read.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use types::{Catalog, Column as TableColumn, DataType, Deferral, ElementType, Index, Table, TableId};

/// One line per relation: name, object identifier, kind, columns of its primary key, and columns with their types, where
/// `!` says that they are never NULL. `name` and `"char"` are texts of which clients are told so; the vectors are the nearest of our types.
const DEFINITIONS: &str = include_str!("relations.txt");

/// The history of the ledger, and relations that no client asks for: what functions answer with.
const OWN: &str = "\
entente.blocks 16001 v height height:int8! time:timestamptz transactions:int4 committed:int4 aborted:int4 proposer:text digest:text previous:text receipts_root:text state_digest:text bytes:int8 certified_height:int8
entente.transactions 16002 v height,index height:int8! index:int4! id:text organisation:text client:text request:text call:text outcome:text sqlstate:text message:text
entente.nodes 16003 v - organisation:text address:text node_key:text is_this_node:bool height:int8 state_digest:text
entente.proposals 16004 v number number:int8! organisation:text statement:text state:text approved_by:text[] rejected_by:text[] missing:text height:int8 expires_at:int8 decided_height:int8 transaction:text sqlstate:text message:text
entente.charters 16005 v number number:int8! effective_height:int8 governance:text organisations:text[] charter:text
entente.organisations 16006 v number number:int4! name:text member:bool root_key:text node_key:text node_key_expires:int8 address:text gateway:text
entente.databases 16007 v - kind:text address:text tables:text height:int8 lag_blocks:int8 state:text problem:text rows_written:int8 strange_rows:int8 last_strange:text scans:int8 scanned_rows:int8 scan_ms:int8
pg_catalog.entente_definition 0 i kind,object,part kind:text! object:oid! part:int4! definition:text!
pg_catalog.entente_keyword 0 i word word:text! catcode:text! catdesc:text! barelabel:bool! baredesc:text!
pg_catalog.entente_setting 0 i name name:text! shown:text!
pg_catalog.entente_search_path 0 i place place:int4! name:text! oid:oid!
pg_catalog.entente_receipt_proof 0 i id id:text! proof:text sqlstate:text message:text hint:text
pg_catalog.entente_row_proof 0 i asked asked:text! proof:text sqlstate:text message:text hint:text
pg_catalog.entente_privilege 0 i role,kind,object,attribute,privilege role:text! kind:text! object:oid! attribute:int4! privilege:text!
";

/// A column of a relation.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) data_type: DataType,
    pub(crate) not_null: bool,
}

/// A relation of the catalogue.
#[derive(Clone, Debug)]
pub(crate) struct SystemRelation {
    /// As it is found: without the schema `pg_catalog`, and with the others.
    pub(crate) name: &'static str,
    /// As `pg_class` lists it; 0: not at all.
    pub(crate) oid: i32,
    /// As `pg_class` says: `r` or `v`.
    pub(crate) kind: &'static str,
    /// Ordinals.
    pub(crate) key: Vec<u16>,
    pub(crate) columns: Vec<Column>,
}

impl SystemRelation {
    fn parse(line: &'static str) -> Option<SystemRelation> {
        let mut words = line.split(' ');
        let name = words.next()?;
        let (oid, kind, key) = (words.next()?.parse().ok()?, words.next()?, words.next()?);
        let columns: Vec<Column> = words.map(Column::parse).collect::<Option<_>>()?;
        let ordinal = |name: &str| columns.iter().position(|column| column.name == name);
        let key = match key {
            "-" => Vec::new(),
            key => key.split(',').map(|name| Some(ordinal(name)? as u16)).collect::<Option<_>>()?,
        };
        Some(SystemRelation {
            name: name.strip_prefix("pg_catalog.").unwrap_or(name),
            oid,
            kind,
            key,
            columns,
        })
    }

    /// Whether it is in `information_schema`.
    pub(crate) fn is_information(&self) -> bool {
        self.name.starts_with("information_schema.")
    }

    /// Its name in its schema.
    pub(crate) fn plain_name(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(_, name)| name)
    }

    /// Whether it is of the ledger's history.
    pub(crate) fn is_history(&self) -> bool {
        self.name.starts_with("entente.")
    }

    fn table(&self, id: TableId) -> Table {
        let column = |column: &Column| TableColumn {
            name: column.name.to_string(),
            data_type: column.data_type,
            not_null: column.not_null,
            default: None,
            generated: false,
        };
        Table {
            id,
            name: self.name.to_string(),
            columns: self.columns.iter().map(column).collect(),
            primary_key: self.key.clone(),
            primary_key_name: format!("{}_pkey", self.name),
            checks: Vec::new(),
            endorsement: None,
            row_security: types::RowSecurity::default(),
            partitioning: None,
            materialized: None,
        }
    }
}

impl Column {
    fn parse(word: &'static str) -> Option<Column> {
        let (name, rest) = word.split_once(':')?;
        let (data_type, not_null) = rest.strip_suffix('!').map_or((rest, false), |plain| (plain, true));
        let data_type = match data_type {
            "int2" => DataType::SmallInt,
            "int4" => DataType::Integer,
            "oid" => DataType::Oid,
            "int8" => DataType::BigInt,
            "bool" => DataType::Boolean,
            "text" => DataType::Text(None),
            "name" => DataType::NAME,
            "char" => DataType::LETTER,
            "varchar" => DataType::VARCHAR,
            "varchar(3)" => DataType::Text(Some(3)),
            "float4" => DataType::Real,
            "float8" => DataType::Double,
            "numeric" => DataType::Numeric(None),
            "timestamptz" => DataType::TimestampTz,
            "interval" => DataType::Interval,
            "bytea" => DataType::Bytea,
            "int2[]" => DataType::Array(ElementType::new(DataType::SmallInt)?),
            "int4[]" => DataType::Array(ElementType::new(DataType::Integer)?),
            "oid[]" => DataType::Array(ElementType::new(DataType::Oid)?),
            "text[]" => DataType::Array(ElementType::new(DataType::Text(None))?),
            _ => return None,
        };
        Some(Column { name, data_type, not_null })
    }
}

/// The relation that is found by an id, too.
pub(crate) const TRANSACTIONS: &str = "entente.transactions";

/// All of them. The one at a position has the number after it as a table.
pub(crate) static RELATIONS: LazyLock<Vec<SystemRelation>> =
    LazyLock::new(|| DEFINITIONS.lines().chain(OWN.lines()).filter_map(SystemRelation::parse).collect());

/// PostgreSQL's own relations.
pub(crate) fn described() -> impl Iterator<Item = &'static SystemRelation> {
    RELATIONS.iter().filter(|relation| relation.oid != 0 && !relation.is_history())
}

/// Whether the catalogue has a relation of this name, without the schema `pg_catalog`.
pub fn is_relation(name: &str) -> bool {
    static NAMES: LazyLock<BTreeMap<&'static str, ()>> =
        LazyLock::new(|| RELATIONS.iter().map(|relation| (relation.name, ())).collect());
    NAMES.contains_key(name)
}

/// The relations as tables: those that `is_wanted` says of their names.
pub(crate) fn tables(is_wanted: impl Fn(&str) -> bool) -> Catalog {
    let mut catalog = Catalog { next_table: RELATIONS.len() as u32 + 1, ..Catalog::default() };
    for (relation, number) in RELATIONS.iter().zip(1..) {
        let table = relation.table(TableId(number));
        if relation.name == TRANSACTIONS && is_wanted(TRANSACTIONS) {
            let column = table.ordinal("id").map(|ordinal| ordinal as u16);
            let index = Index {
                number: catalog.next_table,
                name: "transactions_id".to_string(),
                columns: column.into_iter().collect(),
                unique: false,
                constraint: false,
                details: Default::default(),
                deferral: Deferral::Never,
                primary: false,
                method: types::IndexMethod::Ordered,
            };
            catalog.next_table += 1;
            catalog.indexes.insert(table.id, vec![index]);
        }
        if is_wanted(relation.name) {
            catalog.tables.insert(relation.name.to_string(), Arc::new(table));
        }
    }
    catalog
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_relation() {
        assert_eq!(RELATIONS.len(), DEFINITIONS.lines().count() + OWN.lines().count());
        assert!(
            is_relation("pg_class") && is_relation("information_schema.tables") && !is_relation("tables")
        );
    }
}
