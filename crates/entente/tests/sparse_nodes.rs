//! An organisation whose schemas several nodes hold comes to the same as the others, whatever happens to these nodes.

mod support;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use support::{ENTENTE, TestNetwork, error, free_port_base, rows, wait_for_rows};
use tokio_postgres::Client;

/// A node that holds schemas for organisation 1.
struct TestHolder {
    folder: PathBuf,
    process: Option<Child>,
}

impl TestHolder {
    fn start(&mut self) {
        let log = std::fs::File::options().create(true).append(true).open(self.folder.join("node.log"));
        let log = log.expect("a log file");
        let child = Command::new(ENTENTE)
            .args(["node", "--stop-with-input", "--dir"])
            .arg(&self.folder)
            .stdin(Stdio::piped())
            .stdout(log.try_clone().expect("a second handle"))
            .stderr(log)
            .spawn();
        self.process = Some(child.expect("the program starts"));
    }

    fn kill(&mut self) {
        let mut child = self.process.take().expect("it runs");
        child.kill().expect("it can be killed");
        child.wait().expect("it has ended");
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("node.log")).unwrap_or_default()
    }
}

impl Drop for TestHolder {
    fn drop(&mut self) {
        if let Some(mut child) = self.process.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn free_address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], free_port_base()))
}

fn place(arguments: &[&str]) -> Output {
    Command::new(ENTENTE).arg("place").args(arguments).output().expect("the program starts")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("plain letters")
}

/// A holder of organisation 1 with these schemas. Starts nothing.
fn holder(network: &TestNetwork, name: &str, schemas: &str, more: &[&str]) -> TestHolder {
    let (validator, folder) = (network.node_folder(0), network.folder().join(name));
    let listen = free_address().to_string();
    let mut arguments =
        vec!["--dir", text(&validator), "--at", text(&folder), "--schemas", schemas, "--listen", &listen];
    arguments.extend(more);
    let placed = place(&arguments);
    assert!(placed.status.success(), "{}", String::from_utf8_lossy(&placed.stderr));
    TestHolder { folder, process: None }
}

const SCHEMAS: i32 = 4;

async fn create_schemas(session: &Client) {
    let run = async |statement: String| session.batch_execute(&statement).await.expect(&statement);
    for schema in 1..=SCHEMAS {
        run(format!("CREATE SCHEMA s{schema}")).await;
        run(format!(
            "CREATE TABLE s{schema}.accounts (id int PRIMARY KEY, owner text, balance bigint CHECK (balance >= 0))"
        ))
        .await;
        run(format!("CREATE INDEX accounts_owner_{schema} ON s{schema}.accounts (owner)")).await;
        run(format!(
            "INSERT INTO s{schema}.accounts SELECT g, 'o' || g % 7, 1000 FROM generate_series(1, 100) AS g"
        ))
        .await;
    }
    for (schema, next) in (1..=SCHEMAS).map(|schema| (schema, schema % SCHEMAS + 1)) {
        for (name, to) in [("pay", schema), ("send", next)] {
            run(format!(
                "CREATE PROCEDURE s{schema}.{name}(a int, b int, n bigint) LANGUAGE plpgsql AS $$ BEGIN
                   UPDATE s{schema}.accounts SET balance = balance - n WHERE id = a;
                   UPDATE s{to}.accounts SET balance = balance + n WHERE id = b; END $$"
            ))
            .await;
        }
    }
}

/// Calls through one session; how many did not fail.
async fn calls(session: &Client, rng: &mut StdRng, count: usize) -> usize {
    let mut committed = 0;
    for _ in 0..count {
        let (schema, a, b) =
            (rng.random_range(1..=SCHEMAS), rng.random_range(1..=100), rng.random_range(1..=100));
        let procedure = if rng.random_bool(0.3) { "send" } else { "pay" };
        let call = format!("CALL s{schema}.{procedure}({a}, {b}, {})", rng.random_range(1..50));
        committed += usize::from(session.batch_execute(&call).await.is_ok());
    }
    committed
}

const ALL: &str = "SELECT sum(balance), count(*), sum(balance * id) FROM";

