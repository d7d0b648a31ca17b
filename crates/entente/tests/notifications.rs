//! NOTIFY on a network of real processes: whoever listens at any organisation hears what has committed, in the ledger's order.

mod support;

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::time::Duration;
use support::{TestNetwork, error};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_postgres::{AsyncMessage, Client, NoTls};

const ORDERS: i64 = 60;

/// Whose notification it is, its channel and what it says.
type Heard = (i32, String);

async fn listener(network: &TestNetwork, node: usize, channel: &str) -> (Client, UnboundedReceiver<Heard>) {
    let mut config = tokio_postgres::Config::new();
    config.host("127.0.0.1").port(network.port_base + 100 + node as u16).user("entente").dbname("entente");
    let (client, mut connection) = config.connect(NoTls).await.expect("the node answers");
    let (says, hears) = unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(said) = message {
                // Nobody may hear any more.
                let _ = says.send((said.process_id(), format!("{}:{}", said.channel(), said.payload())));
            }
        }
    });
    client.batch_execute(&format!("LISTEN {channel}")).await.expect("it listens");
    (client, hears)
}

async fn hear(hears: &mut UnboundedReceiver<Heard>, count: usize) -> Vec<Heard> {
    let mut heard = Vec::new();
    while heard.len() < count {
        let next = tokio::time::timeout(Duration::from_secs(30), hears.recv()).await;
        heard.push(next.unwrap_or_else(|_| panic!("only {heard:?}")).expect("the session is open"));
    }
    heard
}

/// Every node gets orders at the same time; each third one comes twice.
async fn place_orders(network: &TestNetwork) {
    let mut clients = Vec::new();
    for node in 0..4 {
        let session = network.session(node).await;
        clients.push(tokio::spawn(async move {
            for number in (node as i64..ORDERS).step_by(4) {
                for _ in 0..1 + usize::from(number % 3 == 0) {
                    // What comes twice is refused.
                    let _ = session.execute("INSERT INTO orders VALUES ($1)", &[&number]).await;
                }
            }
        }));
    }
    for client in clients {
        client.await.expect("no panic");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_organisations_hear_the_same_in_the_same_order() {
    let mut network = TestNetwork::create(|_| ());
    network.start_all().await;
    let ada = network.session(0).await;
    ada.batch_execute(
        "CREATE TABLE orders (id bigint PRIMARY KEY);
         CREATE FUNCTION placed() RETURNS trigger LANGUAGE plpgsql AS
         'BEGIN PERFORM pg_notify(''placed'', NEW.id::text); RETURN NEW; END';
         CREATE TRIGGER placed AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION placed()",
    )
    .await
    .expect("the schema");
    network.wait_until_level_with(0, &[1, 2, 3]).await;
    let mut listeners = Vec::new();
    for node in 0..4 {
        listeners.push(listener(&network, node, "placed").await);
    }
    place_orders(&network).await;
    let first = hear(&mut listeners[0].1, ORDERS as usize).await;
    let expected: BTreeSet<String> = (0..ORDERS).map(|number| format!("placed:{number}")).collect();
    assert_eq!(first.iter().map(|(_, said)| said.clone()).collect::<BTreeSet<_>>(), expected);
    for (_, hears) in &mut listeners[1..] {
        assert_eq!(hear(hears, ORDERS as usize).await, first);
    }

    // The sender knows its own, before its COMMIT has ended.
    let process: i32 =
        listeners[1].0.query_one("SELECT pg_backend_pid()", &[]).await.expect("it is known").get(0);
    let sender = &listeners[1].0;
    sender
        .batch_execute(
            "BEGIN; INSERT INTO orders VALUES (1000); SAVEPOINT s; NOTIFY placed, 'undone'; ROLLBACK TO s; NOTIFY placed, 'said'",
        )
        .await
        .expect("a block");
    sender.batch_execute("SELECT 1").await.expect("it is open");
    sender.batch_execute("COMMIT").await.expect("nothing has changed");
    let said =
        |process: i32| vec![(process, "placed:1000".to_string()), (process, "placed:said".to_string())];
    assert_eq!(
        listeners[1].1.try_recv().ok().into_iter().chain(listeners[1].1.try_recv().ok()).collect::<Vec<_>>(),
        said(process)
    );
    assert_eq!(hear(&mut listeners[3].1, 2).await, said(0));

    // What is lost for a while is the session, and its rows say what it has missed.
    assert_eq!(hear(&mut listeners[2].1, 2).await, said(0), "what came before");
    network.kill(2);
    ada.batch_execute("NOTIFY placed, 'while it was away'").await.expect("the others go on");
    assert!(listeners[2].1.recv().await.is_none(), "the session has ended");
    network.start(2);
    network.wait_until_level_with(0, &[2]).await;
    let (_session, mut hears) = listener(&network, 2, "placed").await;
    ada.batch_execute("NOTIFY placed, 'again'").await.expect("said");
    while hear(&mut hears, 1).await != [(0, "placed:again".to_string())] {}
    network.assert_agreement(&[0, 1, 2, 3]).await;
}

/// A ledger that older rules execute refuses both, and takes them once its members have amended it.
#[tokio::test(flavor = "multi_thread")]
async fn older_rules_have_no_notifications() {
    let mut network = TestNetwork::create(|charter| charter.found_with_version(13));
    network.start_all().await;
    let ada = network.session(0).await;
    for (sql, message) in [
        ("NOTIFY a", "NOTIFY is not supported"),
        ("LISTEN a", "LISTEN before execution version 14 is not supported"),
    ] {
        let (state, found) = error(&ada, sql).await;
        assert_eq!(state, "0A000");
        assert!(found.starts_with(message), "{found}");
    }
    ada.batch_execute("SELECT entente.set_charter('execution_version', '14')")
        .await
        .expect("governance = any");
    let mut tries = 0;
    while ada.batch_execute("LISTEN a").await.is_err() {
        tries += 1;
        assert!(tries < 300, "the network does not go over");
        // Blocks come by themselves.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let (_session, mut hears) = listener(&network, 3, "a").await;
    ada.batch_execute("NOTIFY a, 'over'").await.expect("said");
    assert_eq!(hear(&mut hears, 1).await, [(0, "a:over".to_string())]);
}
