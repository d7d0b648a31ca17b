//! The protocol `graph` through the whole core: what serial execution gives, and what it refuses.

mod support;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sql::{Context, Invocation};
use state::Simulate;
use std::collections::BTreeMap;
use support::{Chain, charter, script};
use types::{Charter, Outcome, Payload, RejectReason, SqlState, TransactionId, Value};
use workloads::smallbank::Smallbank;

const CUSTOMERS: u64 = 40;

fn chain_with(protocol: &str, change: impl FnOnce(&mut Charter), set_up: &[&str]) -> Chain {
    let mut charter = charter();
    charter.protocol = protocol.to_string();
    change(&mut charter);
    let mut chain = Chain::new(charter);
    for receipt in chain.execute(set_up.iter().map(|sql| script(sql)).collect()).receipts {
        assert!(matches!(receipt.outcome, Outcome::Committed(_)), "{receipt:?}");
    }
    chain
}

fn bank(protocol: &str, change: impl FnOnce(&mut Charter)) -> Chain {
    let mut chain = chain_with(protocol, change, &Smallbank::statements().collect::<Vec<_>>());
    let smallbank = Smallbank::new(CUSTOMERS, 0.0).expect("valid");
    let rows = smallbank.rows(1, CUSTOMERS).into_iter().map(|rows| Payload::Insert {
        table: rows.table.to_string(),
        columns: rows.columns.iter().map(|column| column.to_string()).collect(),
        rows: rows.rows,
    });
    for receipt in chain.execute(rows.collect()).receipts {
        assert!(matches!(receipt.outcome, Outcome::Committed(_)), "{receipt:?}");
    }
    chain
}

/// Runs blocks of calls, and gives every outcome and the digest of the tables in the end.
fn run(chain: &mut Chain, skew: f64, seed: u64) -> (Vec<Outcome>, BTreeMap<String, Vec<Vec<String>>>) {
    let smallbank = Smallbank::new(CUSTOMERS, skew).expect("valid");
    let mut random = StdRng::seed_from_u64(seed);
    let mut outcomes = Vec::new();
    for _ in 0..6 {
        let calls = (0..150).map(|_| smallbank.next_call(&mut random).into_payload()).collect();
        outcomes.extend(chain.execute(calls).receipts.into_iter().map(|receipt| receipt.outcome));
    }
    (outcomes, chain.rows())
}

#[test]
fn smallbank_ends_as_in_a_serial_run_for_any_number_of_threads() {
    for (skew, seed) in [(0.0, 1), (1.1, 2), (1.8, 3)] {
        let serial = run(&mut bank("serial", |_| {}), skew, seed);
        for threads in [1, 2, 4] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            let graph = pool.install(|| run(&mut bank("graph", |_| {}), skew, seed));
            assert_eq!(graph, serial, "skew {skew}, {threads} threads");
        }
    }
}

#[test]
fn a_block_budget_cuts_where_serial_execution_cuts() {
    for block_steps in [500, 1_000, 1_500] {
        let change = |charter: &mut Charter| charter.meter.block_steps = block_steps;
        let serial = run(&mut bank("serial", change), 1.2, 4);
        assert!(
            serial.0.contains(&Outcome::Rejected(RejectReason::BlockBudget)),
            "{block_steps} steps suffice"
        );
        assert_eq!(run(&mut bank("graph", change), 1.2, 4), serial, "{block_steps} steps");
    }
}

#[test]
fn every_call_of_smallbank_is_inside_its_footprint_and_names_single_rows() {
    let chain = bank("serial", |_| {});
    let smallbank = Smallbank::new(CUSTOMERS, 0.5).expect("valid");
    let mut random = StdRng::seed_from_u64(5);
    let snapshot = chain.engine.state().snapshot();
    for index in 0..500 {
        let context = Context {
            height: 3,
            timestamp_ms: 1_800_000_000_000,
            index,
            transaction: TransactionId::default(),
            step_limit: 100_000,
        };
        let call = smallbank.next_call(&mut random);
        let invocation =
            Invocation::new(chain.engine.library().clone(), context, call.clone().into_payload());
        let footprint = invocation.footprint(snapshot.catalog()).expect("analysed");
        assert!(
            footprint.covers(&invocation.simulate(snapshot.as_ref()).expect("memory can be read")),
            "{call:?}: {footprint:?}"
        );
        let mut regions = footprint.reads.iter().chain(&footprint.writes);
        assert!(regions.all(|region| region.key().is_some()), "{call:?}: {footprint:?}");
    }
}

