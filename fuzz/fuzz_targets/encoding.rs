//! Any bytes as what other members and clients send, and good encodings with changes: what is read is written again as the
//! same bytes.
#![no_main]

#[path = "../../crates/language/sql/tests/support/mod.rs"]
mod support;

use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use crypto::{Digest, SecretKey, sha256};
use libfuzzer_sys::fuzz_target;
use state::{
    CheckpointHeader, EndorsedForm, LiveRequests, PlainState, endorsed_effects, read_checkpoint,
    write_checkpoint,
};
use std::fmt::Debug;
use std::sync::LazyLock;
use support::{Database, START_MS};
use types::{
    Block, BlockHeader, Catalog, Charter, Credential, EndorsedEffects, EndorsedSimulation, Identity, Outcome,
    Payload, Policy, Proposal, ProposalAnswer, ProposalReply, ProposalRequest, Receipt, RequestId, Row,
    SignedTransaction, StatementResult, SubmissionReply, Value, decode_exactly, encode, endorse,
    frame_ranges, transactions_root,
};

const SCHEMA: [&str; 6] = [
    "CREATE TABLE account (id bigint PRIMARY KEY, balance numeric(12, 2) NOT NULL CHECK (balance >= 0), owner text, \
     opened date, tags text[], UNIQUE (owner))",
    "CREATE TABLE line (id serial, account bigint REFERENCES account, at timestamp, note varchar(10), cost real)",
    "CREATE INDEX line_at ON line (at)",
    "CREATE VIEW lines AS SELECT count(*) AS n FROM line",
    "CREATE FUNCTION twice(n numeric) RETURNS numeric LANGUAGE plpgsql AS 'BEGIN RETURN 2 * n; END'",
    "INSERT INTO account VALUES (1, 10, 'ada', '2026-01-31', '{a,b}'), (2, 0.5, NULL, NULL, NULL)",
];

/// Answers that a reply to proposals may have.
const ANSWERS_MAX: usize = 16;

/// A good encoding of each kind, in the order of [`check_kind`].
static SAMPLES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(samples);

fn samples() -> Vec<Vec<u8>> {
    let ledger = sha256(&[b"ledger"]);
    let root = SecretKey::from_bytes([1; 32]);
    let key = SecretKey::from_bytes([2; 32]);
    let credential = Credential::issue(&root, 0, &ledger, &key.public_key());
    let identity = Identity::new(ledger, key, credential);
    let sql = "UPDATE account SET balance = balance + 1 WHERE id = $1";
    let payload = Payload::Script { sql: sql.to_string(), parameters: vec![Value::BigInt(1)] };
    let mut signed = identity.sign_request(RequestId([3; 16]), "clerk".to_string(), payload.clone(), 9);
    let plain = signed.to_bytes();

    let database = Database::with(&SCHEMA);
    let effects = database.effects(payload);
    let effects =
        endorsed_effects(&effects, &database.state, START_MS, EndorsedForm::Writes).expect("an UPDATE");
    let found = [(signed.transaction.id(), effects.digest())];
    let endorsements = endorse(&root, 0, &ledger, 7, &found);
    let agreed = ProposalAnswer::Agreed(endorsements[0].clone());
    let simulation = EndorsedSimulation { effects: effects.clone(), endorsements };
    signed.endorsed = Some(Box::new(simulation.clone()));
    let endorsed = signed.to_bytes();

    let transactions = vec![Bytes::from(plain.clone()), Bytes::from(endorsed.clone())];
    // An empty block is the shortest that can be read.
    let zeros = |length: usize| Bytes::from(vec![0; length]);
    let mut block = (0..).find_map(|length| Block::from_bytes(&zeros(length)).ok()).expect("an empty block");
    block.header = BlockHeader {
        ledger,
        height: 7,
        timestamp_ms: START_MS,
        transactions_root: transactions_root(&transactions),
        transactions: 2,
        ..block.header
    };
    block.transactions = transactions;
    let header = block.header.clone();
    let results = vec![StatementResult { tag: "UPDATE 1".to_string(), ..StatementResult::default() }];
    let transaction = signed.transaction.id();
    let receipt = Receipt { transaction, height: 7, index: 0, outcome: Outcome::Committed(results) };
    let reply = SubmissionReply { position: 0, result: Ok(receipt.clone()) };
    let proposal = Proposal { transaction: plain.clone(), expected: Some(effects.digest()) };
    let request = ProposalRequest { height: Some(7), proposals: vec![proposal] };
    let answers = ProposalReply::Answers { height: 7, answers: vec![Ok(agreed)] };
    let row = database.state.tables.values().flat_map(|rows| rows.values()).next().expect("a row");
    vec![
        plain,
        endorsed,
        block.to_bytes(),
        encode(&header),
        encode(&receipt),
        encode(&reply),
        reply.to_frame(),
        request.to_bytes(),
        answers.to_bytes(),
        encode(&effects),
        encode(&simulation),
        encode(&signed.credential),
        encode(database.state.catalog.as_ref()),
        encode(row),
        checkpoint(&database.state, ledger),
        Charter::with_defaults("ledger", 1).to_toml().into_bytes(),
        b"2 of (a, b, c) and d".to_vec(),
    ]
}

