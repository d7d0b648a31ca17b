//! Smallbank through the whole core: the same bytes for every number of threads, every cent accounted for, and every
//! history serializable.

mod support;

use concurrency::checker::{CheckedBatch, RecordingTransaction, check};
use concurrency::{Batch, Consistency, Granularity, OnConflict, ProtocolOptions, Snapshots, protocol};
use rand::SeedableRng;
use rand::rngs::StdRng;
use sql::{Context, Invocation};
use state::{AfterImage, KeyRange, PlainState, RowId, Simulate, Snapshot};
use std::ops::ControlFlow;
use std::sync::Arc;
use support::{Chain, at, charter, script};
use types::{Outcome, Payload, Receipt, TransactionId};
use workloads::Call;
use workloads::smallbank::{Smallbank, money_change};

const CUSTOMERS: u64 = 40;

fn bank(protocol: &str, batch: u32) -> Chain {
    bank_with(protocol, ProtocolOptions::default(), batch)
}

fn bank_with(protocol: &str, options: ProtocolOptions, batch: u32) -> Chain {
    let mut charter = charter();
    charter.protocol = protocol.to_string();
    charter.concurrency = options;
    charter.block.batch_transactions = batch;
    bank_of(charter)
}

fn bank_of(charter: types::Charter) -> Chain {
    let mut chain = Chain::new(charter);
    let smallbank = Smallbank::new(CUSTOMERS, 0.0).expect("valid");
    let mut payloads: Vec<Payload> = Smallbank::statements().map(script).collect();
    payloads.extend(smallbank.rows(1, CUSTOMERS).into_iter().map(|rows| Payload::Insert {
        table: rows.table.to_string(),
        columns: rows.columns.iter().map(|column| column.to_string()).collect(),
        rows: rows.rows,
    }));
    for receipt in chain.execute(payloads).receipts {
        assert!(matches!(receipt.outcome, Outcome::Committed(_)), "{receipt:?}");
    }
    chain
}

/// Runs `blocks` blocks of calls and returns the calls with their receipts.
fn run(chain: &mut Chain, skew: f64, seed: u64, blocks: usize, size: usize) -> Vec<(Call, Receipt)> {
    let smallbank = Smallbank::new(CUSTOMERS, skew).expect("valid");
    let mut random = StdRng::seed_from_u64(seed);
    let mut history = Vec::new();
    for _ in 0..blocks {
        let calls: Vec<Call> = (0..size).map(|_| smallbank.next_call(&mut random)).collect();
        let executed = chain.execute(calls.iter().cloned().map(Call::into_payload).collect());
        history.extend(calls.into_iter().zip(executed.receipts));
    }
    history
}

fn total(chain: &Chain) -> i128 {
    ["savings", "checking"]
        .iter()
        .map(|table| {
            let rows = chain.select(&format!("SELECT sum(balance) FROM {table}"));
            rows[0][0].parse::<i128>().expect("a number")
        })
        .sum()
}

fn check_money(protocol: &str, options: ProtocolOptions, skew: f64) {
    let mut chain = bank_with(protocol, options, 50);
    let history = run(&mut chain, skew, 7, 6, 150);
    let change: i128 = history
        .iter()
        .map(|(call, receipt)| money_change(call.procedure, &call.arguments, &receipt.outcome))
        .sum();
    let start = Smallbank::new(CUSTOMERS, 0.0).expect("valid").initial_total();
    assert_eq!(total(&chain), start + change, "{protocol}, {options:?}, skew {skew}");
    for (call, receipt) in &history {
        // Payments and withdrawals that an account does not cover are the contract's own refusals.
        let fine = matches!(receipt.outcome, Outcome::Committed(_) | Outcome::Aborted(_))
            || (options.on_conflict == OnConflict::Abort && receipt.outcome == Outcome::Conflict);
        assert!(fine, "{protocol}, {options:?}: {call:?}: {receipt:?}");
    }
    let committed = history.iter().filter(|(_, receipt)| matches!(receipt.outcome, Outcome::Committed(_)));
    assert!(committed.count() * 4 > history.len(), "{protocol}, {options:?}, skew {skew}: too many aborts");
}

#[test]
fn every_cent_is_accounted_for_under_every_protocol() {
    for protocol in concurrency::IDS {
        for on_conflict in [OnConflict::Reexecute, OnConflict::Requeue, OnConflict::Abort] {
            check_money(protocol, ProtocolOptions { on_conflict, ..ProtocolOptions::default() }, 0.9);
        }
    }
    let plain = ProtocolOptions {
        inter_block: false,
        reordering: false,
        coalescing: false,
        granularity: Granularity::Row,
        ..ProtocolOptions::default()
    };
    for protocol in concurrency::IDS {
        check_money(protocol, plain, 1.5);
    }
}

