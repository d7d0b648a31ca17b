//! What queries ask about their session.

use crate::cell::{Cell, NamedRow};
use crate::objects::{DATABASE_OID, Objects, TEMPORARY};
use std::borrow::Cow;
use std::sync::Arc;
use types::session_format::SessionFormat;
use types::{AdvisoryKey, AdvisoryMode, DATABASE};

/// A setting of the session.
#[derive(Clone, Debug, Default)]
pub struct SettingFacts {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Its value: a number in its unit.
    pub setting: String,
    /// Its value as SHOW shows it.
    pub shown: String,
    /// What its numbers count.
    pub unit: Option<&'static str>,
    /// What it belongs to.
    pub category: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// When PostgreSQL lets it be changed.
    pub context: &'static str,
    /// `bool`, `integer`, `real`, `enum` or `string`.
    pub vartype: &'static str,
    /// Who has said its value.
    pub source: &'static str,
    /// The smallest number; empty where it has no numbers.
    pub least: String,
    /// The greatest number.
    pub most: String,
    /// The words that it has the choice of.
    pub choices: &'static [&'static str],
    /// What it is where nobody says anything.
    pub boot: &'static str,
    /// What RESET makes of it.
    pub reset: String,
    /// Whether `pg_settings` has it.
    pub is_listed: bool,
}

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
    /// Its settings.
    pub settings: Vec<SettingFacts>,
    /// In which values are read and written.
    pub format: SessionFormat,
    /// The version that the server says it has.
    pub server_version: String,
    /// Its prepared statements, by name.
    pub prepared: Vec<PreparedFacts>,
    /// The channels that it listens on.
    pub listening: Vec<String>,
    /// The advisory locks that sessions hold, where they are asked for.
    pub advisory_locks: Vec<LockFacts>,
}

/// A row of `pg_locks`.
#[derive(Clone, Debug)]
pub struct LockFacts {
    /// What is locked.
    pub key: AdvisoryKey,
    /// How.
    pub mode: AdvisoryMode,
    /// Name of the organisation whose session has the lock, and the session.
    pub holder: String,
    /// The session's process number, where it is the one that asks.
    pub process: Option<i32>,
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
        let number = |number: &String| Some(number.clone()).filter(|number| !number.is_empty());
        let row = |known: &SettingFacts| {
            let choices: Vec<String> = known.choices.iter().map(|choice| (*choice).to_string()).collect();
            vec![
                ("name", Cell::from(known.name.to_string())),
                ("setting", known.setting.clone().into()),
                ("unit", known.unit.into()),
                ("category", known.category.into()),
                ("short_desc", known.about.into()),
                ("context", known.context.into()),
                ("vartype", known.vartype.into()),
                ("source", known.source.into()),
                ("min_val", number(&known.least).into()),
                ("max_val", number(&known.most).into()),
                ("enumvals", if choices.is_empty() { Cell::Null } else { Cell::Texts(choices) }),
                ("boot_val", known.boot.into()),
                ("reset_val", known.reset.clone().into()),
                ("pending_restart", false.into()),
            ]
        };
        self.settings.iter().filter(|known| known.is_listed).map(row).collect()
    }

    /// The rows of what `current_setting` looks into: all settings, by their names in lower case.
    pub(crate) fn shown_rows(&self) -> Vec<NamedRow> {
        let row = |known: &SettingFacts| {
            vec![("name", Cell::from(known.name.to_ascii_lowercase())), ("shown", known.shown.clone().into())]
        };
        self.settings.iter().map(row).collect()
    }

    /// The setting of this name, in any case.
    pub(crate) fn setting(&self, name: &str) -> Option<&SettingFacts> {
        self.settings.iter().find(|known| known.name.eq_ignore_ascii_case(name))
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

    /// The rows of `pg_locks`.
    pub(crate) fn lock_rows(&self) -> Vec<NamedRow> {
        let row = |known: &LockFacts| {
            let (class, object, kind) = known.key.shown();
            vec![
                ("locktype", Cell::from("advisory")),
                ("database", DATABASE_OID.into()),
                ("classid", class.into()),
                ("objid", object.into()),
                ("objsubid", i32::from(kind).into()),
                ("virtualtransaction", known.holder.clone().into()),
                ("pid", known.process.map_or(Cell::Null, Cell::from)),
                ("mode", known.mode.name().into()),
                ("granted", true.into()),
                ("fastpath", false.into()),
            ]
        };
        self.advisory_locks.iter().map(row).collect()
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
        let application = self.setting("application_name").map(|known| known.shown.clone());
        vec![vec![
            ("datid", DATABASE_OID.into()),
            ("datname", DATABASE.into()),
            ("pid", self.process.into()),
            ("usename", self.user.clone().into()),
            ("application_name", application.into()),
            ("state", "active".into()),
            ("backend_type", "client backend".into()),
        ]]
    }
}
