//! Rules by which an organisation agrees to scripts, asked in databases of both kinds.

use crate::support::{Own, Server};
use chainify::{Address, AgreeConfig, AgreeRule, Kind, OwnRules, check_rule};
use engine::ProposedScript;
use node::JudgeScripts;
use portable::check_script;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use types::{Catalog, Column, DataType, Payload, Table, TableId};

fn catalog() -> Catalog {
    let column = |name: &str, data_type| Column {
        name: name.to_string(),
        data_type,
        not_null: false,
        default: None,
        generated: false,
    };
    let table = Table {
        id: TableId(1),
        name: "trades".to_string(),
        columns: vec![
            column("id", DataType::BigInt),
            column("part", DataType::Text(Some(40))),
            column("price", DataType::Numeric(Some((10, 2)))),
            column("day", DataType::Date),
            column("Ready?", DataType::Boolean),
        ],
        primary_key: vec![0],
        primary_key_name: "trades_pkey".to_string(),
        checks: Vec::new(),
        endorsement: None,
        row_security: types::RowSecurity::default(),
        partitioning: None,
        materialized: None,
    };
    Catalog { tables: [("trades".to_string(), Arc::new(table))].into(), ..Catalog::default() }
}

fn proposed(sql: &str) -> ProposedScript {
    let payload = Payload::Script { sql: sql.to_string(), parameters: vec![] };
    let script = check_script(&catalog(), &payload, 0).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let changes = script.proposed_changes();
    ProposedScript { organisation: "o'brien".to_string(), role: "clerk".to_string(), changes }
}

fn insert(id: u32, part: &str, price: &str) -> ProposedScript {
    proposed(&format!("INSERT INTO trades VALUES ({id}, {part}, {price}, '2026-02-03', true)"))
}

fn rule(query: &str) -> AgreeRule {
    AgreeRule { table: "trades".to_string(), on: Vec::new(), query: query.to_string(), reason: None }
}

fn rules(folder: &Path, address: &Address, query: &str) -> OwnRules {
    let config = AgreeConfig { rules: vec![rule(query)], ..AgreeConfig::default() };
    config.write(folder).expect("written");
    OwnRules::new(folder, Some(address.clone()))
}

fn databases() -> Vec<(Server, Address)> {
    let database = |kind| {
        let server = Server::start(kind);
        let address = server.database("private");
        let mut own = Own::connect(&address);
        own.run("CREATE TABLE stock (part varchar(40) PRIMARY KEY, amount int NOT NULL)");
        own.run("INSERT INTO stock VALUES ('gear', 5), ('it''s \\\\', 1), ('Bolt', 0)");
        (server, address)
    };
    [Kind::Postgres, Kind::MariaDb].into_iter().map(database).collect()
}

fn yes(verdicts: &[Result<(), String>]) -> Vec<bool> {
    verdicts.iter().map(Result::is_ok).collect()
}

#[test]
fn many_scripts_are_judged_as_each_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let scripts = [
        insert(1, "'gear'", "10"),
        insert(2, "'Gear'", "10"),
        insert(3, r"'it''s \'", "10"),
        insert(4, "'Bolt'", "0"),
        insert(5, "NULL", "10"),
        insert(6, "'gear'", "NULL"),
        insert(7, "'none'", "99999999.99"),
        proposed(
            "INSERT INTO trades VALUES (8, 'gear', 1, NULL, NULL); INSERT INTO trades VALUES (9, 'none', 1, NULL, NULL)",
        ),
        proposed("UPDATE trades SET price = 10 WHERE id = 1"),
    ];
    for (server, address) in databases() {
        let queries = [
            "SELECT amount > 0 FROM stock WHERE stock.part = :part -- in stock",
            // A name inside of a subquery in FROM cannot stand beside a table of constants.
            "SELECT sum(s.amount) > 0 FROM (SELECT amount FROM stock WHERE stock.part = :part) AS s",
            "SELECT :id < 7 AND :id % 2 = 1",
            "SELECT :price * 2 > 19.99",
            "SELECT :day = date '2026-02-03' AND :\"Ready?\"",
            "SELECT :entente.organisation = 'o''brien' AND :entente.role = 'clerk' AND :id > 3",
            "SELECT 1 FROM stock WHERE amount = :id",
        ];
        for query in queries {
            let rules = rules(folder.path(), &address, query);
            let alone: Vec<bool> =
                scripts.iter().flat_map(|script| yes(&rules.judge(std::slice::from_ref(script)))).collect();
            let together = rules.judge(&scripts);
            assert_eq!(yes(&together), alone, "{address}: {query}: {together:?}");
            assert_eq!(yes(&rules.judge(&scripts)), alone, "{address}: {query}, again");
            assert!(alone.contains(&true) && alone.contains(&false), "{address}: {query}: {alone:?}");
        }
        drop(server);
    }
}

#[test]
fn what_a_database_cannot_say_is_no_and_ends_soon() {
    let folder = tempfile::tempdir().expect("a folder");
    for (mut server, address) in databases() {
        // Each script that fails fails alone, and its client hears nothing of the database.
        let division = rules(
            folder.path(),
            &address,
            "SELECT 10 / (SELECT amount FROM stock WHERE stock.part = :part) > 1",
        );
        let found =
            division.judge(&[insert(1, "'gear'", "1"), insert(2, "'Bolt'", "1"), insert(3, "'gear'", "1")]);
        assert_eq!(yes(&found), [true, false, true], "{address}: {found:?}");
        let number = rules(folder.path(), &address, "SELECT 5 + :id");
        let found = number.judge(&[insert(1, "'gear'", "1")]);
        assert_eq!(found, [Err("its database cannot say; the log of its node says why".to_string())]);
        // It reads, whatever somebody has put there.
        let mut own = Own::connect(&address);
        match address.kind {
            Kind::Postgres => own.run(
                "CREATE FUNCTION sell() RETURNS boolean LANGUAGE sql AS 'UPDATE stock SET amount = 0 RETURNING true'",
            ),
            Kind::MariaDb => own.run(
                "CREATE FUNCTION sell() RETURNS boolean MODIFIES SQL DATA BEGIN UPDATE stock SET amount = 0; RETURN true; END",
            ),
        }
        let refused = check_rule(&address, &rule("SELECT sell()"), &[]).expect_err("it would write");
        assert!(refused.to_lowercase().contains("read"), "{refused}");
        assert_eq!(own.value("SELECT amount FROM stock WHERE part = 'gear'"), "5");
        let slow = match address.kind {
            Kind::Postgres => "SELECT pg_sleep(30 + :id) IS NULL",
            Kind::MariaDb => "SELECT sleep(30 + :id) = 7",
        };
        let start = Instant::now();
        let slow = rules(folder.path(), &address, slow);
        let many: Vec<_> = (0..20).map(|id| insert(id, "'gear'", "1")).collect();
        assert!(slow.judge(&many).iter().all(Result::is_err));
        assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
        // Whoever comes back after a while is asked anew.
        let again = rules(folder.path(), &address, "SELECT amount > 0 FROM stock WHERE stock.part = :part");
        assert_eq!(yes(&again.judge(&[insert(1, "'gear'", "1")])), [true]);
        server.kill();
        assert_eq!(yes(&again.judge(&[insert(1, "'gear'", "1")])), [false]);
        server.start_again();
        assert_eq!(yes(&again.judge(&[insert(1, "'gear'", "1")])), [true], "{address}");
    }
}
