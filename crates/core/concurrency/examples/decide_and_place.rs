//! What a protocol itself costs per transaction, on the effects of Smallbank's six procedures, without SQL: for Harmony
//! edges, placement and folding.
//!
//! ```text
//! cargo run --release -p concurrency --example decide_and_place [-- BATCHES [PROTOCOL]]
//! ```

use concurrency::{Batch, ProtocolOptions, Snapshots, protocol};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rustc_hash::FxHashMap;
use state::{
    Addition, Command, CommandKind, Effects, KeyRange, Read, RowChange, RowFunction, RowId, Simulate,
    Snapshot, StoreError,
};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use types::{Catalog, ColumnSet, Key, Row, SqlError, SqlState, TableId, Value};

const CUSTOMERS: usize = 100_000;
const ACCOUNTS: TableId = TableId(1);
const SAVINGS: TableId = TableId(2);
const CHECKING: TableId = TableId(3);
const BALANCE: u16 = 1;

/// Rows in a hash map: reading costs about what it costs in the real state.
#[derive(Default)]
struct Table {
    catalog: Arc<Catalog>,
    rows: FxHashMap<RowId, Row>,
}

impl Snapshot for Table {
    fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    fn get(&self, table: TableId, key: &Key) -> Result<Option<Row>, StoreError> {
        Ok(self.rows.get(&RowId { table, key: key.clone() }).cloned())
    }

    fn scan(
        &self,
        _: TableId,
        _: &KeyRange,
        _: bool,
        _: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        Ok(())
    }
}

struct Newest(Arc<Table>);

impl Snapshots for Newest {
    fn newest(&self) -> Arc<dyn Snapshot> {
        self.0.clone()
    }
}

/// `balance = balance + amount`, refused below zero if `checked`.
struct Add {
    amount: i64,
    checked: bool,
}

impl RowFunction for Add {
    fn apply(&self, row: Option<&Row>) -> Result<RowChange, SqlError> {
        let Some(row) = row else { return Ok(RowChange::Unmatched) };
        let Value::BigInt(balance) = row[1] else { return Ok(RowChange::Unmatched) };
        if self.checked && balance + self.amount < 0 {
            return Err(SqlError::new(SqlState::RAISE_EXCEPTION, "insufficient funds"));
        }
        Ok(RowChange::Put([row[0].clone(), Value::BigInt(balance + self.amount)].into()))
    }
}

struct Empty;

impl RowFunction for Empty {
    fn apply(&self, row: Option<&Row>) -> Result<RowChange, SqlError> {
        Ok(row.map_or(RowChange::Unmatched, |row| RowChange::Put([row[0].clone(), Value::BigInt(0)].into())))
    }
}

fn row_id(table: TableId, customer: usize) -> RowId {
    RowId { table, key: Key::from_bytes(&(customer as u64 ^ 1 << 63).to_be_bytes()) }
}

fn read(table: TableId, customer: usize) -> Read {
    let columns = ColumnSet::EXISTS | ColumnSet::column(usize::from(BALANCE));
    Read { row: row_id(table, customer), columns }
}

fn command(
    table: TableId,
    customer: usize,
    function: Arc<dyn RowFunction>,
    known: Vec<(u16, Value)>,
) -> Command {
    let balance = ColumnSet::column(usize::from(BALANCE));
    Command {
        row: row_id(table, customer),
        function,
        kind: CommandKind::Update { known },
        uses: balance | ColumnSet::EXISTS,
        writes: balance,
        guard: None,
        can_fail: false,
        addition: None,
    }
}

fn add(table: TableId, customer: usize, amount: i64) -> Command {
    let addition = Some(Addition::new(BALANCE, amount, i64::MIN, i64::MAX));
    let function = Arc::new(Add { amount, checked: false });
    Command { addition, can_fail: true, ..command(table, customer, function, vec![]) }
}

fn take(table: TableId, customer: usize, amount: i64) -> Command {
    Command {
        can_fail: true,
        ..command(table, customer, Arc::new(Add { amount: -amount, checked: true }), vec![])
    }
}

fn empty(table: TableId, customer: usize) -> Command {
    command(table, customer, Arc::new(Empty), vec![(BALANCE, Value::BigInt(0))])
}

