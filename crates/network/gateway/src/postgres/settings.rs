//! The settings of a session.

use super::connection::MessageLevel;
use super::options::settings_of;
use super::setting::{self, Effect, Setting, check_length, find, parse_switch};
use super::transaction_command::Modes;
use crate::database::Formats;
use crate::limits::IDLE_IN_TRANSACTION_MAX;
use catalogue::SettingFacts;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;
use types::session_format::{DateStyle, SessionFormat};
use types::text_search::Configuration;
use types::time_zone::TimeZone;
use types::{
    AnswerAt, Catalog, DataType, ExecutionVersion, OutputColumn, SearchPath, SqlError, SqlState,
    StatementResult, Value, parse_search_path,
};

/// `42704` no such setting.
const UNDEFINED_OBJECT: SqlState = SqlState(*b"42704");
/// `01000` a warning.
pub(super) const WARNING: SqlState = SqlState(*b"01000");

/// Where names are looked for where nobody says it.
const SEARCH_PATH: &str = "\"$user\", public";

/// The height of the session's last commit; clients are told it after every commit.
pub(super) const LAST_HEIGHT: &str = "entente.last_height";
/// When a commit is answered: when a quorum attests what it came to, or when it is recorded here.
const ADVISORY_LEASE: &str = "entente.advisory_lease";
const ANSWER_AT: &str = "entente.answer_at";
/// Reads wait until the node has applied this height.
const MIN_HEIGHT: &str = "entente.min_height";
/// Whether transactions may only read that do not say it themselves.
pub(super) const DEFAULT_READ_ONLY: &str = "default_transaction_read_only";
/// Whether the transaction may only read: shown for the next one outside of a block.
pub(super) const TRANSACTION_READ_ONLY: &str = "transaction_read_only";
const SESSION_AUTHORIZATION: &str = "session_authorization";

/// Settings that are modes of the open transaction block.
const OF_BLOCK: [&str; 2] = ["transaction_deferrable", TRANSACTION_READ_ONLY];
/// Settings that say in which form values are.
const OF_FORMAT: [&str; 5] = ["DateStyle", TEXT_SEARCH, "extra_float_digits", "IntervalStyle", "TimeZone"];
const TEXT_SEARCH: &str = "default_text_search_config";
/// What drivers say of themselves in every startup message. A value that cannot be had leaves the setting as it is, and the client
/// is told that: a driver must be able to connect.
const SAID_BY_DRIVERS: [&str; 4] = ["client_encoding", "DateStyle", "IntervalStyle", "TimeZone"];

/// Columns of SHOW ALL.
pub(super) const ALL_COLUMNS: [&str; 3] = ["name", "setting", "description"];

/// A setting's name as SHOW shows it.
pub(super) fn shown_name(name: &str) -> &str {
    find(name).map_or(name, |known| known.name)
}

/// What the node and the access of the client say of a session.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Circumstances {
    /// When commits are answered where nobody says it.
    pub(super) answer_at: AnswerAt,
    /// As [`crate::Database::formats`].
    pub(super) formats: Formats,
    /// Sessions that there may be at the same time.
    pub(super) sessions_max: usize,
    /// Connections may be encrypted.
    pub(super) has_certificate: bool,
    /// The user is an administrator.
    pub(super) is_administrator: bool,
}

/// What changing a setting means for the client.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changed {
    /// Name and new value of a setting that clients are told about.
    pub(super) report: Option<(&'static str, String)>,
    /// A warning: the value was accepted and has no effect.
    pub(super) warning: Option<String>,
}

/// The settings of one session.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    /// Values as they are kept ([`Setting::read`]), by name.
    changed: BTreeMap<String, String>,
    /// What RESET goes back to: what the startup message said.
    initial: BTreeMap<String, String>,
    /// Height of the session's last commit.
    last_height: u64,
    /// What the database knows.
    formats: Formats,
    format: SessionFormat,
    /// The database that the client has asked for, where it has another name than the user: clients that are told of no database ask for
    /// the one with the user's name.
    database: Option<String>,
}

