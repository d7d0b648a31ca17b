//! Ledgers of which transactions are redacted: what is left proves itself, and who takes more away is found.
#![allow(missing_docs)]

mod support;

use audit::{AuditError, Options, Part, Replay, Report, audit};
use bench::SignedLedger;
use crypto::Digest;
use ledger::BlockOutcome;
use std::collections::BTreeMap;
use std::path::Path;
use support::{File, check, create, files, fill, folder};
use types::{Block, CheckpointCertificate, CheckpointRoot, Receipt, TableId, TransactionId};

/// Eight blocks; block 7 certifies the outcome of block 4. Of block 4 transactions 1 and 3 of five are redacted.
fn redacted(folder: &Path) -> SignedLedger {
    let mut source = create(folder, 1, 1 << 20, |_| ());
    fill(&mut source, &[3, 0, 5, 1, 2, 1, 2]);
    assert!(source.ledger().redact(4, &BTreeMap::from([(1, 2), (3, 5)])).expect("redacts"));
    source.ledger().flush().expect("flushes");
    source
}

fn ids(source: &SignedLedger) -> [TransactionId; 2] {
    let kept = source.ledger().transactions(4).expect("reads").expect("is there");
    [kept[1].id(), kept[3].id()]
}

#[test]
fn hash_and_place_prove_a_redacted_transaction() {
    let place = folder();
    let source = redacted(place.path());
    let report = check(source.charter(), place.path());
    assert!(report.error.is_none(), "{report:?}");
    assert_eq!((report.checked.height, report.checked.redacted, report.checked.redacted_to), (8, 2, 4));
    assert_eq!(report.checked.transactions, 1 + 3 + 3 + 1 + 2 + 1 + 2);
    // Nobody has signed yet what came of block 7.
    source.ledger().redact(7, &BTreeMap::from([(0, 2)])).expect("redacts");
    let report = check(source.charter(), place.path());
    let Some(AuditError::RedactedUncertified { up_to: 7, certified }) = report.error else {
        panic!("{report:?}")
    };
    assert_eq!(certified, report.certified_height);
}

#[test]
fn every_flipped_byte_of_what_is_left_is_found_though_checksums_fit() {
    let place = folder();
    let source = redacted(place.path());
    let charter = source.charter().clone();
    let ids = ids(&source);
    source.finish().expect("closes");
    let path = files(place.path()).remove(0);
    let file = File::read(&path);
    let record = file.records[3].clone();
    let [block, certificate, outcome, end] = record.starts();
    let (mut found, mut unseen) = (0, Vec::new());
    for at in (block..certificate).step_by(5).chain((outcome..end).step_by(3)) {
        file.write_with(&path, 3, |record| {
            record.bytes[at] ^= 1;
            record.seal();
        });
        match check(&charter, place.path()).error {
            Some(AuditError::Wrong { place, .. }) => assert_eq!(place.height, 4, "byte {at}"),
            Some(AuditError::File(_)) => {}
            None => unseen.push(at - outcome),
            other => panic!("byte {at}: {other:?}"),
        }
        found += 1;
    }
    assert!(found > 300);
    // What the members have agreed to says the state, which replay knows: ids and numbers of proposals, 40 bytes for each.
    let content = &record.bytes[outcome..end];
    let is_claim = |at: &usize| {
        let claims = ids.iter().map(|id| {
            let id_at = content.windows(32).position(|part| part == id.0.0).expect("it is there");
            let behind = id_at + 32 + 4 + 64 + 1;
            (id_at..id_at + 32).contains(at) || (behind..behind + 8).contains(at)
        });
        claims.collect::<Vec<bool>>().contains(&true)
    };
    assert!(!unseen.is_empty() && unseen.iter().all(is_claim), "{unseen:?}");
}

/// Says of whole blocks what is recorded, and goes on at a checkpoint.
struct Recorded {
    blocks: BTreeMap<u64, BlockOutcome>,
    checkpoint: Option<CheckpointCertificate>,
    agreed: BTreeMap<u64, TransactionId>,
    executed: Vec<u64>,
}

