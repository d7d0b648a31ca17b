//! How fast blocks are appended: `cargo run --release -p ledger --example append_rate -- FOLDER [BLOCKS]`.
//!
//! Blocks of 2,000 transactions of 250 bytes with small receipts, flushed in groups of four; says MB/s and
//! transactions/s, then how long it takes to open the folder again and to find a transaction.

use bytes::Bytes;
use crypto::sha256;
use ledger::{BlockOutcome, BlockRecord, Ledger};
use std::time::Instant;
use types::{
    Attested, Block, BlockDigest, BlockHeader, Outcome, OutcomeHeader, Receipt, StatementResult,
    TransactionId,
};

const TRANSACTIONS: u32 = 2_000;

fn record(previous: &BlockHeader) -> BlockRecord {
    let height = previous.height + 1;
    // The first block builds on the charter.
    let chained = if height == 1 { previous.previous } else { previous.digest() };
    let header = BlockHeader { height, previous: chained, transactions: TRANSACTIONS, ..previous.clone() };
    let receipts = (0..TRANSACTIONS)
        .map(|index| Receipt {
            transaction: TransactionId(sha256(&[&height.to_le_bytes(), &index.to_le_bytes()])),
            height,
            index,
            outcome: Outcome::Committed(vec![StatementResult { tag: "CALL".into(), ..Default::default() }]),
        })
        .collect();
    let transactions = vec![Bytes::from(vec![7; 250]); TRANSACTIONS as usize];
    let outcome_header = OutcomeHeader {
        ledger: header.ledger,
        height,
        block: header.digest(),
        previous: header.previous,
        receipts_root: header.previous,
        state_digest: header.previous,
        charters: header.charters,
    };
    let outcome = BlockOutcome { receipts, digest: BlockDigest::default(), header: outcome_header };
    BlockRecord {
        block: Block { header, attested: Attested::default(), transactions },
        certificate: Bytes::from(vec![1; 300]),
        outcome,
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("expected a folder")?;
    let blocks: u64 = arguments.next().map_or(Ok(500), |text| text.parse())?;
    let charter = sha256(&[b"charter"]);
    let (ledger, _) = Ledger::open(&folder, charter)?;
    let mut previous = BlockHeader {
        ledger: charter,
        height: 0,
        timestamp_ms: 0,
        previous: charter,
        transactions_root: charter,
        transactions: 0,
        proposer: 0,
        certified_height: 0,
        attested: Attested::default().digest(),
        charters: charter,
    };
    let (mut appending, mut flushing) = (0.0, 0.0);
    for number in 1..=blocks {
        let record = record(&previous);
        let start = Instant::now();
        ledger.append(&record)?;
        appending += start.elapsed().as_secs_f64();
        if number % 4 == 0 {
            let start = Instant::now();
            ledger.flush()?;
            flushing += start.elapsed().as_secs_f64();
        }
        previous = record.block.header;
    }
    let megabytes = ledger.bytes()? as f64 / 1e6;
    let transactions = (blocks * u64::from(TRANSACTIONS)) as f64;
    println!(
        "{megabytes:.0} MB: append alone {:.0} MB/s, {:.0} transactions/s",
        megabytes / appending,
        transactions / appending
    );
    let seconds = appending + flushing;
    println!("with flushes {:.0} MB/s, {:.0} transactions/s", megabytes / seconds, transactions / seconds);
    ledger.settle_indexes();
    drop(ledger);
    let start = Instant::now();
    let (ledger, report) = Ledger::open(&folder, charter)?;
    println!("opened in {:?}: tip {:?}", start.elapsed(), report.tip.map(|tip| tip.0));
    let start = Instant::now();
    for height in 1..=blocks.min(1_000) {
        let id = TransactionId(sha256(&[&height.to_le_bytes(), &7u32.to_le_bytes()]));
        assert_eq!(ledger.locate(&id)?, Some((height, 7)));
    }
    println!("found each in {:?}", start.elapsed() / blocks.min(1_000) as u32);
    Ok(())
}