impl Settings {
    /// The settings that a startup message asks for, and what the client is to be warned of. Those of `options` are set as SET does; the
    /// message's own parameters come behind them, with another word for what drivers say on their own ([`SAID_BY_DRIVERS`]).
    ///
    /// # Errors
    /// `42704` for a setting that there is not; what SET says, and `42601` where `options` cannot be read.
    pub(super) fn new(
        user: &str,
        parameters: &[(String, String)],
        circumstances: Circumstances,
    ) -> Result<(Settings, Vec<String>), SqlError> {
        let Circumstances { answer_at, formats, sessions_max, has_certificate, is_administrator } =
            circumstances;
        let (mut settings, mut warnings) = (Settings { formats, ..Settings::default() }, Vec::new());
        let on = |on: bool| if on { "on" } else { "off" }.to_string();
        for (name, value) in [
            (ANSWER_AT, answer_at.name().to_string()),
            (SESSION_AUTHORIZATION, user.to_string()),
            ("is_superuser", on(is_administrator)),
            ("max_connections", sessions_max.to_string()),
            ("ssl", on(has_certificate)),
        ] {
            settings.changed.insert(name.to_string(), value);
        }
        for (_, options) in parameters.iter().filter(|(name, _)| name == "options") {
            for (name, value) in settings_of(options)? {
                warnings.extend(settings.set(&name, Some(&value))?.warning);
            }
        }
        for (name, value) in parameters.iter().filter(|(name, _)| !is_of_the_protocol(name)) {
            match (settings.set(name, Some(value)), find(name)) {
                (Err(_), Some(known)) if SAID_BY_DRIVERS.contains(&known.name) => {}
                (set, _) => drop(set?),
            }
        }
        let database = parameters.iter().find(|(name, _)| name == "database");
        settings.database =
            database.map(|(_, database)| database.clone()).filter(|database| database != user);
        settings.initial = settings.changed.clone();
        Ok((settings, warnings))
    }

