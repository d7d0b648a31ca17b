//! Execute–order–validate through the whole core: what endorsed transactions come to, alone, on hot rows, and with blocks
//! that are foreseen.

mod support;

use crypto::Digest;
use engine::{Engine, VerifiedBlock};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use state::CheckpointProgress;
use std::sync::Arc;
use support::at;
use support::endorsing::{Network, call, fault, node, script};
use types::{
    BlockHeader, Charter, EndorsementFault, Outcome, OutcomeHeader, Payload, Pipeline, RowWrite,
    SignedTransaction, SqlError, SqlState, Value, endorse,
};

#[test]
fn what_is_endorsed_and_fresh_commits_with_the_results_that_endorsers_saw() {
    for protocol in concurrency::VALIDATION_IDS {
        let mut network = Network::new(protocol, |_| {});
        let payments = vec![
            network.endorsed(call("pay", &[1, 2, 30]), &[0, 1]),
            network.endorsed(call("pay", &[3, 4, 5]), &[2, 3]),
        ];
        let outcomes = network.outcomes(payments);
        let Outcome::Committed(results) = &outcomes[0] else { panic!("{protocol}: {outcomes:?}") };
        assert_eq!(results[0].rows, [[Value::BigInt(70)]]);
        assert!(matches!(outcomes[1], Outcome::Committed(_)));
        assert_eq!([1, 2, 3, 4].map(|id| network.balance(id)), [70, 130, 95, 105], "{protocol}");
    }
}

#[test]
fn a_stale_payment_is_given_up_or_runs_again() {
    let stale = |protocol: &str, change: fn(&mut Charter)| {
        let mut network = Network::new(protocol, change);
        let pay = vec![
            network.endorsed(call("pay", &[1, 2, 30]), &[0, 1]),
            network.endorsed(call("pay", &[1, 3, 30]), &[0, 1]),
        ];
        let outcomes = network.outcomes(pay);
        (network.balance(1), outcomes[1].clone())
    };
    assert_eq!(stale("occ", |_| {}), (70, Outcome::Conflict));
    let (balance, outcome) = stale("xox", |_| {});
    assert_eq!(balance, 40);
    let Outcome::Committed(results) = outcome else { panic!("{outcome:?}") };
    assert_eq!(results[0].rows, [[Value::BigInt(40)]], "it tells what it saw when it ran again");
    assert_eq!(stale("xox", |charter| charter.endorsement.run_again = false), (70, Outcome::Conflict));
}

/// Says another number each time it is asked.
struct Counter(std::sync::atomic::AtomicU64);

impl sql::Oracles for Counter {
    fn value(&self, name: &str) -> Result<String, SqlError> {
        match name {
            "huge" => Ok("x".repeat(5_000)),
            "silent" => Err(SqlError::new(SqlState::EXTERNAL_ROUTINE_EXCEPTION, "silent")),
            _ => Ok((self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 7).to_string()),
        }
    }
}

