//! What the state costs: bytes per row, nanoseconds per point read, per row applied, per row digested and per row of a
//! checkpoint. Run it with `cargo run --release -p memory --example memory_speed`,
//! with `reads`, `writes`, `heights`, `digests`, `requests` or `checkpoints` for a part of it.

use crypto::{Digest, PublicKey};
use memory::Memory;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rayon::ThreadPool;
use state::{
    AfterImage, BlockChanges, CheckpointHeader, KeyRange, LiveRequests, RowId, Store, Stores, Version,
    content_digest, read_checkpoint, write_checkpoint,
};
use std::collections::VecDeque;
use std::ops::{Bound, ControlFlow};
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
    let column = |name: &str| Column {
        name: name.into(),
        data_type: DataType::BigInt,
        not_null: true,
        default: None,
        generated: false,
    };
    let table = Table {
        id: TABLE,
        name: String::from("checking"),
        columns: vec![column("id"), column("balance")],
        primary_key: vec![0],
        primary_key_name: String::from("checking_pkey"),
        checks: vec![],
        endorsement: None,
        row_security: types::RowSecurity::default(),
        partitioning: None,
        materialized: None,
    };
    Arc::new(Catalog { tables: [(table.name.clone(), Arc::new(table))].into(), ..Catalog::default() })
}