    /// The value of a setting, as SHOW shows it.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        match find(name) {
            Some(known) => Some(known.shown(&self.kept(known))),
            None => self.changed.get(&name.to_ascii_lowercase()).cloned(),
        }
    }

    /// The value as it is kept.
    fn kept(&self, known: &Setting) -> Cow<'_, str> {
        if known.name == LAST_HEIGHT {
            return self.last_height.to_string().into();
        }
        match self.changed.get(known.name) {
            Some(value) => value.into(),
            None if OF_BLOCK.contains(&known.name) => match find(&format!("default_{}", known.name)) {
                Some(default) => self.kept(default).into_owned().into(),
                None => known.default.into(),
            },
            None => known.default.into(),
        }
    }

    fn kept_of(&self, name: &str) -> Cow<'_, str> {
        find(name).map_or(Cow::Borrowed(""), |known| self.kept(known))
    }

    /// What the catalogue shows of all settings, those of applications among them.
    pub(super) fn facts(&self) -> Vec<SettingFacts> {
        let known = setting::all().iter().map(|known| self.facts_of(known));
        let own = self.changed.iter().filter(|(name, _)| find(name).is_none());
        let own = own.map(|(name, value)| SettingFacts {
            name: name.clone().into(),
            setting: value.clone(),
            shown: value.clone(),
            category: "Customized Options",
            context: "user",
            vartype: "string",
            source: "session",
            is_listed: true,
            reset: String::new(),
            ..SettingFacts::default()
        });
        known.chain(own).collect()
    }

    fn facts_of(&self, known: &'static Setting) -> SettingFacts {
        let setting = self.kept(known).into_owned();
        let initial = self.initial.get(known.name).map_or(known.default, String::as_str);
        let source = match (setting == known.default, setting == initial) {
            (true, _) => "default",
            (false, true) if known.effect == Effect::Server => "configuration file",
            (false, true) => "client",
            (false, false) => "session",
        };
        let (least, most) = known.bounds();
        SettingFacts {
            name: known.name.into(),
            shown: known.shown(&setting),
            setting,
            unit: known.unit,
            category: known.category,
            about: known.about,
            context: known.context,
            vartype: known.vartype(),
            source,
            least,
            most,
            choices: known.choices(),
            boot: known.default,
            reset: initial.to_string(),
            is_listed: known.is_listed(),
        }
    }

    /// Name and value of the settings that a client is told at the start.
    pub(super) fn reported(&self) -> Vec<(&'static str, String)> {
        let reported = setting::all().iter().filter(|known| known.reported);
        reported.map(|known| (known.name, known.shown(&self.kept(known)))).collect()
    }

    /// In which values are read and written.
    pub(super) fn format(&self) -> SessionFormat {
        self.format
    }

    /// The time that a statement may take, where it is limited.
    pub(super) fn statement_timeout(&self) -> Option<Duration> {
        self.duration("statement_timeout")
    }

    /// The time that a statement waits for a lock, where it is limited.
    pub(super) fn lock_timeout(&self) -> Option<Duration> {
        self.duration("lock_timeout")
    }

    /// For how many milliseconds advisory locks of the session stay without being renewed.
    pub(super) fn advisory_lease_ms(&self) -> u32 {
        self.kept_of(ADVISORY_LEASE).parse().unwrap_or(types::limits::ADVISORY_LEASE_MS_MIN)
    }

    /// Whether queries are to be refused whose rows policies would restrict.
    pub(super) fn refuses_row_security(&self) -> bool {
        !self.is_on("row_security")
    }

    /// The time that a transaction block may be left without a message.
    pub(super) fn idle_in_transaction(&self) -> Duration {
        let longest = IDLE_IN_TRANSACTION_MAX;
        self.duration("idle_in_transaction_session_timeout").map_or(longest, |time| time.min(longest))
    }

    /// The schemas in which a session looks for names. `$user` stands for the one that has the user's name, where there is one. Where
    /// nothing is said, and the database that was asked for has the name of a schema, it is this one, from execution version 11 on.
    pub(super) fn search_path(&self, user: &str, catalog: &Catalog, version: ExecutionVersion) -> SearchPath {
        let is_default = version >= ExecutionVersion::V11 && self.kept_of("search_path") == SEARCH_PATH;
        if is_default
            && let Some(schema) = self.database.as_ref().filter(|name| catalog.schemas.contains_key(*name))
        {
            return SearchPath::new([schema.clone()]).unwrap_or_default();
        }
        let names = parse_search_path(&self.kept_of("search_path")).unwrap_or_default();
        let resolved = names.into_iter().filter_map(|name| match name.as_str() {
            "$user" => catalog.has_schema(user).then(|| user.to_string()),
            _ => Some(name),
        });
        // A list that is too long has not been accepted.
        SearchPath::new(resolved).unwrap_or_default()
    }

    fn duration(&self, name: &str) -> Option<Duration> {
        let milliseconds: u64 = self.kept_of(name).parse().ok()?;
        (milliseconds > 0).then(|| Duration::from_millis(milliseconds))
    }

    /// The time that a session may be left without a message outside of transaction blocks, where it is limited.
    pub(super) fn idle_session(&self) -> Option<Duration> {
        self.duration("idle_session_timeout")
    }

    /// From which level on notices and warnings are sent.
    pub(super) fn message_level(&self) -> MessageLevel {
        MessageLevel::from_name(&self.kept_of("client_min_messages"))
    }

    /// Whether the bodies of functions are checked when they are created.
    pub(super) fn checks_bodies(&self) -> bool {
        self.is_on("check_function_bodies")
    }

    /// When commits are answered.
    pub(super) fn answer_at(&self) -> AnswerAt {
        AnswerAt::from_name(&self.kept_of(ANSWER_AT)).unwrap_or_default()
    }

    /// The height that reads wait for.
    pub(super) fn min_height(&self) -> u64 {
        self.changed.get(MIN_HEIGHT).and_then(|height| height.parse().ok()).unwrap_or_default()
    }

    /// The session's last commit stands at this height. Gives what the client is told.
    pub(super) fn committed_at(&mut self, height: u64) -> Option<(&'static str, String)> {
        let newer = height > self.last_height;
        self.last_height = self.last_height.max(height);
        newer.then(|| (LAST_HEIGHT, height.to_string()))
    }

    /// Whether a setting that is on or off is on.
    pub(super) fn is_on(&self, name: &str) -> bool {
        self.kept_of(name) == "on"
    }

    /// A transaction block begins: what its mode is shows in settings of its own.
    pub(super) fn begin_block(&mut self) {
        for name in OF_BLOCK {
            self.changed.remove(name);
            self.set_in_block(name, self.is_on(name));
        }
    }

    /// The mode of the open block changes.
    pub(super) fn set_in_block(&mut self, name: &str, on: bool) {
        self.changed.insert(name.to_string(), if on { "on" } else { "off" }.to_string());
    }

    /// Everything back to what it was before; returns what clients must be told.
    pub(super) fn restore(&mut self, before: Settings) -> Vec<(&'static str, String)> {
        let reported = self.reported();
        *self = Settings { last_height: self.last_height, ..before };
        self.reported().into_iter().filter(|setting| !reported.contains(setting)).collect()
    }

    /// Changes a setting; `None`: to its default.
    ///
    /// # Errors
    /// `42704` for one that there is not, `22023` for what is no value of it, `55P02` where a session cannot change it, `0A000`
    /// where the value asks for what there is not.
    pub(super) fn set(&mut self, name: &str, value: Option<&str>) -> Result<Changed, SqlError> {
        let Some(known) = find(name) else { return self.set_custom(name, value) };
        if OF_FORMAT.contains(&known.name) {
            return self.set_format(known, value);
        }
        let current = self.kept(known).into_owned();
        let read = match value {
            Some(value) => self.read(known, value),
            None => Ok(self.initial.get(known.name).cloned().unwrap_or_else(|| known.default.to_string())),
        };
        if matches!(known.effect, Effect::Fixed | Effect::Server) {
            return match read {
                Ok(value) if value == current => Ok(Changed::default()),
                _ => Err(known.cannot_be_changed()),
            };
        }
        let value = read?;
        if known.effect == Effect::Only && value != current && !known.has_listed(&value) {
            return Err(known.has_only(&known.shown(&current), &known.shown(&value)));
        }
        // What these are is said by the block; every transaction is serializable, which holds what the other levels ask for.
        if OF_BLOCK.contains(&known.name) || known.name == "transaction_isolation" {
            return Ok(Changed::default());
        }
        let report = known.reported.then(|| (known.name, known.shown(&value)));
        self.changed.insert(known.name.to_string(), value);
        Ok(Changed { report, warning: None })
    }

    /// A value as it is kept.
    fn read(&self, known: &Setting, value: &str) -> Result<String, SqlError> {
        let kept = known.read(value)?;
        match known.name {
            "client_encoding" => {
                let letters = value.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
                match letters.to_ascii_lowercase().as_str() {
                    "utf8" | "unicode" | "sqlascii" | "" => Ok("UTF8".to_string()),
                    _ => Err(known.invalid(value).hint("clients of Entente speak UTF8")),
                }
            }
            "search_path" => {
                SearchPath::new(parse_search_path(value)?)?;
                Ok(kept)
            }
            "role" | SESSION_AUTHORIZATION => {
                let own = self.changed.get(SESSION_AUTHORIZATION).map_or("", String::as_str);
                let is_none = known.name == "role" && value.eq_ignore_ascii_case("none");
                match is_none || value == own {
                    true => Ok(if is_none { "none".to_string() } else { kept }),
                    false => Err(SqlError::unsupported(format_args!(
                        "acting as \"{value}\" in the session of \"{own}\""
                    ))
                    .hint("Connect under that name.")),
                }
            }
            _ => Ok(kept),
        }
    }

    /// Changes a part of [`SessionFormat`]; where the database knows no other than the first one, to that.
    fn set_format(&mut self, known: &'static Setting, value: Option<&str>) -> Result<Changed, SqlError> {
        let is_free =
            self.formats >= if known.name == TEXT_SEARCH { Formats::All } else { Formats::WithoutTextSearch };
        let initial = self.initial.get(known.name).cloned();
        let current = self.kept(known).into_owned();
        let value = match value {
            Some(value) if is_free => {
                check_length(known.name, value)?;
                let changed = self.format.changed_by(known.name, value)?;
                match known.name {
                    // All numbers above 0 do the same, and each is shown.
                    "extra_float_digits" => value.trim().to_string(),
                    name => changed.and_then(|format| format.setting(name)).unwrap_or_default(),
                }
            }
            Some(value) => first_format(known, value)?,
            None => initial.unwrap_or_else(|| known.default.to_string()),
        };
        if is_free {
            self.format = self.format.changed_by(known.name, &value)?.unwrap_or(self.format);
        } else if value != current && known.name != "extra_float_digits" {
            let name = known.name;
            let warning = format!(
                "parameter \"{name}\" stays \"{current}\": this network's statements know no other value"
            );
            return Ok(Changed { report: None, warning: Some(warning) });
        }
        if value == current {
            return Ok(Changed::default());
        }
        self.changed.insert(known.name.to_string(), value.clone());
        Ok(Changed { report: known.reported.then_some((known.name, value)), warning: None })
    }

    /// Settings with a dot in their name belong to applications.
    fn set_custom(&mut self, name: &str, value: Option<&str>) -> Result<Changed, SqlError> {
        let name = name.to_ascii_lowercase();
        if !name.contains('.') {
            let message = format!("unrecognized configuration parameter \"{name}\"");
            return Err(SqlError::new(UNDEFINED_OBJECT, message));
        }
        let value = value.unwrap_or_default();
        check_length(&name, value)?;
        if !self.changed.contains_key(&name) && self.changed.len() >= 200 {
            let message = "a session has at most 200 settings".to_string();
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        self.changed.insert(name, value.to_string());
        Ok(Changed::default())
    }

    /// Every setting back to what it was at the start; returns what clients must be told.
    pub(super) fn reset_all(&mut self) -> Vec<(&'static str, String)> {
        let before = self.reported();
        let of_block = |name: &str| Some((name.to_string(), self.changed.get(name)?.clone()));
        let kept: Vec<(String, String)> = OF_BLOCK.into_iter().filter_map(of_block).collect();
        self.changed = self.initial.clone();
        self.changed.extend(kept);
        self.format = self.format_as_set();
        self.reported().into_iter().filter(|setting| !before.contains(setting)).collect()
    }

    /// What the settings say of it.
    fn format_as_set(&self) -> SessionFormat {
        OF_FORMAT.iter().fold(SessionFormat::default(), |format, name| {
            format.changed_by(name, &self.kept_of(name)).ok().flatten().unwrap_or(format)
        })
    }

    /// The rows of SHOW.
    pub(super) fn show(&self, name: Option<&str>) -> Result<StatementResult, SqlError> {
        let text = |name: &str| OutputColumn { name: name.to_string(), data_type: DataType::Text(None) };
        let Some(name) = name else {
            let row = |known: &Setting| {
                let value = known.shown(&self.kept(known));
                vec![Value::text(known.name), Value::text(value), Value::text(known.about)]
            };
            let rows = setting::all().iter().filter(|known| known.is_listed()).map(row).collect();
            return Ok(StatementResult {
                tag: "SHOW".into(),
                columns: ALL_COLUMNS.map(text).to_vec(),
                rows,
                notices: Vec::new(),
            });
        };
        let value = self.get(name).ok_or_else(|| {
            SqlError::new(UNDEFINED_OBJECT, format!("unrecognized configuration parameter \"{name}\""))
        })?;
        let columns = vec![text(shown_name(name))];
        let rows = vec![vec![Value::text(value)]];
        Ok(StatementResult { tag: "SHOW".into(), columns, rows, notices: Vec::new() })
    }
}

