//! Whatever somebody changes in the files is found and named, also where the checksums are made right afterwards.
#![allow(missing_docs)]

mod support;

use audit::{AuditError, Part};
use ledger::LedgerError;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::fs;
use support::{FILE_HEAD, File, HEAD, HEADER, OUTCOME_HEADER, Record, build, check, files, folder, wrong};

#[test]
fn a_good_ledger_is_good_also_while_it_is_written() {
    let folder = folder();
    let mut ledger = support::create(folder.path(), 1, 4_000, |_| ());
    support::fill(&mut ledger, &[3, 0, 5, 1, 2, 40]);
    let charter = ledger.charter().clone();
    for finished in [false, true] {
        let report = check(&charter, folder.path());
        assert!(report.error.is_none() && report.torn.is_none(), "{report:?}");
        assert_eq!((report.checked.height, report.checked.transactions), (7, 52));
        assert_eq!(report.certified_height, 4, "block 7 carries the certificate of height 4");
        assert!(files(folder.path()).len() > 1);
        if !finished {
            ledger.ledger().flush().expect("flushes");
        }
    }
}

#[test]
fn an_empty_ledger_is_good() {
    let folder = folder();
    let charter = build(&folder.path().join("other"), 1);
    drop(ledger::Ledger::open(folder.path().join("ledger"), charter.ledger()).expect("a new one"));
    let report = check(&charter, folder.path());
    assert!(report.error.is_none() && report.checked.height == 0, "{report:?}");
}

/// Bytes of every field of a record, and some in between.
fn positions(record: &Record, random: &mut StdRng) -> Vec<usize> {
    let [block, certificate, outcome, end] = record.starts();
    let head = [0, 4, 8, 12, 16, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64, 96, 128, 160, 192, 414, 415];
    let header = [0, 32, 40, 48, 80, 112, 116, 118, 126, 158];
    let outcome_header = [0, 32, 40, 72, 104, 136, 168].map(|at| end - OUTCOME_HEADER + at);
    let mut positions = head.to_vec();
    positions.extend(header.iter().flat_map(|at| [224 + at, block + at]));
    positions.extend([block + HEADER, certificate, certificate - 1, outcome - 1, outcome, outcome + 4]);
    positions.extend(outcome_header);
    positions.extend((0..40).map(|_| random.random_range(0..record.bytes.len())));
    positions.retain(|at| *at < end);
    positions
}

#[test]
fn every_flipped_byte_is_found_whether_checksums_fit_or_not() {
    let folder = folder();
    let charter = build(folder.path(), 1);
    let path = files(folder.path()).remove(0);
    let file = File::read(&path);
    let mut random = StdRng::seed_from_u64(6);
    for (number, record) in file.records.iter().enumerate() {
        for at in positions(record, &mut random) {
            for sealed in [false, true] {
                file.write_with(&path, number, |record| {
                    record.bytes[at] ^= 1 << (at % 8);
                    if sealed {
                        record.seal();
                    }
                });
                // The flip was in a checksum.
                let same = sealed && ((4..8).contains(&at) || (36..48).contains(&at));
                let report = check(&charter, folder.path());
                let height = number as u64 + 1;
                assert_eq!(
                    report.error.is_none(),
                    same,
                    "height {height}, byte {at}, sealed {sealed}: {report:?}"
                );
                assert!(same || report.checked.height < height, "{report:?}");
                let part = match report.error {
                    Some(AuditError::Wrong { part, .. }) if sealed => part,
                    _ => continue,
                };
                let [block, certificate, outcome, end] = record.starts();
                let expected = match at {
                    0..HEAD => matches!(part, Part::Header | Part::Receipts | Part::OutcomeHeader),
                    _ if at < block + HEADER => matches!(part, Part::Header),
                    _ if at < certificate => {
                        matches!(
                            part,
                            Part::OutcomeCertificate | Part::CheckpointCertificate | Part::Transactions
                        )
                    }
                    _ if at < outcome => part == Part::OrderingCertificate,
                    _ if at < end - OUTCOME_HEADER => {
                        matches!(part, Part::Receipts | Part::Receipt(_) | Part::StateDigest)
                    }
                    _ => part == Part::OutcomeHeader,
                };
                assert!(expected, "height {height}, byte {at}: {part}");
            }
        }
    }
}