/// One of the six procedures, for these customers.
fn smallbank(rng: &mut StdRng, one: usize, two: usize) -> Effects {
    let amount = rng.random_range(1..100);
    let (reads, commands) = match rng.random_range(0..100) {
        0..15 => (vec![read(ACCOUNTS, one)], vec![take(SAVINGS, one, amount)]),
        15..30 => (vec![read(ACCOUNTS, one)], vec![add(CHECKING, one, amount)]),
        30..55 => (
            vec![read(ACCOUNTS, one), read(ACCOUNTS, two)],
            vec![take(CHECKING, one, amount), add(CHECKING, two, amount)],
        ),
        55..70 => (vec![read(ACCOUNTS, one), read(SAVINGS, one)], vec![take(CHECKING, one, amount)]),
        70..85 => (
            vec![read(ACCOUNTS, one), read(ACCOUNTS, two), read(SAVINGS, one), read(CHECKING, one)],
            vec![empty(SAVINGS, one), empty(CHECKING, one), add(CHECKING, two, amount)],
        ),
        _ => (vec![read(ACCOUNTS, one), read(SAVINGS, one), read(CHECKING, one)], vec![]),
    };
    Effects { reads, scans: vec![], commands, result: Ok(vec![]), steps: 1, catalog: None }
}

/// The first execution costs nothing but moving its effects.
struct Prepared {
    first: Mutex<Option<Effects>>,
    again: Effects,
}

impl Simulate for Prepared {
    fn simulate(&self, _: &dyn Snapshot) -> Result<Effects, StoreError> {
        let first = self.first.lock().expect("nobody panics while holding it").take();
        Ok(first.unwrap_or_else(|| self.again.clone()))
    }
}

/// Customers by popularity: the k-th most popular with weight 1 / k^skew.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(skew: f64) -> Zipf {
        let mut sum = 0.0;
        Zipf(
            (1..=CUSTOMERS)
                .map(|rank| {
                    sum += (rank as f64).powf(-skew);
                    sum
                })
                .collect(),
        )
    }

    fn draw(&self, rng: &mut StdRng) -> usize {
        let at = rng.random_range(0.0..*self.0.last().expect("there are customers"));
        self.0.partition_point(|sum| *sum <= at)
    }
}

fn main() {
    let batches: usize = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(200);
    let id = std::env::args().nth(2).unwrap_or_else(|| "harmony".to_string());
    let mut table = Table::default();
    for customer in 0..CUSTOMERS {
        for name in [SAVINGS, CHECKING] {
            let row: Row = [Value::BigInt(customer as i64), Value::BigInt(10_000)].into();
            table.rows.insert(row_id(name, customer), row);
        }
    }
    let newest = Newest(Arc::new(table));
    println!(
        "{:>5} {:>6} {:>8} {:>12} {:>12} {:>11}",
        "skew", "batch", "threads", "µs per txn", "executions", "changes"
    );
    for skew in [0.0, 1.0, 1.5] {
        let zipf = Zipf::new(skew);
        for size in [500, 1000] {
            for threads in [1, 2] {
                run(&id, &newest, &zipf, skew, (batches, size), threads);
            }
        }
    }
}

fn run(id: &str, newest: &Newest, zipf: &Zipf, skew: f64, (batches, size): (usize, usize), threads: usize) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    let mut rng = StdRng::seed_from_u64(7);
    let mut protocol = protocol(id, ProtocolOptions::default()).expect("a protocol by this name");
    let (mut times, mut executions, mut changes): (Vec<Duration>, _, _) = (Vec::new(), 0, 0);
    for number in 0..batches {
        let transactions: Vec<Arc<dyn Simulate>> = (0..size)
            .map(|_| {
                let (one, two) = (zipf.draw(&mut rng), zipf.draw(&mut rng));
                let again = smallbank(&mut rng, one, two);
                Arc::new(Prepared { first: Mutex::new(Some(again.clone())), again }) as Arc<dyn Simulate>
            })
            .collect();
        protocol.offer(Batch {
            height: 1,
            number: number as u32,
            transactions,
            steps_left: u64::MAX,
            forget: false,
            oldest_snapshot: 0,
        });
        let (result, time) = pool.install(|| {
            let start = Instant::now();
            let result =
                protocol.poll(newest).expect("what is in memory can be read").expect("one batch was offered");
            (result, start.elapsed())
        });
        // The first batches warm up.
        if number >= batches / 10 {
            times.push(time);
            executions += result.statistics.executions;
            changes += result.changes.len();
        }
    }
    // The lower quartile: a machine that is busy with other things shows in the slower batches.
    times.sort_unstable();
    let quartile = times[times.len() / 4];
    let transactions = ((batches - batches / 10) * size) as f64;
    println!(
        "{skew:>5} {size:>6} {threads:>8} {:>12.3} {:>12.3} {:>11.2}",
        quartile.as_secs_f64() * 1e6 / size as f64,
        executions as f64 / transactions,
        changes as f64 / transactions,
    );
}
