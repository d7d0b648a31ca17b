//! What a ledger keeps, how it is read, and how it is taken back.
#![allow(missing_docs)]

mod chain;

use chain::{Chain, build, copy_folder, files, id, network, open, options};
use crypto::sha256;
use ledger::{Faults, Ledger, LedgerError, OpenReport};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use types::TransactionId;

#[test]
fn what_is_appended_is_read_before_and_after_reopening() {
    let folder = chain::folder();
    let records = build(folder.path(), 4_000, 30, 5);
    assert!(files(folder.path(), "log").len() > 3, "the blocks need several files");
    let (ledger, report) = open(folder.path(), 4_000);
    let tip = Some((30, records[29].block.header.digest()));
    assert_eq!(report, OpenReport { tip, ..OpenReport::default() });
    assert_eq!(ledger.tip(), tip);
    for record in &records {
        let height = record.block.header.height;
        assert_eq!(ledger.read(height).expect("reads").as_ref(), Some(record));
        assert_eq!(ledger.header(height).expect("reads").as_ref(), Some(&record.block.header));
        assert_eq!(ledger.outcome(height).expect("reads").as_ref(), Some(&record.outcome));
        let block = ledger.block(height).expect("reads");
        assert_eq!(block, Some((record.block.clone(), record.certificate.clone())));
        for receipt in &record.outcome.receipts {
            assert_eq!(ledger.locate(&receipt.transaction).expect("finds"), Some((height, receipt.index)));
            assert_eq!(ledger.receipt(&receipt.transaction).expect("finds").as_ref(), Some(receipt));
        }
    }
    for absent in [0, 31, u64::MAX] {
        assert_eq!(ledger.read(absent).expect("reads"), None);
    }
    assert_eq!(ledger.locate(&id(9, 1, 0)).expect("searches"), None);
    let replayed: Result<Vec<_>, _> = ledger.blocks_from(7).collect();
    assert_eq!(replayed.expect("reads"), records[6..]);
}

#[test]
fn summaries_show_the_newest_blocks_first() {
    let folder = chain::folder();
    let records = build(folder.path(), 4_000, 9, 8);
    let (ledger, _) = open(folder.path(), 4_000);
    let latest = ledger.latest(3).expect("reads");
    assert_eq!(latest.iter().map(|summary| summary.header.height).collect::<Vec<_>>(), [9, 8, 7]);
    let (summary, record) = (&latest[0], &records[8]);
    assert_eq!(summary.header_digest, record.block.header.digest());
    assert_eq!(summary.outcome, record.outcome.header);
    let counts = summary.counts;
    assert_eq!((counts.committed, counts.aborted, counts.conflicts, counts.rejected), (4, 2, 0, 2));
    assert_eq!(summary.block_bytes as usize, record.block.to_bytes().len());
    assert_eq!(ledger.latest(100).expect("reads").len(), 9);
    assert_eq!(ledger.summaries(2..=4).count(), 3);
    assert_eq!(ledger.summaries(10..=u64::MAX).count(), 0);
}

#[test]
fn an_empty_ledger_has_no_tip_and_takes_only_the_first_block() {
    let folder = chain::folder();
    let (ledger, report) = Ledger::open(folder.path().join("a/b"), network()).expect("creates");
    assert_eq!((report, ledger.tip()), (OpenReport::default(), None));
    assert_eq!(ledger.latest(5).expect("reads"), vec![]);
    ledger.flush().expect("nothing to flush");
    ledger.truncate_after(0).expect("nothing to take back");
    let mut chain = Chain::new();
    let (first, second) = (chain.next(1), chain.next(1));
    assert!(matches!(ledger.append(&second), Err(LedgerError::WrongBlock { what: "height", .. })));
    ledger.append(&first).expect("the first block");
    ledger.append(&second).expect("the refused block did no harm");
}

