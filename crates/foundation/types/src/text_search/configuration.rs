//! Which words of a text count, and as what.

use crate::{SqlError, SqlState};

/// What a text is read with: PostgreSQL's configurations of these names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Configuration {
    /// Every word counts, in small letters.
    Simple,
    /// English words by their stems, without those that say nothing.
    #[default]
    English,
}

impl Configuration {
    /// All.
    pub const ALL: [Configuration; 2] = [Configuration::Simple, Configuration::English];

    /// The configuration of this name, which may have its schema in front.
    ///
    /// # Errors
    /// `42704`
    pub fn named(name: &str) -> Result<Configuration, SqlError> {
        let small = name.trim().to_ascii_lowercase();
        let plain = small.strip_prefix("pg_catalog.").unwrap_or(&small);
        let known = Configuration::ALL.into_iter().find(|known| known.name() == plain.trim_matches('"'));
        known.ok_or_else(|| {
            let shown: String = name.chars().take(64).collect();
            let message = format!("text search configuration \"{shown}\" does not exist");
            SqlError::new(SqlState::UNDEFINED_OBJECT, message).hint("There are simple and english.")
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Configuration::Simple => "simple",
            Configuration::English => "english",
        }
    }
}
