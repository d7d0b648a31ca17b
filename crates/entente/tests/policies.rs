//! Policies of rows between organisations that share a table: each writes its own rows and sees those that concern it, at its own node,
//! also where the session only reads, copies, or is a driver's transaction block; and nobody takes the policies back alone.

mod support;

use support::{TestNetwork, error, rows};
use tokio_postgres::Client;

/// Connects as a role of a node's organisation.
async fn connect(network: &TestNetwork, node: u16, user: &str) -> Client {
    let mut config = tokio_postgres::Config::new();
    config.host("127.0.0.1").port(network.port_base + 100 + node).user(user).dbname("entente");
    let (client, connection) = config.connect(tokio_postgres::NoTls).await.expect("it may connect");
    tokio::spawn(connection);
    client
}

async fn run(session: &Client, sql: &str) {
    session.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}

/// Waits until a node shows what another one has ordered.
async fn follow(reader: &Client, writer: &Client) {
    let height = rows(writer, "SHOW entente.last_height").await[0][0].clone();
    run(reader, &format!("SET entente.min_height = {height}")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn organisations_write_their_own_rows_and_see_what_concerns_them() {
    let mut network = TestNetwork::create(|charter| charter.governance = "majority".to_string());
    network.start_all().await;
    let mut sessions = Vec::new();
    for node in 0..4 {
        sessions.push(network.session(node).await);
    }
    let [first, second, third, fourth] = sessions.as_slice() else { panic!("four") };
    let schema = "CREATE TABLE shipment (id bigint PRIMARY KEY, sender text, receiver text, state text DEFAULT 'sent');
                  ALTER TABLE shipment ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
                  CREATE POLICY concerns ON shipment FOR SELECT USING (sender = current_user OR receiver = current_user);
                  CREATE POLICY send ON shipment FOR INSERT WITH CHECK (sender = current_user AND state = 'sent');
                  CREATE POLICY receive ON shipment FOR UPDATE USING (receiver = current_user)
                      WITH CHECK (receiver = current_user AND state = 'received')";
    run(first, schema).await;
    follow(second, first).await;
    run(second, "SELECT entente.approve(1)").await;
    follow(third, second).await;
    run(third, "SELECT entente.approve(1)").await;

    follow(first, third).await;
    run(first, "INSERT INTO shipment VALUES (1, 'org1', 'org2'), (2, 'org1', 'org3')").await;
    let forged = error(second, "INSERT INTO shipment VALUES (3, 'org1', 'org2')").await;
    let refusal = (
        "42501".to_string(),
        "new row violates row-level security policy for table \"shipment\" ".to_string(),
    );
    assert_eq!(forged, refusal);
    for (session, expected) in [(first, "1,2"), (second, "1"), (third, "2"), (fourth, "")] {
        follow(session, first).await;
        let seen =
            rows(session, "SELECT coalesce(string_agg(id::text, ',' ORDER BY id), '') FROM shipment").await;
        assert_eq!(seen, [[expected]]);
    }
    // In a transaction block, as drivers send it: hidden rows are not changed, and what is changed keeps the policy.
    run(second, "BEGIN; UPDATE shipment SET state = 'received'; COMMIT").await;
    assert_eq!(error(second, "UPDATE shipment SET receiver = 'org4'").await, refusal);
    follow(third, second).await;
    assert_eq!(
        rows(third, "UPDATE shipment SET state = 'received' WHERE id = 2 RETURNING state").await,
        [["received"]]
    );
    follow(first, third).await;
    assert_eq!(
        rows(first, "SELECT id, state FROM shipment ORDER BY id").await,
        [["1", "received"], ["2", "received"]]
    );

    // A role sees with the eyes that TO gives it, and no more: none here.
    run(second, "CREATE ROLE clerk LOGIN").await;
    run(second, "GRANT ALL ON shipment TO clerk").await;
    let clerk = connect(&network, 1, "clerk").await;
    follow(&clerk, second).await;
    assert!(rows(&clerk, "SELECT id FROM shipment").await.is_empty());

    // A dump must be whole, or fail.
    let whole = "query would be affected by row-level security policy for table \"shipment\" SET row_security = on gives the rows that policies let through.";
    run(first, "SET row_security = off").await;
    assert_eq!(error(first, "SELECT * FROM shipment").await.1, whole);
    assert_eq!(error(first, "COPY shipment TO STDOUT").await.1, whole);
    run(first, "RESET row_security").await;
    assert_eq!(error(first, "SELECT entente.proof('shipment', 1)").await.0, "0A000");

    // The policies do not go without the others.
    assert_eq!(rows(first, "SELECT count(*) FROM pg_policies").await, [["3"]]);
    run(first, "ALTER TABLE shipment NO FORCE ROW LEVEL SECURITY").await;
    assert_eq!(
        rows(first, "SELECT relforcerowsecurity FROM pg_class WHERE relname = 'shipment'").await,
        [["t"]]
    );
    network.assert_agreement(&[0, 1, 2, 3]).await;
}
