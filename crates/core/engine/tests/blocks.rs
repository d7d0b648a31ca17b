//! What happens to the transactions of a block: ids, expiry, schema changes, budgets.

mod support;

use support::{Chain, charter, script};
use types::{Outcome, Payload, RejectReason, SessionResults, SessionStep, SqlState, StatementResult, Value};

#[test]
fn the_same_request_commits_once_and_reuse_is_refused() {
    let mut chain = Chain::new(charter());
    assert!(matches!(chain.script("CREATE TABLE t (id bigint PRIMARY KEY)"), Outcome::Committed(_)));
    let first = chain.transaction_as(77, 5, script("INSERT INTO t VALUES (1)"));
    let other = chain.transaction_as(77, 5, script("INSERT INTO t VALUES (2)"));
    let block = chain.block(vec![first.clone(), first.clone(), other.clone()]);
    let receipts = chain.engine.execute(&block).expect("executed").receipts;
    assert!(matches!(receipts[0].outcome, Outcome::Committed(_)), "{receipts:?}");
    assert_eq!(receipts[1].outcome, Outcome::Rejected(RejectReason::Duplicate { height: 2, index: 0 }));
    assert_eq!(receipts[2].outcome, Outcome::Rejected(RejectReason::RequestReused { height: 2, index: 0 }));
    let block = chain.block(vec![first.clone()]);
    let receipts = chain.engine.execute(&block).expect("executed").receipts;
    assert_eq!(receipts[0].outcome, Outcome::Rejected(RejectReason::Duplicate { height: 2, index: 0 }));
    assert_eq!(chain.select("SELECT count(*) FROM t"), [["1"]]);
}

#[test]
fn what_has_expired_or_expires_too_far_ahead_is_rejected() {
    let mut chain = Chain::new(charter());
    chain.script("CREATE TABLE t (id bigint PRIMARY KEY)");
    let late = chain.transaction_as(1, 1, script("INSERT INTO t VALUES (1)"));
    let far = chain.transaction_as(2, 3 + 100_000, script("INSERT INTO t VALUES (2)"));
    let last = chain.transaction_as(3, 2, script("INSERT INTO t VALUES (3)"));
    let block = chain.block(vec![late, far, last.clone()]);
    let receipts = chain.engine.execute(&block).expect("executed").receipts;
    let expired = |expires_at| Outcome::Rejected(RejectReason::Expired { height: 2, expires_at });
    assert_eq!(receipts[0].outcome, expired(1));
    assert_eq!(receipts[1].outcome, expired(100_003));
    assert!(matches!(receipts[2].outcome, Outcome::Committed(_)));
    let block = chain.block(vec![last]);
    let receipts = chain.engine.execute(&block).expect("executed").receipts;
    let forgotten = RejectReason::Expired { height: 3, expires_at: 2 };
    assert_eq!(
        receipts[0].outcome,
        Outcome::Rejected(forgotten),
        "an id may be forgotten once it has expired"
    );
}

#[test]
fn schema_changes_take_effect_at_their_place_in_the_block() {
    let mut chain = Chain::new(charter());
    let receipts = chain
        .execute(vec![
            script("INSERT INTO t VALUES (0)"),
            script("CREATE TABLE t (id bigint PRIMARY KEY)"),
            script("INSERT INTO t VALUES (1)"),
            script("CREATE TABLE t (id bigint PRIMARY KEY)"),
            script("DROP TABLE t"),
            script("INSERT INTO t VALUES (2)"),
        ])
        .receipts;
    let states: Vec<Option<SqlState>> = receipts
        .iter()
        .map(|receipt| match &receipt.outcome {
            Outcome::Aborted(error) => Some(error.state),
            _ => None,
        })
        .collect();
    let (missing, twice) = (Some(SqlState::UNDEFINED_TABLE), Some(SqlState::DUPLICATE_TABLE));
    assert_eq!(states, [missing, None, None, twice, None, missing]);
    assert!(chain.engine.state().snapshot().catalog().tables.is_empty());
}

