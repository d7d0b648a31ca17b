//! What an organisation's database may do wrong: each is named, nothing is lost, and the ledger goes on.

use crate::support::{Alone, Own, Server, text_rows};
use chainify::{Address, Kind, OwnDatabaseOptions};

fn started(alone: &mut Alone, address: &Address, text: &str) {
    let options = Alone::options(address, &["orders"]);
    let address = Address { user: text.to_string(), ..address.clone() };
    alone.start(Some(OwnDatabaseOptions { address, ..options }));
}

fn refusal(alone: &Alone, expected: &str) -> String {
    let status = alone.wait(expected, |status| {
        status.problem.as_deref().is_some_and(|text| text.contains(expected)) && status.state != "following"
    });
    status.problem.expect("it says why")
}

const CREATE: &str = "CREATE TABLE orders (id bigint PRIMARY KEY, due date)";

#[test]
fn who_may_not_connect_or_create_is_told() {
    let (mut alone, server) = (Alone::new(), Server::start(Kind::Postgres));
    let address = server.database("shop");
    started(&mut alone, &address, "nobody_known");
    refusal(&alone, "role \"nobody_known\" does not exist");
    alone.stop();
    let mut own = Own::connect(&address);
    own.run("CREATE ROLE guest LOGIN");
    started(&mut alone, &address, "guest");
    refusal(&alone, "permission denied for database shop");
    alone.stop();
    let elsewhere = Address { database: "nowhere".to_string(), ..address };
    alone.start(Some(Alone::options(&elsewhere, &["orders"])));
    refusal(&alone, "database \"nowhere\" does not exist");
    alone.stop();

    let server = Server::start(Kind::MariaDb);
    let address = server.database("shop");
    let mut own = Own::connect(&address);
    own.run("CREATE USER app@localhost IDENTIFIED BY 'right'");
    own.run("GRANT SELECT ON shop.* TO app@localhost");
    let with = |password: &str| Address {
        user: "app".to_string(),
        password: Some(password.to_string()),
        ..address.clone()
    };
    alone.start(Some(Alone::options(&with("wrong"), &["orders"])));
    let said = refusal(&alone, "Access denied for user 'app'@'localhost'");
    assert!(!said.contains("wrong"), "{said}");
    alone.stop();
    alone.start(Some(Alone::options(&with("right"), &["orders"])));
    refusal(&alone, "CREATE command denied");
    // Mended while it runs.
    own.run("GRANT ALL ON shop.* TO app@localhost");
    alone.client().batch_execute(CREATE).expect("created");
    alone.wait_level();
    alone.stop();
}

#[test]
fn a_lock_that_somebody_holds_is_named_and_delays_the_database_alone() {
    for kind in [Kind::Postgres, Kind::MariaDb] {
        let (mut alone, server) = (Alone::new(), Server::start(kind));
        let address = server.database("shop");
        alone.start(Some(Alone::options(&address, &["orders"])));
        let mut client = alone.client();
        client.batch_execute(CREATE).expect("created");
        client.batch_execute("INSERT INTO orders SELECT i FROM generate_series(1, 10) i").expect("inserted");
        alone.wait_level();
        let mut application = Own::connect(&address);
        application.run("BEGIN");
        application.rows("SELECT id FROM orders WHERE id = 3 FOR UPDATE");
        client
            .batch_execute("UPDATE orders SET due = '2027-01-01' WHERE id = 3")
            .expect("the ledger goes on");
        let said = refusal(&alone, "held, it seems, by");
        let expected = if kind == Kind::Postgres { "of postgres" } else { "of root" };
        assert!(said.contains(expected), "{said}");
        client.batch_execute("DELETE FROM orders WHERE id = 4").expect("the ledger goes on");
        application.run("COMMIT");
        alone.wait_level();
        assert_eq!(application.value("SELECT count(*) FROM orders WHERE due IS NOT NULL"), "1");
        assert_eq!(
            (application.value("SELECT count(*) FROM orders"), alone.status().strange_rows),
            ("9".to_string(), 0)
        );
        alone.stop();
    }
}