#[test]
fn what_an_oracle_said_is_endorsed_and_said_again_when_the_transaction_runs_again() {
    let mut network = Network::new("xox", |_| {});
    for sql in [
        "CREATE PROCEDURE ask(k bigint, OUT rate bigint, OUT balance_now bigint) LANGUAGE plpgsql AS $$ BEGIN
             rate := entente.oracle('rate')::bigint + 0 * entente.oracle('rate')::bigint;
             UPDATE account SET balance = balance + rate WHERE id = k RETURNING balance INTO balance_now; END $$",
        "CREATE PROCEDURE ask_for(name text) LANGUAGE plpgsql AS $$ DECLARE x text; BEGIN
             x := entente.oracle(name); INSERT INTO log VALUES (x); END $$",
        "CREATE PROCEDURE ask_many() LANGUAGE plpgsql AS $$ DECLARE x text; BEGIN
             FOR i IN 1..17 LOOP x := entente.oracle('o' || i); END LOOP; END $$",
        "CREATE PROCEDURE ask_when_poor(k bigint) LANGUAGE plpgsql AS $$ DECLARE b bigint; x text; BEGIN
             SELECT balance INTO b FROM account WHERE id = k;
             IF b < 100 THEN x := entente.oracle('rate'); END IF;
             UPDATE account SET balance = b + 1 WHERE id = k; END $$",
    ] {
        let change = network.proposal(script(sql));
        let outcomes = network.outcomes(vec![change]);
        assert!(matches!(outcomes[0], Outcome::Committed(_)), "{outcomes:?}");
    }
    let mut basis = network.basis();
    basis.oracles = Some(Arc::new(Counter(0.into())));
    let endorsed = |network: &mut Network, payload| {
        let proposal = network.proposal(payload);
        network.endorse(&basis, proposal, &[0, 1])
    };
    // Both meet in one row: the second is stale and runs again, with the value that it was endorsed with.
    let pair = vec![
        endorsed(&mut network, call("ask", &[1])).expect("it says 7"),
        endorsed(&mut network, call("ask", &[1])).expect("it says 8"),
    ];
    let said = &pair[1].endorsed.as_ref().expect("endorsed").effects.oracles;
    assert_eq!((said.len(), said[0].name.as_str(), said[0].value.as_str()), (1, "rate", "8"), "asked once");
    let executed = network.order(pair);
    assert_eq!(executed.statistics.reexecuted, 1);
    let Outcome::Committed(results) = &executed.receipts[1].outcome else {
        panic!("{:?}", executed.receipts)
    };
    assert_eq!(results[0].rows, [[Value::BigInt(8), Value::BigInt(115)]]);
    assert_eq!(network.balance(1), 115);

    let text = |name: &str| Payload::Call { procedure: "ask_for".into(), arguments: vec![Value::text(name)] };
    let fails = |error: SqlError, state: SqlState, says: &str| {
        assert!(error.state == state && error.message.contains(says), "{error:?}");
    };
    let mut refused = |payload| endorsed(&mut network, payload).expect_err("refused");
    fails(refused(text("huge")), SqlState::PROGRAM_LIMIT_EXCEEDED, "ORACLE_BYTES_MAX");
    fails(refused(text("silent")), SqlState::EXTERNAL_ROUTINE_EXCEPTION, "silent");
    fails(refused(call("ask_many", &[])), SqlState::PROGRAM_LIMIT_EXCEEDED, "ORACLES_MAX");
    let null = Payload::Call { procedure: "ask_for".into(), arguments: vec![Value::Null] };
    fails(refused(null), SqlState::NULL_VALUE_NOT_ALLOWED, "NULL");
    let proposal = network.proposal(text("rate"));
    let unknown = network.endorse(&network.basis(), proposal, &[0, 1]).expect_err("no oracles here");
    fails(unknown, SqlState::UNDEFINED_OBJECT, "knows no oracles");

    // Who runs again and takes a way on which the endorsers did not go asks nobody either.
    let change = vec![
        network.endorsed(call("pay", &[2, 3, 50]), &[0, 1]),
        network.endorsed(call("ask_when_poor", &[2]), &[0, 1]),
    ];
    let outcomes = network.outcomes(change);
    let Outcome::Aborted(error) = &outcomes[1] else { panic!("{outcomes:?}") };
    fails(
        error.clone(),
        SqlState::UNDEFINED_OBJECT,
        "\"rate\" was not asked when the transaction was endorsed",
    );
}

#[test]
fn endorsed_commands_let_everybody_into_a_hot_row() {
    let committed = |commands: bool| {
        let mut network = Network::new("occ", |charter| charter.endorsement.commands = commands);
        for sql in [
            "CREATE TABLE pot (id bigint PRIMARY KEY, coins bigint NOT NULL)",
            "CREATE PROCEDURE fill() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO pot VALUES (1, 0); END $$",
            "CREATE PROCEDURE give(x bigint) LANGUAGE plpgsql AS $$ BEGIN
                 UPDATE pot SET coins = coins + x WHERE id = 1; END $$",
        ] {
            let change = network.proposal(script(sql));
            network.outcomes(vec![change]);
        }
        let fill = network.endorsed(call("fill", &[]), &[0, 1]);
        network.outcomes(vec![fill]);
        let gifts = (0..6).map(|_| network.endorsed(call("give", &[2]), &[0, 1])).collect();
        let outcomes = network.outcomes(gifts);
        outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Committed(_))).count()
    };
    assert_eq!((committed(false), committed(true)), (1, 6));
}