#[test]
fn a_header_that_is_changed_in_every_copy_is_found() {
    let folder = folder();
    let charter = build(folder.path(), 1);
    let path = files(folder.path()).remove(0);
    let file = File::read(&path);
    for at in 0..HEADER {
        file.write_with(&path, 2, |record| {
            record.bytes[HEAD + at] ^= 1;
            record.seal_header();
        });
        // A height and a count of transactions that do not fit the record are found when it is read.
        let report = check(&charter, folder.path());
        let part = match report.error {
            Some(AuditError::Wrong { ref place, part, .. }) if place.height == 3 => Some(part),
            Some(AuditError::File(_)) if (32..40).contains(&at) || (112..116).contains(&at) => None,
            other => panic!("byte {at}: {other:?}"),
        };
        let expected = match at {
            0..32 => Some(Part::Header),
            80..112 => Some(Part::Transactions),
            126..158 => Some(Part::OutcomeCertificate),
            158.. => Some(Part::OrderingCertificate),
            _ => part,
        };
        assert_eq!(part, expected, "byte {at}");
        assert!(report.checked.height == 2);
    }
}

#[test]
fn an_outcome_header_that_is_changed_in_every_copy_is_found() {
    let folder = folder();
    let charter = build(folder.path(), 1);
    let path = files(folder.path()).remove(0);
    let file = File::read(&path);
    for (in_head, in_outcome, part) in
        [(96, 72, Part::OutcomeHeader), (128, 104, Part::Receipts), (160, 136, Part::StateDigest)]
    {
        for at in [0, 17, 31] {
            file.write_with(&path, 3, |record| {
                let outcome = record.bytes.len() - OUTCOME_HEADER;
                record.bytes[in_head + at] ^= 1;
                record.bytes[outcome + in_outcome + at] ^= 1;
                record.seal();
            });
            let (height, found, what) = wrong(&charter, folder.path());
            assert_eq!((height, found), (4, part), "{what}");
        }
    }
}

#[test]
fn blocks_that_are_dropped_swapped_or_doubled_are_found() {
    let folder = folder();
    let charter = build(folder.path(), 1);
    let path = files(folder.path()).remove(0);
    let file = File::read(&path);
    let error = |records: Vec<usize>| {
        let records = records.into_iter().map(|number| file.records[number].clone()).collect();
        File { head: file.head.clone(), records }.write(&path);
        let report = check(&charter, folder.path());
        (report.checked.height, report.error.expect("something is wrong").to_string())
    };
    for (records, checked, says) in [
        (vec![1, 2, 3, 4, 5], 0, "expected height 1, found height 2"),
        (vec![0, 1, 3, 4, 5], 2, "expected height 3, found height 4"),
        (vec![0, 1, 3, 2, 4, 5], 2, "expected height 3, found height 4"),
        (vec![0, 1, 1, 2, 3, 4, 5], 2, "expected height 3, found height 2"),
        (vec![0, 1, 2, 3, 4], 5, "expected blocks up to height 6, which were flushed; the last is 5"),
        (vec![], 0, "expected blocks up to height 6"),
    ] {
        let (height, error) = error(records.clone());
        assert!(height == checked && error.contains(says), "{records:?}: {height}: {error}");
    }
}

#[test]
fn files_that_are_cut_or_missing_are_found() {
    let folder = folder();
    let mut ledger = support::create(folder.path(), 1, 3_000, |_| ());
    support::fill(&mut ledger, &[3; 12]);
    let charter = ledger.charter().clone();
    ledger.finish().expect("flushes");
    let paths = files(folder.path());
    assert!(paths.len() >= 3, "{paths:?}");
    for path in &paths {
        let bytes = fs::read(path).expect("reads");
        for length in [0, 10, FILE_HEAD, FILE_HEAD + 100, bytes.len() / 2, bytes.len() - 1] {
            fs::write(path, &bytes[..length]).expect("cuts");
            let report = check(&charter, folder.path());
            assert!(report.error.is_some(), "{length} bytes of {}: {report:?}", path.display());
        }
        fs::remove_file(path).expect("removes");
        let error = check(&charter, folder.path()).error.expect("a file is missing").to_string();
        assert!(
            error.contains("expected a file that starts") || error.contains("which were flushed"),
            "{error}"
        );
        fs::write(path, bytes).expect("writes");
    }
    assert!(check(&charter, folder.path()).error.is_none());
}