/// What the shortest run of zeros that can be read says: further fields need no further line.
fn of_zeros<T: BorshDeserialize>() -> T {
    (0..).find_map(|length| decode_exactly(&vec![0; length]).ok()).expect("a good encoding")
}

/// The stream of a checkpoint without the digest at its end.
fn checkpoint(state: &PlainState, ledger: Digest) -> Vec<u8> {
    let mut header: CheckpointHeader = of_zeros();
    (header.ledger, header.height) = (ledger, 7);
    let mut bytes = Vec::new();
    write_checkpoint(&header, state, &LiveRequests::at(7).content(), &mut bytes).expect("memory");
    bytes.truncate(bytes.len() - Digest::ZERO.0.len());
    bytes
}

/// What is read is written again as the same bytes.
fn check<T: BorshSerialize + BorshDeserialize + Debug>(bytes: &[u8]) {
    if let Ok(read) = decode_exactly::<T>(bytes) {
        assert_eq!(encode(&read), bytes, "{read:?}");
    }
}

fn check_kind(kind: usize, bytes: &[u8]) {
    match kind {
        0 | 1 => {
            if let Ok(transaction) = SignedTransaction::from_bytes(bytes) {
                assert_eq!(transaction.to_bytes(), bytes);
            }
            let _ = (SignedTransaction::contract_of(bytes), SignedTransaction::id_of(bytes));
            let _ = SignedTransaction::uncovered(bytes);
        }
        2 => {
            if let Ok(block) = Block::from_bytes(&Bytes::copy_from_slice(bytes)) {
                assert_eq!(block.to_bytes(), bytes);
            }
        }
        3 => check::<BlockHeader>(bytes),
        4 => check::<Receipt>(bytes),
        5 => check::<SubmissionReply>(bytes),
        6 => {
            for range in frame_ranges(bytes).unwrap_or_default() {
                check::<SubmissionReply>(&bytes[range]);
            }
        }
        7 => {
            if let Ok(request) = ProposalRequest::from_bytes(bytes) {
                assert_eq!(request.to_bytes(), bytes);
            }
        }
        8 => {
            if let Ok(reply) = ProposalReply::from_bytes(bytes, ANSWERS_MAX) {
                assert_eq!(reply.to_bytes(), bytes);
            }
        }
        9 => check::<EndorsedEffects>(bytes),
        10 => check::<EndorsedSimulation>(bytes),
        11 => check::<Credential>(bytes),
        12 => check::<Catalog>(bytes),
        13 => check::<Row>(bytes),
        14 => {
            let stream = [bytes, &sha256(&[bytes]).0].concat();
            if let Ok(read) = read_checkpoint(stream.as_slice(), &memory::Memory) {
                let mut written = Vec::new();
                let (snapshot, live) = (read.state.snapshot(), read.live.content());
                write_checkpoint(&read.header, snapshot.as_ref(), &live, &mut written).expect("memory");
                assert_eq!(written, stream);
            }
        }
        15 => {
            if let Ok(charter) =
                std::str::from_utf8(bytes).map_or(Err(()), |text| Charter::from_toml(text).map_err(drop))
            {
                assert_eq!(Charter::from_toml(&charter.to_toml()).map_err(drop), Ok(charter));
            }
        }
        _ => {
            if let Ok(policy) =
                std::str::from_utf8(bytes).map_or(Err(()), |text| Policy::parse(text).map_err(drop))
            {
                assert_eq!(Policy::parse(&policy.to_string()).map_err(drop), Ok(policy));
            }
        }
    }
}

/// Changes a good encoding: of three bytes each, where and what.
fn changed(sample: &[u8], changes: &[u8]) -> Vec<u8> {
    let mut bytes = sample.to_vec();
    for change in changes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1] & 0x3f])) % bytes.len().max(1);
        match change[1] >> 6 {
            0 if at < bytes.len() => bytes[at] = change[2],
            1 => bytes.insert(at, change[2]),
            2 if at < bytes.len() => drop(bytes.remove(at)),
            3 if change[2] == 0 => bytes.truncate(at),
            _ if at < bytes.len() => bytes[at] ^= 1 << (change[2] & 7),
            _ => {}
        }
    }
    bytes
}

fuzz_target!(|input: &[u8]| {
    let [kind, is_changed, rest @ ..] = input else { return };
    let kind = usize::from(*kind) % SAMPLES.len();
    match is_changed & 1 {
        0 => check_kind(kind, rest),
        _ => check_kind(kind, &changed(&SAMPLES[kind], rest)),
    }
});
