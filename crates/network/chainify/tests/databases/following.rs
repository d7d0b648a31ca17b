//! A copy in PostgreSQL and in MariaDB follows the ledger: rows, restarts, shapes, and writes behind the ledger's back.

use crate::support::{Alone, Own, Server, text_rows};
use chainify::{Address, Kind};
use postgres::Client;
use std::time::{Duration, Instant};

const KINDS: [Kind; 2] = [Kind::Postgres, Kind::MariaDb];

fn create(client: &mut Client) {
    client
        .batch_execute(
            "CREATE TABLE orders (id bigint PRIMARY KEY, customer varchar(20) NOT NULL, amount numeric(12,2), paid boolean)",
        )
        .expect("created");
}

const ORDERS: &str =
    "SELECT id, customer, amount, CASE WHEN paid THEN 1 WHEN NOT paid THEN 0 END FROM orders ORDER BY id";

fn same(ledger: &mut Client, own: &mut Own) {
    assert_eq!(text_rows(ledger, ORDERS), own.rows(ORDERS));
}

#[test]
fn rows_come_and_change_and_go_and_nobody_else_may_write() {
    for kind in KINDS {
        let server = Server::start(kind);
        let address = server.database("shop");
        let mut alone = Alone::new();
        alone.start(Some(Alone::options(&address, &["orders"])));
        let mut client = alone.client();
        alone.wait("complaint", |status| {
            status.problem.as_deref().is_some_and(|text| text.contains("no table orders yet"))
        });
        create(&mut client);
        client
            .batch_execute("INSERT INTO orders VALUES (1, 'ann', 12.5, true), (2, 'it''s \\', NULL, NULL)")
            .expect("inserted");
        client
            .batch_execute(
                "INSERT INTO orders SELECT i, 'c' || i, i, i % 2 = 0 FROM generate_series(10, 900) i",
            )
            .expect("inserted");
        alone.wait_level();
        let mut own = Own::connect(&address);
        same(&mut client, &mut own);
        client.batch_execute("UPDATE orders SET amount = amount + 1 WHERE id < 500").expect("updated");
        client.batch_execute("DELETE FROM orders WHERE id % 10 = 0").expect("deleted");
        client.batch_execute("UPDATE orders SET id = id + 1000 WHERE id > 800").expect("keys change");
        alone.wait_level();
        same(&mut client, &mut own);
        for sql in [
            "UPDATE orders SET amount = 0",
            "DELETE FROM orders",
            "INSERT INTO orders (id, customer) VALUES (5, 'x')",
        ] {
            let refused = own.try_run(sql).expect_err("refused");
            assert!(refused.contains("is written by the ledger alone"), "{refused}");
        }
        same(&mut client, &mut own);
        assert_eq!(alone.status().strange_rows, 0);
        alone.stop();
    }
}

/// Somebody who means it: past the trigger.
fn behind_the_back(own: &mut Own, sql: &str) {
    match own {
        Own::Postgres(_) => own.run(&format!("SET entente.writer = 'on'; {sql}; RESET entente.writer")),
        Own::MariaDb(_) => {
            own.run("SET @entente_writer = 1");
            own.run(sql);
            own.run("SET @entente_writer = NULL");
        }
    }
}

fn strange(own: &mut Own) -> Vec<Vec<Option<String>>> {
    let table = match own {
        Own::Postgres(_) => "entente.strange_rows",
        Own::MariaDb(_) => "entente_strange_rows",
    };
    own.rows(&format!("SELECT table_name, row_key, found, agreed FROM {table} ORDER BY number"))
}