#[test]
fn a_check_on_a_hot_row_is_held_against_the_sum_at_the_place_of_the_command() {
    let mut network = Network::new("occ", |charter| charter.endorsement.commands = true);
    let sql = "CREATE PROCEDURE take(k bigint, x bigint) LANGUAGE plpgsql AS $$ BEGIN
                   UPDATE account SET balance = balance - x WHERE id = k; END $$";
    let change = network.proposal(script(sql));
    network.outcomes(vec![change]);
    let takers = (0..4).map(|_| network.endorsed(call("take", &[1, 30]), &[0, 1])).collect();
    let outcomes = network.outcomes(takers);
    assert!(outcomes[..3].iter().all(|outcome| matches!(outcome, Outcome::Committed(_))), "{outcomes:?}");
    let Outcome::Aborted(error) = &outcomes[3] else { panic!("{outcomes:?}") };
    assert_eq!((error.state, network.balance(1)), (SqlState::CHECK_VIOLATION, 10));
    let proposal = network.proposal(call("take", &[1, 30]));
    let refused = network.endorse(&network.basis(), proposal, &[0, 1]).expect_err("endorsers see it too");
    assert_eq!(refused.state, SqlState::CHECK_VIOLATION);
}

#[test]
fn what_endorsers_agree_on_is_still_held_against_the_schema() {
    let mut network = Network::new("occ", |_| {});
    let mut sign = |change: fn(&mut types::EndorsedEffects)| {
        let mut transaction = network.endorsed(call("pay", &[1, 2, 30]), &[0]);
        let simulation = transaction.endorsed.as_mut().expect("it is endorsed");
        change(&mut simulation.effects);
        let one = [(transaction.transaction.id(), simulation.effects.digest())];
        let ledger = network.charter.ledger();
        let height = network.engine.height();
        simulation.endorsements = [0u8, 1]
            .iter()
            .flat_map(|by| endorse(&node(*by), u16::from(*by), &ledger, height, &one))
            .collect();
        network.outcomes(vec![transaction]).remove(0)
    };
    let text = sign(|effects| effects.writes[0].write = RowWrite::Assign(vec![(1, Value::text("rich"))]));
    assert!(
        matches!(fault(&text), EndorsementFault::Effects(what) if what.contains("is of type bigint")),
        "{text:?}"
    );
    let debt = sign(|effects| effects.writes[0].write = RowWrite::Assign(vec![(1, Value::BigInt(-1))]));
    assert!(matches!(&debt, Outcome::Aborted(error) if error.state == SqlState::CHECK_VIOLATION), "{debt:?}");
    assert_eq!(network.balance(1), 100);
}