#[test]
fn tables_that_are_dropped_and_databases_that_take_nothing_are_mended_or_named() {
    let (mut alone, server) = (Alone::new(), Server::start(Kind::Postgres));
    let address = server.database("shop");
    alone.start(Some(Alone::options(&address, &["orders"])));
    let mut client = alone.client();
    client.batch_execute(CREATE).expect("created");
    client.batch_execute("INSERT INTO orders SELECT i FROM generate_series(1, 100) i").expect("inserted");
    alone.wait_level();
    let mut own = Own::connect(&address);
    own.run("DROP TABLE orders");
    client.batch_execute("DELETE FROM orders WHERE id = 4").expect("deleted");
    alone.wait_level();
    assert_eq!(own.value("SELECT count(*) FROM orders"), "99", "it is made and filled again");
    own.run("ALTER DATABASE shop SET default_transaction_read_only = on");
    own.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'entente'");
    client.batch_execute("DELETE FROM orders WHERE id = 5").expect("deleted");
    refusal(&alone, "read-only transaction");
    own.run(
        "SET default_transaction_read_only = off; ALTER DATABASE shop RESET default_transaction_read_only",
    );
    alone.wait_level();
    assert_eq!(own.value("SELECT count(*) FROM orders"), "98");
    // A second node at the same database.
    let mut second = Alone::new();
    second.start(Some(Alone::options(&address, &["orders"])));
    refusal(&second, "another node writes to this database");
    second.stop();
    alone.stop();
}

#[test]
fn of_a_schema_all_tables_are_kept_that_can_be() {
    let (mut alone, server) = (Alone::new(), Server::start(Kind::MariaDb));
    let address = server.database("shop");
    alone.start(Some(Alone::options(&address, &["public.*"])));
    let mut client = alone.client();
    client.batch_execute(CREATE).expect("created");
    client.batch_execute("CREATE TABLE notes (text text); CREATE TABLE measured (id bigint PRIMARY KEY, x double precision)").expect("created");
    client.batch_execute("INSERT INTO orders VALUES (1, '2027-01-01')").expect("inserted");
    alone.wait_level();
    let status = alone.wait("complaint", |status| status.problem.is_some());
    let problem = status.problem.expect("two are left out");
    for expected in
        ["table notes: it has no primary key", "table measured: column x of type double precision"]
    {
        assert!(problem.contains(expected), "{problem}");
    }
    assert_eq!((status.state.as_str(), status.tables), ("following", vec!["orders".to_string()]));
    let mut own = Own::connect(&address);
    assert_eq!(own.value("SELECT count(*) FROM orders"), "1");
    alone.stop();
}

#[test]
fn a_value_that_the_database_cannot_hold_is_named_until_the_ledger_changes_it() {
    let (mut alone, server) = (Alone::new(), Server::start(Kind::MariaDb));
    let address = server.database("shop");
    alone.start(Some(Alone::options(&address, &["orders"])));
    let mut client = alone.client();
    client.batch_execute(CREATE).expect("created");
    client.batch_execute("INSERT INTO orders VALUES (1, '2027-01-01')").expect("inserted");
    alone.wait_level();
    client
        .batch_execute("INSERT INTO orders VALUES (2, 'infinity'), (3, '0044-03-15 BC')")
        .expect("the ledger holds it");
    let said = refusal(&alone, "which MariaDB's date cannot hold");
    assert!(said.contains("table orders, id=2: column due is infinity"), "{said}");
    client.batch_execute("UPDATE orders SET due = NULL WHERE id = 2").expect("updated");
    let said = refusal(&alone, "id=3");
    assert!(said.contains("0044-03-15 BC"), "{said}");
    client.batch_execute("DELETE FROM orders WHERE id = 3").expect("deleted");
    alone.wait_level();
    let mut own = Own::connect(&address);
    let all = "SELECT id, due FROM orders ORDER BY id";
    assert_eq!(own.rows(all), text_rows(&mut client, all));
    alone.stop();
}
