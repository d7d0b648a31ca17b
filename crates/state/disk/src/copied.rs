//! A checkpoint that a node has kept, read by another process while the node may run: from links of its own, because the node
//! removes checkpoints, and brings up trees in their folders.

use crate::files::Files;
use crate::files_snapshot::read_catalog;
use crate::layout::checkpoint_of;
use crate::options::RESIDENT_BLOCKS;
use crate::reopening::point_of;
use crate::{paths, sealing};
use proofs::state::TreeShape;
use state::{KeptState, StoreError};
use std::fmt::Display;
use std::io::ErrorKind;
use std::path::Path;

/// How often a checkpoint is linked again, because the node has changed something meanwhile.
const ATTEMPTS: usize = 8;

/// The checkpoint of `height` among the states in the folder `states` of a node, with its tree; `None`: there is none. Its files
/// are linked into `copy`, a folder on the same disk that is not there yet and that the caller removes at last. Takes no lock and
/// changes nothing in `states`. What is read is not compared with checksums of whole files, which would take as long as the state is
/// large: whoever reads rows compares them with the tree, and its root with what a quorum has signed.
///
/// # Errors
/// It cannot be linked or read.
pub fn copied_checkpoint(states: &Path, height: u64, copy: &Path) -> Result<Option<KeptState>, StoreError> {
    for _ in 0..ATTEMPTS {
        let checkpoints = paths(states)?;
        let of_height = checkpoints.iter().filter_map(|path| Some((checkpoint_of(path)?, path)));
        let newest = of_height.filter(|((found, _), _)| *found == height).max();
        let Some((_, checkpoint)) = newest else { return Ok(None) };
        if link(checkpoint, copy)? {
            return open(copy).map(Some);
        }
    }
    Err(StoreError::read(states.display(), "the checkpoint changes again and again; ask again"))
}

/// Links everything that the list of files of a checkpoint names. False: something has gone meanwhile.
fn link(checkpoint: &Path, copy: &Path) -> Result<bool, StoreError> {
    let failed = |path: &Path, what: &dyn Display| StoreError::write(path.display(), what);
    match std::fs::remove_dir_all(copy) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(copy, &error)),
        _ => {}
    }
    let tables = copy.join("tables");
    std::fs::create_dir_all(&tables).map_err(|error| failed(&tables, &error))?;
    let link_one = |from: &Path, to: &Path| match std::fs::hard_link(from, to) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(failed(to, &error)),
    };
    // First which list holds: files that it names stay while it holds, and a newer list is not looked at.
    let current = copy.join("current");
    if !link_one(&checkpoint.join("current"), &current)? {
        return Ok(false);
    }
    let bytes = std::fs::read(&current).map_err(|error| StoreError::read(current.display(), error))?;
    let Some(number) = bytes.first_chunk() else {
        return Err(StoreError::damaged(current.display(), "expected the number of a list of files"));
    };
    let list = format!("v{}", u64::from_le_bytes(*number));
    if !link_one(&checkpoint.join(&list), &copy.join(&list))? {
        return Ok(false);
    }
    let Ok(files) = paths(&checkpoint.join("tables")) else { return Ok(false) };
    for file in files {
        let Some(name) = file.file_name() else { continue };
        // One that the list does not name may go meanwhile; one that it names is missed when the copy is opened.
        link_one(&file, &tables.join(name))?;
    }
    // Still the same list: then none of its files has gone.
    Ok(std::fs::read(checkpoint.join("current")).is_ok_and(|now| now == bytes))
}

fn open(copy: &Path) -> Result<KeptState, StoreError> {
    let files = Files::open(copy, RESIDENT_BLOCKS)?;
    let point = point_of(&files)?;
    let point = point
        .ok_or_else(|| StoreError::damaged(copy.display(), "it does not say behind which block it is"))?;
    let shape = TreeShape::at(read_catalog(&files.now())?.as_ref(), point.header.height);
    sealing::kept_state(files, point, shape)
}
