//! What a check came to.

use serde::Serialize;
use std::fmt;

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Ok,
    /// The node works, and somebody should see to it.
    Warning,
    /// The node does not start, or does not do its part.
    Problem,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Level::Ok => "ok",
            Level::Warning => "warning",
            Level::Problem => "problem",
        })
    }
}

/// What one check found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// Which check.
    pub check: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What was found.
    pub found: String,
    /// What to do, where it is not as it should be.
    pub advice: Option<String>,
}

/// What was found so far.
#[derive(Default)]
pub(super) struct Findings(pub(super) Vec<Finding>);

impl Findings {
    pub(super) fn ok(&mut self, check: &'static str, found: impl Into<String>) {
        self.0.push(Finding { check, level: Level::Ok, found: found.into(), advice: None });
    }

    pub(super) fn warning(
        &mut self,
        check: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) {
        let (level, advice) = (Level::Warning, Some(advice.into()));
        self.0.push(Finding { check, level, found: found.into(), advice });
    }

    pub(super) fn problem(
        &mut self,
        check: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) {
        let (level, advice) = (Level::Problem, Some(advice.into()));
        self.0.push(Finding { check, level, found: found.into(), advice });
    }

    /// Whether a check has found nothing but what is as it should be.
    pub(super) fn is_well(&self, check: &str) -> bool {
        self.0.iter().all(|finding| finding.check != check || finding.level == Level::Ok)
    }
}
