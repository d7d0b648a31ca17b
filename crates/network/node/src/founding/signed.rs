//! The draft that an organisation has signed, which it keeps.

use super::SIGNED_FILE;
use crate::NodeError;
use crate::files::read;
use std::path::Path;
use types::{Charter, Difference, FoundingError};

/// The draft that was signed from a folder, if one was.
pub(super) fn read_signed(folder: &Path) -> Result<Option<Charter>, NodeError> {
    let path = folder.join(SIGNED_FILE);
    match path.exists() {
        true => super::read_draft(&path).map(Some),
        false => Ok(None),
    }
}

/// Differences for people.
pub(super) fn shown(differences: &[Difference], first: &str, second: &str) -> String {
    differences.iter().map(|one| one.named(first, second)).collect::<Vec<_>>().join("; ")
}

/// What a charter's file says, whoever has signed it, to be compared with another one and for nothing else.
///
/// # Errors
/// It is no charter.
pub fn read_unchecked(path: &Path) -> Result<Charter, NodeError> {
    toml::from_str(&read(path)?).map_err(|error| {
        let reason = error.to_string().trim_end().to_string();
        NodeError::Founding {
            path: path.to_path_buf(),
            error: FoundingError::Malformed { what: "a charter", reason },
        }
    })
}

/// In what a charter that is refused differs from the one that was signed from a folder; `None`: in nothing, or nobody knows.
pub(crate) fn differs_from_signed(folder: &Path, charter: &Path) -> Option<NodeError> {
    let signed = read_signed(folder).ok()??;
    let differences = signed.differences(&read_unchecked(charter).ok()?);
    let differs = || NodeError::Altered {
        path: charter.to_path_buf(),
        differences: shown(&differences, "signed was", "there is"),
    };
    (!differences.is_empty()).then(differs)
}
