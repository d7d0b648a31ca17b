//! An organisation whose data outgrow one server: its copy stands in a Galera cluster of two, and the writer uses nothing that such
//! a cluster lacks.

use crate::support::{Alone, Own, text_rows};
use chainify::Address;
use servers::MariaDbServer;
use std::time::{Duration, Instant};
use test_machine::free_port_base;

const PROVIDER: &str = "/usr/lib/galera/libgalera_smm.so";
const ROWS: &str = "SELECT id, balance FROM money ORDER BY id";

/// A server of a cluster that speaks to the others on `own`. `members`: ports of all; none founds the cluster.
fn member(own: u16, transfer: u16, members: &[u16]) -> MariaDbServer {
    let members: Vec<String> = members.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let settings = [
        "wsrep_on=ON".to_string(),
        format!("wsrep_provider={PROVIDER}"),
        "wsrep_cluster_name=shop".to_string(),
        format!("wsrep_cluster_address=gcomm://{}", members.join(",")),
        "wsrep_node_address=127.0.0.1".to_string(),
        format!("wsrep_sst_receive_address=127.0.0.1:{transfer}"),
        "wsrep_sst_method=rsync".to_string(),
        format!(
            "wsrep_provider_options=gmcast.listen_addr=tcp://127.0.0.1:{own};ist.recv_addr=127.0.0.1:{}",
            free_port_base()
        ),
        "binlog_format=ROW".to_string(),
        "innodb_autoinc_lock_mode=2".to_string(),
        "innodb-flush-log-at-trx-commit=0".to_string(),
    ];
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    MariaDbServer::start(&settings, true).unwrap_or_else(|error| panic!("{error}"))
}

fn connect(server: &MariaDbServer) -> (Address, Own) {
    let url = format!("mariadb://root@localhost/shop?socket={}", server.socket().display());
    let address: Address = url.parse().expect("an address");
    let start = Instant::now();
    // A server that joins takes the data of the others first.
    while server.execute("shop", "SELECT 1").is_err() {
        assert!(start.elapsed() < Duration::from_secs(60), "{}", server.log());
        std::thread::sleep(Duration::from_millis(100));
    }
    let own = Own::connect(&address);
    (address, own)
}

fn assert_rows(own: &mut Own, expected: &[Vec<Option<String>>]) {
    let start = Instant::now();
    while own.rows(ROWS) != expected {
        assert!(start.elapsed() < Duration::from_secs(30), "the other server has other rows");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_cluster_of_two_servers_is_kept_like_one() {
    assert!(std::path::Path::new(PROVIDER).exists(), "apt-get install galera-4 rsync");
    let ports = [free_port_base(), free_port_base()];
    let first = member(ports[0], free_port_base(), &[]);
    first.create_database("shop").unwrap_or_else(|error| panic!("{error}"));
    let second = member(ports[1], free_port_base(), &ports);
    let (address, mut own) = connect(&first);
    let (_, mut other) = connect(&second);
    assert_eq!(own.value("SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'wsrep_cluster_size'"), "2");
    let mut ledger = Alone::new();
    ledger.start(Some(Alone::options(&address, &["money"])));
    let mut client = ledger.client();
    client
        .batch_execute(
            "CREATE TABLE money (id int PRIMARY KEY, balance bigint NOT NULL CHECK (balance >= 0))",
        )
        .expect("created");
    client.batch_execute("INSERT INTO money SELECT i, 1000 FROM generate_series(1, 5000) i").expect("filled");
    client.batch_execute("UPDATE money SET balance = balance - id WHERE id < 500").expect("changed");
    ledger.wait_level();
    let agreed = text_rows(&mut client, ROWS);
    assert_eq!(own.rows(ROWS), agreed);
    assert_rows(&mut other, &agreed);
    // Who writes at the other server is refused there, or found here.
    let refused = other.try_run("UPDATE money SET balance = 5 WHERE id = 7").expect_err("refused");
    assert!(refused.contains("is written by the ledger alone"), "{refused}");
    other.run("SET @entente_writer = 1");
    other.run("UPDATE money SET balance = 5 WHERE id = 7");
    ledger.wait("strange row", |status| status.strange_rows == 1);
    ledger.wait_level();
    assert_rows(&mut other, &agreed);
    assert_rows(&mut own, &agreed);
    ledger.stop();
}
