//! The folder with this node's votes: claimed for one member of one ledger, so that no other node votes from it.

use crate::OrderingError;
use crypto::{PublicKey, SecretKey};
use std::path::{Path, PathBuf};
use types::Charters;

/// Says whose folder it is.
const OWNER: &str = "owner";
/// Stands beside the folder and says that there was one: who has lost it has voted before.
const CLAIMED: &str = "claimed";

/// Stands beside the folder and says that somebody else has voted with this node's key.
const OTHER_VOTER: &str = "other_voter";

/// Whose folder it is to be.
pub(crate) struct Claim<'a> {
    pub folder: &'a Path,
    pub charters: &'a Charters,
    pub node_key: &'a SecretKey,
    /// Height of the node's ledger.
    pub start: u64,
}

/// Makes the folder this node's, or checks that it is already.
pub(crate) fn claim(claim: &Claim<'_>) -> Result<(), OrderingError> {
    let path = &claim.folder.to_path_buf();
    let failed =
        |error: std::io::Error| OrderingError::Storage { path: path.clone(), reason: error.to_string() };
    let owner = format!("ledger {}\nnode key {}\n", claim.charters.ledger(), claim.node_key.public_key());
    let (file, claimed) = (path.join(OWNER), path.with_extension(CLAIMED));
    let beside = beside(path);
    if let Some(found) = other_voter_of(path, &claim.node_key.public_key()).map_err(failed)? {
        return Err(OrderingError::OtherVoter { path: other_voter(path), found });
    }
    match std::fs::read_to_string(&file) {
        Ok(found) if found == owner => write(&beside, &claimed, &owner).map_err(failed),
        Ok(found) if replaces(claim, &found) => {
            write(path, &file, &owner).and_then(|()| write(&beside, &claimed, &owner)).map_err(failed)
        }
        Ok(found) => {
            let line = |text: &str| text.trim().replace('\n', ", ");
            Err(OrderingError::OtherNode { path: path.clone(), expected: line(&owner), found: line(&found) })
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            // Only a key that comes after the one which was here has not voted.
            let voted = std::fs::read_to_string(&claimed).is_ok_and(|found| !replaces(claim, &found));
            if voted || claim.start > 0 && may_have_voted(claim) {
                return Err(OrderingError::VotesLost { path: path.clone(), height: claim.start });
            }
            std::fs::create_dir_all(path).map_err(failed)?;
            write(path, &file, &owner).map_err(failed)?;
            write(&beside, &claimed, &owner).map_err(failed)
        }
        Err(error) => Err(failed(error)),
    }
}

fn beside(folder: &Path) -> PathBuf {
    folder.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// The file that says that somebody else has voted with this node's key.
pub(crate) fn other_voter(folder: &Path) -> PathBuf {
    folder.with_extension(OTHER_VOTER)
}

/// What shows that somebody else has voted with this key, if that was found before.
fn other_voter_of(folder: &Path, key: &PublicKey) -> std::io::Result<Option<String>> {
    let text = match std::fs::read_to_string(other_voter(folder)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        text => text?,
    };
    // A key that came after it has other votes.
    let (first, found) = text.split_once('\n').unwrap_or((&text, ""));
    Ok((first == format!("node key {key}")).then(|| found.trim().to_string()))
}

/// The node does not start with this key any more until somebody has seen to it.
pub(crate) fn note_other_voter(folder: &Path, key: &SecretKey, found: &str) -> std::io::Result<()> {
    let text = format!("node key {}\n{found}\n", key.public_key());
    write(&beside(folder), &other_voter(folder), &text)
}

/// Whether the folder's owner had the key that an amendment has replaced by this node's: its votes bind nobody any more,
/// and its blocks are the same.
fn replaces(claim: &Claim<'_>, found: &str) -> bool {
    let ledger = format!("ledger {}", claim.charters.ledger());
    let mut lines = found.lines();
    let (Some(first), Some(key)) = (lines.next(), lines.next()) else { return false };
    let Some(key) = key.strip_prefix("node key ").and_then(|key| key.parse::<PublicKey>().ok()) else {
        return false;
    };
    let place = |key: &PublicKey| {
        let reigns = claim.charters.reigns().iter().enumerate();
        let mut places = reigns.map(|(version, reign)| (version, reign.charter.member(key)));
        places.find_map(|(version, position)| Some((version, position?)))
    };
    match (place(&key), place(&claim.node_key.public_key())) {
        (Some((before, former)), Some((after, present))) => {
            first == ledger && former == present && before < after
        }
        _ => false,
    }
}

/// Whether this node's key is that of a member at a height that its ledger has, or the next one.
fn may_have_voted(claim: &Claim<'_>) -> bool {
    let key = claim.node_key.public_key();
    let reigns = claim.charters.reigns().iter();
    reigns.filter(|reign| reign.first <= claim.start + 1).any(|reign| reign.charter.member(&key).is_some())
}

fn write(folder: &Path, file: &Path, owner: &str) -> std::io::Result<()> {
    let unfinished = file.with_extension("new");
    std::fs::write(&unfinished, owner)?;
    std::fs::File::open(&unfinished)?.sync_all()?;
    std::fs::rename(&unfinished, file)?;
    std::fs::File::open(folder)?.sync_all()
}

#[cfg(all(test, feature = "simulation"))]
mod tests {
    use super::*;
    use crate::simulation::{charter, node_key};
    use std::sync::Arc;

    #[test]
    fn a_key_that_somebody_else_has_voted_with_is_not_used_again() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let folder = place.path().join("ordering");
        let charters = Charters::new(Arc::new(charter(1, 4)));
        let claimed =
            |key: &SecretKey| claim(&Claim { folder: &folder, charters: &charters, node_key: key, start: 0 });
        let key = node_key(0);
        claimed(&key).expect("a new folder");
        note_other_voter(&folder, &key, "two votes").expect("written");
        let error = claimed(&key).expect_err("somebody else votes").to_string();
        assert!(error.contains("somebody else votes with this node's key (two votes)"), "{error}");
        assert!(error.contains("ordering.other_voter"), "{error}");
        std::fs::remove_file(other_voter(&folder)).expect("it is there");
        claimed(&key).expect("somebody has seen to it");
        note_other_voter(&folder, &node_key(9), "two votes").expect("written");
        claimed(&key).expect("that was another key");
    }
}