#[test]
fn heads_of_files_are_checked_byte_by_byte() {
    let folder = folder();
    let charter = build(folder.path(), 1);
    for path in [files(folder.path()).remove(0), folder.path().join("ledger/LEDGER")] {
        let bytes = fs::read(&path).expect("reads");
        for at in 0..FILE_HEAD {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            fs::write(&path, flipped).expect("writes");
            let report = check(&charter, folder.path());
            assert!(matches!(report.error, Some(AuditError::File(_))), "{}, byte {at}", path.display());
        }
        fs::write(&path, bytes).expect("writes");
    }
}

#[test]
fn a_torn_end_that_was_not_flushed_is_reported_and_no_error() {
    let folder = folder();
    let mut ledger = support::create(folder.path(), 1, 1 << 20, |_| ());
    support::fill(&mut ledger, &[2]);
    ledger.ledger().flush().expect("flushes");
    support::fill(&mut ledger, &[3, 1]);
    let charter = ledger.charter().clone();
    drop(ledger);
    let path = files(folder.path()).remove(0);
    let bytes = fs::read(&path).expect("reads");
    let last = File::read(&path).records.pop().expect("four").bytes.len();
    for cut in [1, 100, last - 1] {
        fs::write(&path, &bytes[..bytes.len() - cut]).expect("tears");
        let report = check(&charter, folder.path());
        assert!(report.error.is_none(), "{report:?}");
        assert_eq!((report.checked.height, report.torn.expect("torn").bytes), (3, (last - cut) as u64));
    }
    // Blocks up to height 2 were flushed: there, nothing can be torn.
    fs::write(&path, &bytes[..FILE_HEAD + 500]).expect("cuts");
    let error = check(&charter, folder.path()).error;
    assert!(matches!(error, Some(AuditError::File(LedgerError::Damaged { .. }))), "{error:?}");
}

#[test]
fn certificates_of_other_heights_and_ledgers_are_found() {
    let folder = folder();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    let charter = build(&one, 1);
    build(&two, 2);
    let path = files(&one).remove(0);
    let (file, other) = (File::read(&path), File::read(&files(&two)[0]));
    // The ordering's certificate, from another height and from another ledger.
    for certificate in [file.records[4].part(1), other.records[3].part(1)] {
        let mut mixed = file.clone();
        let record = &file.records[3];
        mixed.records[3] = record.with_parts([record.part(0), certificate, record.part(2)]);
        mixed.write(&path);
        let (height, part, what) = wrong(&charter, &one);
        assert_eq!((height, part), (4, Part::OrderingCertificate), "{what}");
    }
    // The outcome certificate: blocks 5 and 6 carry those of heights 2 and 3, without transactions in front of them.
    let length = 1 + OUTCOME_HEADER + 4 + 4 * 66 + 1;
    for source in [&file.records[4], &other.records[5]] {
        let mut mixed = file.clone();
        let record = &file.records[5];
        let attested = &source.part(0)[HEADER..HEADER + length];
        let block = [&record.part(0)[..HEADER], attested, &record.part(0)[HEADER + length..]].concat();
        mixed.records[5] = record.with_parts([&block, record.part(1), record.part(2)]);
        mixed.write(&path);
        let (height, part, what) = wrong(&charter, &one);
        assert_eq!((height, part), (6, Part::OutcomeCertificate), "{what}");
    }
    // A whole ledger of somebody else.
    fs::copy(two.join("ledger/LEDGER"), one.join("ledger/LEDGER")).expect("copies");
    let error = check(&charter, &one).error;
    assert!(matches!(error, Some(AuditError::File(LedgerError::OtherLedger { .. }))), "{error:?}");
}

#[test]
fn the_first_thing_that_is_wrong_is_named() {
    let folder = folder();
    let charter = build(folder.path(), 1);
    let path = files(folder.path()).remove(0);
    let mut file = File::read(&path);
    for (number, at) in [(5, 100), (4, HEAD + 20), (2, 64)] {
        file.records[number].bytes[at] ^= 1;
        file.write(&path);
        let error = check(&charter, folder.path()).error.expect("damaged").to_string();
        let (name, height) = (path.file_name().unwrap().to_str().unwrap(), number + 1);
        assert!(error.contains(name) && error.contains(&format!("height {height}")), "{error}");
    }
}
