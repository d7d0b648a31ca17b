//! Types that the ledger has made and that are no relations: enums.

use crate::cell::{Cell, NamedRow};
use crate::objects::{ROLE_OID, schema_identifier, shown_name};
use types::{Catalog, CompositeType, object_name, schema_of};

/// An enum as `pg_type` shows it.
#[derive(Clone, Debug)]
pub(crate) struct DefinedType {
    pub(crate) oid: i32,
    pub(crate) name: String,
    pub(crate) schema: i32,
    pub(crate) schema_name: String,
    /// The labels of an enum, in their order.
    pub(crate) labels: Vec<String>,
}

/// The functions that read and write values, as `pg_type` names them: input, output, receive, send.
const ENUM_FUNCTIONS: [i32; 4] = [3506, 3507, 3532, 3533];
const ARRAY_FUNCTIONS: [i32; 4] = [750, 751, 2400, 2401];
/// Rows of `pg_enum` have numbers of their own.
const FIRST_LABEL: i32 = 1_350_000_000;

impl DefinedType {
    /// `None` for a composite type.
    pub(crate) fn of(known: &CompositeType, catalog: &Catalog) -> Option<DefinedType> {
        let labels = known.enum_values()?.iter().map(|value| value.label.to_string()).collect();
        Some(DefinedType {
            oid: known.data_type().oid() as i32,
            name: object_name(&known.name).to_string(),
            schema: schema_identifier(catalog, schema_of(&known.name)),
            schema_name: schema_of(&known.name).to_string(),
            labels,
        })
    }

    /// Its name in the catalog.
    pub(crate) fn catalog_name(&self) -> String {
        types::catalog_name(&self.schema_name, &self.name)
    }

    /// Its name as definitions show it.
    pub(crate) fn shown_name(&self) -> String {
        shown_name(&self.catalog_name())
    }

    fn row(&self, oid: i32, name: String, functions: [i32; 4]) -> NamedRow {
        let [input, output, receive, send] = functions;
        vec![
            ("oid", oid.into()),
            ("typname", name.into()),
            ("typnamespace", self.schema.into()),
            ("typowner", ROLE_OID.into()),
            ("typisdefined", true.into()),
            ("typdelim", ",".into()),
            ("typalign", "i".into()),
            ("typinput", input.into()),
            ("typoutput", output.into()),
            ("typreceive", receive.into()),
            ("typsend", send.into()),
            ("typtypmod", Cell::Integer(-1)),
        ]
    }

    fn rows(&self) -> [NamedRow; 2] {
        let mut own = self.row(self.oid, self.name.clone(), ENUM_FUNCTIONS);
        own.extend([
            ("typlen", Cell::Integer(4)),
            ("typbyval", true.into()),
            ("typtype", "e".into()),
            ("typcategory", "E".into()),
            ("typstorage", "p".into()),
            ("typarray", (self.oid + 1).into()),
        ]);
        let mut array = self.row(self.oid + 1, format!("_{}", self.name), ARRAY_FUNCTIONS);
        array.extend([
            ("typlen", Cell::Integer(-1)),
            ("typbyval", false.into()),
            ("typtype", "b".into()),
            ("typcategory", "A".into()),
            ("typstorage", "x".into()),
            ("typelem", self.oid.into()),
            ("typsubscript", 6179.into()),
        ]);
        [own, array]
    }
}

/// Their rows in `pg_type`, and those of their arrays.
pub(crate) fn type_rows(known: &[DefinedType]) -> Vec<NamedRow> {
    known.iter().flat_map(DefinedType::rows).collect()
}

/// `pg_enum`. The order is a number from 1, however the labels came.
pub(crate) fn labels(known: &[DefinedType]) -> Vec<NamedRow> {
    let labels = known.iter().flat_map(|one| (1..).zip(&one.labels).map(move |label| (one, label)));
    let row = |(number, (one, (order, label))): (i32, (&DefinedType, (i32, &String)))| {
        vec![
            ("oid", (FIRST_LABEL + number).into()),
            ("enumtypid", one.oid.into()),
            ("enumsortorder", order.into()),
            ("enumlabel", label.clone().into()),
        ]
    };
    (0..).zip(labels).map(row).collect()
}