#[test]
fn intervals_that_hold_nothing_are_searched_by_nobody() {
    for protocol in concurrency::VALIDATION_IDS {
        let mut network = Network::new(protocol, |_| {});
        let mut transaction = network.endorsed(call("pay", &[1, 2, 30]), &[0]);
        let simulation = transaction.endorsed.as_mut().expect("it is endorsed");
        let table = simulation.effects.writes[0].table;
        let key = |id| types::Key::encode([&Value::BigInt(id)]).expect("a key");
        let ends = [
            (types::KeyBound::Included(key(9)), types::KeyBound::Included(key(1))),
            (types::KeyBound::Excluded(key(1)), types::KeyBound::Excluded(key(1))),
        ];
        simulation.effects.scans = ends
            .map(|(start, end)| {
                let (columns, predicate_columns) = (types::ColumnSet::ALL, types::ColumnSet::ALL);
                types::EndorsedScan { table, start, end, columns, predicate_columns, result: vec![] }
            })
            .to_vec();
        let one = [(transaction.transaction.id(), simulation.effects.digest())];
        let (ledger, height) = (network.charter.ledger(), network.engine.height());
        simulation.endorsements = [0u8, 1]
            .iter()
            .flat_map(|by| endorse(&node(*by), u16::from(*by), &ledger, height, &one))
            .collect();
        let writer = network.endorsed(call("pay", &[3, 4, 5]), &[0, 1]);
        let outcomes = network.outcomes(vec![writer, transaction]);
        assert!(
            outcomes.iter().all(|outcome| matches!(outcome, Outcome::Committed(_))),
            "{protocol}: {outcomes:?}"
        );
    }
}

#[test]
fn a_simulation_before_a_schema_change_does_not_count_after_it() {
    let mut network = Network::new("occ", |_| {});
    let before = network.endorsed(call("pay", &[1, 2, 30]), &[0, 1]);
    let same_block = network.endorsed(call("pay", &[3, 4, 30]), &[0, 1]);
    let change = Payload::Script { sql: "CREATE TABLE other (id int)".into(), parameters: vec![] };
    let change = network.proposal(change);
    let outcomes = network.outcomes(vec![change, same_block]);
    assert_eq!(outcomes[1], Outcome::Conflict);
    assert_eq!(network.outcomes(vec![before]), [Outcome::Conflict]);
    let after = network.endorsed(call("pay", &[1, 2, 30]), &[0, 1]);
    assert!(matches!(network.outcomes(vec![after])[0], Outcome::Committed(_)));
}

#[test]
fn a_schema_change_among_changes_of_rows_needs_a_ledger_that_orders_first() {
    let mut network = Network::new("occ", |_| {});
    let mut run = |sql: &str| {
        let change = network.proposal(script(sql));
        network.outcomes(vec![change]).remove(0)
    };
    let filled = run("CREATE TABLE other (id int PRIMARY KEY); INSERT INTO other VALUES (1)");
    assert!(matches!(filled, Outcome::Committed(_)), "{filled:?}");
    let Outcome::Aborted(error) = run("CREATE TABLE more (id int); DELETE FROM other") else {
        panic!("nobody has endorsed that rows of a table go which there was before")
    };
    assert_eq!(error.state, SqlState::FEATURE_NOT_SUPPORTED);
    assert!(error.message.contains("changes of other tables' rows"), "{error:?}");
}

#[test]
fn an_error_is_the_clients_at_once_and_is_not_ordered() {
    let mut network = Network::new("occ", |_| {});
    let basis = network.basis();
    let proposal = network.proposal(call("pay", &[1, 2, 101]));
    let error = network.endorse(&basis, proposal, &[0, 1]).expect_err("not covered");
    assert_eq!(error.state, SqlState::CHECK_VIOLATION);
    let change = Payload::Script { sql: "DROP TABLE log".into(), parameters: vec![] };
    let proposal = network.proposal(change);
    assert!(network.endorse(&basis, proposal, &[0, 1]).is_err());
}

