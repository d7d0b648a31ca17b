//! Sessions in their own time zones, at the nodes of four organisations: everybody comes to the same, and each is shown it in its own
//! zone, also in blocks, before endorsement and in schemas with members.

mod support;

use bytes::Bytes;
use futures::SinkExt;
use support::{TestNetwork, error, rows};
use tokio_postgres::Client;
use types::{Charter, ExecutionModel};

const BERLIN: &str = "-c TimeZone=europe/berlin";

/// Connects with options of a start.
async fn connect(network: &TestNetwork, node: u16, options: &str) -> Client {
    let mut config = tokio_postgres::Config::new();
    config
        .host("127.0.0.1")
        .port(network.port_base + 100 + node)
        .user("entente")
        .dbname("entente")
        .options(options);
    let (client, connection) = config.connect(tokio_postgres::NoTls).await.expect("it may connect");
    tokio::spawn(connection);
    client
}

async fn run(session: &Client, sql: &str) {
    session.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}

/// What a reader at another node sees once it has what a writer has ordered.
async fn seen(reader: &Client, writer: &Client, sql: &str) -> String {
    let height = rows(writer, "SHOW entente.last_height").await[0][0].clone();
    run(reader, &format!("SET entente.min_height = {height}")).await;
    shown(reader, sql).await
}

async fn shown(session: &Client, sql: &str) -> String {
    rows(session, sql).await.iter().map(|row| row.join("|")).collect::<Vec<_>>().join("\n")
}

const EVENTS: &str = "SELECT id, at, day FROM event ORDER BY id";

async fn started(change: impl FnOnce(&mut Charter)) -> (TestNetwork, Client, Client) {
    let mut network = TestNetwork::create(change);
    network.start_all().await;
    let (berlin, utc) = (connect(&network, 0, BERLIN).await, network.session(1).await);
    run(&berlin, "CREATE TABLE event (id int PRIMARY KEY, at timestamptz, day date)").await;
    (network, berlin, utc)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_has_its_zone_and_all_nodes_come_to_the_same() {
    let (mut network, berlin, utc) = started(|_| {}).await;
    assert_eq!(shown(&berlin, "SHOW TimeZone").await, "Europe/Berlin");
    run(&berlin, "INSERT INTO event VALUES (1, '2026-07-01 00:30', timestamptz '2026-07-01 00:30')").await;
    // Several statements, a driver's statement with a parameter, one prepared before the zone changes, and COPY.
    run(
        &berlin,
        "INSERT INTO event VALUES (2, '2026-12-01 00:30'); UPDATE event SET day = at::date WHERE id = 2",
    )
    .await;
    let insert = "INSERT INTO event SELECT $1::int, $2::text::timestamptz, $2::text::timestamptz::date";
    let prepared = berlin.prepare(insert).await.expect("prepared");
    berlin.execute(&prepared, &[&3, &"2026-03-28 23:30"]).await.expect("inserted");
    run(&berlin, "SET TIME ZONE 'Asia/Tokyo'").await;
    berlin.execute(&prepared, &[&4, &"2026-03-28 23:30"]).await.expect("inserted");
    run(&berlin, "RESET TIME ZONE").await;
    let mut copy = Box::pin(berlin.copy_in("COPY event FROM STDIN").await.expect("begun"));
    copy.send(Bytes::from_static(b"5\t2026-07-01 00:30\t2026-07-01\n")).await.expect("sent");
    copy.as_mut().finish().await.expect("copied");
    // A block of a session, which is executed again by everybody.
    run(&berlin, "BEGIN").await;
    run(&berlin, "UPDATE event SET at = at + interval '1 day' WHERE id = 3").await;
    assert_eq!(shown(&berlin, "SELECT at FROM event WHERE id = 3").await, "2026-03-29 23:30:00+02");
    run(&berlin, "SET LOCAL TIME ZONE 'UTC'").await;
    assert_eq!(shown(&berlin, "SELECT at FROM event WHERE id = 3").await, "2026-03-29 21:30:00+00");
    run(&berlin, "COMMIT").await;
    let expected = "1|2026-06-30 22:30:00+00|2026-07-01\n2|2026-11-30 23:30:00+00|2026-12-01\n3|2026-03-29 21:30:00+00|2026-03-28\n\
                    4|2026-03-28 14:30:00+00|2026-03-28\n5|2026-06-30 22:30:00+00|2026-07-01";
    assert_eq!(seen(&utc, &berlin, EVENTS).await, expected);
    assert!(
        shown(&berlin, EVENTS)
            .await
            .starts_with("1|2026-07-01 00:30:00+02|2026-07-01\n2|2026-12-01 00:30:00+01")
    );
    // What belongs to everybody is in UTC.
    run(&berlin, "CREATE FUNCTION day_of(at timestamptz) RETURNS date LANGUAGE plpgsql AS $$ BEGIN RETURN at::date; END $$").await;
    assert_eq!(
        shown(&berlin, "SELECT day_of('2026-07-01 00:30'), timestamptz '2026-07-01 00:30'::date").await,
        "2026-06-30|2026-07-01"
    );
    // A mistake, and a node that is killed.
    let wrong = error(&berlin, "SET TIME ZONE 'Europe/Berlim'").await;
    assert!(wrong.0 == "22023" && wrong.1.contains("Europe/Berlim") && wrong.1.contains("IANA"), "{wrong:?}");
    assert_eq!(shown(&berlin, "SHOW TimeZone").await, "Europe/Berlin");
    network.kill(2);
    network.start(2);
    network.wait_until_level_with(0, &[2]).await;
    network.assert_agreement(&[0, 1, 2, 3]).await;
}

fn endorsing(charter: &mut Charter) {
    charter.execution = ExecutionModel::ExecuteOrderValidate;
    charter.protocol = "xox".into();
    charter.endorsement.policy = "2 of (org1, org2, org3, org4)".into();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endorsers_and_members_of_a_schema_read_in_the_zone_that_a_client_has_signed() {
    let (network, berlin, utc) = started(endorsing).await;
    run(&berlin, "INSERT INTO event VALUES (1, '2026-03-28 12:00', timestamptz '2026-03-28 12:00')").await;
    run(&berlin, "UPDATE event SET at = at + interval '1 day', day = at::date WHERE at::date = '2026-03-28'")
        .await;
    assert_eq!(seen(&utc, &berlin, EVENTS).await, "1|2026-03-29 10:00:00+00|2026-03-28");
    network.assert_agreement(&[0, 1, 2, 3]).await;

    let (network, berlin, utc) = started(|_| {}).await;
    run(&berlin, "CREATE SCHEMA deal MEMBERS (org1, org2)").await;
    run(&berlin, "CREATE TABLE deal.event (id int PRIMARY KEY, at timestamptz, day date)").await;
    run(&berlin, "INSERT INTO deal.event VALUES (1, '2026-07-01 00:30')").await;
    run(&berlin, "UPDATE deal.event SET day = at::date").await;
    assert_eq!(
        seen(&utc, &berlin, "SELECT at, day FROM deal.event").await,
        "2026-06-30 22:30:00+00|2026-07-01"
    );
    network.assert_agreement(&[0, 1, 2, 3]).await;
}
