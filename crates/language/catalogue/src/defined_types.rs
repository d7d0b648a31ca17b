//! Types that the ledger has made and that are no relations: enums and domains.

use crate::cell::{Cell, NamedRow};
use crate::fixed;
use crate::objects::{ROLE_OID, schema_identifier, shown_name, without_parentheses};
use crate::wire::{type_length, type_modifier};
use types::{Catalog, CompositeType, Domain, object_name, schema_of};

/// An enum or a domain as `pg_type` shows it.
#[derive(Clone, Debug)]
pub(crate) struct DefinedType {
    pub(crate) oid: i32,
    pub(crate) name: String,
    pub(crate) schema: i32,
    pub(crate) schema_name: String,
    /// The labels of an enum, in their order.
    pub(crate) labels: Vec<String>,
    /// What a domain is.
    pub(crate) domain: Option<DomainObject>,
}

/// A domain.
#[derive(Clone, Debug)]
pub(crate) struct DomainObject {
    /// Object identifier of the type that its values are of, and what `typtypmod` says of that.
    pub(crate) base: i32,
    pub(crate) modifier: i32,
    pub(crate) length: i16,
    pub(crate) not_null: bool,
    pub(crate) default: Option<String>,
    /// Names and definitions of its CHECKs.
    pub(crate) checks: Vec<(String, String)>,
}

/// The functions that read and write values, as `pg_type` names them: input, output, receive, send.
const ENUM_FUNCTIONS: [i32; 4] = [3506, 3507, 3532, 3533];
const DOMAIN_FUNCTIONS: [i32; 4] = [0, 0, 0, 0];
const ARRAY_FUNCTIONS: [i32; 4] = [750, 751, 2400, 2401];
/// Rows of `pg_enum` have numbers of their own.
const FIRST_LABEL: i32 = 1_350_000_000;
/// So have the CHECKs of domains.
const FIRST_CHECK: i32 = 1_360_000_000;

impl DefinedType {
    /// `None` for a composite type.
    pub(crate) fn of(known: &CompositeType, catalog: &Catalog) -> Option<DefinedType> {
        let labels = known.enum_values().unwrap_or_default().iter();
        let labels = labels.map(|value| value.label.to_string()).collect();
        if known.is_composite() {
            return None;
        }
        Some(DefinedType {
            oid: known.data_type().oid() as i32,
            name: object_name(&known.name).to_string(),
            schema: schema_identifier(catalog, schema_of(&known.name)),
            schema_name: schema_of(&known.name).to_string(),
            labels,
            domain: known.as_domain().map(DomainObject::of),
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

    fn rows(&self) -> Vec<NamedRow> {
        if let Some(domain) = &self.domain {
            let mut own = self.row(self.oid, self.name.clone(), DOMAIN_FUNCTIONS);
            own.retain(|(name, _)| *name != "typtypmod");
            own.extend([
                ("typlen", Cell::Integer(i64::from(domain.length))),
                ("typtype", "d".into()),
                ("typcategory", "U".into()),
                ("typstorage", fixed::storage(domain.base, domain.length).into()),
                ("typnotnull", domain.not_null.into()),
                ("typbasetype", domain.base.into()),
                ("typtypmod", Cell::Integer(i64::from(domain.modifier))),
                ("typdefault", Cell::from(domain.default.clone())),
            ]);
            return vec![own];
        }
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
        vec![own, array]
    }
}

impl DomainObject {
    fn of(domain: &Domain) -> DomainObject {
        let check = |check: &types::Check| {
            (check.name.clone(), format!("CHECK ({})", without_parentheses(&check.condition)))
        };
        DomainObject {
            base: domain.base.oid() as i32,
            modifier: type_modifier(domain.base),
            length: type_length(domain.base),
            not_null: domain.not_null,
            default: domain.default.clone(),
            checks: domain.checks.iter().map(check).collect(),
        }
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

/// Object identifier of a CHECK of a domain.
fn check_oid(known: &DefinedType, number: i32) -> i32 {
    FIRST_CHECK + (known.oid % 1_000_000) * 100 + number
}

/// The CHECKs of domains in `pg_constraint`.
pub(crate) fn constraints(known: &[DefinedType]) -> Vec<NamedRow> {
    let checks = known.iter().flat_map(|one| {
        let checks = one.domain.iter().flat_map(|domain| &domain.checks);
        (0..).zip(checks).map(move |check| (one, check))
    });
    let row = |(one, (number, (name, _))): (&DefinedType, (i32, &(String, String)))| {
        vec![
            ("oid", check_oid(one, number).into()),
            ("conname", name.clone().into()),
            ("connamespace", one.schema.into()),
            ("contype", "c".into()),
            ("convalidated", true.into()),
            ("contypid", one.oid.into()),
            ("confupdtype", " ".into()),
            ("confdeltype", " ".into()),
            ("confmatchtype", " ".into()),
            ("conislocal", true.into()),
        ]
    };
    checks.map(row).collect()
}

/// The definitions of these, by their object identifiers.
pub(crate) fn check_definitions(known: &DefinedType) -> impl Iterator<Item = (i32, &String)> {
    let checks = known.domain.iter().flat_map(|domain| &domain.checks);
    (0..).zip(checks).map(move |(number, (_, definition))| (check_oid(known, number), definition))
}