#[test]
fn a_contract_that_loops_for_ever_is_metered_out() {
    let mut charter = charter();
    charter.meter.transaction_steps = 10_000;
    let mut chain = Chain::new(charter);
    let created = chain.script(
        "CREATE PROCEDURE forever() LANGUAGE plpgsql AS $$ BEGIN WHILE true LOOP NULL; END LOOP; END $$",
    );
    assert!(matches!(created, Outcome::Committed(_)), "{created:?}");
    let call = Payload::Call { procedure: "forever".into(), arguments: vec![] };
    let executed = chain.execute(vec![call]);
    let Outcome::Aborted(error) = &executed.receipts[0].outcome else { panic!("{:?}", executed.receipts) };
    assert!(error.message.contains("10000") || error.message.contains("10,000"), "{error:?}");
}

#[test]
fn a_block_stops_when_its_budget_is_spent() {
    for (protocol, batch) in [("harmony", 1), ("block-stm", 1), ("block-stm", 3), ("serial", 2), ("ssi", 1)] {
        let mut charter = charter();
        charter.protocol = protocol.to_string();
        charter.meter.transaction_steps = 10_000;
        charter.meter.block_steps = 25_000;
        charter.block.batch_transactions = batch;
        let mut chain = Chain::new(charter);
        chain.script("CREATE PROCEDURE forever() LANGUAGE plpgsql AS $$ BEGIN LOOP NULL; END LOOP; END $$");
        let call = Payload::Call { procedure: "forever".into(), arguments: vec![] };
        let executed = chain.execute(vec![call; 9]);
        let over: Vec<bool> = executed
            .receipts
            .iter()
            .map(|receipt| receipt.outcome == Outcome::Rejected(RejectReason::BlockBudget))
            .collect();
        assert_eq!(over, [[false; 3], [true; 3], [true; 3]].concat(), "{protocol}: {:?}", executed.receipts);
        // A batch that is under way ends; none begins.
        let most = 3 + u64::from(batch);
        assert!(executed.statistics.executions <= most, "{protocol}: {:?}", executed.statistics);
    }
}

#[test]
fn unknown_procedures_and_wrong_arguments_abort_with_their_names() {
    let mut chain = Chain::new(charter());
    chain.script("CREATE PROCEDURE p(n bigint) LANGUAGE plpgsql AS $$ BEGIN NULL; END $$");
    let call = |procedure: &str, arguments| Payload::Call { procedure: procedure.into(), arguments };
    let executed = chain.execute(vec![
        call("nobody", vec![]),
        call("p", vec![]),
        call("p", vec![Value::Boolean(true)]),
        call("p", vec![Value::BigInt(1)]),
    ]);
    for receipt in &executed.receipts[..3] {
        let Outcome::Aborted(error) = &receipt.outcome else { panic!("{receipt:?}") };
        assert_eq!(error.state, SqlState::UNDEFINED_FUNCTION, "{error:?}");
        assert!(error.message.contains("does not exist"), "{error:?}");
    }
    assert!(matches!(executed.receipts[3].outcome, Outcome::Committed(_)));
}

#[test]
fn truncate_empties_a_table_at_its_place_in_the_block() {
    let mut chain = Chain::new(charter());
    chain.script("CREATE TABLE t (id bigint PRIMARY KEY, u bigint UNIQUE)");
    let before = chain.engine.state_digest();
    let block = ["INSERT INTO t VALUES (1, 1), (2, 2)", "TRUNCATE t", "INSERT INTO t VALUES (3, 2)"];
    for receipt in chain.execute(block.map(script).to_vec()).receipts {
        assert!(matches!(receipt.outcome, Outcome::Committed(_)), "{receipt:?}");
    }
    assert_eq!(chain.select("SELECT id, u FROM t"), [["3", "2"]]);
    assert_eq!(chain.select("SELECT id FROM t WHERE u = 2"), [["3"]]);
    assert_ne!(chain.engine.state_digest(), before);
}

