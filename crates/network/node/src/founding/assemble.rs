use super::signed::shown;
use super::{named, read_draft, read_signature};
use crate::NodeError;
use crate::files::{Readers, replace};
use std::path::{Path, PathBuf};
use types::Charter;

/// Puts signatures into a draft, or into a charter that has some already, and writes what comes of it into a file. Gives it; who
/// is missing, it says itself.
///
/// A file that is there is kept, unless it is the same charter with fewer signatures.
///
/// # Errors
/// A signature that does not fit, or another charter in the place of the file; nothing is written then.
pub fn assemble(draft: &Path, signatures: &[PathBuf], out: &Path) -> Result<Charter, NodeError> {
    let mut charter = read_draft(draft)?;
    for path in signatures {
        charter.add_signature(&read_signature(path)?).map_err(named(path))?;
    }
    if out.exists() {
        let there = read_draft(out)?;
        let (expected, found) = (there.ledger(), charter.ledger());
        if expected != found {
            let differences = shown(&there.differences(&charter), "there is", "the new one has");
            return Err(NodeError::OtherCharter { path: out.to_path_buf(), expected, found, differences });
        }
        for before in there.given_signatures() {
            charter.add_signature(&before).map_err(named(out))?;
        }
    }
    replace(out, &charter.to_toml(), Readers::All)?;
    Ok(charter)
}
