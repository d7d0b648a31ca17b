//! Scripts that databases execute: they come to the same in PostgreSQL, in MariaDB and in a node without any, each once, and what
//! somebody changes in between is found.

use crate::support::{Alone, Own, PATIENCE, Server, text_rows};
use chainify::{Address, Kind};
use postgres::{Client, SimpleQueryMessage};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::time::{Duration, Instant};

const TABLES: [&str; 3] = [
    "CREATE TABLE accounts (id int PRIMARY KEY, owner varchar(20) NOT NULL, balance bigint NOT NULL CHECK (balance >= 0), \
     share numeric(10,3), open boolean, since date)",
    "CREATE TABLE notes (account int, number smallint, content varchar(12), written timestamptz, PRIMARY KEY (account, number))",
    "CREATE TABLE files (name varchar(30) PRIMARY KEY, content bytea, size int, id uuid, at timestamp)",
];

const ACCOUNTS: i32 = 20;

/// How a script has ended: rows met by each statement, or the error.
fn run(client: &mut Client, sql: &str) -> Result<Vec<u64>, (String, String)> {
    match client.simple_query(sql) {
        Ok(messages) => Ok(messages
            .into_iter()
            .filter_map(|message| match message {
                SimpleQueryMessage::CommandComplete(rows) => Some(rows),
                _ => None,
            })
            .collect()),
        Err(error) => {
            let error = error.as_db_error().unwrap_or_else(|| panic!("{sql}: {error}"));
            Err((error.code().code().to_string(), error.message().to_string()))
        }
    }
}

/// A script of several statements about accounts, notes and files.
fn script(random: &mut StdRng) -> String {
    let count = random.random_range(1..4);
    (0..count).map(|_| statement(random)).collect::<Vec<_>>().join("; ")
}

fn statement(random: &mut StdRng) -> String {
    let (id, other) = (random.random_range(0..ACCOUNTS), random.random_range(0..ACCOUNTS));
    let amount = random.random_range(1..200);
    let text = ["", "a", "a ", "A", "ä", "it''s", "V3:x", "\\", "€😀", "N"][random.random_range(0..10)];
    match random.random_range(0..16) {
        0 => format!(
            "INSERT INTO accounts VALUES ({id}, '{text}', {amount}, {amount}.1235, true, '2026-01-{:02}')",
            id + 1
        ),
        1 => format!(
            "INSERT INTO accounts (id, owner, balance) VALUES ({id}, 'o', {amount}), ({other}, '{text}', {amount})"
        ),
        2 | 3 => format!("UPDATE accounts SET balance = balance - {amount} WHERE id = {id}"),
        4 => format!(
            "UPDATE accounts SET balance = balance + {amount}, owner = owner || '{text}' WHERE id = {id}"
        ),
        5 => format!(
            "UPDATE accounts SET share = share * 2.5 - 1.25, open = balance > {amount} WHERE id = {id} AND open"
        ),
        6 => format!(
            "UPDATE accounts SET open = NOT open WHERE balance BETWEEN {amount} AND {} AND owner <> '{text}'",
            amount * 2
        ),
        7 => format!("DELETE FROM accounts WHERE id = {id}"),
        8 => format!("INSERT INTO notes VALUES ({id}, {}, '{text}', now())", amount % 5),
        9 => format!(
            "UPDATE notes SET content = content || '{text}' WHERE account = {id} AND number = {}",
            amount % 5
        ),
        10 => format!(
            "UPDATE notes SET content = COALESCE(content, '{text}'), written = NULL WHERE account = {id}"
        ),
        11 => format!("DELETE FROM notes WHERE content = '{text}' OR content IS NULL"),
        12 => format!(
            "INSERT INTO files VALUES ('{text}{other}', '\\x00ff{amount:04x}', {amount}, '5f1fd6d2-0000-4000-8000-{amount:012}', \
             timestamp '2026-11-25 12:34:56.{amount:03}')"
        ),
        13 => format!("UPDATE files SET size = size + {amount}0000000 WHERE name = '{text}{other}'"),
        14 => format!(
            "UPDATE files SET size = CASE WHEN size > {amount} THEN 1 WHEN size IS NULL THEN 2 ELSE NULL END WHERE name IN ('{text}{id}', \
             '{text}{other}')"
        ),
        _ => "UPDATE accounts SET share = NULL WHERE since >= date '2026-01-10' AND NOT open".to_string(),
    }
}