#[test]
fn an_engine_restored_from_a_checkpoint_validates_as_one_that_went_on() {
    for protocol in concurrency::VALIDATION_IDS {
        let mut network = Network::new(protocol, |charter| charter.checkpoint_blocks = 3);
        let before = network.endorsed(call("pay", &[1, 2, 30]), &[0, 1]);
        let writer = network.endorsed(call("pay", &[3, 4, 5]), &[0, 1]);
        network.outcomes(vec![writer]);
        while !network.engine.height().is_multiple_of(3) {
            network.outcomes(vec![]);
        }
        let read = state::read_checkpoint(network.checkpoint().as_slice(), &memory::Memory);
        let read = read.expect("what was written");
        let (charter, restored_state) = (network.charter.clone(), read.state);
        let restored = Engine::at(charter, at(&read.header), restored_state, read.live);
        let mut restored = restored.expect("a good checkpoint");

        let fresh: Vec<SignedTransaction> =
            [[1, 2, 1], [1, 3, 1], [4, 3, 1]].map(|one| network.endorsed(call("pay", &one), &[0, 1])).into();
        let blocks = [[vec![before], fresh[..2].to_vec()].concat(), fresh[2..].to_vec()];
        let mut outcomes = Vec::new();
        for block in blocks {
            let (again, _) = network.block(&block);
            let executed = network.order(block);
            let again = restored.execute(&again).expect("the next block");
            assert_eq!(
                (again.receipts, again.outcome.state_digest),
                (executed.receipts.clone(), executed.outcome.state_digest)
            );
            outcomes.extend(executed.receipts.into_iter().map(|receipt| receipt.outcome));
        }
        if protocol == "occ" {
            assert_eq!(outcomes[0], Outcome::Conflict, "endorsed before the checkpoint");
            assert!(matches!(outcomes[1], Outcome::Committed(_)) && outcomes[2] == Outcome::Conflict);
        }
    }
}

/// What another execution version has found would commit without ever being executed with that of its block.
#[test]
fn what_was_found_with_another_execution_version_is_to_be_endorsed_again() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("two threads");
    for protocol in concurrency::VALIDATION_IDS {
        let mut network = Network::new(protocol, |charter| {
            charter.found_with_version(1);
            charter.outcome_lag_blocks = 2;
        });
        let switch = network.proposal(script("SELECT entente.set_charter('execution_version', '2')"));
        let outcomes = network.outcomes(vec![switch]);
        assert!(matches!(outcomes[0], Outcome::Committed(_)), "{outcomes:?}");
        let first = network.engine.amended_charter().expect("decided").effective_height;
        while network.engine.height() + 3 < first {
            network.order(vec![]);
        }
        assert!(network.basis().is_endorsable());
        let before = network.endorsed(call("pay", &[1, 2, 5]), &[0, 1]);
        network.order(vec![]);
        network.order(vec![]);
        // Endorsers wait for the next state, wherever they have begun.
        let checkpoint = network.checkpoint();
        let read = state::read_checkpoint(checkpoint.as_slice(), &memory::Memory).expect("what was written");
        let other = Engine::at(network.charter.clone(), at(&read.header), read.state, read.live);
        let mut other = other.expect("a good checkpoint");
        assert!(!network.basis().is_endorsable() && !other.endorsement_basis(0).is_endorsable());
        // One that does not wait.
        let at_last = network.endorsed(call("pay", &[3, 4, 5]), &[0, 1]);
        let (block, _) = network.block(&[before.clone(), at_last.clone()]);
        let executed = network.order(vec![before, at_last]);
        for receipt in &executed.receipts {
            let fault = fault(&receipt.outcome).to_string();
            assert!(fault.contains("found with execution version 1"), "{protocol}: {fault}");
            assert!(fault.ends_with("have the call endorsed again"), "{protocol}: {fault}");
        }
        let again = other.execute(&block).expect("the next block");
        assert_eq!(again.outcome, executed.outcome, "{protocol}");
        assert!(network.basis().is_endorsable());
        let behind = network.endorsed(call("pay", &[1, 2, 5]), &[0, 1]);
        let last = network.order(vec![behind]);
        assert!(matches!(last.receipts[0].outcome, Outcome::Committed(_)), "{:?}", last.receipts);
        // Nothing is foreseen from one version into the next.
        for seed in 0..8 {
            let (found, _) = network.replay_on_the_graph(&pool, &mut StdRng::seed_from_u64(seed));
            let found: Vec<_> = found.into_iter().map(|(receipts, state, _)| (receipts, state)).collect();
            let expected = [executed.outcome.clone(), last.outcome.clone()]
                .map(|outcome| (outcome.receipts_root, outcome.state_digest));
            assert_eq!(found[found.len() - 2..], expected, "{protocol}, seed {seed}");
        }
    }
}

