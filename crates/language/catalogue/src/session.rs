//! What queries ask about their session.

use crate::cell::{Cell, NamedRow};
use crate::objects::{DATABASE_OID, Objects, TEMPORARY};
use std::sync::Arc;
use types::DATABASE;
use types::session_format::SessionFormat;

/// Settings that drivers ask for and nobody can change.
const FIXED: &[(&str, &str)] = &[
    ("block_size", "8192"),
    ("max_function_args", "100"),
    ("max_identifier_length", "63"),
    ("max_index_keys", "32"),
];

/// What a query may ask about its session.
#[derive(Clone, Debug, Default)]
pub struct SessionFacts {
    /// The user that it connected as.
    pub user: String,
    /// The role that it acts as; empty: the administrator of the node's organisation.
    pub role: String,
    /// Its process number.
    pub process: i32,
    /// Its search path, as far as there are such schemas.
    pub search_path: Vec<String>,
    /// Names and values of its settings.
    pub settings: Vec<(String, String)>,
    /// In which values are read and written.
    pub format: SessionFormat,
    /// The version that the server says it has.
    pub server_version: String,
    /// Its prepared statements, by name.
    pub prepared: Vec<PreparedFacts>,
}

/// A row of `pg_prepared_statements`.
#[derive(Clone, Debug)]
pub struct PreparedFacts {
    /// Its name.
    pub name: String,
    /// What the client has sent.
    pub statement: Arc<str>,
    /// When, in microseconds since 2000-01-01 00:00 UTC.
    pub prepared_at: i64,
    /// Object identifiers of the types of its parameters.
    pub parameter_types: Vec<u32>,
    /// Whether PREPARE has made it, and no message.
    pub from_sql: bool,
}

impl SessionFacts {
    /// The rows of `pg_settings`.
    pub(crate) fn setting_rows(&self) -> Vec<NamedRow> {
        let row = |(name, value): &(String, String)| {
            vec![
                ("name", Cell::from(name.clone())),
                ("setting", value.clone().into()),
                ("category", "Entente".into()),
                ("context", "user".into()),
                ("vartype", "string".into()),
                ("source", "session".into()),
                ("boot_val", value.clone().into()),
                ("reset_val", value.clone().into()),
                ("pending_restart", false.into()),
            ]
        };
        let fixed = FIXED.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        let fixed: Vec<_> =
            fixed.filter(|(name, _)| self.settings.iter().all(|(known, _)| known != name)).collect();
        self.settings.iter().chain(&fixed).map(row).collect()
    }

    /// The rows of `pg_prepared_statements`. Nothing is planned here, so that nothing is counted of plans.
    pub(crate) fn prepared_rows(&self) -> Vec<NamedRow> {
        let row = |known: &PreparedFacts| {
            vec![
                ("name", Cell::from(known.name.clone())),
                ("statement", Cell::from(&*known.statement)),
                ("prepare_time", Cell::Instant(known.prepared_at)),
                (
                    "parameter_types",
                    Cell::Integers(known.parameter_types.iter().map(|oid| i64::from(*oid)).collect()),
                ),
                ("from_sql", known.from_sql.into()),
                ("generic_plans", 0.into()),
                ("custom_plans", 0.into()),
            ]
        };
        self.prepared.iter().map(row).collect()
    }

    /// Where names without a schema are looked for: the schema of temporary tables, at place -1, `pg_catalog`, at place 0, and the
    /// schemas of the search path.
    pub(crate) fn search_path_rows(&self, objects: &Objects) -> Vec<NamedRow> {
        let find = |name: &str| objects.schemas.iter().find(|(known, _)| known == name);
        let known = self.search_path.iter().filter_map(|name| find(name));
        let temporary = objects.schemas.iter().find(|(_, oid)| *oid == TEMPORARY);
        let first = if temporary.is_some() { -1 } else { 0 };
        let all = temporary.into_iter().chain(find("pg_catalog")).chain(known);
        let row = |(place, (name, oid)): (i32, &(String, i32))| {
            vec![("place", place.into()), ("name", Cell::from(name.clone())), ("oid", (*oid).into())]
        };
        (first..).zip(all).map(row).collect()
    }

    /// The rows of `pg_stat_activity`: the session itself.
    pub(crate) fn activity(&self) -> Vec<NamedRow> {
        let application = self.settings.iter().find(|(name, _)| name == "application_name");
        vec![vec![
            ("datid", DATABASE_OID.into()),
            ("datname", DATABASE.into()),
            ("pid", self.process.into()),
            ("usename", self.user.clone().into()),
            ("application_name", application.map(|(_, value)| value.clone()).into()),
            ("state", "active".into()),
            ("backend_type", "client backend".into()),
        ]]
    }
}