#[test]
fn blocks_that_do_not_continue_the_ledger_are_refused_by_name() {
    let folder = chain::folder();
    let (ledger, _) = open(folder.path(), 4_000);
    let good = Chain::new().next(2);
    let mut other = good.clone();
    other.block.header.ledger = sha256(&[b"other"]);
    let mut previous = good.clone();
    previous.block.header.previous = sha256(&[b"other"]);
    let mut count = good.clone();
    count.block.header.transactions = 3;
    let mut receipts = good.clone();
    receipts.outcome.receipts.pop();
    let mut order = good.clone();
    order.outcome.receipts.swap(0, 1);
    for (wrong, part) in [
        (other, "the ledger"),
        (previous, "the previous header"),
        (count, "in its header"),
        (receipts, "a count of receipts"),
        (order, "a receipt for height/index 1/0, found 1/1"),
    ] {
        let error = ledger.append(&wrong).expect_err("refused").to_string();
        assert!(error.contains(part), "{error}");
    }
    ledger.append(&good).expect("appends");
}

#[test]
fn a_folder_of_another_network_is_refused_and_both_are_named() {
    let folder = chain::folder();
    let other = sha256(&[b"another charter"]);
    drop(Ledger::open(folder.path(), network()).expect("creates"));
    for blocks in [0, 3] {
        if blocks > 0 {
            build(folder.path(), 4_000, blocks, 1);
        }
        let text = Ledger::open(folder.path(), other).err().expect("refused").to_string();
        assert!(text.contains(&network().to_string()) && text.contains(&other.to_string()), "{text}");
    }
    // The blocks say so themselves where the file that names the network is lost.
    std::fs::remove_file(folder.path().join("LEDGER")).expect("removes");
    let error = Ledger::open(folder.path(), other).err().expect("refused");
    assert!(matches!(error, LedgerError::OtherLedger { .. }), "{error}");
}

#[test]
fn a_second_opener_is_refused_until_the_first_has_closed() {
    let folder = chain::folder();
    assert_eq!(ledger::in_use(folder.path()).expect("nothing is there"), None);
    let (first, _) = open(folder.path(), 4_000);
    assert_eq!(ledger::in_use(folder.path()).expect("read"), Some(std::process::id().to_string()));
    let error = Ledger::open(folder.path(), network()).err().expect("refused");
    assert!(
        matches!(&error, LedgerError::InUse { process, .. } if *process == std::process::id().to_string())
    );
    drop(first);
    assert_eq!(ledger::in_use(folder.path()).expect("read"), None);
    open(folder.path(), 4_000);
}

#[test]
fn readers_see_whole_blocks_while_the_writer_appends_and_flushes() {
    let folder = chain::folder();
    let (ledger, _) = open(folder.path(), 20_000);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reader in 0..3u64 {
            let (ledger, done) = (&ledger, &done);
            scope.spawn(move || {
                let mut seen = 0;
                while !done.load(Ordering::Relaxed) || seen == 0 {
                    let Some((height, digest)) = ledger.tip() else { continue };
                    assert!(height >= seen, "the tip never goes back");
                    seen = height;
                    let record = ledger.read(height).expect("reads").expect("the tip is there");
                    assert_eq!(record.block.header.digest(), digest);
                    let (height, index) = (1 + (height * 7 + reader) % height, reader as u32);
                    let receipt = ledger.receipt(&id(0, height, index)).expect("finds").expect("is there");
                    assert_eq!((receipt.height, receipt.index), (height, index));
                    let latest = ledger.latest(3).expect("reads");
                    assert!(latest[0].header.height >= seen && latest.len() as u64 >= seen.min(3));
                }
            });
        }
        let mut chain = Chain::new();
        for height in 1..=400 {
            ledger.append(&chain.next(20)).expect("appends");
            if height % 50 == 0 {
                ledger.flush().expect("flushes");
                assert_eq!(ledger.flushed_height(), height);
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(files(folder.path(), "log").len() > 10);
}

#[test]
fn a_flush_covers_what_was_appended_before_it_while_appending_goes_on() {
    let folder = chain::folder();
    let (ledger, _) = open(folder.path(), 20_000);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let appended = ledger.tip().map_or(0, |tip| tip.0);
                ledger.flush().expect("flushes");
                assert!(ledger.flushed_height() >= appended);
            }
        });
        let mut chain = Chain::new();
        (0..300).for_each(|_| ledger.append(&chain.next(10)).expect("appends"));
        done.store(true, Ordering::Relaxed);
    });
    ledger.flush().expect("flushes");
    assert_eq!(ledger.flushed_height(), 300);
}