/// A random ledger: stale and fresh payments, some not endorsed enough, some twice, schema changes in between. What every
/// block came to.
fn random_ledger(protocol: &str, rng: &mut StdRng) -> (Network, Vec<(Digest, Digest, CheckpointProgress)>) {
    let mut network = Network::new(protocol, |charter| {
        charter.checkpoint_blocks = 8;
        charter.checkpoint_rows = rng.random_range(5..40);
        charter.block.batch_transactions = rng.random_range(1..6);
        charter.endorsement.commands = rng.random_bool(0.5);
    });
    let mut bases = vec![network.basis()];
    let mut earlier: Vec<SignedTransaction> = Vec::new();
    let mut found = Vec::new();
    for number in 0..24 {
        let mut block = Vec::new();
        for _ in 0..rng.random_range(0..9) {
            let payload = match rng.random_range(0..12) {
                0 => call("total", &[]),
                _ => call("pay", &[rng.random_range(1..5), rng.random_range(1..5), rng.random_range(0..9)]),
            };
            let proposal = network.proposal(payload);
            let basis = &bases[bases.len() - rng.random_range(1..=bases.len().min(4))];
            let endorsers: &[u8] = if rng.random_bool(0.1) { &[2] } else { &[0, 1] };
            block.extend(network.endorse(basis, proposal, endorsers).ok());
        }
        if rng.random_bool(0.2) {
            block.extend(earlier.last().cloned());
        }
        if rng.random_bool(0.12) {
            let change = network.proposal(script(&format!("CREATE TABLE t{number} (id bigint PRIMARY KEY)")));
            block.insert(rng.random_range(0..=block.len()), change);
        }
        earlier.extend(block.iter().cloned());
        let executed = network.order(block);
        let OutcomeHeader { receipts_root, state_digest, .. } = executed.outcome;
        found.push((receipts_root, state_digest, network.engine.checkpoint_progress()));
        bases.push(network.basis());
    }
    (network, found)
}

#[test]
fn blocks_that_are_foreseen_come_to_the_same() {
    let pools = [1, 3].map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap());
    for seed in 0..12 {
        for protocol in concurrency::VALIDATION_IDS {
            let mut rng = StdRng::seed_from_u64(seed);
            let (network, expected) = random_ledger(protocol, &mut rng);
            for pool in &pools {
                let (found, foreseen) = network.replay_on_the_graph(pool, &mut rng);
                let set_up = found.len() - expected.len();
                assert_eq!(found[set_up..], expected, "{protocol}, seed {seed}");
                // What has no graph is executed in order, and refuses to look at what waits.
                match concurrency::GRAPH_IDS.contains(&protocol) {
                    true => assert!(foreseen > 10, "{protocol}, seed {seed}: {foreseen}"),
                    false => assert_eq!(foreseen, 0, "{protocol}, seed {seed}"),
                }
            }
        }
    }
}

#[test]
fn what_was_foreseen_is_what_is_executed() {
    let network = Network::new("occ", |_| {});
    let engine = Engine::new(network.charter.clone(), &memory::Memory).expect("a known protocol");
    let mut engine = engine.with_pipeline(Pipeline::Graph).expect("a known protocol");
    let block = |height: u64, timestamp_ms: u64| {
        let header = BlockHeader { height, timestamp_ms, ..network.ordered[0].0.clone() };
        VerifiedBlock { digest: header.digest(), header, transactions: vec![] }
    };
    assert!(!engine.foresee(&block(2, 5)), "one comes before it");
    assert!(engine.foresee(&block(1, 5)) && engine.foresee(&block(2, 5)));
    assert_eq!(
        engine.execute(&block(1, 6)).err().map(|error| error.to_string()).as_deref(),
        Some("the block of height 1 is not the one that was foreseen")
    );
    assert!(engine.execute(&block(1, 5)).is_ok() && engine.execute(&block(2, 5)).is_ok());
}
