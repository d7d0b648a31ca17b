//! Where a ledger begins that does not begin at its first block: a node that has joined from a certified checkpoint has
//! no blocks up to there.

use crate::LedgerError;
use crate::disk::{self, Disk};
use crate::file_head::FORMAT_VERSION;
use crate::layout::{Fields, checksum};
use crate::ledger::{Ledger, View};
use crate::segment::{SEGMENT_HEAD_BYTES, Segment};
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::Digest;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use types::{
    BlockHeader, Charter, Charters, CheckpointCertificate, Handover, OutcomeHeader, decode_exactly, encode,
    limits,
};

const MAGIC: [u8; 8] = *b"EnAnchor";
const HEAD_BYTES: usize = 52;
/// Bytes of an anchor's handovers: more than a thousand amendments of a network of a hundred organisations. No ledger
/// begins behind a block that needs more; nodes replay from the first one then.
pub const HANDOVERS_BYTES_MAX: usize = 32 << 20;
/// More than two certificates of the largest network and two headers, and handovers.
const BODY_BYTES_MAX: usize = (1 << 20) + HANDOVERS_BYTES_MAX;

/// The block in front of a ledger's first one: what the next headers chain, and what proves it.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct Anchor {
    /// The block's header.
    pub header: BlockHeader,
    /// The ordering service's proof that it is final, opaque to the ledger.
    pub certificate: Vec<u8>,
    /// What the block came to.
    pub outcome: OutcomeHeader,
    /// A quorum's word for the outcome and for the whole state behind it.
    pub checkpoint: CheckpointCertificate,
    /// From the founding charter to the amended ones that blocks up to this one carry, in their order.
    pub handovers: Vec<Handover>,
}

/// Those of a ledger's handovers that lead to the charters that a header names with `named`; all, where none does.
pub fn handovers_up_to(mut handovers: Vec<Handover>, ledger: Digest, named: Digest) -> Vec<Handover> {
    let last = handovers.iter().position(|one| one.certificate.statement.charters == named);
    match last {
        Some(last) => handovers.truncate(last + 1),
        None if named == ledger => handovers.clear(),
        None => {}
    }
    handovers
}

/// The charters from the founding one on that handovers prove: those that a header names with `named`, and no others.
///
/// # Errors
/// What was expected and what came.
pub fn prove_charters(
    founding: &Arc<Charter>,
    handovers: &[Handover],
    named: Digest,
) -> Result<Charters, String> {
    if handovers.len() > limits::AMENDMENTS_MAX {
        let (found, limit) = (handovers.len(), limits::AMENDMENTS_MAX);
        return Err(format!("expected at most {limit} handovers (AMENDMENTS_MAX), found {found}"));
    }
    let mut charters = Charters::new(founding.clone());
    for (handover, number) in handovers.iter().zip(1..) {
        let failed = |what: String| format!("handover {number} of {}: {what}", handovers.len());
        if handover.charters.is_empty() {
            return Err(failed("expected amended charters, found none".to_string()));
        }
        charters.hand_over(handover).map_err(|error| failed(error.to_string()))?;
    }
    let found = charters.digest();
    match found == named {
        true => Ok(charters),
        false => Err(format!("expected handovers to the charters {named}, found those to {found}")),
    }
}

impl Anchor {
    /// Height of the block.
    pub fn height(&self) -> u64 {
        self.header.height
    }

    /// The same without what proves the charters.
    pub fn without_handovers(&self) -> Anchor {
        let Anchor { header, certificate, outcome, checkpoint, .. } = self;
        Anchor {
            header: header.clone(),
            certificate: certificate.clone(),
            outcome: outcome.clone(),
            checkpoint: checkpoint.clone(),
            handovers: Vec::new(),
        }
    }

    /// The charters that blocks up to this one name, proved from the founding one on.
    ///
    /// # Errors
    /// The handovers prove nothing, or not what the block names: what was expected and what came.
    pub fn charters(&self, founding: &Arc<Charter>) -> Result<Charters, String> {
        prove_charters(founding, &self.handovers, self.header.charters)
    }