#[test]
fn blocks_are_taken_back_at_every_height_and_others_follow() {
    let folder = chain::folder();
    let original = folder.path().join("original");
    let records = build(&original, 3_000, 12, 4);
    for height in 0..=12 {
        let copy = folder.path().join(height.to_string());
        copy_folder(&original, &copy);
        let (ledger, _) = open(&copy, 3_000);
        ledger.truncate_after(height).expect("takes back");
        let mut chain = Chain::after(&ledger, 1);
        assert_eq!(chain.height, height);
        for _ in 0..5 {
            ledger.append(&chain.next(4)).expect("appends");
        }
        ledger.flush().expect("flushes");
        drop(ledger);
        let (ledger, report) = open(&copy, 3_000);
        assert_eq!((report.tip.map(|tip| tip.0), report.flushed_lost), (Some(height + 5), None));
        for record in &records {
            let kept = record.block.header.height <= height;
            let found = ledger.receipt(&record.outcome.receipts[1].transaction).expect("finds");
            assert_eq!(found.is_some(), kept, "{} of {height}", record.block.header.height);
        }
        assert_eq!(ledger.locate(&id(1, height + 5, 3)).expect("finds"), Some((height + 5, 3)));
        assert_eq!(ledger.blocks_from(1).filter(|record| record.is_ok()).count() as u64, height + 5);
    }
}