#[test]
fn receipts_and_digests_are_the_same_for_any_number_of_threads() {
    let outcome = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            let mut chain = bank("harmony", 64);
            assert!(chain.charter.concurrency.inter_block, "batches overlap");
            let receipts: Vec<Receipt> =
                run(&mut chain, 1.1, 3, 6, 200).into_iter().map(|(_, receipt)| receipt).collect();
            let snapshot = chain.engine.state().snapshot();
            (
                receipts,
                chain.engine.state_digest(),
                state::content_digest(snapshot.as_ref()).expect("memory can be read"),
            )
        })
    };
    let one = outcome(1);
    for threads in [2, 4] {
        assert_eq!(outcome(threads), one, "{threads} threads");
    }
}

#[test]
fn a_batch_of_one_gives_what_serial_execution_gives() {
    // Batches that overlap may take effect in another order than the ledger's.
    let one_by_one = ProtocolOptions { inter_block: false, ..ProtocolOptions::default() };
    let (mut harmony, mut serial) = (bank_with("harmony", one_by_one, 1), bank("serial", 50));
    let receipts = |chain: &mut Chain| -> Vec<Outcome> {
        run(chain, 1.2, 11, 4, 100).into_iter().map(|(_, receipt)| receipt.outcome).collect()
    };
    assert_eq!(receipts(&mut harmony), receipts(&mut serial));
    assert_eq!(harmony.rows(), serial.rows());
}

#[test]
fn an_engine_restored_from_a_checkpoint_goes_on_with_the_same_bytes() {
    for (checkpoint_blocks, asked) in [(4, false), (1_000, true)] {
        let [before, after] = around_a_restart(checkpoint_blocks, asked);
        assert_eq!(before, after, "asked for: {asked}");
    }
    let [before, after] = around_a_restart(1_000, false);
    assert_ne!(before, after, "without a checkpoint height the batches of two blocks overlap");
}

/// Receipts and digest of the block after height 8, by an engine that goes on and by one that is restored there. `asked`: that
/// block has a CHECKPOINT before its last batch.
fn around_a_restart(checkpoint_blocks: u32, asked: bool) -> [(Vec<Receipt>, crypto::Digest); 2] {
    let mut charter = charter();
    charter.checkpoint_blocks = checkpoint_blocks;
    charter.concurrency.consistency = Consistency::Serializable;
    charter.block.batch_transactions = 50;
    let mut chain = bank_of(charter);
    run(&mut chain, 1.0, 5, 6, 60);
    let smallbank = Smallbank::new(CUSTOMERS, 1.0).expect("valid");
    let mut random = StdRng::seed_from_u64(9);
    let mut calls: Vec<_> = (0..60).map(|_| smallbank.next_call(&mut random).into_payload()).collect();
    if asked {
        calls.insert(10, support::script("CHECKPOINT"));
    }
    chain.execute(calls);
    assert_eq!(chain.engine.height(), 8);
    assert_eq!(chain.engine.is_at_checkpoint(), asked || checkpoint_blocks == 4);
    let header = chain.engine.checkpoint_header();
    let mut bytes = Vec::new();
    let (snapshot, live) = (chain.engine.state().snapshot(), chain.engine.live().content());
    state::write_checkpoint(&header, snapshot.as_ref(), &live, &mut bytes).expect("memory");
    let checkpoint = state::read_checkpoint(bytes.as_slice(), &memory::Memory).expect("what was written");
    let mut restored =
        engine::Engine::at(chain.charter.clone(), at(&checkpoint.header), checkpoint.state, checkpoint.live)
            .expect("a good checkpoint");
    let mut calls = Vec::new();
    for _ in 0..120 {
        let call = smallbank.next_call(&mut random).into_payload();
        calls.push(chain.transaction(call));
    }
    let block = chain.block(calls);
    [&mut chain.engine, &mut restored].map(|engine| {
        let executed = engine.execute(&block).expect("the next block");
        (executed.receipts, executed.outcome.state_digest)
    })
}

/// A copy of the whole state that the checker can replay on.
fn plain_state(snapshot: &dyn Snapshot) -> PlainState {
    let mut plain = PlainState::new(snapshot.catalog().clone());
    for table in snapshot.catalog().tables.values() {
        let scanned = snapshot.scan(table.id, &KeyRange::ALL, false, &mut |key, row| {
            let row_id = RowId { table: table.id, key: key.clone() };
            plain.apply(&AfterImage { row: row_id, value: Some(row.clone()) });
            ControlFlow::Continue(())
        });
        scanned.expect("memory can be read");
    }
    plain
}

