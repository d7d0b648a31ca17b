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

/// What a folder is to a node that may use it.
enum Folder {
    /// It is the node's.
    Own,
    /// It was that of the key that this node's has replaced.
    Former,
    /// There is none, and this node has not voted.
    New,
}

impl Claim<'_> {
    fn owner(&self) -> String {
        format!("ledger {}\nnode key {}\n", self.charters.ledger(), self.node_key.public_key())
    }

    fn failed(&self) -> impl Fn(std::io::Error) -> OrderingError + '_ {
        |error| OrderingError::Storage { path: self.folder.to_path_buf(), reason: error.to_string() }
    }

    /// Whether this node may vote from the folder. Changes nothing.
    fn check(&self) -> Result<Folder, OrderingError> {
        let (path, failed) = (&self.folder.to_path_buf(), self.failed());
        if let Some(found) = other_voter_of(path, &self.node_key.public_key()).map_err(&failed)? {
            return Err(OrderingError::OtherVoter { path: other_voter(path), found });
        }
        let owner = self.owner();
        match std::fs::read_to_string(path.join(OWNER)) {
            Ok(found) if found == owner => Ok(Folder::Own),
            Ok(found) if replaces(self, &found) => Ok(Folder::Former),
            Ok(found) => {
                let line = |text: &str| text.trim().replace('\n', ", ");
                Err(OrderingError::OtherNode {
                    path: path.clone(),
                    expected: line(&owner),
                    found: line(&found),
                })
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let claimed = path.with_extension(CLAIMED);
                // Only a key that comes after the one which was here has not voted.
                let voted = std::fs::read_to_string(claimed).is_ok_and(|found| !replaces(self, &found));
                match voted || self.start > 0 && may_have_voted(self) {
                    true => Err(OrderingError::VotesLost { path: path.clone(), height: self.start }),
                    false => Ok(Folder::New),
                }
            }
            Err(error) => Err(failed(error)),
        }
    }
}

/// Whether a node with this key, whose ledger has this height, may vote from a folder, which need not be there. Changes nothing.
///
/// # Errors
/// Why it may not: the folder is another node's, or has been lost, or somebody else has voted with the key.
pub fn check_votes(
    folder: &Path,
    charters: &Charters,
    node_key: &SecretKey,
    height: u64,
) -> Result<(), OrderingError> {
    Claim { folder, charters, node_key, start: height }.check().map(drop)
}

/// Makes the folder this node's, or checks that it is already.
pub(crate) fn claim(claim: &Claim<'_>) -> Result<(), OrderingError> {
    let (path, failed, owner) = (claim.folder, claim.failed(), claim.owner());
    let (file, claimed, beside) = (path.join(OWNER), path.with_extension(CLAIMED), beside(path));
    match claim.check()? {
        Folder::Own => {}
        Folder::Former => write(path, &file, &owner).map_err(&failed)?,
        Folder::New => {
            std::fs::create_dir_all(path).map_err(&failed)?;
            write(path, &file, &owner).map_err(&failed)?;
        }
    }
    write(&beside, &claimed, &owner).map_err(failed)
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