/// Random scripts of several statements with ranges, inserts and deletes.
fn random_script(random: &mut StdRng) -> Payload {
    let statement = |random: &mut StdRng| {
        let (key, other) = (random.random_range(0..30), random.random_range(0..30));
        match random.random_range(0..9) {
            0 => format!("INSERT INTO items VALUES ({key}, {other}, 'new', 1)"),
            1 => format!("DELETE FROM items WHERE id = {key}"),
            2 => format!("UPDATE items SET amount = amount + 1 WHERE id BETWEEN {key} AND {other}"),
            3 => format!("SELECT sum(amount) FROM items WHERE id < {key}"),
            4 => "INSERT INTO log SELECT count(*) FROM items".to_string(),
            5 => format!("UPDATE items SET price = price - 1 WHERE id = {key} RETURNING price, name"),
            6 => format!("DELETE FROM items WHERE amount > {} AND id > {key}", other * 3),
            7 => format!("UPDATE items SET name = 'of {other}' WHERE id = {key}"),
            _ => format!("SELECT * FROM items WHERE id = {key}"),
        }
    };
    let statements: Vec<String> = (0..random.random_range(1..4)).map(|_| statement(random)).collect();
    script(&statements.join("; "))
}

#[test]
fn scripts_with_ranges_inserts_and_deletes_end_as_in_a_serial_run() {
    let set_up = [
        "CREATE TABLE items (id bigint PRIMARY KEY, amount bigint, name varchar(20), price bigint CHECK (price >= 0))",
        "CREATE TABLE log (count bigint)",
        "INSERT INTO items VALUES (1, 1, 'a', 5), (5, 2, 'b', 5), (9, 3, 'c', 5), (20, 4, 'd', 5)",
    ];
    for seed in 0..6 {
        let run = |protocol: &str| {
            let mut chain = chain_with(protocol, |_| {}, &set_up);
            let mut random = StdRng::seed_from_u64(seed);
            let mut outcomes = Vec::new();
            for _ in 0..4 {
                let scripts = (0..60).map(|_| random_script(&mut random)).collect();
                outcomes.extend(chain.execute(scripts).receipts.into_iter().map(|receipt| receipt.outcome));
            }
            (outcomes, chain.rows())
        };
        let serial = run("serial");
        for threads in [1, 4] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            assert_eq!(pool.install(|| run("graph")), serial, "seed {seed}, {threads} threads");
        }
    }
}

#[test]
fn contracts_that_cannot_be_analysed_are_refused_by_name() {
    let mut chain = chain_with(
        "graph",
        |_| {},
        &[
            "CREATE TABLE a (id bigint PRIMARY KEY)",
            "CREATE PROCEDURE down(n bigint) LANGUAGE plpgsql AS $$
            BEGIN INSERT INTO a VALUES (n); IF n > 1 THEN CALL down(n - 1); END IF; END $$",
        ],
    );
    let call = Payload::Call { procedure: "down".to_string(), arguments: vec![Value::BigInt(3)] };
    let receipts =
        chain.execute(vec![script("INSERT INTO a VALUES (3)"), call, script("SELECT id FROM a")]).receipts;
    let Outcome::Aborted(error) = &receipts[1].outcome else { panic!("{receipts:?}") };
    assert_eq!(error.state, SqlState::FEATURE_NOT_SUPPORTED);
    assert_eq!(error.message, "the recursive call of \"down\" under the protocol \"graph\" is not supported");
    let hint = "It must be known before a transaction runs what it may touch; the protocol \"harmony\" runs everything.";
    assert_eq!(error.hint.as_deref(), Some(hint));
    assert_eq!(chain.select("SELECT id FROM a"), [["3"]], "the others ran, and it changed nothing");
    // Schema changes are alone in their batch and never come to the protocol.
    assert!(matches!(chain.script("CREATE TABLE b (id bigint PRIMARY KEY)"), Outcome::Committed(_)));
}