/// All rows of all tables, as the ledger has them.
fn ledger_rows(client: &mut Client) -> Vec<Vec<Vec<Option<String>>>> {
    ["accounts", "notes", "files"]
        .map(|table| {
            let key = if table == "notes" {
                "account, number"
            } else if table == "files" {
                "name"
            } else {
                "id"
            };
            text_rows(client, &format!("SELECT * FROM {table} ORDER BY {key}"))
        })
        .to_vec()
}

/// All rows as a database has them, as the ledger writes them.
fn own_rows(address: &Address) -> Vec<String> {
    let names = ["accounts", "notes", "files"].map(str::to_string);
    let mut all = Vec::new();
    for table in chainify::plan(address, &names).expect("it answers") {
        let mut text = String::new();
        table.copy(address, &mut |line| text.push_str(&with_plain_times(line))).expect("read");
        all.push(text);
    }
    all
}

/// A line with times as every database writes them: of UTC, and without zeros at their ends.
fn with_plain_times(line: &str) -> String {
    let plain = |field: &str| {
        let is_time = field.len() > 18 && field.as_bytes()[10] == b' ' && field.as_bytes()[13] == b':';
        match is_time {
            true => {
                let time = field.trim_end_matches("+00");
                let time =
                    if time.contains('.') { time.trim_end_matches('0').trim_end_matches('.') } else { time };
                time.to_string()
            }
            false => field.to_string(),
        }
    };
    let fields: Vec<String> = line.trim_end_matches('\n').split('\t').map(plain).collect();
    fields.join("\t") + "\n"
}

/// The same of a ledger.
fn as_copied(rows: &[Vec<Vec<Option<String>>>]) -> Vec<String> {
    let value = |value: &Option<String>| match value {
        None => "\\N".to_string(),
        Some(text) => text.replace('\\', "\\\\"),
    };
    let line = |row: &Vec<Option<String>>| {
        with_plain_times(&(row.iter().map(value).collect::<Vec<_>>().join("\t") + "\n"))
    };
    rows.iter().map(|table| table.iter().map(line).collect()).collect()
}

/// The servers of both kinds, and a ledger on each and one without.
fn three() -> (Vec<(Server, Address)>, Vec<Alone>) {
    let servers: Vec<(Server, Address)> = [Kind::Postgres, Kind::MariaDb]
        .into_iter()
        .map(|kind| {
            let server = Server::start(kind);
            let address = server.database("scripts");
            (server, address)
        })
        .collect();
    let mut ledgers: Vec<Alone> = (0..3).map(|_| Alone::of_scripts()).collect();
    for (number, ledger) in ledgers.iter_mut().enumerate() {
        ledger.start_executing(servers.get(number).map(|(_, address)| address), (4, true));
    }
    (servers, ledgers)
}