    /// Whether header, outcome and checkpoint are about the same block of this ledger. Signatures, also those of the
    /// handovers, are looked at by whoever has the charter: [`Anchor::charters`] first.
    ///
    /// # Errors
    /// What was expected and what came.
    pub fn check(&self, ledger: Digest) -> Result<(), String> {
        let Anchor { header, outcome, checkpoint, .. } = self;
        let (height, statement) = (header.height.to_string(), &checkpoint.statement);
        let checks = [
            ("a block of ledger", ledger.to_string(), header.ledger.to_string()),
            ("an outcome of ledger", ledger.to_string(), outcome.ledger.to_string()),
            ("a checkpoint of ledger", ledger.to_string(), statement.ledger.to_string()),
            ("an outcome of height", height.clone(), outcome.height.to_string()),
            ("a checkpoint of height", height, statement.height.to_string()),
            ("an outcome of block", header.digest().to_string(), outcome.block.to_string()),
            ("a checkpoint of outcome", outcome.digest().to_string(), statement.outcome.to_string()),
        ];
        if header.height == 0 {
            return Err("expected a block of height 1 or above, found height 0".to_string());
        }
        match checks.into_iter().find(|(_, expected, found)| expected != found) {
            Some((what, expected, found)) => Err(format!("expected {what} {expected}, found {found}")),
            None => Ok(()),
        }
    }

    fn to_bytes(&self, ledger: Digest) -> Vec<u8> {
        let body = encode(self);
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes.extend_from_slice(&ledger.0);
        bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&checksum(&[&bytes, &body]).to_le_bytes());
        bytes.extend_from_slice(&body);
        bytes
    }
}

/// Where a folder of blocks has the file.
pub(crate) fn path(folder: &Path) -> PathBuf {
    folder.join("ANCHOR")
}

/// Where blocks go that lie in front of an anchor.
fn before(folder: &Path, height: u64) -> PathBuf {
    folder.join(format!("before-{height:020}"))
}

