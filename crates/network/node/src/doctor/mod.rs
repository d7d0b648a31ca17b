//! What is wrong with a node, and what to do: for `entente doctor` and `entente node --check`. Reads the node's folder, the system and
//! other nodes; changes nothing, whether the node runs or not.
//!
//! ```text
//!  Subject::read: the folder's files, each by itself ─┬─▶ files, settings, charter, keys, certificate, disk, system   check()
//!                                                     ├─▶ ports                                                       check()
//!                                                     └─▶ members, clocks: other nodes are asked                       examine()
//! ```

mod answer;
mod certificate;
mod charter;
mod clocks;
mod disk;
mod encryption;
mod files;
mod finding;
mod keys;
mod members;
mod past;
mod ports;
mod settings;
mod subject;
mod system;
#[cfg(test)]
mod tests;

pub use finding::{Finding, Level};

use crate::NodeError;
use finding::Findings;
use std::path::Path;
use subject::Subject;

/// Everything that can be checked on the node's machine, without asking anybody. A node starts if there is no problem.
pub fn check(folder: &Path) -> Vec<Finding> {
    let mut findings = Findings::default();
    checked(&Subject::read(folder), &mut findings);
    findings.0
}

/// The same, and what other nodes say.
///
/// # Errors
/// What keeps this program from asking.
pub fn examine(folder: &Path) -> Result<Vec<Finding>, NodeError> {
    let (subject, mut findings) = (Subject::read(folder), Findings::default());
    checked(&subject, &mut findings);
    members::check(&subject, &mut findings)?;
    Ok(findings.0)
}

fn checked(subject: &Subject, findings: &mut Findings) {
    files::check(subject, findings);
    settings::check(subject, findings);
    charter::check(subject, findings);
    keys::check(subject, findings);
    certificate::check(subject, findings);
    disk::check(subject, findings);
    system::check(subject, findings);
    ports::check(subject, findings);
}