struct Plain<'a>(&'a PlainState);

impl Snapshots for Plain<'_> {
    fn newest(&self) -> Arc<dyn Snapshot> {
        Arc::new(self.0.clone())
    }
}

#[test]
fn every_history_of_the_compiled_procedures_is_serializable_to_the_last_value_read() {
    for (id, skew, seed) in
        [("harmony", 0.0, 1), ("harmony", 1.5, 2), ("harmony", 1.5, 3), ("serial", 1.5, 4)]
    {
        let chain = bank(id, 50);
        let initial = plain_state(chain.engine.state().snapshot().as_ref());
        let smallbank = Smallbank::new(CUSTOMERS, skew).expect("valid");
        let mut random = StdRng::seed_from_u64(seed);
        let mut protocol = protocol(id, ProtocolOptions::default()).expect("a known protocol");
        let mut state = initial.clone();
        let mut batches = Vec::new();
        for height in 2..14 {
            let transactions: Vec<Arc<RecordingTransaction>> = (0..40)
                .map(|index| {
                    let transaction = TransactionId(crypto::sha256(&[&[height as u8, index as u8]]));
                    let context = Context {
                        height,
                        timestamp_ms: 1_800_000_000_000,
                        index,
                        transaction,
                        step_limit: 100_000,
                    };
                    let payload = Arc::new(smallbank.next_call(&mut random).into_payload());
                    let library = chain.engine.library().clone();
                    RecordingTransaction::new(Arc::new(Invocation::new(library, context, payload)))
                })
                .collect();
            let offered = transactions.iter().map(|one| one.clone() as Arc<dyn Simulate>).collect();
            let batch = Batch {
                height,
                number: 0,
                transactions: offered,
                steps_left: u64::MAX,
                forget: false,
                oldest_snapshot: 0,
            };
            protocol.offer(batch);
            let result =
                protocol.poll(&Plain(&state)).expect("memory can be read").expect("one batch was offered");
            result.changes.iter().for_each(|change| state.apply(change));
            batches.push((transactions, result));
        }
        let checked = batches.iter().enumerate().map(|(number, (transactions, result))| {
            let unseen = usize::from(id == "harmony" && number > 0);
            CheckedBatch { transactions, result, unseen, snapshots: None }
        });
        let checked: Vec<CheckedBatch> = checked.collect();
        let verified = check(&initial, &checked).unwrap_or_else(|violation| panic!("{id}: {violation}"));
        assert_eq!(verified.state, state, "{id}, skew {skew}");
        assert!(verified.edges > 400, "{id}, skew {skew}: {} edges, too little to conflict", verified.edges);
        if id == "harmony" && skew > 1.0 {
            let rejected: u64 = batches.iter().map(|(_, result)| result.statistics.reexecuted).sum();
            assert!(rejected > 20, "{rejected} ran again, too few to test anything");
        }
    }
}

#[test]
fn a_block_sees_everything_that_was_answered_before_it_unless_the_charter_says_otherwise() {
    for (consistency, seen) in [(Consistency::Strict, 11), (Consistency::Serializable, 10)] {
        let mut charter = charter();
        charter.concurrency.consistency = consistency;
        let mut chain = Chain::new(charter);
        let set_up = [
            "CREATE TABLE account (id int PRIMARY KEY, balance bigint NOT NULL)",
            "CREATE PROCEDURE deposit() LANGUAGE plpgsql AS $$ BEGIN
                 UPDATE account SET balance = balance + 1 WHERE id = 1; END $$",
            "CREATE PROCEDURE look(OUT seen bigint) LANGUAGE plpgsql AS $$ BEGIN
                 SELECT balance INTO seen FROM account WHERE id = 1; END $$",
            "INSERT INTO account VALUES (1, 10)",
        ];
        for receipt in chain.execute(set_up.map(script).to_vec()).receipts {
            assert!(matches!(receipt.outcome, Outcome::Committed(_)), "{receipt:?}");
        }
        let call = |procedure: &str| Payload::Call { procedure: procedure.to_string(), arguments: vec![] };
        chain.execute(vec![call("deposit")]);
        let looked = chain.execute(vec![call("look")]).receipts.remove(0).outcome;
        let Outcome::Committed(results) = looked else { panic!("{looked:?}") };
        assert_eq!(results[0].rows, [[types::Value::BigInt(seen)]], "{consistency:?}");
    }
}