/// The anchor of the folder; nothing where the ledger begins at its first block.
///
/// # Errors
/// [`LedgerError::Damaged`], [`LedgerError::OtherLedger`] and [`LedgerError::Version`].
pub(crate) fn read(folder: &Path, ledger: Digest) -> Result<Option<Anchor>, LedgerError> {
    let path = path(folder);
    let damaged = |offset, what: String| Err(LedgerError::damaged(&path, offset, 0, what));
    let bytes = match std::fs::File::open(&path) {
        Ok(file) => {
            let length = file.metadata().map_err(|error| LedgerError::io("measure", &path, error))?.len();
            let mut bytes = vec![0; (HEAD_BYTES + BODY_BYTES_MAX).min(length as usize)];
            let read = disk::read_up_to(&file, &mut bytes, 0);
            bytes.truncate(read.map_err(|error| LedgerError::io("read", &path, error))?);
            bytes
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(LedgerError::io("open", &path, error)),
    };
    if bytes.len() < HEAD_BYTES || bytes[..8] != MAGIC {
        return damaged(0, "expected the file that says where the ledger begins".to_string());
    }
    let (head, body) = bytes.split_at(HEAD_BYTES);
    let mut fields = Fields(&head[8..]);
    let (version, found, length, crc) = (fields.u32(), fields.digest(), fields.u32(), fields.u32());
    let whole = length as usize == body.len() && crc == checksum(&[&head[..HEAD_BYTES - 4], body]);
    if !whole {
        return damaged(0, format!("expected {length} bytes with checksum {crc:08x}"));
    }
    if version != FORMAT_VERSION {
        return Err(LedgerError::Version { path, expected: FORMAT_VERSION, found: version });
    }
    if found != ledger {
        return Err(LedgerError::OtherLedger { path, expected: ledger, found });
    }
    let anchor = match decode_exactly::<Anchor>(body) {
        Ok(anchor) => anchor,
        Err(error) => return damaged(HEAD_BYTES as u64, error.to_string()),
    };
    match anchor.check(ledger) {
        Ok(()) => Ok(Some(anchor)),
        Err(what) => damaged(HEAD_BYTES as u64, what),
    }
}

/// Puts the files of blocks in front of the anchor aside: of the moment when the ledger was made to begin there.
pub(crate) fn set_aside(folder: &Path, anchor: &Anchor, heights: &mut Vec<u64>) -> Result<(), LedgerError> {
    let height = anchor.height();
    if heights.iter().all(|first| *first > height) {
        return Ok(());
    }
    let aside = before(folder, height);
    disk::create_folder(&aside)?;
    for first in heights.iter().filter(|first| **first <= height) {
        let name = Segment::file_name(*first);
        for name in [name.clone(), name.replace(".log", ".idx"), name.replace(".log", ".txi")] {
            let path = folder.join(&name);
            if path.exists() {
                disk::rename(&path, &aside.join(&name))?;
            }
        }
    }
    disk::flush_folder(&aside)?;
    disk::flush_folder(folder)?;
    heights.retain(|first| *first > height);
    Ok(())
}

/// What the file is replaced by is whole or not there, also after a power failure.
fn write(disk: &Disk, folder: &Path, ledger: Digest, anchor: &Anchor) -> Result<(), LedgerError> {
    let path = path(folder);
    let temporary = disk::temporary_name(&path);
    let file = disk::create(&temporary)?;
    disk.write_at(&file, &temporary, &anchor.to_bytes(ledger), 0)?;
    disk.flush(&file, &temporary)?;
    disk::rename(&temporary, &path)?;
    disk::flush_folder(folder)
}

impl Ledger {
    /// Height of the first block that the ledger has, or will have: 1, or the one behind its anchor.
    pub fn first_height(&self) -> u64 {
        self.view.read().anchor.as_ref().map_or(1, |anchor| anchor.height() + 1)
    }

    /// The block in front of the first one, where the ledger does not begin at height 1.
    pub fn anchor(&self) -> Option<Arc<Anchor>> {
        self.view.read().anchor.clone()
    }

    /// What the block of `height` came to: of those that the ledger has, and of the one that it begins behind. Reads the
    /// record's head only.
    ///
    /// # Errors
    /// As [`Ledger::read`].
    pub fn outcome_header(&self, height: u64) -> Result<Option<OutcomeHeader>, LedgerError> {
        match self.anchor().filter(|anchor| anchor.height() == height) {
            Some(anchor) => Ok(Some(anchor.outcome.clone())),
            None => Ok(self.summary(height)?.map(|summary| summary.outcome)),
        }
    }

    /// Refuses heights that lie in front of the ledger's first block.
    pub(crate) fn check_kept(&self, height: u64) -> Result<(), LedgerError> {
        let first = self.first_height();
        if (1..first).contains(&height) { Err(LedgerError::NotKept { height, first }) } else { Ok(()) }
    }

    /// Makes the ledger begin behind `anchor`, which lies above the tip: the next block is the one after it. The blocks
    /// that there were are put aside into a folder `before-` and the anchor's height, where audits still read them.
    /// Durable when it returns; after a crash the ledger is as it was or as it is to be.
    ///
    /// # Errors
    /// [`LedgerError::WrongBlock`] for an anchor that is not above the tip or not of this ledger changes nothing; others
    /// as for [`Ledger::append`].
    pub fn begin_behind(&self, anchor: Anchor) -> Result<(), LedgerError> {
        let mut writer = self.writer.lock();
        writer.check_usable()?;
        let refused = |what, expected, found| Err(LedgerError::WrongBlock { what, expected, found });
        if let Err(found) = anchor.check(self.ledger) {
            return refused("as first", "an anchor that fits together".to_string(), found);
        }
        let bytes = encode(&anchor.handovers).len();
        if bytes > HANDOVERS_BYTES_MAX {
            let expected = format!("{HANDOVERS_BYTES_MAX} bytes of handovers at most (HANDOVERS_BYTES_MAX)");
            return refused("as first", expected, bytes.to_string());
        }
        let (tip, height) = (writer.tip().0, anchor.height());
        if height <= tip {
            return refused("an anchor above height", tip.to_string(), height.to_string());
        }
        let began = self.replace_by(&mut writer, anchor);
        writer.poison(began)
    }

    fn replace_by(&self, writer: &mut crate::writer::Writer, anchor: Anchor) -> Result<(), LedgerError> {
        // No index file may be written for what goes away.
        self.settle_indexes();
        write(&self.disk, &self.folder, self.ledger, &anchor)?;
        let mut heights: Vec<u64> =
            self.view.read().segments.iter().map(|segment| segment.first_height).collect();
        set_aside(&self.folder, &anchor, &mut heights)?;
        let tip = (anchor.height(), anchor.header.digest());
        writer.restart(tip, SEGMENT_HEAD_BYTES, &self.disk)?;
        *self.view.write() =
            View { segments: Arc::default(), tip: Some(tip), anchor: Some(Arc::new(anchor)) };
        Ok(())
    }
}
