//! Whether a backup is whole, is what was written, and is what the ledger's members have signed.

use crate::blocks::{is_ours, not_needed};
use crate::error::BackupError;
use crate::manifest::{BLOCKS, BlocksPiece, Manifest, STATE};
use crate::places::Place;
use crate::state_pieces::{self, Index};
use audit::{AuditProgress, Ledger, Options, RecordSource, Report, audit_records};
use bytes::Bytes;
use crypto::Digest;
use ledger::{Anchor, BlockFile, LedgerError, StoredRecord};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use types::{Charter, Charters, decode_exactly};

/// What a backup that is right has.
pub struct Checked {
    /// Its manifest.
    pub manifest: Manifest,
    /// The founding charter.
    pub charter: Charter,
    /// All charters that its blocks name.
    pub charters: Charters,
    /// Transactions in its blocks.
    pub transactions: u64,
    /// Up to here outcomes are certified.
    pub certified_height: u64,
    /// Files in the target that no manifest names: left by a backup that did not come to its end, or put there by somebody.
    pub strangers: Vec<String>,
}

/// Checks the newest backup of a target, or the one with a number, whole. `charter`: the ledger's, where it is known.
///
/// # Errors
/// The first thing that is wrong, with the name of the piece.
pub fn check(
    place: &Place,
    number: Option<u64>,
    charter: Option<&Charter>,
    progress: &mut dyn FnMut(&AuditProgress),
) -> Result<Checked, BackupError> {
    let begun = Begun::open(place, number, charter)?;
    let (checked, index) = begun.check(place, &|_, _| Ok(()), progress)?;
    if let (Some(state), Some(index)) = (&checked.manifest.state, index) {
        state_pieces::check_groups(place, state, index)?;
    }
    Ok(checked)
}

/// A backup whose manifest is right by itself.
pub(crate) struct Begun {
    pub(crate) manifest: Manifest,
    pub(crate) charter: Charter,
    pub(crate) anchor: Option<Anchor>,
}

/// What becomes of the content of each piece of blocks.
pub(crate) type Taking<'t> = dyn Fn(&BlocksPiece, &Bytes) -> Result<(), BackupError> + Sync + 't;

impl Begun {
    /// Reads manifest, charter and anchor, and looks whether any piece is missing.
    pub(crate) fn open(
        place: &Place,
        number: Option<u64>,
        expected: Option<&Charter>,
    ) -> Result<Begun, BackupError> {
        let manifest = place.manifest(number)?;
        let (target, name) = (place.address(), Manifest::name(manifest.number));
        let wrong = |what: String| BackupError::Manifest { target: target.clone(), name: name.clone(), what };
        if let Some(charter) = expected.filter(|charter| charter.ledger().to_string() != manifest.ledger) {
            let (expected, found) = (charter.ledger(), manifest.ledger.clone());
            return Err(BackupError::OtherLedger { target, expected, found });
        }
        let charter =
            Charter::from_toml(&manifest.charter).map_err(|error| wrong(format!("its charter: {error}")))?;
        let found = charter.ledger();
        if found.to_string() != manifest.ledger {
            return Err(wrong(format!("expected the charter of ledger {}, found {found}", manifest.ledger)));
        }
        has_no_hole(&manifest, &target)?;
        let there = [(BLOCKS, place.list(BLOCKS)?), (STATE, place.list(STATE)?)];
        let is_there = |name: &str| {
            let name = name.split_once('/');
            name.is_some_and(|(folder, name)| {
                there.iter().any(|(known, names)| *known == folder && names.contains(name))
            })
        };
        if let Some(lost) = manifest.files().find(|file| !is_there(&file.name)) {
            return Err(BackupError::Missing { target, name: lost.name.clone(), repaired: true });
        }
        let anchor = match &manifest.anchor {
            None if manifest.first_height == 1 => None,
            None => return Err(wrong("expected an anchor in front of the first block".to_string())),
            Some(file) => {
                let content = place.piece(file)?;
                let anchor: Anchor =
                    decode_exactly(&content).map_err(|error| wrong(format!("{}: {error}", file.name)))?;
                anchor.check(found).map_err(|what| wrong(format!("{}: {what}", file.name)))?;
                if anchor.height() + 1 != manifest.first_height {
                    return Err(wrong(format!("{}: it is that of height {}", file.name, anchor.height())));
                }
                Some(anchor)
            }
        };
        Ok(Begun { manifest, charter, anchor })
    }

