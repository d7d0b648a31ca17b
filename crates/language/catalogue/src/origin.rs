//! Where the columns of a result come from, by the numbers that `pg_class` and `pg_attribute` show.

use crate::partitions::{view_identifier, view_numbers};
use crate::relations::RELATIONS;
use crate::wire::type_modifier;
use types::{Catalog, ColumnOrigin, DataType};

/// What clients are told of a column of a result that is a column of a table or view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ColumnFacts {
    /// `pg_class.oid` of the table or view.
    pub relation: i32,
    /// `pg_attribute.attnum`.
    pub attribute: i16,
    /// `pg_attribute.atttypmod`, where the type of the values does not have it.
    pub modifier: Option<i32>,
}

impl ColumnFacts {
    /// Of a column of the ledger, or of a temporary table; `None` where the catalog does not have it.
    pub fn of(origin: &ColumnOrigin, catalog: &Catalog) -> Option<ColumnFacts> {
        let attribute = i16::try_from(origin.column + 1).ok()?;
        if let Some(table) = catalog.tables.get(&origin.relation) {
            let column = table.columns.get(origin.column)?;
            // Values have all digits of a second.
            let is_rounded = matches!(column.data_type, DataType::Rounded(..));
            let modifier = is_rounded.then(|| type_modifier(column.data_type));
            return Some(ColumnFacts { relation: table.id.object_identifier(), attribute, modifier });
        }
        let place = catalog.views.keys().position(|name| *name == origin.relation)?;
        let relation = view_identifier(*view_numbers(catalog).get(place)?);
        Some(ColumnFacts { relation, attribute, modifier: None })
    }

    /// Of a column of the catalogue itself.
    pub(crate) fn of_catalogue(origin: &ColumnOrigin) -> Option<ColumnFacts> {
        let relation = RELATIONS.iter().find(|known| known.name == origin.relation && known.oid != 0)?;
        let attribute = i16::try_from(origin.column + 1).ok()?;
        Some(ColumnFacts { relation: relation.oid, attribute, modifier: None })
    }
}