#[test]
fn writes_behind_the_ledgers_back_are_found_kept_aside_and_put_right() {
    for kind in KINDS {
        let server = Server::start(kind);
        let address = server.database("shop");
        let mut alone = Alone::new();
        alone.start(None);
        let mut client = alone.client();
        create(&mut client);
        client
            .batch_execute("INSERT INTO orders SELECT i, 'c' || i, i, true FROM generate_series(1, 20000) i")
            .expect("inserted");
        alone.stop();
        alone.start(Some(Alone::options(&address, &["orders"])));
        let mut client = alone.client();
        alone.wait_level();
        let mut own = Own::connect(&address);
        same(&mut client, &mut own);
        // Found by a comparison.
        behind_the_back(&mut own, "UPDATE orders SET amount = 99 WHERE id = 17");
        behind_the_back(&mut own, "DELETE FROM orders WHERE id = 18");
        behind_the_back(&mut own, "INSERT INTO orders (id, customer) VALUES (30000, 'ghost')");
        alone.wait("three strange rows", |status| status.strange_rows >= 3);
        same(&mut client, &mut own);
        let rows = strange(&mut own);
        let find =
            |key: &str| rows.iter().find(|row| row[1].as_deref() == Some(key)).expect("it is kept aside");
        let paid = if kind == Kind::Postgres { "true" } else { "t" };
        assert!(find("id=17")[2].as_deref().is_some_and(|text| text.contains("amount=99.00")), "{rows:?}");
        assert_eq!(
            find("id=17")[3].as_deref().map(|text| text.contains("amount=17.00")),
            Some(true),
            "{rows:?} {paid}"
        );
        assert_eq!((find("id=18")[2].as_deref(), find("id=30000")[3].as_deref()), (None, None));
        // Found by the next write.
        alone.wait("quiet", |status| status.scans > 1);
        behind_the_back(&mut own, "UPDATE orders SET customer = 'eve' WHERE id = 40");
        client.batch_execute("UPDATE orders SET amount = 41 WHERE id = 40").expect("updated");
        alone.wait("another strange row", |status| status.strange_rows >= 4);
        alone.wait_level();
        same(&mut client, &mut own);
        assert!(
            strange(&mut own)
                .iter()
                .any(|row| row[2].as_deref().is_some_and(|text| text.contains("customer=eve")))
        );
        // A thousand of them.
        behind_the_back(&mut own, "UPDATE orders SET paid = NULL WHERE id BETWEEN 1000 AND 1999");
        alone.wait("a thousand strange rows", |status| status.strange_rows >= 1004);
        same(&mut client, &mut own);
        alone.stop();
    }
}

