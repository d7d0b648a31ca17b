//! Making a backup: pieces first, the manifest last.

use crate::blocks::{BlockPieces, is_ours, not_needed};
use crate::error::BackupError;
use crate::manifest::{BLOCKS, MANIFESTS, Manifest, PieceFile, STATE};
use crate::node_folder::NodeSource;
use crate::places::Place;
use crate::state_pieces;
use ledger::{LedgerFiles, newest_certificate};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use types::{CheckpointCertificate, decode_exactly};

/// So many of the newest backups can be restored; pieces that none of them has go.
const KEPT: u64 = 2;

/// What was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Made {
    /// Number of the backup; that of the one before where nothing is new.
    pub number: u64,
    /// Height of the first block.
    pub first_height: u64,
    /// Height of the last block.
    pub height: u64,
    /// Blocks that the backup before did not have.
    pub new_blocks: u64,
    /// Height of the state.
    pub state: Option<u64>,
    /// Bytes that were written.
    pub written: u64,
    /// Bytes of the whole backup.
    pub bytes: u64,
    /// What of the folder is not in it, and is nowhere else for certain, in sentences.
    pub left_out: Vec<String>,
}

/// Makes a backup of the node in the folder `path`, which may run. What is in the target already is not written again. Whoever falls
/// meanwhile leaves the backup before as it was.
///
/// # Errors
/// The folder or the target cannot be read or written, or do not belong together.
pub fn back_up(path: &Path, place: &Place) -> Result<Made, BackupError> {
    let node = NodeSource::open(path)?;
    if place.is_inside(path) {
        return Err(BackupError::InsideOfNode { target: place.address(), folder: path.to_path_buf() });
    }
    let before = match place.manifest(None) {
        Err(BackupError::NoBackup { .. }) => None,
        found => Some(found?),
    };
    if let Some(before) = &before {
        belongs(before, &node, place)?;
    }
    if !node.ledger().exists() {
        return Err(BackupError::NoBlocks { path: path.to_path_buf() });
    }
    // The certificate first: then the blocks go as far as the state, or further.
    let certified = newest_certificate(&path.join("checkpoints"))?;
    let files = LedgerFiles::open(node.ledger(), node.charter.ledger())?;
    let pieces = BlockPieces { node: &node, place, files: &files };
    let (blocks, mut written) = pieces.write(before.as_ref())?;
    let Some(height) = blocks.last().map(|piece| piece.last) else {
        return Err(BackupError::NoBlocks { path: path.to_path_buf() });
    };
    if let Some(before) = before.as_ref().filter(|before| height < before.height) {
        // The node has lost its newest blocks and fetches them again.
        return Ok(made(before, 0, 0, node.left_out()?));
    }
    let first_height = blocks[0].first;
    let anchor = anchor(&files, place, before.as_ref(), first_height)?;
    let certificate: Option<CheckpointCertificate> = match certified {
        Some((_, bytes)) => decode_exactly(&bytes).ok(),
        None => None,
    };
    let within = certificate.filter(|certificate| certificate.statement.height <= height);
    let state_before = before.as_ref().and_then(|before| before.state.as_ref());
    let (state, state_bytes) = state_pieces::write(&node, place, within, state_before)?;
    written.bytes += state_bytes;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let manifest = Manifest {
        number: before.as_ref().map_or(1, |before| before.number + 1),
        ledger: node.charter.ledger().to_string(),
        organisation: node.organisation.clone(),
        position: node.position,
        made_at: now,
        first_height,
        height,
        charter: node.charter.to_toml(),
        node: node.node.clone(),
        anchor,
        blocks,
        state,
    };
    if let Some(before) = &before {
        let same = Manifest { number: before.number, made_at: before.made_at, ..manifest.clone() };
        if same == *before {
            return Ok(made(before, 0, written.bytes, node.left_out()?));
        }
    }
    let content = manifest.to_bytes();
    let bytes = content.len() as u64;
    if !place.create(&Manifest::name(manifest.number), content)? {
        return Err(BackupError::Meanwhile { target: place.address(), number: manifest.number });
    }
    clean_up(place, &manifest, before.as_ref())?;
    Ok(made(&manifest, written.blocks, written.bytes + bytes, node.left_out()?))
}

fn made(manifest: &Manifest, new_blocks: u64, written: u64, left_out: Vec<String>) -> Made {
    Made {
        number: manifest.number,
        first_height: manifest.first_height,
        height: manifest.height,
        new_blocks,
        state: manifest.state.as_ref().map(|state| state.height),
        written,
        bytes: manifest.bytes() + manifest.to_bytes().len() as u64,
        left_out,
    }
}

fn belongs(before: &Manifest, node: &NodeSource, place: &Place) -> Result<(), BackupError> {
    let (target, expected) = (place.address(), node.charter.ledger());
    if before.ledger != expected.to_string() {
        return Err(BackupError::OtherLedger { target, expected, found: before.ledger.clone() });
    }
    if before.position != node.position {
        let (expected, found) = (node.organisation.clone(), before.organisation.clone());
        return Err(BackupError::OtherOrganisation { target, expected, found });
    }
    Ok(())
}

/// The block in front of the first one of the backup, where that has another height than 1.
fn anchor(
    files: &LedgerFiles,
    place: &Place,
    before: Option<&Manifest>,
    first_height: u64,
) -> Result<Option<PieceFile>, BackupError> {
    let known = before.filter(|before| before.first_height == first_height);
    if let Some(before) = known {
        return Ok(before.anchor.clone());
    }
    let Some(anchor) = files.anchor().filter(|anchor| anchor.height() + 1 == first_height) else {
        return Ok(None);
    };
    let content = borsh::to_vec(anchor).map_err(BackupError::file("encode", files.anchor_path()))?;
    let file = PieceFile::of(BLOCKS, &format!("{:020}", anchor.height()), "anchor", &content);
    place.write_piece(&file, content)?;
    Ok(Some(file))
}

/// Removes what neither this backup nor the one before needs: what runs that fell have left, and pieces that were put together.
fn clean_up(place: &Place, newest: &Manifest, before: Option<&Manifest>) -> Result<(), BackupError> {
    let manifests = [Some(newest), before].into_iter().flatten();
    let needed: BTreeSet<String> =
        manifests.flat_map(|manifest| manifest.files().map(|file| file.name.clone())).collect();
    let oldest = (newest.number + 1).saturating_sub(KEPT);
    for name in place.list(MANIFESTS)? {
        let is_old = Manifest::number_of(&name).map_or(is_ours(&name), |number| number < oldest);
        if is_old {
            place.remove_left(MANIFESTS, &name)?;
        }
    }
    for folder in [BLOCKS, STATE] {
        for name in not_needed(place.list(folder)?, folder, &needed) {
            place.remove_left(folder, &name)?;
        }
    }
    Ok(())
}