/// Whether a parameter of a startup message is no setting.
fn is_of_the_protocol(name: &str) -> bool {
    matches!(name, "user" | "database" | "options" | "replication") || name.starts_with("_pq_.")
}

/// What a setting says that stands for a mode of the open transaction block; `None` where it is no such setting.
///
/// # Errors
/// `22023`
pub(super) fn modes_of_setting(name: &str, value: Option<&str>) -> Result<Option<Modes>, SqlError> {
    let Some(known) = find(name).filter(|known| OF_BLOCK.contains(&known.name)) else { return Ok(None) };
    let on = Some(value.map_or(Ok(false), |value| parse_switch(known.name, value))?);
    Ok(Some(match known.name {
        TRANSACTION_READ_ONLY => Modes { read_only: on, ..Modes::default() },
        _ => Modes { deferrable: on, ..Modes::default() },
    }))
}

/// The value as SHOW shows it, where it means what sessions begin with.
fn first_format(known: &Setting, value: &str) -> Result<String, SqlError> {
    check_length(known.name, value)?;
    let is_first = match known.name {
        "TimeZone" => TimeZone::of_setting(value).is_ok_and(|zone| zone.is_always_utc()),
        "DateStyle" => DateStyle::default().changed_by(value) == Ok(DateStyle::default()),
        "IntervalStyle" => value.eq_ignore_ascii_case(known.default),
        TEXT_SEARCH => Configuration::named(value).is_ok_and(|named| named == Configuration::default()),
        _ => false,
    };
    Ok(if is_first { known.default } else { value }.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::setting::CANT_CHANGE_RUNTIME_PARAM;

    fn started(parameters: &[(&str, &str)]) -> Result<(Settings, Vec<String>), SqlError> {
        let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        let parameters: Vec<_> = parameters.iter().map(owned).collect();
        let circumstances =
            Circumstances { formats: Formats::All, sessions_max: 100, ..Circumstances::default() };
        Settings::new("ada", &parameters, circumstances)
    }

    #[test]
    fn a_startup_message_sets_what_its_options_and_its_parameters_say() {
        let options = "-c search_path=a,b --application-name=x -c my.own=1 -c TimeZone=Asia/Tokyo";
        let parameters = [("user", "ada"), ("application_name", "y"), ("options", options), ("_pq_.z", "1")];
        let (mut settings, warnings) = started(&parameters).expect("known settings");
        assert_eq!(settings.get("search_path").as_deref(), Some("a,b"));
        assert_eq!(settings.get("my.own").as_deref(), Some("1"));
        assert_eq!(settings.get("application_name").as_deref(), Some("y"), "said outside of options");
        assert_eq!((warnings, settings.get("TimeZone").as_deref()), (Vec::new(), Some("Asia/Tokyo")));
        settings.set("search_path", Some("c")).expect("a list");
        settings.set("search_path", None).expect("back to what the startup said");
        assert_eq!(settings.get("search_path").as_deref(), Some("a,b"));
        // Values that cannot be.
        let parameters = [("TimeZone", "Nowhere"), ("client_encoding", "LATIN1")];
        assert_eq!(started(&parameters).expect("left alone").0.get("TimeZone").as_deref(), Some("UTC"));
    }

    #[test]
    fn a_session_of_a_database_finds_the_schema_of_its_name() {
        let path = |settings: &Settings, schemas: &[&str]| {
            let mut catalog = Catalog::default();
            for schema in schemas {
                let known = types::Schema { owner: None, members: None };
                catalog.schemas.insert((*schema).to_string(), known);
            }
            settings.search_path("ada", &catalog, ExecutionVersion::V11).schemas().to_vec()
        };
        let (settings, _) = started(&[("user", "ada"), ("database", "ada")]).expect("known settings");
        assert_eq!(
            path(&settings, &["ada"]),
            ["ada", "public"],
            "as libpq asks where nobody names a database"
        );
        let (mut settings, _) = started(&[("user", "ada"), ("database", "shop")]).expect("known settings");
        assert_eq!(path(&settings, &["shop", "ada"]), ["shop"]);
        assert_eq!(path(&settings, &["ada"]), ["ada", "public"], "there is no such schema");
        settings.set("search_path", Some("ada")).expect("a list");
        assert_eq!(path(&settings, &["shop", "ada"]), ["ada"]);
        settings.set("search_path", None).expect("back to the default");
        assert_eq!(path(&settings, &["shop", "ada"]), ["shop"]);
        settings.set("search_path", Some("ada")).expect("a list");
        settings.reset_all();
        assert_eq!(path(&settings, &["shop"]), ["shop"], "as poolers do between two clients");
        let mut catalog = Catalog::default();
        catalog.schemas.insert("shop".to_string(), types::Schema::default());
        assert!(settings.search_path("ada", &catalog, ExecutionVersion::V10).is_default());
    }

    #[test]
    fn a_session_has_the_format_that_is_set_where_there_are_any() {
        let (mut settings, _) = started(&[("TimeZone", "europe/berlin")]).expect("a zone");
        let berlin = TimeZone::of_setting("Europe/Berlin").expect("known");
        assert_eq!(
            (settings.format().zone, settings.get("timezone").as_deref()),
            (berlin, Some("Europe/Berlin"))
        );
        let changed = settings.set("time zone", Some("2")).expect("hours");
        assert_eq!(changed.report, Some(("TimeZone", "<+02>-02".to_string())));
        assert_eq!(settings.format().zone, TimeZone::Fixed(7_200));
        assert!(settings.set("timezone", Some("Nowhere")).is_err());
        assert_eq!(settings.format().zone, TimeZone::Fixed(7_200));
        settings.reset_all();
        assert_eq!(settings.format().zone, berlin);
        settings.set("timezone", Some("UTC")).expect("a zone");
        settings.set("timezone", None).expect("what the startup said");
        assert_eq!(settings.format().zone, berlin);
        let (mut settings, _) = Settings::new(
            "ada",
            &[("TimeZone".to_string(), "Asia/Tokyo".to_string())],
            Circumstances::default(),
        )
        .expect("left alone");
        assert!(settings.set("timezone", Some("Asia/Tokyo")).expect("a warning").warning.is_some());
        assert_eq!(
            (settings.format().zone, settings.get("timezone").as_deref()),
            (TimeZone::UTC, Some("UTC"))
        );
        assert_eq!(settings.set("timezone", Some("utc")), Ok(Changed::default()));
    }

    #[test]
    fn settings_of_the_planner_are_known_and_have_values_of_their_kind() {
        let (mut settings, _) = started(&[("user", "ada")]).expect("known settings");
        for (name, value, shown) in [
            ("enable_seqscan", "false", Some("off")),
            ("ENABLE_SORT", "1", Some("on")),
            ("enable_seqscan", "banana", None),
            ("random_page_cost", "1.1", Some("1.1")),
            ("random_page_cost", "x", None),
            ("random_page_cost", "-1", None),
            ("maintenance_work_mem", "1 GB", Some("1GB")),
            ("plan_cache_mode", "force_generic_plan", Some("force_generic_plan")),
        ] {
            let set = settings.set(name, Some(value));
            assert_eq!(set.is_ok(), shown.is_some(), "{name} = {value}");
            if let Some(shown) = shown {
                assert_eq!(settings.get(name).as_deref(), Some(shown), "{name} = {value}");
            }
        }
    }

    #[test]
    fn a_value_that_asks_for_what_there_is_not_is_refused() {
        let (mut settings, _) = started(&[("user", "ada")]).expect("known settings");
        for (name, value, state) in [
            ("standard_conforming_strings", "off", "0A000"),
            ("bytea_output", "escape", "0A000"),
            ("session_replication_role", "replica", "0A000"),
            ("default_tablespace", "fast", "22023"),
            ("lc_monetary", "de_DE.UTF-8", "22023"),
            ("role", "somebody", "0A000"),
            ("session_authorization", "somebody", "0A000"),
            ("server_version", "16", "55P02"),
            ("wal_level", "logical", "55P02"),
            ("fsync", "off", "55P02"),
            ("transaction_isolation", "chaos", "22023"),
            ("data_directory", "/", "42704"),
        ] {
            let before = settings.get(name);
            let error = settings.set(name, Some(value)).expect_err(name);
            assert_eq!(error.state.to_string(), state, "{name}: {error}");
            assert_eq!(settings.get(name), before, "{name}");
        }
        for (name, value, shown) in [
            ("standard_conforming_strings", "true", "on"),
            ("bytea_output", "HEX", "hex"),
            ("default_tablespace", "pg_default", "pg_default"),
            ("lc_messages", "en_US.UTF-8", "en_US.UTF-8"),
            ("role", "ada", "ada"),
            ("role", "NONE", "none"),
            ("session_authorization", "ada", "ada"),
            ("transaction_isolation", "read committed", "serializable"),
            ("default_transaction_isolation", "READ COMMITTED", "read committed"),
            ("max_connections", "100", "100"),
        ] {
            settings.set(name, Some(value)).unwrap_or_else(|error| panic!("{name} = {value}: {error}"));
            assert_eq!(settings.get(name).as_deref(), Some(shown), "{name} = {value}");
        }
    }

    #[test]
    fn the_catalogue_is_told_where_a_value_comes_from() {
        let parameters = [("application_name", "psql"), ("my.own", "1"), ("work_mem", "1MB")];
        let (mut settings, _) = started(&parameters).expect("known settings");
        settings.set("work_mem", Some("8MB")).expect("a size");
        let facts = settings.facts();
        let one =
            |name: &str| facts.iter().find(|known| known.name == name).unwrap_or_else(|| panic!("{name}"));
        let shown = |name: &str| (one(name).setting.as_str(), one(name).shown.as_str(), one(name).source);
        assert_eq!(shown("work_mem"), ("8192", "8MB", "session"));
        assert_eq!((one("work_mem").reset.as_str(), one("work_mem").boot), ("1024", "4096"));
        assert_eq!(shown("application_name"), ("psql", "psql", "client"));
        assert_eq!(shown("max_connections"), ("100", "100", "configuration file"));
        assert_eq!(shown("my.own"), ("1", "1", "session"));
        assert_eq!(shown("statement_timeout"), ("0", "0", "default"));
        assert!(!one("is_superuser").is_listed);
    }

    #[test]
    fn a_startup_message_with_what_cannot_be_set_is_refused() {
        for (name, value, state) in [
            ("options", "-c nonsense=1", UNDEFINED_OBJECT),
            ("nonsense", "1", UNDEFINED_OBJECT),
            ("options", "-c statement_timeout=soon", SqlState::INVALID_PARAMETER_VALUE),
            ("options", "-c server_version=16", CANT_CHANGE_RUNTIME_PARAM),
            ("options", "-c search_path", SqlState::SYNTAX_ERROR),
            ("options", "-B 100", SqlState::SYNTAX_ERROR),
            ("default_transaction_read_only", "maybe", SqlState::INVALID_PARAMETER_VALUE),
            ("statement_timeout", "soon", SqlState::INVALID_PARAMETER_VALUE),
            ("standard_conforming_strings", "off", SqlState::FEATURE_NOT_SUPPORTED),
            ("server_version", "16", CANT_CHANGE_RUNTIME_PARAM),
        ] {
            assert_eq!(started(&[(name, value)]).expect_err(value).state, state, "{value}");
        }
    }

    #[test]
    fn settings_change_warn_or_refuse() {
        let mut settings = started(&[("application_name", "psql")]).expect("a known setting").0;
        assert_eq!(settings.get("APPLICATION_NAME").as_deref(), Some("psql"));
        let changed = settings.set("application_name", Some("other")).expect("free text");
        assert_eq!(changed.report, Some(("application_name", "other".to_string())));
        settings.set("application_name", None).expect("back to what the startup said");
        assert_eq!(settings.get("application_name").as_deref(), Some("psql"));
        assert_eq!(settings.set("datestyle", Some("ISO")).expect("the same"), Changed::default());
        let changed = settings.set("datestyle", Some("DMY")).expect("an order");
        assert_eq!(changed.report, Some(("DateStyle", "ISO, DMY".to_string())));
        assert_eq!(
            settings.set("datestyle", Some("ISO, x")).expect_err("no style").state,
            SqlState::INVALID_PARAMETER_VALUE
        );
        assert!(settings.set("server_version", Some("16")).is_err());
        assert!(settings.set("client_encoding", Some("LATIN1")).is_err());
        assert_eq!(settings.set("nonsense", Some("1")).expect_err("unknown").state, UNDEFINED_OBJECT);
        settings.set("statement_timeout", Some("2min")).expect("a duration");
        assert_eq!(settings.statement_timeout(), Some(std::time::Duration::from_secs(120)));
        assert!(settings.set("statement_timeout", Some("soon")).is_err());
    }

    #[test]
    fn the_search_path_knows_the_schema_of_the_user() {
        let path = |settings: &Settings, catalog: &Catalog| {
            settings.search_path("ada", catalog, ExecutionVersion::CURRENT)
        };
        let (mut settings, mut catalog) = (Settings::default(), Catalog::default());
        assert!(path(&settings, &catalog).is_default());
        catalog.schemas.insert("ada".to_string(), types::Schema::default());
        assert_eq!(path(&settings, &catalog).schemas(), ["ada", "public"]);
        settings.set("search_path", Some("\"\"")).expect("no schema");
        assert!(path(&settings, &catalog).schemas().is_empty());
        settings.set("search_path", Some("a, \"B\"")).expect("a list");
        assert_eq!(path(&settings, &catalog).schemas(), ["a", "B"]);
        assert!(settings.set("search_path", Some("a b")).is_err());
    }

    #[test]
    fn commits_are_answered_when_the_session_or_the_node_says() {
        let circumstances = Circumstances { answer_at: AnswerAt::Recorded, ..Circumstances::default() };
        let (mut settings, _) = Settings::new("ada", &[], circumstances).expect("no parameters");
        assert_eq!(settings.answer_at(), AnswerAt::Recorded);
        settings.set("entente.answer_at", Some("Attested")).expect("a moment");
        assert_eq!(settings.answer_at(), AnswerAt::Attested);
        let refused = settings.set("entente.answer_at", Some("soon")).expect_err("no moment");
        assert_eq!(refused.state, SqlState::INVALID_PARAMETER_VALUE);
        assert_eq!(settings.get("entente.answer_at").as_deref(), Some("attested"));
        settings.set("entente.answer_at", None).expect("the node's");
        assert_eq!(settings.answer_at(), AnswerAt::Recorded);
    }

    #[test]
    fn heights_are_numbers_and_the_last_one_stays() {
        let mut settings = Settings::default();
        assert_eq!(settings.get("entente.min_height").as_deref(), Some("0"));
        settings.set("entente.min_height", Some("17")).expect("a height");
        assert_eq!(settings.min_height(), 17);
        assert!(settings.set("entente.min_height", Some("-1")).is_err());
        assert!(settings.set("entente.last_height", Some("9")).is_err());
        let before = settings.clone();
        assert_eq!(settings.committed_at(9), Some(("entente.last_height", "9".to_string())));
        assert_eq!(settings.committed_at(8), None);
        settings.set("application_name", Some("psql")).expect("free text");
        assert_eq!(settings.restore(before), [("application_name", String::new())]);
        assert_eq!(settings.get("entente.last_height").as_deref(), Some("9"));
    }

    #[test]
    fn a_block_may_be_idle_for_an_hour_at_most() {
        let mut settings = Settings::default();
        assert_eq!(settings.idle_in_transaction(), Duration::from_secs(600));
        for (value, seconds) in [("2s", 2), ("0", 3600), ("1d", 3600)] {
            settings.set("idle_in_transaction_session_timeout", Some(value)).expect("a duration");
            assert_eq!(settings.idle_in_transaction(), Duration::from_secs(seconds), "{value}");
        }
    }
}