#[test]
fn random_scripts_come_to_the_same_in_every_database_and_without_one() {
    let count: usize = std::env::var("SCRIPTS").ok().and_then(|text| text.parse().ok()).unwrap_or(400);
    let (servers, ledgers) = three();
    let mut clients: Vec<Client> = ledgers.iter().map(Alone::client).collect();
    for client in &mut clients {
        TABLES.iter().for_each(|table| client.batch_execute(table).expect("created"));
    }
    let mut random = StdRng::seed_from_u64(7);
    let (mut failed, mut met) = (0, 0);
    for number in 0..count {
        let sql = script(&mut random);
        let ends: Vec<_> = clients.iter_mut().map(|client| run(client, &sql)).collect();
        if !ends.windows(2).all(|pair| pair[0] == pair[1]) {
            let rows: Vec<_> = clients.iter_mut().map(ledger_rows).collect();
            panic!("script {number}: {sql}\n{ends:?}\n{rows:#?}");
        }
        match &ends[0] {
            Ok(rows) => met += rows.iter().sum::<u64>(),
            Err((code, message)) => {
                assert_eq!(
                    (code.as_str(), message.as_str()),
                    ("38000", "the script failed, and nothing of it took effect"),
                    "{sql}"
                );
                failed += 1;
            }
        }
    }
    assert!(failed > count / 10 && met > count as u64 / 3, "{failed} failed, {met} rows met");
    let expected: Vec<_> = clients.iter_mut().map(ledger_rows).collect();
    for ((_, address), rows) in servers.iter().zip(&expected) {
        assert_eq!(own_rows(address), as_copied(rows), "{address}");
    }
    // Times differ, because blocks do.
    let without_times = |rows: &Vec<Vec<Vec<Option<String>>>>| {
        let mut rows = rows.clone();
        rows[1].iter_mut().for_each(|note| note[3] = note[3].as_ref().map(|_| "some time".to_string()));
        rows
    };
    assert_eq!(without_times(&expected[0]), without_times(&expected[1]));
    assert_eq!(without_times(&expected[0]), without_times(&expected[2]));
}

/// Accounts with 1,000 each, and clients that move money between them: the first few accounts are in most of it.
fn pay(ledger: &Alone, payments: usize, seed: u64) -> usize {
    let committed = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for client in 0..4 {
            let committed = &committed;
            scope.spawn(move || {
                let mut random = StdRng::seed_from_u64(seed * 10 + client);
                let mut connection = ledger.client();
                for _ in 0..payments / 4 {
                    let hot = random.random_range(0..4) == 0;
                    let from = if hot { 0 } else { random.random_range(0..500) };
                    let (to, amount) = (random.random_range(0..500), random.random_range(1..400));
                    let sql = format!(
                        "UPDATE money SET balance = balance - {amount} WHERE id = {from}; \
                         UPDATE money SET balance = balance + {amount} WHERE id = {to}"
                    );
                    if run(&mut connection, &sql).is_ok() {
                        committed.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    }
                }
            });
        }
    });
    committed.into_inner()
}

fn create_money(ledger: &Alone) {
    let mut client = ledger.client();
    client
        .batch_execute(
            "CREATE TABLE money (id int PRIMARY KEY, balance bigint NOT NULL CHECK (balance >= 0))",
        )
        .expect("created");
    let rows: Vec<String> = (0..500).map(|id| format!("({id}, 1000)")).collect();
    client.batch_execute(&format!("INSERT INTO money VALUES {}", rows.join(", "))).expect("filled");
}

