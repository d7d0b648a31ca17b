//! The folder with this node's votes: claimed for one member of one ledger, so that no other node votes from it.

use super::BftConfig;
use crate::OrderingError;
use std::path::Path;

/// Says whose folder it is.
const OWNER: &str = "owner";

/// Makes the folder this node's, or checks that it is already.
pub(super) fn claim(config: &BftConfig) -> Result<(), OrderingError> {
    let path = &config.storage;
    let failed =
        |error: std::io::Error| OrderingError::Storage { path: path.clone(), reason: error.to_string() };
    let owner = format!(
        "ledger {}\nnode key {}\n",
        config.charter.ledger(),
        config.charter.organisations[config.organisation].node_key
    );
    let file = path.join(OWNER);
    match std::fs::read_to_string(&file) {
        Ok(found) if found == owner => Ok(()),
        Ok(found) => {
            let line = |text: &str| text.trim().replace('\n', ", ");
            Err(OrderingError::OtherNode { path: path.clone(), expected: line(&owner), found: line(&found) })
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            if config.start > 0 {
                return Err(OrderingError::VotesLost { path: path.clone(), height: config.start });
            }
            std::fs::create_dir_all(path).map_err(failed)?;
            write(path, &file, &owner).map_err(failed)
        }
        Err(error) => Err(failed(error)),
    }
}

fn write(folder: &Path, file: &Path, owner: &str) -> std::io::Result<()> {
    let unfinished = file.with_extension("new");
    std::fs::write(&unfinished, owner)?;
    std::fs::File::open(&unfinished)?.sync_all()?;
    std::fs::rename(&unfinished, file)?;
    std::fs::File::open(folder)?.sync_all()
}