#[test]
fn a_transaction_that_changes_the_schema_among_rows_runs_alone_at_its_place() {
    for protocol in ["harmony", "block-stm", "serial", "ssi", "aria", "graph"] {
        let mut charter = charter();
        charter.protocol = protocol.to_string();
        let mut chain = Chain::new(charter);
        chain.script("CREATE TABLE t (id bigint PRIMARY KEY, n bigint)");
        let run = |sql: &str| SessionStep::Run { sql: sql.to_string(), parameters: vec![] };
        let mut given = SessionResults::default();
        for tag in ["UPDATE 2", "ALTER TABLE", "CREATE INDEX", "INSERT 0 1", "DROP TABLE"] {
            given.add(&Ok(StatementResult { tag: tag.to_string(), ..StatementResult::default() }));
        }
        let block = Payload::Session {
            steps: vec![
                run("UPDATE t SET n = n + 1"),
                run("ALTER TABLE t ADD COLUMN note text DEFAULT 'old'"),
                run("CREATE UNIQUE INDEX t_n ON t (n)"),
                run("INSERT INTO t VALUES (3, 30, 'new')"),
                run("DROP TABLE gone"),
            ],
            now_ms: 1_700_000_000_000,
            results: given.digest(),
        };
        let receipts = chain
            .execute(vec![
                script("INSERT INTO t VALUES (1, 10), (2, 20)"),
                script("CREATE TABLE gone (id bigint); INSERT INTO gone VALUES (1)"),
                block.clone(),
                script("UPDATE t SET note = 'changed' WHERE n = 11"),
                script("INSERT INTO t VALUES (4, 30, 'twice')"),
                block,
            ])
            .receipts;
        let states: Vec<Option<SqlState>> = receipts
            .iter()
            .map(|receipt| match &receipt.outcome {
                Outcome::Aborted(error) => Some(error.state),
                Outcome::Committed(_) => None,
                other => panic!("{protocol}: {other:?}"),
            })
            .collect();
        let (twice, changed) = (Some(SqlState::UNIQUE_VIOLATION), Some(SqlState::SERIALIZATION_FAILURE));
        assert_eq!(states, [None, None, None, None, twice, changed], "{protocol}");
        assert_eq!(
            chain.select("SELECT * FROM t ORDER BY n"),
            [["1", "11", "changed"], ["2", "21", "old"], ["3", "30", "new"]],
            "{protocol}"
        );
        assert_eq!(chain.select("SELECT id FROM t WHERE n = 30"), [["3"]], "{protocol}");
        assert!(!chain.engine.state().snapshot().catalog().tables.contains_key("gone"));
    }
}

#[test]
fn a_checkpoint_is_asked_for_by_a_statement_and_not_too_often() {
    let mut chain = Chain::new(charter());
    chain.script("CREATE TABLE t (id bigint PRIMARY KEY)");
    assert!(!chain.engine.is_at_checkpoint());
    let receipts = chain
        .execute(vec![
            script("INSERT INTO t VALUES (1)"),
            script("checkpoint"),
            script("CHECKPOINT; INSERT INTO t VALUES (2)"),
            script("INSERT INTO t VALUES (3)"),
        ])
        .receipts;
    let committed = |outcome: &Outcome| matches!(outcome, Outcome::Committed(_));
    assert!(receipts.iter().all(|receipt| committed(&receipt.outcome)), "{receipts:?}");
    let Outcome::Committed(results) = &receipts[1].outcome else { unreachable!() };
    assert_eq!(results[0].tag, "CHECKPOINT");
    assert!(chain.engine.is_at_checkpoint(), "however often it was asked for in the block");
    let asked = chain.engine.height();
    while chain.engine.height() + 1 < asked + types::limits::CHECKPOINT_BLOCKS_MIN {
        let Outcome::Aborted(error) = chain.script("CHECKPOINT") else { panic!("too early") };
        assert_eq!(error.state, SqlState(*b"55000"));
        assert!(
            error.message.contains(&format!("height {asked}, the next one can be at height {}", asked + 50))
        );
        assert!(!chain.engine.is_at_checkpoint());
    }
    assert!(committed(&chain.script("CHECKPOINT")));
    assert!(chain.engine.is_at_checkpoint());
    let Outcome::Aborted(error) = chain.script("CHECKPOINT now") else { panic!("no such statement") };
    assert_eq!(error.state, SqlState::SYNTAX_ERROR);
    assert_eq!(chain.select("SELECT count(*) FROM t"), [["3"]]);
}
