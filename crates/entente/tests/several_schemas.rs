//! Transactions with parts in several schemas with members: they take effect in all of them or in none, whatever happens beside them.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use support::{TestNetwork, error, rows, wait_for_rows};
use tokio_postgres::Client;
use tokio_postgres::SimpleQueryMessage;

const SUM: &str = "SELECT sum(balance) FROM";

/// `a` of the first two organisations and `b` of the first and the third, with ten accounts each.
async fn create_banks(network: &TestNetwork) -> Client {
    let session = network.session(0).await;
    for (schema, members) in [("a", "org1, org2"), ("b", "org1, org3")] {
        let create = format!("CREATE SCHEMA {schema} MEMBERS ({members})");
        session.batch_execute(&create).await.expect("created");
        let accounts = format!(
            "CREATE TABLE {schema}.accounts (id int PRIMARY KEY, balance bigint NOT NULL CHECK (balance >= 0));
             CREATE PROCEDURE {schema}.pay(account int, amount bigint) LANGUAGE plpgsql AS $$
             BEGIN UPDATE {schema}.accounts SET balance = balance + amount WHERE id = account;
             IF NOT FOUND THEN RAISE EXCEPTION 'no account %', account; END IF; END $$"
        );
        session.batch_execute(&accounts).await.expect("defined");
        let fill = format!("INSERT INTO {schema}.accounts SELECT n, 100 FROM generate_series(1, 10) AS n");
        session.batch_execute(&fill).await.expect("filled");
    }
    session
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_takes_effect_in_all_of_its_schemas_or_in_none() {
    let mut network = TestNetwork::create(|_| {});
    network.start_all().await;
    let session = create_banks(&network).await;
    let (second, third, fourth) =
        (network.session(1).await, network.session(2).await, network.session(3).await);
    let both = "UPDATE a.accounts SET balance = balance - 30 WHERE id = 1; \
                UPDATE b.accounts SET balance = balance + 30 WHERE id < 3; CALL a.pay(2, 5)";
    let results = session.simple_query(both).await.expect("both schemas agree");
    let counts: Vec<u64> = results
        .iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::CommandComplete(count) => Some(*count),
            _ => None,
        })
        .collect();
    assert_eq!(counts, [1, 2, 0], "a result for each statement, in their order");
    assert_eq!(
        rows(&session, "SELECT balance FROM a.accounts WHERE id < 3 ORDER BY id").await,
        [["70"], ["105"]]
    );
    wait_for_rows(&second, "SELECT balance FROM a.accounts WHERE id = 1", &[&["70"]]).await;
    wait_for_rows(&third, "SELECT balance FROM b.accounts WHERE id = 1", &[&["130"]]).await;
    assert_eq!(error(&third, "SELECT * FROM a.accounts").await.0, "42P01");
    assert_eq!(error(&fourth, "SELECT * FROM b.accounts").await.0, "42P01");

    // One schema's part fails: its own error, and nothing of the other's.
    let fails = "CALL a.pay(3, 50); CALL b.pay(11, -50)";
    let (state, text) = error(&session, fails).await;
    assert!(state == "P0001" && text.contains("no account 11"), "{state} {text}");
    let fails = "UPDATE a.accounts SET balance = balance - 1000 WHERE id = 4; CALL b.pay(4, 1000)";
    assert_eq!(error(&session, fails).await.0, "23514");
    let sums = format!("SELECT ({SUM} a.accounts), ({SUM} b.accounts)");
    assert_eq!(rows(&session, &sums).await, [["975", "1060"]]);
    // What was locked is free again.
    session.batch_execute("CALL a.pay(3, 1)").await.expect("free");
    session.batch_execute("CREATE TABLE a.more (id int PRIMARY KEY)").await.expect("nothing is undecided");
    session.batch_execute("CALL a.pay(3, 1); CALL b.pay(3, 1)").await.expect("under the new schema");

    // Whoever has a key of its own is told in which block the decision fell.
    let pay = |schema: &str| {
        let arguments = vec![types::Value::Integer(5), types::Value::BigInt(1)];
        (schema.to_string(), types::Payload::Call { procedure: format!("{schema}.pay"), arguments })
    };
    let client = network.client(0);
    let expires_at = client.status().await.expect("it answers").height + 1_000;
    let (signed, parts) = client.identity().sign_parts([pay("a"), pay("b")], expires_at);
    let submission = types::PartSubmission { transaction: signed.to_bytes(), parts };
    let mut replies = client.submit_parts(&[submission]).await.expect("taken");
    let receipt = replies.next().await.expect("read").expect("one").result.expect("it is decided");
    assert!(
        matches!(&receipt.outcome, types::Outcome::Committed(results) if results.len() == 2),
        "{receipt:?}"
    );
    let last = "SELECT max(height) FROM entente.transactions WHERE call LIKE 'PARTS a %, b %'";
    let ordered: u64 = rows(&session, last).await[0][0].parse().expect("a height");
    assert!(receipt.height > ordered, "{receipt:?} of block {ordered}");

    let seen = "SELECT outcome FROM entente.transactions WHERE call LIKE 'PARTS a %, b %'";
    assert_eq!(rows(&fourth, seen).await.len(), 5, "others see commitments, and not how they ended");
    let votes = "SELECT count(*) > 3 FROM entente.transactions WHERE call LIKE 'SCHEMA OUTCOMES schema %'";
    assert_eq!(rows(&fourth, votes).await, [["t"]]);
    network.assert_agreement(&[0, 1, 2, 3]).await;
}