    /// Checks all blocks, and who has certified the state; `taking` has the content of every piece before its records are checked.
    pub(crate) fn check(
        self,
        place: &Place,
        taking: &Taking<'_>,
        progress: &mut dyn FnMut(&AuditProgress),
    ) -> Result<(Checked, Option<Index>), BackupError> {
        let Begun { manifest, charter, anchor } = self;
        let failure = Mutex::new(None);
        let height = manifest.state.as_ref().map(|state| state.height);
        let begins = anchor.as_ref().filter(|anchor| Some(anchor.height()) == height);
        let outcome = Mutex::new(OutcomeAt { height, outcome: begins.map(|anchor| anchor.outcome.digest()) });
        let records = PieceRecords {
            place,
            ledger: charter.ledger(),
            pieces: &manifest.blocks,
            taking,
            open: None,
            failure: &failure,
            outcome: &outcome,
        };
        let bytes = manifest.blocks.iter().map(|piece| piece.file.bytes).sum();
        let file = manifest.anchor.as_ref().map(|file| path_of(place, &file.name)).unwrap_or_default();
        let anchor = anchor.map(|anchor| (anchor, file));
        let ledger = Ledger { records: Box::new(records), anchor, bytes };
        let report = audit_records(&charter, ledger, Options::default(), progress)?;
        if let Some(failure) = failure.into_inner() {
            return Err(failure);
        }
        let Report { checked, certified_height, charters, error, .. } = report;
        if let Some(error) = error {
            return Err(BackupError::Audit(error));
        }
        if checked.height != manifest.height {
            let (target, name) = (place.address(), Manifest::name(manifest.number));
            let (last, expected, found) = (checked.height, checked.height + 1, manifest.height);
            return Err(BackupError::Hole { target, name, last, expected, found });
        }
        let charters = charters.expect("a ledger without errors has charters");
        let index = match &manifest.state {
            None => None,
            Some(state) => {
                let index = state_pieces::read_index(place, state)?;
                state_pieces::check_index(place, state, &index, &charters)?;
                let found = index.certificate.statement.outcome;
                if outcome.into_inner().outcome != Some(found) {
                    let what =
                        format!("it is certified for the outcome {found}, which the blocks do not have");
                    let (target, name) = (place.address(), state.index.name.clone());
                    return Err(BackupError::State { target, name, what });
                }
                Some(index)
            }
        };
        let needed: BTreeSet<String> = place
            .numbers()?
            .into_iter()
            .filter_map(|number| place.manifest(Some(number)).ok())
            .flat_map(|known| known.files().map(|file| file.name.clone()).collect::<Vec<_>>())
            .collect();
        let mut strangers = Vec::new();
        for folder in [BLOCKS, STATE] {
            let there = place.list(folder)?;
            strangers
                .extend(there.iter().filter(|name| !is_ours(name)).map(|name| format!("{folder}/{name}")));
            strangers.extend(
                not_needed(there, folder, &needed).into_iter().map(|name| format!("{folder}/{name}")),
            );
        }
        let transactions = checked.transactions;
        Ok((Checked { manifest, charter, charters, transactions, certified_height, strangers }, index))
    }
}

/// Whether the pieces' heights follow one another from the first to the last.
fn has_no_hole(manifest: &Manifest, target: &str) -> Result<(), BackupError> {
    let mut expected = manifest.first_height;
    let hole = |expected: u64, found| {
        let (target, name) = (target.to_string(), Manifest::name(manifest.number));
        Err(BackupError::Hole { target, name, last: expected - 1, expected, found })
    };
    for piece in &manifest.blocks {
        if piece.first != expected || piece.last < piece.first {
            return hole(expected, piece.first);
        }
        expected = piece.last + 1;
    }
    if expected != manifest.height + 1 { hole(expected, manifest.height) } else { Ok(()) }
}

fn path_of(place: &Place, name: &str) -> PathBuf {
    Path::new(&place.address()).join(name)
}

/// What the block of a height has come to, once it was read.
struct OutcomeAt {
    height: Option<u64>,
    outcome: Option<Digest>,
}

type OpenPiece = Box<dyn Iterator<Item = Result<StoredRecord, LedgerError>> + Send>;

/// The records of a backup, piece by piece.
struct PieceRecords<'p> {
    place: &'p Place,
    ledger: Digest,
    pieces: &'p [BlocksPiece],
    taking: &'p Taking<'p>,
    open: Option<(OpenPiece, u64)>,
    /// Why a piece cannot be read.
    failure: &'p Mutex<Option<BackupError>>,
    outcome: &'p Mutex<OutcomeAt>,
}

impl PieceRecords<'_> {
    /// Opens the next piece; false at the end.
    fn advance(&mut self) -> Result<bool, BackupError> {
        let Some((piece, rest)) = self.pieces.split_first() else { return Ok(false) };
        self.pieces = rest;
        let content = self.place.piece(&piece.file)?;
        (self.taking)(piece, &content)?;
        let path = path_of(self.place, &piece.file.name);
        let records = BlockFile::read(&path, (self.ledger, piece.first), content)?;
        self.open = Some((Box::new(records), piece.last));
        Ok(true)
    }
}

impl Iterator for PieceRecords<'_> {
    type Item = Result<StoredRecord, LedgerError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((records, _)) = &mut self.open {
                match records.next() {
                    Some(Ok(record)) => {
                        let (summary, mut at) = (record.summary(), self.outcome.lock());
                        if Some(summary.header.height) == at.height {
                            at.outcome = Some(summary.outcome.digest());
                        }
                        drop(at);
                        return Some(Ok(record));
                    }
                    Some(Err(error)) => return Some(Err(error)),
                    None => self.open = None,
                }
            }
            match self.advance() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    let place = self.place.address();
                    // Whoever hears it looks at the failure first.
                    let source = std::io::Error::other(error.to_string());
                    let told = LedgerError::Io { action: "read", path: place.into(), source };
                    *self.failure.lock() = Some(error);
                    return Some(Err(told));
                }
            }
        }
    }
}

impl RecordSource for PieceRecords<'_> {}
