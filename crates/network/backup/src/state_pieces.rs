//! The state at the newest certified checkpoint, in the groups of its tree. A group that has not changed has the same leaf, and its
//! rows stay where they are.

use crate::error::BackupError;
use crate::manifest::{PieceFile, STATE, StatePieces};
use crate::node_folder::NodeSource;
use crate::places::Place;
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::Digest;
use state::{
    AfterImage, Filling, KeptState, PieceError, StateAssembly, StateOutline, StatePiece, Store, StoreError,
    Stores, Version,
};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use types::{Catalog, Charters, CheckpointCertificate, decode_exactly, encode};

/// A pack ends with the group that makes it so long.
const PACK_BYTES: usize = 16 << 20;
/// All groups are written again where the packs have more than twice what is needed, and this.
const UNUSED_BYTES: u64 = 32 << 20;

/// Where the rows of a group are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
struct GroupPlace {
    /// Number of the group among the leaves.
    number: u32,
    /// Number of the pack in the manifest.
    pack: u32,
    offset: u64,
    length: u32,
}

/// Everything of a state but its rows.
#[derive(BorshSerialize, BorshDeserialize)]
pub(crate) struct Index {
    pub(crate) certificate: CheckpointCertificate,
    pub(crate) outline: StateOutline,
    groups: Vec<GroupPlace>,
}

/// Removes links when nobody reads them any more.
struct Links(PathBuf);

impl Drop for Links {
    fn drop(&mut self) {
        // What stays is removed by the next backup.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Groups of an earlier backup, by their leaves.
type Known = HashMap<Digest, (PieceFile, u64, u32)>;

/// Writes the state that is certified, as far as the backup before does not have it. Gives the bytes written.
pub(crate) fn write(
    node: &NodeSource,
    place: &Place,
    certificate: Option<CheckpointCertificate>,
    before: Option<&StatePieces>,
) -> Result<(Option<StatePieces>, u64), BackupError> {
    let keep = || (before.cloned(), 0);
    let there = place.list(STATE)?;
    let is_there =
        |file: &PieceFile| file.name.strip_prefix("state/").is_some_and(|name| there.contains(name));
    let whole = before.filter(|before| std::iter::once(&before.index).chain(&before.packs).all(is_there));
    let Some(certificate) = certificate else { return Ok(keep()) };
    if whole.is_some_and(|before| before.height >= certificate.statement.height) {
        return Ok(keep());
    }
    let links = Links(node.links());
    let height = certificate.statement.height;
    // The node has removed it meanwhile, or an older program has written it: the next backup has another one.
    let Some(kept) = disk::copied_checkpoint(&node.path.join("state"), height, &links.0)? else {
        return Ok(keep());
    };
    if kept.tree().root() != certificate.statement.state_root {
        return Ok(keep());
    }
    let known = match whole {
        Some(before) => known(place, before)?,
        None => Known::new(),
    };
    let mut packs =
        Packs { place, height, packs: Vec::new(), open: Vec::new(), pending: Vec::new(), written: 0 };
    let groups = packs.write(&kept, &known)?;
    let index = Index { certificate, outline: kept.outline(), groups };
    let content = encode(&index);
    let file = PieceFile::of(STATE, &format!("{height:020}"), "index", &content);
    let written = packs.written + place.write_piece(&file, content)?;
    Ok((Some(StatePieces { height, index: file, packs: packs.packs }), written))
}

/// The groups that the backup before has, unless most of its packs is not needed any more.
fn known(place: &Place, before: &StatePieces) -> Result<Known, BackupError> {
    let Ok(Index { outline, groups, .. }) = read_index(place, before) else { return Ok(Known::new()) };
    let needed: u64 = groups.iter().map(|group| u64::from(group.length)).sum();
    let bytes: u64 = before.packs.iter().map(|pack| pack.bytes).sum();
    if bytes > 2 * needed + UNUSED_BYTES {
        return Ok(Known::new());
    }
    let found = groups.iter().filter_map(|group| {
        let (leaf, pack) =
            (outline.leaves.get(group.number as usize)?, before.packs.get(group.pack as usize)?);
        Some((*leaf, (pack.clone(), group.offset, group.length)))
    });
    Ok(found.collect())
}

/// Packs that are being written.
struct Packs<'p> {
    place: &'p Place,
    height: u64,
    packs: Vec<PieceFile>,
    open: Vec<u8>,
    /// Groups in the open pack.
    pending: Vec<GroupPlace>,
    written: u64,
}

impl Packs<'_> {
    fn write(&mut self, kept: &KeptState, known: &Known) -> Result<Vec<GroupPlace>, BackupError> {
        let mut groups = Vec::new();
        for (number, leaf) in kept.outline().leaves.iter().enumerate() {
            let number = number as u32;
            if let Some((file, offset, length)) = known.get(leaf) {
                let pack = self.number_of(file);
                groups.push(GroupPlace { number, pack, offset: *offset, length: *length });
                continue;
            }
            let Some(piece) = kept.piece(number as usize)? else { continue };
            let bytes = encode(&piece);
            let (offset, length) = (self.open.len() as u64, bytes.len() as u32);
            self.open.extend_from_slice(&bytes);
            self.pending.push(GroupPlace { number, pack: 0, offset, length });
            if self.open.len() >= PACK_BYTES {
                groups.extend(self.close()?);
            }
        }
        groups.extend(self.close()?);
        Ok(groups)
    }