async fn assert_same_rows(network: &TestNetwork) {
    network.assert_agreement(&[0, 1, 2, 3]).await;
    let (one, two) = (network.session(0).await, network.session(1).await);
    for schema in 1..=SCHEMAS {
        let sums = format!("{ALL} s{schema}.accounts");
        let expected = rows(&two, &sums).await;
        let expected: Vec<&str> = expected[0].iter().map(String::as_str).collect();
        wait_for_rows(&one, &sums, &[&expected]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_killed_the_organisation_comes_to_the_same_as_the_others() {
    let mut network = TestNetwork::create(|charter| {
        charter.checkpoint_blocks = 20;
        charter.block.idle_ms = 150;
    });
    let mut holders = [
        holder(&network, "org1-b", "s1,s2", &[]),
        holder(&network, "org1-c", "s3", &["--store", "disk", "--memory-megabytes", "32"]),
    ];
    holders.iter_mut().for_each(TestHolder::start);
    network.start_all().await;
    let session = network.session(1).await;
    create_schemas(&session).await;
    let mut rng = StdRng::seed_from_u64(1);
    assert!(calls(&session, &mut rng, 40).await > 30);
    assert_same_rows(&network).await;
    let own = network.session(0).await;
    assert!(calls(&own, &mut rng, 10).await > 5, "its own gateway takes transactions, too");
    let of_owner = "SELECT id FROM s1.accounts WHERE owner = 'o3' ORDER BY id LIMIT 3";
    assert_eq!(rows(&own, of_owner).await, [["3"], ["10"], ["17"]]);
    let joined = "SELECT count(*) FROM s1.accounts AS a JOIN s3.accounts AS b USING (id) JOIN s4.accounts AS c USING (id)";
    assert_eq!(rows(&own, joined).await, [["100"]]);
    assert_eq!(error(&own, "CALL s3.pay(1, 2, 1000000)").await.0, "23514");
    let metrics = network.client(0).metrics().await.expect("it answers");
    let there = "entente_split_transactions_total{at=\"holder\"} ";
    let there = metrics.lines().find_map(|line| line.strip_prefix(there)).expect("it is counted");
    assert!(there.parse::<u64>().expect("a number") > 20, "{there} transactions ran at holders");
    for round in 0..3 {
        match round {
            0 => holders[rng.random_range(0..2)].kill(),
            1 => network.kill(0),
            _ => {
                holders[0].kill();
                network.kill(0);
            }
        }
        assert!(calls(&session, &mut rng, 15).await > 10, "the others go on");
        holders.iter_mut().filter(|holder| holder.process.is_none()).for_each(TestHolder::start);
        if round > 0 {
            network.start(0);
        }
        calls(&session, &mut rng, 15).await;
        assert_same_rows(&network).await;
    }
    assert!(network.log(0).contains("waits for a holder of schemas"), "{}", network.log(0));
    assert!(holders[0].log().contains("org1-b holds s1, s2 at"), "{}", holders[0].log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemas_that_have_rows_go_to_another_node_and_come_back() {
    let mut network = TestNetwork::create(|charter| charter.checkpoint_blocks = 15);
    network.start_all().await;
    let session = network.session(1).await;
    create_schemas(&session).await;
    let mut rng = StdRng::seed_from_u64(2);
    calls(&session, &mut rng, 20).await;
    network.interrupt(0);
    let mut first = holder(&network, "org1-b", "s1,s2", &[]);
    first.start();
    network.start(0);
    calls(&session, &mut rng, 20).await;
    assert_same_rows(&network).await;
    assert_began_where_it_ended(&network);
    let shown = place(&["--dir", text(&network.node_folder(0))]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("org1-b at 127.0.0.1:") && shown.contains(": s1, s2\n"), "{shown}");
    assert!(shown.contains("the validator: everything else"), "{shown}");

    // One of them goes on to a second node by way of the validator.
    network.interrupt(0);
    first.kill();
    let (validator, at) = (network.node_folder(0), first.folder.clone());
    let refused = place(&[
        "--dir",
        text(&validator),
        "--at",
        text(&network.folder().join("org1-c")),
        "--schemas",
        "s2",
    ]);
    let refused = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.contains("the holder org1-b holds one of these schemas"), "{refused}");
    let placed = place(&["--dir", text(&validator), "--at", text(&at), "--schemas", "s1"]);
    assert!(placed.status.success(), "{}", String::from_utf8_lossy(&placed.stderr));
    let mut second = holder(&network, "org1-d", "s2,s4", &[]);
    first.start();
    second.start();
    network.start(0);
    calls(&session, &mut rng, 20).await;
    assert_same_rows(&network).await;
    assert_began_where_it_ended(&network);
}

/// A node that was stopped in good order has made its state durable, and so have its holders: nothing is executed again.
fn assert_began_where_it_ended(network: &TestNetwork) {
    let log = network.log(0);
    let began = log.lines().rfind(|line| line.contains("blocks replayed")).expect("it says where it begins");
    assert!(began.contains(", 0 blocks replayed"), "{began}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_is_named_and_keeps_nobody_else_waiting() {
    let mut network = TestNetwork::create(|_| {});
    let validator = network.node_folder(0);
    let says = |arguments: &[&str]| {
        let output = place(arguments);
        assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let at = network.folder().join("org1-b");
    let public = says(&["--dir", text(&validator), "--at", text(&at), "--schemas", "public"]);
    assert!(public.contains("the schema public stays with the validator"), "{public}");
    let other = network.node_folder(1);
    let full = says(&["--dir", text(&validator), "--at", text(&other), "--schemas", "s1"]);
    assert!(full.contains("exists and is not empty"), "{full}");
    let nowhere = says(&["--dir", "/nowhere"]);
    assert!(nowhere.contains("/nowhere/charter.toml"), "{nowhere}");

    let mut one = holder(&network, "org1-b", "s1", &[]);
    let address = std::fs::read_to_string(at.join("holder.toml")).expect("written");
    let address = address.lines().find_map(|line| line.strip_prefix("listen = ")).expect("it says where");
    let taken = says(&[
        "--dir",
        text(&validator),
        "--at",
        text(&network.folder().join("org1-c")),
        "--schemas",
        "s2",
        "--listen",
        address.trim_matches('"'),
    ]);
    assert!(taken.contains("is where the holder org1-b listens"), "{taken}");
    let _foreign = holder_of(&network, 1, "org2-b");

    // Both say something else: the validator waits and says so, the others go on.
    let path = at.join("holder.toml");
    let right = std::fs::read_to_string(&path).expect("written");
    std::fs::write(&path, right.replace("\"s1\"", "\"s9\"")).expect("written");
    one.start();
    (0..4).for_each(|node| network.start(node));
    network.wait_for_height(1, 2).await;
    wait_for_log(&network, "this node holds the schemas s9, and its validator's node.toml says s1").await;
    one.kill();
    std::fs::write(&path, right).expect("written");
    one.start();
    network.wait_for_height(0, 2).await;

    // Somebody else's validator shows another certificate.
    network.kill(0);
    let toml = validator.join("node.toml");
    let own = std::fs::read_to_string(&toml).expect("written");
    let others = std::fs::read_to_string(other.join("node.toml")).expect("written");
    let line = |text: &str, key: &str| {
        text.lines().rfind(|line| line.starts_with(key)).expect("it is there").to_string()
    };
    let stolen = own.replace(&line(&own, "address = "), &line(&others, "address = "));
    let stolen = stolen.replace(&line(&own, "certificate = "), &line(&others, "certificate = "));
    std::fs::write(&toml, stolen).expect("written");
    network.start(0);
    wait_for_log(&network, "does not answer").await;
    network.kill(0);
    std::fs::write(&toml, own).expect("written");
    network.start(0);
    network.wait_for_height(0, 2).await;
    network.assert_agreement(&[0, 1, 2, 3]).await;
}

/// A holder of another organisation.
fn holder_of(network: &TestNetwork, node: usize, name: &str) -> TestHolder {
    let (validator, folder) = (network.node_folder(node), network.folder().join(name));
    // Its node never starts with it: the holder alone is asked.
    let before = std::fs::read_to_string(validator.join("node.toml")).expect("written");
    let listen = free_address().to_string();
    let arguments =
        ["--dir", text(&validator), "--at", text(&folder), "--schemas", "s1", "--listen", &listen];
    assert!(place(&arguments).status.success());
    assert!(std::fs::read_to_string(validator.join("node.toml")).expect("written") != before);
    let mut holder = TestHolder { folder, process: None };
    holder.start();
    holder
}

async fn wait_for_log(network: &TestNetwork, text: &str) {
    let start = Instant::now();
    while !network.log(0).contains(text) {
        assert!(start.elapsed() < Duration::from_secs(60), "no \"{text}\" in:\n{}", network.log(0));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