impl Replay for Recorded {
    fn execute(&mut self, block: &Block, _recorded: &[Receipt]) -> Result<BlockOutcome, String> {
        self.executed.push(block.header.height);
        self.blocks.get(&block.header.height).cloned().ok_or_else(|| "there is no such block".to_string())
    }

    fn checkpoint_from(&mut self, height: u64) -> Result<Option<CheckpointCertificate>, String> {
        Ok(self.checkpoint.clone().filter(|one| one.statement.height >= height))
    }

    fn resume(&mut self, certificate: &CheckpointCertificate) -> Result<(), String> {
        assert_eq!(Some(certificate), self.checkpoint.as_ref());
        Ok(())
    }

    fn redactions(&self) -> BTreeMap<u64, TransactionId> {
        self.agreed.clone()
    }

    fn table_name(&self, table: TableId) -> String {
        format!("{table:?}")
    }
}

/// A checkpoint at a height that says so of an outcome.
fn checkpoint(source: &SignedLedger, height: u64, outcome: Digest) -> CheckpointCertificate {
    let (ledger, state_root) = (source.charter().ledger(), Digest([3; 32]));
    source.certificate(CheckpointRoot { ledger, height, outcome, state_root })
}

fn replayed(source: &SignedLedger, replay: &mut Recorded, place: &Path) -> Report {
    let options = Options { threads: 2, replay: Some(replay), ..Options::default() };
    audit(source.charter(), place.join("ledger"), options, &mut |_| ()).expect("good keys")
}

#[test]
fn replay_goes_on_from_a_certified_state_behind_what_is_redacted() {
    let place = folder();
    let source = redacted(place.path());
    let [first, second] = ids(&source);
    let outcome = |height| source.ledger().outcome(height).expect("reads").expect("such a height");
    let blocks = (1..=8).filter(|height| *height != 4).map(|height| (height, outcome(height))).collect();
    let at_six = checkpoint(&source, 6, outcome(6).header.digest());
    let agreed = BTreeMap::from([(2, first), (5, second), (9, TransactionId::default())]);
    let mut replay = Recorded { blocks, checkpoint: Some(at_six), agreed, executed: Vec::new() };
    let report = replayed(&source, &mut replay, place.path());
    assert!(report.error.is_none(), "{report:?}");
    assert_eq!((replay.executed.as_slice(), report.checked.unexecuted_blocks), (&[1, 2, 3, 7, 8][..], 3));

    // Nobody has agreed to this one.
    replay.agreed.insert(5, first);
    let Some(AuditError::Wrong { place: at, part, what }) =
        replayed(&source, &mut replay, place.path()).error
    else {
        panic!("it is not agreed")
    };
    assert_eq!((at.height, part), (4, Part::Transaction(3)));
    assert!(what.contains("proposal 5"), "{what}");
    replay.agreed.insert(5, second);

    // A state behind something else than what is recorded, one that too few have signed, and none.
    replay.checkpoint = Some(checkpoint(&source, 6, Digest([9; 32])));
    let error = replayed(&source, &mut replay, place.path()).error;
    let is_wrong = |error: &Option<AuditError>| matches!(error, Some(AuditError::Wrong { place, part: Part::CheckpointCertificate, .. }) if place.height == 6);
    assert!(is_wrong(&error), "{error:?}");
    let mut unsigned = checkpoint(&source, 6, outcome(6).header.digest());
    unsigned.signatures.truncate(2);
    replay.checkpoint = Some(unsigned);
    let error = replayed(&source, &mut replay, place.path()).error;
    assert!(is_wrong(&error), "{error:?}");
    for none in [None, Some(checkpoint(&source, 3, outcome(3).header.digest()))] {
        replay.checkpoint = none;
        let error = replayed(&source, &mut replay, place.path()).error;
        assert!(matches!(error, Some(AuditError::RedactedReplay { height: 4 })), "{error:?}");
    }
}
