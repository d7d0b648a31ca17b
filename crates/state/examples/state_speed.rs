//! What the state costs: bytes per row, nanoseconds per point read, per row applied, per row digested and per row of a
//! checkpoint. Run it with `cargo run --release -p state --example state_speed`.

use crypto::Digest;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use state::{
    AfterImage, BlockChanges, BlockDigest, CheckpointHeader, KeyRange, LiveRequests, RowId, Snapshot, State,
    Version, content_digest, read_checkpoint, write_checkpoint,
};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;
use types::{Catalog, ClientId, Column, DataType, Key, RequestId, Row, Table, TableId, TransactionId, Value};

const TABLE: TableId = TableId(1);
const ROWS: i64 = 300_000;

fn key(number: i64) -> Key {
    Key::encode([&Value::BigInt(number)]).expect("a bigint is a key")
}

fn image(number: i64, balance: i64) -> AfterImage {
    let row: Row = Arc::from([Value::BigInt(number), Value::BigInt(balance)]);
    AfterImage { row: RowId { table: TABLE, key: key(number) }, value: Some(row) }
}

fn catalog() -> Arc<Catalog> {
    let column =
        |name: &str| Column { name: name.into(), data_type: DataType::BigInt, not_null: true, default: None };
    let table = Table {
        id: TABLE,
        name: String::from("checking"),
        columns: vec![column("id"), column("balance")],
        primary_key: vec![0],
        primary_key_name: String::from("checking_pkey"),
        checks: vec![],
    };
    Arc::new(Catalog { tables: [(table.name.clone(), Arc::new(table))].into(), ..Catalog::default() })
}

/// Resident memory of the process in bytes.
fn resident() -> usize {
    let statistics = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statistics.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

fn report(what: &str, since: Instant, count: usize) {
    println!("{what:<52} {:>8.1} ns", since.elapsed().as_nanos() as f64 / count as f64);
}

fn batch(random: &mut StdRng, rows: usize) -> Vec<AfterImage> {
    let mut numbers: Vec<i64> = (0..rows).map(|_| random.random_range(0..ROWS)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.into_iter().map(|number| image(number, 5)).collect()
}

fn main() {
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start");
    let (one, two) = (pool(1), pool(2));
    let mut random = StdRng::seed_from_u64(1);
    let before = resident();
    let state = State::new(catalog());
    let mut height = 0;
    let start = Instant::now();
    for first in (0..ROWS).step_by(1_000) {
        height += 1;
        let images: Vec<_> = (first..first + 1_000).map(|number| image(number, 1)).collect();
        one.install(|| state.apply(Version::after_batch(height, 0), &images, None));
    }
    report("make and load a row", start, ROWS as usize);
    height += 1;
    state.apply(Version::after_batch(height, 0), &[], None);
    println!("{:<52} {:>8.1} bytes", "memory per row", (resident() - before) as f64 / ROWS as f64);

    let keys: Vec<Key> = (0..2_000_000).map(|_| key(random.random_range(0..ROWS))).collect();
    let snapshot = state.snapshot();
    let read = |keys: &[Key]| keys.iter().filter(|key| snapshot.get(TABLE, key).is_some()).count();
    for round in 0..2 {
        let start = Instant::now();
        assert_eq!(read(&keys), keys.len());
        report(&format!("point read, round {round}"), start, keys.len());
    }
    let start = Instant::now();
    let (left, right) = keys.split_at(keys.len() / 2);
    two.join(|| read(left), || read(right));
    report("point read, two threads (per read and thread)", start, keys.len() / 2);
    let hot: Vec<Key> = (0..1_000_000).map(|at| key(at % 10)).collect();
    let start = Instant::now();
    two.join(|| read(&hot), || read(&hot));
    report("point read of 10 rows, two threads", start, hot.len());
    let start = Instant::now();
    let mut seen = 0;
    snapshot.scan(TABLE, &KeyRange::ALL, false, &mut |_, _| {
        seen += 1;
        ControlFlow::Continue(())
    });
    report("scan, per row", start, seen);
    drop(snapshot);

    let batches: Vec<Vec<AfterImage>> = (0..400).map(|_| batch(&mut random, 1_000)).collect();
    let rows: usize = batches.iter().map(Vec::len).sum();
    for (threads, pool) in [(1, &one), (2, &two)] {
        let start = Instant::now();
        for batch in &batches {
            height += 1;
            let held = state.snapshot();
            pool.install(|| state.apply(Version::after_batch(height, 0), batch, None));
            drop(held);
        }
        report(&format!("apply a row, batches of 1,000, {threads} threads"), start, rows);
    }

    let mut block = BlockChanges::default();
    let start = Instant::now();
    batches.iter().take(40).for_each(|batch| block.add(batch.clone()));
    let merged = one.install(|| block.finish());
    report("merge 40 batches, per row", start, 40_000);
    let mut digests = Vec::new();
    for (threads, pool) in [(1, &one), (2, &two)] {
        let start = Instant::now();
        digests.push(pool.install(|| BlockDigest::new(&merged, Digest::ZERO, Digest::ZERO)));
        report(&format!("digest a row, {threads} threads"), start, merged.len());
    }
    assert_eq!(digests[0], digests[1]);

    let mut live = LiveRequests::new();
    let before = resident();
    let start = Instant::now();
    for block in 1..=200u64 {
        live.begin_block(block);
        for index in 0..5_000u32 {
            let mut request = [0; 16];
            request[..8].copy_from_slice(&(block * 5_000 + u64::from(index)).to_le_bytes());
            let client =
                ClientId { key: crypto::PublicKey([(index % 100) as u8; 32]), request: RequestId(request) };
            let admitted = live.admit(client, TransactionId(Digest::ZERO), index, block + 180);
            admitted.expect("a new request");
        }
    }
    report("admit a request", start, 1_000_000);
    println!(
        "{:<52} {:>8.1} bytes",
        "memory per live request",
        (resident() - before) as f64 / live.len() as f64
    );

    let header = CheckpointHeader { ledger: Digest::ZERO, height, state_digest: Digest::ZERO };
    let mut bytes = Vec::new();
    let start = Instant::now();
    write_checkpoint(&header, &*state.snapshot(), &LiveRequests::new().content(), &mut bytes)
        .expect("memory");
    report("write a row to a checkpoint", start, ROWS as usize);
    let (start, before) = (Instant::now(), resident());
    let read = read_checkpoint(&bytes[..]).expect("just written");
    report("read a row from a checkpoint", start, ROWS as usize);
    println!("{:<52} {:>8.1} bytes", "memory per row read", (resident() - before) as f64 / ROWS as f64);
    assert_eq!(content_digest(&*read.state.snapshot()), content_digest(&*state.snapshot()));
}
