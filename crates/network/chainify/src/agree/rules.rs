//! The rules by which an organisation agrees to scripts, and the file that they stand in.

use super::template::Template;
use crate::address::{Address, Kind};
use crate::dialect::Dialect;
use portable::ChangeKind;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use types::split_catalog_name;

/// The file in a node's folder that has them.
pub const AGREE_FILE: &str = "agree.toml";
/// A file with the password of their database alone, in the node's folder.
const AGREE_PASSWORD: &str = "agree.password";

/// What `agree.toml` says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgreeConfig {
    /// Where the rules' queries are asked, without the password; that of `node.toml` where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// A file with the password alone, from the node's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_file: Option<PathBuf>,
    /// The rules.
    #[serde(default, rename = "rule", skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<AgreeRule>,
}

/// When an organisation agrees to changes of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgreeRule {
    /// The table of the ledger.
    pub table: String,
    /// What the rule is for; everything where nothing is said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<RuleChange>,
    /// A query that gives true where the organisation agrees. `:column` stands for the value that the script gives a column.
    pub query: String,
    /// What others are told where it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A kind of change, as a rule names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleChange {
    /// INSERT, COPY
    Insert,
    /// UPDATE
    Update,
    /// DELETE
    Delete,
}

impl RuleChange {
    fn is(self, kind: ChangeKind) -> bool {
        match self {
            RuleChange::Insert => kind == ChangeKind::Insert,
            RuleChange::Update => kind == ChangeKind::Update,
            RuleChange::Delete => kind == ChangeKind::Delete,
        }
    }
}

impl fmt::Display for AgreeRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on: Vec<String> = self.on.iter().map(|on| format!("{on:?}").to_lowercase()).collect();
        let on = if on.is_empty() { "every change".to_string() } else { on.join(", ") };
        write!(f, "{} ({on}): {}", self.table, self.query)?;
        self.reason.as_ref().map_or(Ok(()), |reason| write!(f, "  -- else: {reason}"))
    }
}

impl AgreeConfig {
    /// Reads the file of a node's folder; `None`: there is none.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(folder: &Path) -> Result<Option<AgreeConfig>, String> {
        let path = folder.join(AGREE_FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("{}: {error}", path.display())),
        };
        toml::from_str(&text).map(Some).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Writes it as a whole: a node that reads meanwhile finds the old or the new one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), String> {
        let path = folder.join(AGREE_FILE);
        let unfinished = path.with_extension("toml.unfinished");
        std::fs::write(&unfinished, toml::to_string(self).expect("plain fields"))
            .and_then(|()| std::fs::rename(&unfinished, &path))
            .map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Names the database that its queries are asked in; its password goes into a file that its owner alone can read.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn choose_database(&mut self, folder: &Path, address: &Address) -> Result<(), String> {
        let path = folder.join(AGREE_PASSWORD);
        let wrong = |error: std::io::Error| format!("{}: {error}", path.display());
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(wrong(error)),
            _ => {}
        }
        self.database = Some(address.to_string());
        self.password_file = None;
        if let Some(password) = &address.password {
            let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
            file.and_then(|mut file| file.write_all(password.as_bytes())).map_err(wrong)?;
            self.password_file = Some(AGREE_PASSWORD.into());
        }
        Ok(())
    }

    /// The database that its queries are asked in. `own`: that of `node.toml`.
    ///
    /// # Errors
    /// There is none, or its address or password cannot be read.
    pub fn address(&self, folder: &Path, own: Option<&Address>) -> Result<Address, String> {
        let Some(url) = &self.database else {
            let missing = "the rules have no database: name one with `entente agree --database`";
            return own.cloned().ok_or_else(|| missing.to_string());
        };
        let mut address: Address = url.parse().map_err(|error| format!("{AGREE_FILE}: {error}"))?;
        if let Some(file) = &self.password_file {
            let path = folder.join(file);
            let text =
                std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            address.password = Some(text.trim_end_matches(['\n', '\r']).to_string());
        }
        Ok(address)
    }
}

/// A rule that was read.
#[derive(Debug)]
pub(super) struct ReadRule {
    pub(super) rule: AgreeRule,
    pub(super) template: Template,
    /// Its query cannot be asked about a table of constants.
    pub(super) stands_alone: AtomicBool,
}

impl ReadRule {
    pub(super) fn new(kind: Kind, rule: &AgreeRule) -> Result<ReadRule, String> {
        let template = Template::parse(Dialect::from(kind), &rule.query)
            .map_err(|error| format!("the rule for table {}: {error}", rule.table))?;
        Ok(ReadRule { rule: rule.clone(), template, stands_alone: AtomicBool::new(false) })
    }

    pub(super) fn is_for(&self, table: &str, kind: ChangeKind) -> bool {
        split_catalog_name(&self.rule.table) == split_catalog_name(table)
            && (self.rule.on.is_empty() || self.rule.on.iter().any(|on| on.is(kind)))
    }
}