/// The money in the database is that in the ledger, and none is lost. Gives the rows.
fn assert_money(ledger: &Alone, own: &mut Own) -> Vec<Vec<Option<String>>> {
    let agreed = text_rows(&mut ledger.client(), "SELECT id, balance FROM money ORDER BY id");
    let sum: i64 =
        agreed.iter().map(|row| row[1].as_deref().expect("not null").parse::<i64>().expect("a number")).sum();
    assert_eq!(sum, 500_000);
    let start = Instant::now();
    loop {
        let found = own.rows("SELECT id, balance FROM money ORDER BY id");
        if found == agreed {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "the database has other rows than the ledger");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn scripts_run_beside_one_another_once_each_whoever_is_killed() {
    for kind in [Kind::Postgres, Kind::MariaDb] {
        let mut server = Server::start(kind);
        let address = server.database("money");
        let mut ledger = Alone::of_scripts();
        ledger.start_executing(Some(&address), (8, false));
        create_money(&ledger);
        assert!(pay(&ledger, 800, 1) > 400);
        assert_money(&ledger, &mut Own::connect(&address));
        // The server ends in the middle of blocks, and comes back.
        std::thread::scope(|scope| {
            let paying = scope.spawn(|| pay(&ledger, 1_200, 2));
            for _ in 0..3 {
                std::thread::sleep(Duration::from_millis(300));
                server.kill();
                std::thread::sleep(Duration::from_millis(200));
                server.start_again();
            }
            assert!(paying.join().expect("paid") > 400);
        });
        assert_money(&ledger, &mut Own::connect(&address));
        // The node goes on from the state that it finds, and the database is ahead of it.
        ledger.stop();
        ledger.start_executing(Some(&address), (3, true));
        assert!(pay(&ledger, 400, 3) > 100);
        assert_money(&ledger, &mut Own::connect(&address));
        let strange = Own::connect(&address).value(&format!("SELECT count(*) FROM {}", strange_rows(kind)));
        assert_eq!(strange, "0");
    }
}

fn strange_rows(kind: Kind) -> &'static str {
    match kind {
        Kind::Postgres => "entente.strange_rows",
        Kind::MariaDb => "entente_strange_rows",
    }
}

/// Lets a connection past the trigger that refuses writes.
fn pass(own: &mut Own) {
    match own {
        Own::Postgres(_) => own.run("SET entente.writer = 'on'"),
        Own::MariaDb(_) => own.run("SET @entente_writer = 1"),
    }
}

#[test]
fn what_somebody_changes_behind_the_ledgers_back_is_found_and_put_right() {
    for kind in [Kind::Postgres, Kind::MariaDb] {
        let server = Server::start(kind);
        let address = server.database("money");
        let mut ledger = Alone::of_scripts();
        ledger.start_executing(Some(&address), (4, true));
        create_money(&ledger);
        let (mut client, mut own) = (ledger.client(), Own::connect(&address));
        let refused = own.try_run("UPDATE money SET balance = 5 WHERE id = 7").expect_err("refused");
        assert!(refused.contains("written by the ledger alone"), "{refused}");
        pass(&mut own);
        own.run("UPDATE money SET balance = 5 WHERE id = 7");
        // The next script that comes to the row finds it out before anything of it is attested.
        assert_eq!(run(&mut client, "UPDATE money SET balance = balance + 1 WHERE id = 7"), Ok(vec![1]));
        assert_eq!(
            text_rows(&mut client, "SELECT balance FROM money WHERE id = 7")[0][0].as_deref(),
            Some("1001")
        );
        assert_eq!(own.value("SELECT balance FROM money WHERE id = 7"), "1001");
        let kept = own.rows(&format!("SELECT row_key, found, agreed FROM {}", strange_rows(kind)));
        let text = |text: &str| Some(text.to_string());
        assert_eq!(kept, [[text("id=7"), text("id=7, balance=5"), text("id=7, balance=1000")]]);
        let status = ledger.wait("strange row", |status| status.strange_rows == 1);
        assert_eq!(status.last_strange.as_deref(), Some("money id=7 is another row than the ledger's"));
        // Without its trigger a table takes anything; that it is gone is found before the next block.
        match kind {
            Kind::Postgres => {
                own.run("DROP TRIGGER entente_record ON money; UPDATE money SET balance = 1 WHERE id = 9")
            }
            Kind::MariaDb => {
                let name = own.value("SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE TRIGGER_NAME LIKE 'entente\\_record\\_u%'");
                own.run(&format!("DROP TRIGGER {name}"));
                own.run("UPDATE money SET balance = 1 WHERE id = 9");
            }
        }
        assert_eq!(run(&mut client, "UPDATE money SET balance = balance + 1 WHERE id = 10"), Ok(vec![1]));
        assert_eq!(own.value("SELECT balance FROM money WHERE id = 9"), "1000");
        ledger.wait("second strange row", |status| status.strange_rows == 2);
        assert_eq!(run(&mut client, "UPDATE money SET balance = balance - 2 WHERE id = 7"), Ok(vec![1]));
        assert_eq!(own.value("SELECT balance FROM money WHERE id = 7"), "999", "changes are recorded again");
        // Whoever has restored an old copy, or emptied the table, gets the ledger's rows.
        pass(&mut own);
        own.run("DELETE FROM money WHERE id > 100");
        let position = if kind == Kind::Postgres { "entente.position" } else { "entente_position" };
        own.run(&format!("UPDATE {position} SET height = height - 3"));
        ledger.stop();
        ledger.start_executing(Some(&address), (4, true));
        let mut client = ledger.client();
        assert_eq!(run(&mut client, "UPDATE money SET balance = balance + 1 WHERE id = 200"), Ok(vec![1]));
        assert_eq!(own.value("SELECT count(*) FROM money"), "500");
        assert_eq!(own.value("SELECT balance FROM money WHERE id = 200"), "1001");
    }
}

#[test]
fn tables_follow_the_ledger_and_what_is_not_the_same_everywhere_is_refused() {
    let (servers, ledgers) = three();
    for (number, ledger) in ledgers.iter().enumerate() {
        let mut client = ledger.client();
        if let Some((_, address)) = servers.get(number) {
            // A table of the organisation's own is in the way until the organisation has moved it.
            let mut own = Own::connect(address);
            own.run("CREATE TABLE parts (number int PRIMARY KEY, name text, UNIQUE (number)); INSERT INTO parts VALUES (1, 'mine')");
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    ledger
                        .client()
                        .batch_execute("CREATE TABLE parts (number int PRIMARY KEY, name text)")
                        .expect("created")
                });
                let said = ledger.wait("refusal", |status| status.state == "refused").problem.expect("why");
                assert!(said.contains("already") && said.contains("rename or drop that one"), "{said}");
                own.run("ALTER TABLE parts RENAME TO my_parts");
            });
            client.batch_execute("DROP TABLE parts").expect("dropped");
        }
        client.batch_execute("CREATE TABLE parts (number int PRIMARY KEY, name text)").expect("created");
        run(&mut client, "INSERT INTO parts VALUES (1, 'wheel'), (2, 'axle')").expect("added");
        client
            .batch_execute("ALTER TABLE parts ADD COLUMN weight numeric(6,2) DEFAULT 1.5")
            .expect("changed");
        run(&mut client, "INSERT INTO parts VALUES (3, 'nut', 0.25); UPDATE parts SET weight = weight + 1 WHERE number = 1").expect("added");
        client.batch_execute("CREATE TABLE gone (id int PRIMARY KEY)").expect("created");
        run(&mut client, "INSERT INTO gone VALUES (1)").expect("added");
        client.batch_execute("DROP TABLE gone").expect("dropped");
        run(&mut client, "DELETE FROM parts WHERE number = 2").expect("deleted");
        let parts = text_rows(&mut client, "SELECT * FROM parts ORDER BY number");
        let text = |text: &str| Some(text.to_string());
        assert_eq!(parts, [[text("1"), text("wheel"), text("2.50")], [text("3"), text("nut"), text("0.25")]]);
        if let Some((_, address)) = servers.get(number) {
            let mut own = Own::connect(address);
            assert_eq!(own.rows("SELECT * FROM parts ORDER BY number"), parts, "{address}");
            own.run("DELETE FROM gone");
        }
        let refused = [
            ("CREATE VIEW v AS SELECT 1", "0A000", "view"),
            ("CREATE TABLE t (id int PRIMARY KEY, x double precision)", "0A000", "double"),
            ("CREATE TABLE t (id int, x int)", "0A000", "primary key"),
            ("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", "0A000", ""),
            ("TRUNCATE parts", "0A000", "TRUNCATE"),
            ("UPDATE parts SET weight = weight / 2 WHERE number = 1", "0A000", ""),
            ("UPDATE parts SET name = 'x' WHERE name LIKE 'w%'", "0A000", ""),
            ("UPDATE nothing SET a = 1", "42P01", "nothing"),
            ("INSERT INTO parts VALUES (4, 'x', 123456.5)", "22003", ""),
        ];
        for (sql, code, message) in refused {
            let (found, said) = run(&mut client, sql).expect_err(sql);
            assert!(found == code && said.contains(message), "{sql}: {found} {said}");
        }
        // A block whose statements a client has seen the results of one by one is no script.
        assert!(run(&mut client, "BEGIN").is_ok());
        assert!(run(&mut client, "UPDATE parts SET name = 'y' WHERE number = 1").is_ok());
        let (code, said) = run(&mut client, "COMMIT").expect_err("refused");
        assert!(code == "0A000" && said.contains("a transaction block"), "{code} {said}");
        assert_eq!(text_rows(&mut client, "SELECT count(*) FROM parts")[0][0].as_deref(), Some("2"));
    }
}