    fn number_of(&mut self, file: &PieceFile) -> u32 {
        let found = self.packs.iter().position(|pack| pack.name == file.name);
        found.unwrap_or_else(|| {
            self.packs.push(file.clone());
            self.packs.len() - 1
        }) as u32
    }

    fn close(&mut self) -> Result<Vec<GroupPlace>, BackupError> {
        if self.open.is_empty() {
            return Ok(Vec::new());
        }
        let content = std::mem::take(&mut self.open);
        let file = PieceFile::of(STATE, &format!("{:020}", self.height), "pack", &content);
        self.written += self.place.write_piece(&file, content)?;
        let pack = self.number_of(&file);
        let pending = std::mem::take(&mut self.pending);
        Ok(pending.into_iter().map(|group| GroupPlace { pack, ..group }).collect())
    }
}

/// The index of a state, which is what was written.
pub(crate) fn read_index(place: &Place, state: &StatePieces) -> Result<Index, BackupError> {
    let content = place.piece(&state.index)?;
    decode_exactly(&content).map_err(|error| wrong(place, &state.index, error))
}

fn wrong(place: &Place, file: &PieceFile, what: impl std::fmt::Display) -> BackupError {
    BackupError::State { target: place.address(), name: file.name.clone(), what: what.to_string() }
}

/// Whether a quorum of the members of its height has signed what an index is about.
pub(crate) fn check_index(
    place: &Place,
    state: &StatePieces,
    index: &Index,
    charters: &Charters,
) -> Result<(), BackupError> {
    let statement = &index.certificate.statement;
    if statement.height != state.height {
        let what = format!("expected the state of height {}, found {}", state.height, statement.height);
        return Err(wrong(place, &state.index, what));
    }
    let rules = &charters.at(statement.height).rules;
    rules.check_certificate(&index.certificate).map_err(|error| wrong(place, &state.index, error))
}

/// Adds every group to a state that is put together, pack by pack.
pub(crate) fn add_groups(
    place: &Place,
    state: &StatePieces,
    index: &[(usize, GroupOf)],
    assembly: &mut StateAssembly,
) -> Result<(), BackupError> {
    let mut by_pack: BTreeMap<usize, Vec<&(usize, GroupOf)>> = BTreeMap::new();
    index.iter().for_each(|group| by_pack.entry(group.1.pack).or_default().push(group));
    for (pack, groups) in by_pack {
        let no_pack = || wrong(place, &state.index, format!("there is no pack {pack}"));
        let file = state.packs.get(pack).ok_or_else(no_pack)?;
        let content = place.piece(file)?;
        for (number, group) in groups {
            let end = group.offset.checked_add(group.length).filter(|end| *end <= content.len());
            let bytes = end.map(|end| &content[group.offset..end]);
            let bytes = bytes.ok_or_else(|| wrong(place, file, format!("it ends before group {number}")))?;
            let piece: StatePiece = decode_exactly(bytes).map_err(|error| wrong(place, file, error))?;
            assembly.add(*number, &piece).map_err(|error| match error {
                PieceError::Store(failure) => BackupError::Store(failure),
                error => wrong(place, file, error),
            })?;
        }
    }
    match assembly.missing().count() {
        0 => Ok(()),
        missing => Err(wrong(place, &state.index, format!("{missing} groups are in no pack"))),
    }
}

/// Where a group is.
#[derive(Clone, Copy)]
pub(crate) struct GroupOf {
    pack: usize,
    offset: usize,
    length: usize,
}

impl Index {
    /// Where the groups are, by their numbers.
    pub(crate) fn groups(&self) -> Vec<(usize, GroupOf)> {
        let of = |group: &GroupPlace| GroupOf {
            pack: group.pack as usize,
            offset: group.offset as usize,
            length: group.length as usize,
        };
        self.groups.iter().map(|group| (group.number as usize, of(group))).collect()
    }
}

/// Checks every group of a state against its certificate; keeps none.
pub(crate) fn check_groups(place: &Place, state: &StatePieces, index: Index) -> Result<(), BackupError> {
    let groups = index.groups();
    let statement = &index.certificate.statement;
    let assembly = StateAssembly::new(index.outline, statement.height, statement.state_root, &Nowhere);
    let mut assembly = assembly.map_err(|error| wrong(place, &state.index, error))?;
    add_groups(place, state, &groups, &mut assembly)
}

/// Where rows go that are only to be checked.
struct Nowhere;

impl Stores for Nowhere {
    fn begin(&self, _: Version, _: Arc<Catalog>) -> Result<Box<dyn Filling>, StoreError> {
        Ok(Box::new(Nowhere))
    }
}

impl Filling for Nowhere {
    fn add(&mut self, _: &[AfterImage]) -> Result<(), StoreError> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Arc<dyn Store>, StoreError> {
        Err(StoreError::read("a state", "its rows were checked and not kept"))
    }
}