/// Blocks within which a transaction is decided.
const WINDOW: u32 = 16;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_member_keeps_nobody_waiting_and_new_members_close_a_schema_for_a_window() {
    let mut network = TestNetwork::create(|charter| {
        // A decision takes three or four blocks, and more where a member that is to bring votes misses its turn: the machine may be busy.
        charter.window_blocks = WINDOW;
        charter.block.idle_ms = 150;
    });
    network.start_all().await;
    let session = create_banks(&network).await;
    let three = "CREATE SCHEMA c MEMBERS (org1, org3, org4)";
    session.batch_execute(three).await.expect("created");
    session.batch_execute("CREATE TABLE c.t (id int PRIMARY KEY, n int)").await.expect("created");
    network.kill(2);
    let both = "CALL a.pay(1, -1); INSERT INTO c.t VALUES (1, 1)";
    session.batch_execute(both).await.expect("two of three members are enough");
    let alone = "CALL a.pay(1, -1); CALL b.pay(1, 1)";
    let (state, text) = error(&session, alone).await;
    assert!(state == "57014" && text.contains("org3 does not answer"), "{state} {text}");
    session.batch_execute("CALL a.pay(2, 1)").await.expect("nothing is locked");
    network.start(2);
    let height = network.client(0).status().await.expect("it answers").height;
    network.wait_for_height(2, height).await;
    let third = network.session(2).await;
    wait_for_rows(&third, "SELECT n FROM c.t", &[&["1"]]).await;
    session.batch_execute(alone).await.expect("it is back");

    session.batch_execute("ALTER SCHEMA a ADD MEMBER org3").await.expect("by a member");
    let (state, text) = error(&session, alone).await;
    assert!(
        text.contains("takes no transactions with parts in other schemas up to height"),
        "{state} {text}"
    );
    session.batch_execute("CALL a.pay(2, 1)").await.expect("of one schema");
    let height = network.client(0).status().await.expect("it answers").height + u64::from(WINDOW) + 2;
    network.wait_for_height(0, height).await;
    session.batch_execute(alone).await.expect("behind the window");
    wait_for_rows(&third, "SELECT balance FROM a.accounts WHERE id = 1", &[&["97"]]).await;
    network.assert_agreement(&[0, 1, 2, 3]).await;
}

/// Transfers between and within schemas from several sessions at once.
async fn transfers(session: Client, sessions: i64, number: i64, in_a: Arc<AtomicI64>) {
    for round in 0..25 {
        let (from, to) = ((number * 7 + round * 3) % 10 + 1, (number + round * sessions) % 10 + 1);
        let amount = round % 4 + 1;
        let (sql, change) = match round % 5 {
            0 => (format!("CALL a.pay({from}, -{amount}); CALL a.pay({to}, {amount})"), 0),
            1 => (format!("CALL b.pay({from}, -{amount}); CALL b.pay({to}, {amount})"), 0),
            2 => (format!("CALL b.pay({from}, -{amount}); CALL a.pay({to}, {amount})"), amount),
            _ => (format!("CALL a.pay({from}, -{amount}); CALL b.pay({to}, {amount})"), -amount),
        };
        match session.batch_execute(&sql).await {
            Ok(()) => drop(in_a.fetch_add(change, Ordering::Relaxed)),
            Err(error) => {
                let state = error.code().map(|code| code.code().to_string());
                assert_eq!(
                    state.as_deref(),
                    Some("23514"),
                    "{sql}: nothing but its own program ends it: {error:?}"
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_cent_is_lost_between_schemas_and_who_was_killed_comes_to_the_same() {
    let mut network = TestNetwork::create(|_| {});
    network.start_all().await;
    let session = create_banks(&network).await;
    let (in_a, sessions) = (Arc::new(AtomicI64::new(0)), 8);
    let mut working = tokio::task::JoinSet::new();
    for number in 0..sessions {
        working.spawn(transfers(network.session(0).await, sessions, number, in_a.clone()));
    }
    while let Some(ended) = working.join_next().await {
        ended.expect("no transfer fails for any other reason");
    }
    let moved = in_a.load(Ordering::Relaxed);
    let (a, b) = ((1000 + moved).to_string(), (1000 - moved).to_string());
    let sums = format!("SELECT ({SUM} a.accounts), ({SUM} b.accounts)");
    assert_eq!(rows(&session, &sums).await, [[a.clone(), b.clone()]]);
    let all = "SELECT string_agg(id || ':' || balance, ' ' ORDER BY id) FROM";
    let in_a = rows(&session, &format!("{all} a.accounts")).await.remove(0).remove(0);
    let in_b = rows(&session, &format!("{all} b.accounts")).await.remove(0).remove(0);
    for node in 0..3 {
        network.kill(node);
        network.start(node);
        network.wait_for_height(node, 1).await;
        let again = network.session(node).await;
        for (schema, expected, members) in [("a", &in_a, [0, 1]), ("b", &in_b, [0, 2])] {
            if members.contains(&node) {
                wait_for_rows(&again, &format!("{all} {schema}.accounts"), &[&[expected]]).await;
            }
        }
    }
    let again = network.session(0).await;
    again.batch_execute("CALL a.pay(1, 1); CALL b.pay(1, 1)").await.expect("after all that");
    network.assert_agreement(&[0, 1, 2, 3]).await;
}
