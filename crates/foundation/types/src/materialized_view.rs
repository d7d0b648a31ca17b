//! Materialized views: tables that hold the rows of a query.

use crate::View;
use borsh::{BorshDeserialize, BorshSerialize};

/// What a materialized view is besides a table.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct MaterializedView {
    /// The query, and what it depends on, under the table's name.
    pub view: View,
    /// Whether the table holds the rows of a CREATE or REFRESH. Others cannot be read.
    pub is_populated: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Catalog, RowSecurity, Table, TableId, decode_exactly, encode};
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::Arc;

    fn table(materialized: Option<MaterializedView>) -> Table {
        Table {
            id: TableId(7),
            name: "kept".to_string(),
            columns: Vec::new(),
            primary_key: Vec::new(),
            primary_key_name: "kept_pkey".to_string(),
            checks: Vec::new(),
            endorsement: None,
            row_security: RowSecurity::default(),
            partitioning: None,
            materialized: materialized.map(Arc::new),
        }
    }

    fn materialized(is_populated: bool) -> MaterializedView {
        let view = View {
            name: "kept".to_string(),
            columns: Vec::new(),
            query: "SELECT a FROM t".to_string(),
            relations: BTreeSet::from(["t".to_string()]),
            functions: BTreeSet::new(),
            check_option: None,
            triggers: BTreeMap::new(),
        };
        MaterializedView { view, is_populated }
    }

    #[test]
    fn tables_without_a_query_are_encoded_as_before_there_were_any() {
        let plain = encode(&table(None));
        assert_eq!(plain.last(), Some(&0));
        for is_populated in [false, true] {
            let kept = table(Some(materialized(is_populated)));
            let bytes = encode(&kept);
            assert_eq!(bytes[..plain.len() - 1], plain[..plain.len() - 1]);
            assert_eq!(decode_exactly::<Table>(&bytes).expect("it round-trips"), kept);
            assert!((0..bytes.len()).all(|length| decode_exactly::<Table>(&bytes[..length]).is_err()));
        }
    }

    #[test]
    fn damaged_bytes_are_no_table() {
        let mut bytes = encode(&table(Some(materialized(true))));
        *bytes.last_mut().expect("it has bytes") = 2;
        assert!(decode_exactly::<Table>(&bytes).is_err());
        let mut plain = encode(&table(None));
        *plain.last_mut().expect("it has bytes") = 16;
        assert!(decode_exactly::<Table>(&plain).is_err());
    }

    #[test]
    fn its_query_is_one_of_the_catalog() {
        let kept = table(Some(materialized(true)));
        let mut catalog = Catalog::default();
        catalog.tables.insert(kept.name.clone(), Arc::new(kept));
        assert_eq!(
            catalog.queries().map(|view| view.query.as_str()).collect::<Vec<_>>(),
            ["SELECT a FROM t"]
        );
        catalog.queries_mut().for_each(|view| view.query.push_str(" LIMIT 1"));
        let (_, known) = catalog.materialized_view("kept").expect("it is one");
        assert_eq!(known.view.query, "SELECT a FROM t LIMIT 1");
    }
}