#[test]
fn a_reader_keeps_its_blocks_while_they_are_taken_back() {
    let folder = chain::folder();
    let (ledger, _) = open(folder.path(), 3_000);
    let mut chain = Chain::new();
    (0..40).for_each(|_| ledger.append(&chain.next(3)).expect("appends"));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for height in 1..=40 {
                    if let Some(record) = ledger.read(height).expect("never a mixture of old and new") {
                        assert_eq!(record.block.header.height, height);
                    }
                }
            }
        });
        for salt in 1..20 {
            ledger.truncate_after(u64::from(salt)).expect("takes back");
            let mut chain = Chain::after(&ledger, salt);
            (0..20).for_each(|_| ledger.append(&chain.next(3)).expect("appends"));
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_transaction_submitted_again_keeps_the_receipt_of_its_execution() {
    use types::{Outcome, RejectReason};
    let folder = chain::folder();
    let (ledger, _) = open(folder.path(), 1);
    let once = TransactionId(sha256(&[b"once"]));
    let mut chain = Chain::new();
    let outcomes = [
        Outcome::Rejected(RejectReason::BlockBudget),
        Outcome::Committed(vec![]),
        Outcome::Rejected(RejectReason::Duplicate { height: 2, index: 0 }),
        Outcome::Rejected(RejectReason::Expired { height: 4, expires_at: 3 }),
    ];
    for (height, outcome) in (1..).zip(outcomes) {
        let mut record = chain.next(1);
        record.outcome.receipts[0].transaction = once;
        record.outcome.receipts[0].outcome = outcome;
        ledger.append(&record).expect("appends");
        let expected = if height == 1 { (1, 0) } else { (2, 0) };
        assert_eq!(ledger.locate(&once).expect("finds"), Some(expected));
    }
    ledger.settle_indexes();
    assert_eq!(ledger.locate(&once).expect("finds in files"), Some((2, 0)));
}

#[test]
fn a_full_disk_keeps_what_was_flushed_and_ends_writing() {
    let folder = chain::folder();
    let record_bytes = {
        let (ledger, _) = open(folder.path(), 1 << 20);
        ledger.append(&Chain::new().next(5)).expect("appends");
        ledger.bytes().expect("reads") - 64
    };
    // From no byte at all to the last one missing, also in a new file's head.
    for (segment_bytes, space) in
        [(1 << 20, 0), (1 << 20, 300), (1 << 20, record_bytes - 1), (1, 30), (1, 70)]
    {
        let folder = chain::folder();
        let faults = Arc::new(Faults::default());
        let mut options = options(segment_bytes);
        options.faults = Some(Arc::clone(&faults));
        let (ledger, _) = Ledger::open_with(folder.path(), network(), options).expect("opens");
        let mut chain = Chain::new();
        (0..3).for_each(|_| ledger.append(&chain.next(5)).expect("appends"));
        ledger.flush().expect("flushes");
        ledger.settle_indexes();
        // The mark of a full segment's flush needs twelve bytes.
        faults.leave_space(space + if segment_bytes == 1 { 12 } else { 0 });
        let fourth = chain.next(5);
        let error = ledger.append(&fourth).expect_err("no space");
        assert!(matches!(error, LedgerError::DiskFull { .. }), "{error}");
        faults.leave_space(u64::MAX);
        let error = ledger.append(&fourth).expect_err("still refused").to_string();
        assert!(error.contains("the disk is full") && error.contains("restart"), "{error}");
        assert!(matches!(ledger.flush(), Err(LedgerError::Poisoned { .. })));
        assert!(matches!(ledger.truncate_after(1), Err(LedgerError::Poisoned { .. })));
        assert_eq!(ledger.tip().map(|tip| tip.0), Some(3));
        assert!(ledger.read(3).expect("reading goes on").is_some());
        drop(ledger);
        let (ledger, report) = open(folder.path(), segment_bytes);
        assert_eq!((report.tip.map(|tip| tip.0), report.flushed_lost), (Some(3), None));
        ledger.append(&fourth).expect("there is space again");
        ledger.flush().expect("flushes");
    }
}

#[test]
fn a_failed_flush_is_never_tried_again() {
    let folder = chain::folder();
    let faults = Arc::new(Faults::default());
    let mut options = options(1 << 20);
    options.faults = Some(Arc::clone(&faults));
    let (ledger, _) = Ledger::open_with(folder.path(), network(), options).expect("opens");
    let mut chain = Chain::new();
    ledger.append(&chain.next(5)).expect("appends");
    ledger.flush().expect("flushes");
    ledger.append(&chain.next(5)).expect("appends");
    faults.fail_flushes(true);
    assert!(matches!(ledger.flush(), Err(LedgerError::Io { action: "flush", .. })));
    faults.fail_flushes(false);
    assert!(matches!(ledger.flush(), Err(LedgerError::Poisoned { .. })));
    assert_eq!(ledger.flushed_height(), 1);
}

#[test]
fn a_power_failure_takes_what_was_not_flushed_and_nothing_else() {
    for seed in 0..60u64 {
        let folder = chain::folder();
        let mut draws = 0u64;
        let mut chance = || {
            draws += 1;
            let digest = sha256(&[&seed.to_le_bytes(), &draws.to_le_bytes()]);
            u64::from_le_bytes(std::array::from_fn(|byte| digest.0[byte]))
        };
        let faults = Arc::new(Faults::losing());
        let segment_bytes = [2_000, 1 << 20][seed as usize % 2];
        let mut records = Vec::new();
        for _ in 0..4 {
            let mut options = options(segment_bytes);
            options.faults = Some(Arc::clone(&faults));
            let (ledger, _) = Ledger::open_with(folder.path(), network(), options).expect("opens");
            let mut chain = Chain::after(&ledger, 0);
            records.truncate(ledger.tip().map_or(0, |(height, _)| height as usize));
            let (mut flushed, before) = (records.len(), records.len());
            for _ in 0..chance() % 5 {
                records.push(chain.next(3));
                ledger.append(&records[records.len() - 1]).expect("appends");
                if chance() % 3 == 0 {
                    ledger.flush().expect("flushes");
                    flushed = records.len();
                }
            }
            ledger.settle_indexes();
            drop(ledger);
            faults.lose_unflushed(&mut chance).expect("files");
            let (ledger, _) = open(folder.path(), segment_bytes);
            let tip = ledger.tip().map_or(0, |(height, _)| height as usize);
            assert!((flushed..=records.len()).contains(&tip), "seed {seed}: {before} {flushed} {tip}");
            let kept: Result<Vec<_>, _> = ledger.blocks_from(1).collect();
            assert_eq!(kept.expect("reads"), records[..tip], "seed {seed}");
        }
    }
}