#[test]
fn triggers_that_were_taken_away_come_back() {
    for kind in KINDS {
        let server = Server::start(kind);
        let address = server.database("shop");
        let mut alone = Alone::new();
        alone.start(Some(Alone::options(&address, &["orders"])));
        let mut client = alone.client();
        create(&mut client);
        client.batch_execute("INSERT INTO orders VALUES (1, 'ann', 12.5, true)").expect("inserted");
        alone.wait_level();
        let mut own = Own::connect(&address);
        let ways: &[&str] = match kind {
            Kind::Postgres => &[
                "ALTER TABLE orders DISABLE TRIGGER entente_refuse",
                "DROP TRIGGER entente_refuse ON orders",
                "CREATE OR REPLACE FUNCTION entente.refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
            ],
            Kind::MariaDb => &["DROP TRIGGER entente_refuse_u_{}"],
        };
        for (number, way) in ways.iter().enumerate() {
            let id = match kind {
                Kind::Postgres => String::new(),
                Kind::MariaDb => {
                    let name = own.value("SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE() LIMIT 1");
                    name.rsplit('_').next().expect("a number").to_string()
                }
            };
            own.run(&way.replace("{}", &id));
            own.run(&format!("UPDATE orders SET amount = {} WHERE id = 1", 1000 + number));
            client
                .batch_execute("INSERT INTO orders SELECT max(id) + 1, 'bob', 1, true FROM orders")
                .expect("inserted");
            let start = Instant::now();
            while own.try_run("UPDATE orders SET amount = 0 WHERE id = 1").is_ok() {
                assert!(start.elapsed() < crate::support::PATIENCE, "{way}: {:?}", alone.status());
                std::thread::sleep(Duration::from_millis(20));
            }
            alone.wait("strange row", |status| status.strange_rows > number as u64);
            alone.wait_level();
            let start = Instant::now();
            while text_rows(&mut client, ORDERS) != own.rows(ORDERS) {
                assert!(start.elapsed() < crate::support::PATIENCE, "{way}: {:?}", alone.status());
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        if kind == Kind::Postgres {
            own.run("ALTER TRIGGER entente_refuse ON orders RENAME TO other");
            client.batch_execute("DELETE FROM orders WHERE id > 2").expect("deleted");
            let refused = alone.wait("refusal", |status| status.state == "refused");
            assert!(
                refused.problem.as_deref().is_some_and(|text| text.contains("it has triggers (other)")),
                "{refused:?}"
            );
            own.run("DROP TRIGGER other ON orders");
            alone.wait_level();
            assert!(own.try_run("UPDATE orders SET amount = 0").is_err());
        }
        alone.stop();
    }
}

#[test]
fn a_database_that_was_away_or_restored_catches_up_and_one_that_is_ahead_waits() {
    for kind in KINDS {
        let mut server = Server::start(kind);
        let address = server.database("shop");
        let mut alone = Alone::new();
        alone.start(Some(Alone::options(&address, &["orders"])));
        let mut client = alone.client();
        create(&mut client);
        client
            .batch_execute("INSERT INTO orders SELECT i, 'c', i, true FROM generate_series(1, 100) i")
            .expect("inserted");
        alone.wait_level();
        // Away: the ledger goes on.
        server.kill();
        for number in 0..20 {
            client
                .batch_execute(&format!("UPDATE orders SET amount = {number} WHERE id = 7"))
                .expect("the ledger goes on");
        }
        alone.wait("waiting", |status| status.state == "waiting" && status.problem.is_some());
        server.start_again();
        alone.wait_level();
        let mut own = Own::connect(&address);
        same(&mut client, &mut own);
        assert_eq!(alone.status().strange_rows, 0, "{:?}", alone.status());
        // The node was away.
        alone.stop();
        alone.start(Some(Alone::options(&address, &["orders"])));
        let mut client = alone.client();
        client.batch_execute("DELETE FROM orders WHERE id = 3").expect("deleted");
        alone.wait_level();
        same(&mut client, &mut own);
        // Restored from an old backup: an older height, and rows of then.
        alone.stop();
        let position = if kind == Kind::Postgres { "entente.position" } else { "entente_position" };
        behind_the_back(&mut own, "UPDATE orders SET amount = 4 WHERE id = 7");
        behind_the_back(&mut own, "INSERT INTO orders (id, customer) VALUES (3, 'c')");
        own.run(&format!("UPDATE {position} SET height = 2, state_digest = ''"));
        alone.start(Some(Alone::options(&address, &["orders"])));
        let mut client = alone.client();
        alone.wait_level();
        same(&mut client, &mut own);
        // Ahead of the node: nothing is taken back.
        alone.stop();
        own.run(&format!("UPDATE {position} SET height = 1000000"));
        alone.start(Some(Alone::options(&address, &["orders"])));
        alone.wait("waiting", |status| {
            status.problem.as_deref().is_some_and(|text| text.contains("at height 1000000, this node at"))
        });
        alone.stop();
        // Of another ledger.
        let mut other = Alone::new();
        other.start(Some(Alone::options(&address, &["orders"])));
        let refused = other.wait("refusal", |status| status.state == "refused");
        assert!(
            refused.problem.as_deref().is_some_and(|text| text.contains("another ledger")),
            "{refused:?}"
        );
        other.stop();
    }
}

fn with_rows(address: &Address, sql: &[&str]) {
    let mut own = Own::connect(address);
    sql.iter().for_each(|sql| own.run(sql));
}

#[test]
fn tables_that_exist_are_compared_before_they_are_taken() {
    for kind in KINDS {
        let server = Server::start(kind);
        let address = server.database("shop");
        let mut alone = Alone::new();
        alone.start(None);
        let mut client = alone.client();
        create(&mut client);
        client
            .batch_execute("INSERT INTO orders SELECT i, 'c' || i, i, NULL FROM generate_series(1, 100) i")
            .expect("inserted");
        alone.stop();
        let (varchar, boolean) = match kind {
            Kind::Postgres => ("varchar(20)", "boolean"),
            Kind::MariaDb => ("varchar(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin", "tinyint(1)"),
        };
        with_rows(
            &address,
            &[
                &format!(
                    "CREATE TABLE orders (id bigint PRIMARY KEY, customer {varchar} NOT NULL, amount numeric(12,2), paid {boolean}, extra integer)"
                ),
                "INSERT INTO orders (id, customer, amount) VALUES (1, 'c1', 1), (2, 'other', 2), (500, 'more', 5)",
            ],
        );
        alone.start(Some(Alone::options(&address, &["orders"])));
        let refused = alone.wait("refusal", |status| status.state == "refused");
        assert!(
            refused
                .problem
                .as_deref()
                .is_some_and(|text| text.contains("column extra is not in the ledger's")),
            "{refused:?}"
        );
        with_rows(&address, &["ALTER TABLE orders DROP COLUMN extra"]);
        let refused = alone.wait("list", |status| {
            status.problem.as_deref().is_some_and(|text| text.contains("100 rows differ"))
        });
        assert!(
            refused.problem.as_deref().is_some_and(|text| text.contains("--take-ledger-rows")),
            "{refused:?}"
        );
        let mut own = Own::connect(&address);
        assert_eq!(own.value("SELECT count(*) FROM orders"), "3", "nothing was changed");
        assert_eq!(strange(&mut own).len(), 100, "98 are missing, one differs, one is too many");
        alone.stop();
        let options = Alone::options(&address, &["orders"]);
        alone.start(Some(chainify::OwnDatabaseOptions { takes_ledger_rows: true, ..options }));
        let mut client = alone.client();
        alone.wait_level();
        same(&mut client, &mut own);
        // The next start follows what is a copy now.
        alone.stop();
        alone.start(Some(Alone::options(&address, &["orders"])));
        alone.wait_level();
        // A new shape: the copy waits until it has it.
        let mut client = alone.client();
        client.batch_execute("ALTER TABLE orders ADD COLUMN note text").expect("altered");
        let refused = alone.wait("complaint", |status| status.state == "refused");
        assert!(
            refused.problem.as_deref().is_some_and(|text| text.contains("column note is missing")),
            "{refused:?}"
        );
        let text = match kind {
            Kind::Postgres => "text",
            Kind::MariaDb => "longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
        };
        with_rows(&address, &[&format!("ALTER TABLE orders ADD COLUMN note {text}")]);
        client.batch_execute("UPDATE orders SET note = 'x' WHERE id = 1").expect("updated");
        alone.wait_level();
        assert_eq!(own.value("SELECT note FROM orders WHERE id = 1"), "x");
        alone.stop();
    }
}

/// A row that was there before the ledger had the table is nobody's mistake.
#[test]
fn rows_of_a_table_that_the_ledger_gets_later_are_listed_and_not_replaced() {
    for kind in KINDS {
        let server = Server::start(kind);
        let address = server.database("shop");
        let text = match kind {
            Kind::Postgres => "text",
            Kind::MariaDb => "longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
        };
        with_rows(
            &address,
            &[
                &format!("CREATE TABLE parts (id bigint PRIMARY KEY, name {text})"),
                "INSERT INTO parts VALUES (1, 'mine')",
            ],
        );
        let mut alone = Alone::new();
        alone.start(Some(Alone::options(&address, &["orders", "parts"])));
        let mut client = alone.client();
        create(&mut client);
        alone.wait_level();
        client.batch_execute("CREATE TABLE parts (id bigint PRIMARY KEY, name text)").expect("created");
        let refused = alone.wait("refusal", |status| status.state == "refused");
        let problem = refused.problem.expect("it says why");
        assert!(problem.contains("1 row differs from the ledger's, the first: parts id=1"), "{problem}");
        let mut own = Own::connect(&address);
        assert_eq!(own.value("SELECT name FROM parts"), "mine");
        // Once the ledger has it, the two agree.
        client.batch_execute("INSERT INTO parts VALUES (1, 'mine')").expect("inserted");
        alone.wait_level();
        client.batch_execute("UPDATE parts SET name = 'ours'").expect("updated");
        alone.wait_level();
        assert_eq!(own.value("SELECT name FROM parts"), "ours");
        alone.stop();
    }
}

#[test]
fn deferrable_constraints_stay_while_rows_come_in_any_order() {
    let server = Server::start(Kind::Postgres);
    let address = server.database("shop");
    with_rows(
        &address,
        &[
            "CREATE TABLE b_parents (id bigint PRIMARY KEY, code integer UNIQUE DEFERRABLE INITIALLY DEFERRED)",
            "CREATE TABLE a_children (id bigint PRIMARY KEY, parent bigint REFERENCES b_parents DEFERRABLE INITIALLY IMMEDIATE)",
            "CREATE TABLE private (parent bigint REFERENCES b_parents DEFERRABLE INITIALLY DEFERRED)",
        ],
    );
    let mut alone = Alone::new();
    alone.start(Some(Alone::options(&address, &["public.*"])));
    let mut client = alone.client();
    client
        .batch_execute(
            "CREATE TABLE b_parents (id bigint PRIMARY KEY, code integer);
             CREATE TABLE a_children (id bigint PRIMARY KEY, parent bigint)",
        )
        .expect("created");
    client
        .batch_execute("INSERT INTO b_parents VALUES (1, 10), (2, 20); INSERT INTO a_children VALUES (5, 1)")
        .expect("inserted");
    alone.wait_level();
    let mut own = Own::connect(&address);
    own.run("INSERT INTO private VALUES (2)");
    client.batch_execute("UPDATE b_parents SET code = 30 - code").expect("two values change places");
    client
        .batch_execute("INSERT INTO b_parents VALUES (3, 30); INSERT INTO a_children VALUES (6, 3)")
        .expect("inserted");
    alone.wait_level();
    for all in ["SELECT * FROM b_parents ORDER BY id", "SELECT * FROM a_children ORDER BY id"] {
        assert_eq!(text_rows(&mut client, all), own.rows(all));
    }
    // A row to which a private one refers is put right where it stands.
    behind_the_back(&mut own, "UPDATE b_parents SET code = 77 WHERE id = 2");
    alone.wait("strange row", |status| status.strange_rows == 1);
    assert_eq!(own.value("SELECT code FROM b_parents WHERE id = 2"), "10");
    assert_eq!(own.value("SELECT count(*) FROM private"), "1");
    alone.stop();
}