/// Resident memory of the process in bytes.
fn resident() -> usize {
    let statistics = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statistics.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

/// Prints the nanoseconds per item of the best round, of one at 10 % and of the median, so that what else the machine
/// does counts little; rounds are short for the same reason. `prepare` is not measured; a round gives its number of items.
fn measure_prepared<T>(
    what: &str,
    rounds: usize,
    mut prepare: impl FnMut(usize) -> T,
    mut round: impl FnMut(usize, T) -> usize,
) {
    let mut nanoseconds: Vec<f64> = (0..rounds)
        .map(|number| {
            let prepared = prepare(number);
            let start = Instant::now();
            let items = round(number, prepared);
            start.elapsed().as_nanos() as f64 / items as f64
        })
        .collect();
    nanoseconds.sort_by(f64::total_cmp);
    let [best, tenth, median] = [0, rounds / 10, rounds / 2].map(|at| nanoseconds[at]);
    println!("{what:<44} {best:>8.1} {tenth:>8.1} {median:>8.1} ns");
}

fn measure(what: &str, rounds: usize, mut round: impl FnMut(usize) -> usize) {
    measure_prepared(what, rounds, |_| (), |number, ()| round(number));
}

fn memory(what: &str, before: usize, items: usize) {
    println!("{what:<44} {:>8.1} bytes", (resident() - before) as f64 / items as f64);
}

fn batch(random: &mut StdRng, rows: usize, among: i64) -> Vec<AfterImage> {
    let mut numbers: Vec<i64> = (0..rows).map(|_| random.random_range(0..among)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.into_iter().map(|number| image(number, 5)).collect()
}

fn main() {
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start");
    let (one, two) = (pool(1), pool(2));
    let mut random = StdRng::seed_from_u64(1);
    let state = Memory.create(catalog()).expect("memory does not fail");
    let part = std::env::args().nth(1);
    let wanted = |name: &str| part.as_deref().is_none_or(|part| part == name);
    rows(state.as_ref(), &one, &mut random);
    if wanted("reads") {
        reads(state.as_ref(), &two, &mut random);
    }
    if wanted("writes") {
        writes(state.as_ref(), &[&one, &two], &mut random);
    }
    if wanted("heights") {
        heights(state.as_ref(), &one, &mut random);
    }
    if wanted("digests") {
        digests(&[&one, &two], &mut random);
    }
    if wanted("requests") {
        requests();
    }
    if wanted("checkpoints") {
        checkpoints(state.as_ref());
    }
}

fn rows(state: &dyn Store, pool: &ThreadPool, random: &mut StdRng) {
    let mut numbers: Vec<i64> = (0..ROWS).collect();
    numbers.shuffle(random);
    let before = resident();
    measure("make and load a row", 300, |round| {
        let mut images: Vec<_> = numbers[round * 1_000..][..1_000].iter().map(|n| image(*n, 1)).collect();
        images.sort_by(|a, b| a.row.cmp(&b.row));
        pool.install(|| state.apply(Version::after_batch(1 + round as u64, 0), &images, None))
            .expect("memory does not fail");
        images.len()
    });
    state.apply(Version::after_batch(400, 0), &[], None).expect("memory does not fail");
    memory("memory per row", before, ROWS as usize);
}

fn reads(state: &dyn Store, pool: &ThreadPool, random: &mut StdRng) {
    let snapshot = state.snapshot();
    let keys: Vec<Key> = (0..2_000_000).map(|_| key(random.random_range(0..ROWS))).collect();
    let hot: Vec<Key> = (0..1_000).map(|at| key(at % 10)).collect();
    let read =
        |keys: &[Key]| keys.iter().filter(|key| matches!(snapshot.get(TABLE, key), Ok(Some(_)))).count();
    let part = |round: usize| &keys[round * 1_000..][..1_000];
    measure("read a row", 2_000, |round| read(part(round)));
    measure("read a row, 2 threads", 1_000, |round| {
        let (left, right) = pool.join(|| read(part(2 * round)), || read(part(2 * round + 1)));
        left + right
    });
    measure("read one of 10 rows", 1_000, |_| read(&hot));
    measure("read one of 10 rows, 2 threads", 1_000, |_| {
        let (left, right) = pool.join(|| read(&hot), || read(&hot));
        left + right
    });
    measure("scan 1,000 rows, per row", 290, |round| {
        let mut seen = 0;
        let start = Bound::Included(key(1_000 * round as i64));
        let range = KeyRange { start, end: Bound::Excluded(key(1_000 * (round as i64 + 1))) };
        let scanned = snapshot.scan(TABLE, &range, false, &mut |_, _| {
            seen += 1;
            ControlFlow::Continue(())
        });
        scanned.expect("what is in memory can be read");
        seen
    });
}

fn writes(state: &dyn Store, pools: &[&ThreadPool], random: &mut StdRng) {
    let mut height = 1_000;
    for among in [ROWS, 5_000] {
        for pool in pools {
            let what = format!("apply 1,000 rows of {among}, {} threads", pool.current_num_threads());
            let prepare = |_| {
                height += 1;
                (state.snapshot(), Version::after_batch(height, 0), batch(random, 1_000, among))
            };
            // On a thread of the pool, so that no round begins with waking one.
            pool.install(|| {
                measure_prepared(&what, 300, prepare, |_, (held, version, batch)| {
                    state.apply(version, &batch, None).expect("memory does not fail");
                    drop(held);
                    batch.len()
                });
            });
        }
    }
}

/// What it costs to keep the states after the newest blocks.
fn heights(state: &dyn Store, pool: &ThreadPool, random: &mut StdRng) {
    let mut height = 1_000_000;
    for kept in [1, 16, 256] {
        let mut held = VecDeque::new();
        let (before, mut rows) = (resident(), 0);
        let prepare = |_| {
            height += 1;
            (Version::after_batch(height, 0), batch(random, 1_000, ROWS))
        };
        pool.install(|| {
            measure_prepared(
                &format!("apply 1,000 rows, {kept} heights kept"),
                600,
                prepare,
                |_, (version, batch)| {
                    state.apply(version, &batch, None).expect("memory does not fail");
                    while held.len() >= kept {
                        held.pop_front();
                    }
                    held.push_back((state.snapshot(), batch.len()));
                    batch.len()
                },
            );
        });
        held.iter().for_each(|(_, changed)| rows += changed);
        memory(&format!("memory per changed row, {kept} heights kept"), before.min(resident()), rows);
    }
}

fn digests(pools: &[&ThreadPool], random: &mut StdRng) {
    let batches: Vec<Vec<AfterImage>> = (0..4).map(|_| batch(random, 500, ROWS)).collect();
    let mut merged = Vec::new();
    measure("merge 4 batches, per row", 500, |_| {
        let mut block = BlockChanges::default();
        batches.iter().for_each(|batch| block.add(batch.clone()));
        merged = block.finish();
        merged.len()
    });
    for pool in pools {
        measure(&format!("digest a row, {} threads", pool.current_num_threads()), 500, |_| {
            pool.install(|| state::block_digest(&merged, Digest::ZERO, Digest::ZERO));
            merged.len()
        });
    }
}

fn requests() {
    let mut live = LiveRequests::new();
    let before = resident();
    measure("admit a request", 200, |round| {
        live.begin_block(1 + round as u64);
        for index in 0..5_000u32 {
            let mut request = [0; 16];
            request[..8].copy_from_slice(&(round as u64 * 5_000 + u64::from(index)).to_le_bytes());
            let client = ClientId { key: PublicKey([(index % 100) as u8; 32]), request: RequestId(request) };
            let admitted = live.admit(client, TransactionId(Digest::ZERO), index, live.height() + 180);
            admitted.expect("a new request");
        }
        5_000
    });
    memory("memory per live request", before, live.len());
}

fn checkpoints(state: &dyn Store) {
    let header = CheckpointHeader {
        ledger: Digest::ZERO,
        height: 3_000,
        state_digest: Digest::ZERO,
        outcome: Digest::ZERO,
    };
    let mut bytes = Vec::new();
    measure("write a row to a checkpoint", 3, |_| {
        bytes.clear();
        let live = LiveRequests::new().content();
        write_checkpoint(&header, &*state.snapshot(), &live, &mut bytes).expect("writing to memory");
        ROWS as usize
    });
    let (before, mut read) = (resident(), Vec::new());
    measure("read a row from a checkpoint", 3, |_| {
        read.push(read_checkpoint(&bytes[..], &Memory).expect("it was just written").state);
        ROWS as usize
    });
    memory("memory per row read", before, 3 * ROWS as usize);
    assert_eq!(
        content_digest(&*read[0].snapshot()).expect("memory can be read"),
        content_digest(&*state.snapshot()).expect("memory can be read")
    );
}
