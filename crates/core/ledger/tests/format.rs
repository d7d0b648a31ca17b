//! The bytes on disk are a promise to every folder that exists: whoever changes them changes this file and the format
//! version.
#![allow(missing_docs)]

mod chain;

use bytes::Bytes;
use chain::{files, network, open};
use crypto::{Digest, sha256};
use ledger::{BlockOutcome, BlockRecord, CheckpointStore};
use std::io::Write;
use types::{Attested, Block, BlockDigest, BlockHeader, OutcomeHeader};

#[test]
fn files_have_the_bytes_of_format_version_2() {
    let folder = chain::folder();
    let (ledger, _) = open(folder.path(), 1);
    let mut previous = network();
    for height in 1..=2 {
        let header = BlockHeader {
            ledger: network(),
            height,
            timestamp_ms: 5,
            previous,
            transactions_root: Digest::ZERO,
            transactions: 0,
            proposer: 3,
            certified_height: 0,
            attested: Attested::default().digest(),
            charters: Digest([4; 32]),
        };
        previous = header.digest();
        let outcome_header = OutcomeHeader {
            ledger: network(),
            height,
            block: previous,
            previous: Digest([3; 32]),
            receipts_root: Digest([1; 32]),
            state_digest: Digest([2; 32]),
            charters: Digest([5; 32]),
        };
        let outcome =
            BlockOutcome { receipts: vec![], digest: BlockDigest::default(), header: outcome_header };
        let certificate = Bytes::from_static(b"certificate");
        let block = Block { header, attested: Attested::default(), transactions: vec![] };
        ledger.append(&BlockRecord { block, certificate, outcome }).expect("appends");
    }
    ledger.flush().expect("flushes");
    ledger.settle_indexes();
    let store = CheckpointStore::open(folder.path(), network()).expect("opens");
    store.write(9, |writer| writer.write_all(b"tables")).expect("writes");
    let digest = |path: &std::path::Path| sha256(&[&std::fs::read(path).expect("reads")]).short();
    let found = [("log", 1), ("idx", 0), ("txi", 0), ("state", 0)]
        .map(|(extension, number)| (extension, digest(&files(folder.path(), extension)[number])));
    let expected = [("log", "e49f3371"), ("idx", "e898ba5c"), ("txi", "54ab2bb3"), ("state", "147f57f5")];
    assert_eq!(found, expected.map(|(extension, digest)| (extension, digest.to_string())));
    assert_eq!(digest(&folder.path().join("LEDGER")), "18435c80", "ledger");
}
