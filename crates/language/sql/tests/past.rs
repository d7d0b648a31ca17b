//! `t AS OF HEIGHT n`: tables as they were, on snapshots that keep earlier ones.

mod support;

use sql::prepare;
use state::{KeyRange, PastError, PlainState, Snapshot, StoreError};
use std::ops::ControlFlow;
use std::sync::Arc;
use support::Database;
use types::{Catalog, Key, Principal, Row, SqlError, SqlState, TableId, Value, format_value};

/// The newest state, and all before it from the first height that is kept.
struct Kept {
    first: u64,
    states: Vec<Arc<PlainState>>,
}

impl Kept {
    fn newest(&self) -> &Arc<PlainState> {
        self.states.last().expect("there is one")
    }
}

impl Snapshot for Kept {
    fn catalog(&self) -> &Arc<Catalog> {
        self.newest().catalog()
    }

    fn get(&self, table: TableId, key: &Key) -> Result<Option<Row>, StoreError> {
        Ok(self.newest().get(table, key))
    }

    fn scan(
        &self,
        table: TableId,
        range: &KeyRange,
        reverse: bool,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.newest().scan(table, range, reverse, visit);
        Ok(())
    }

    fn at_height(&self, height: u64) -> Result<Arc<dyn Snapshot>, PastError> {
        let (oldest, newest) = (self.first, self.first + self.states.len() as u64 - 1);
        match height {
            height if height < oldest => Err(PastError::NoMore { oldest, newest }),
            height if height > newest => Err(PastError::NotYet { oldest, newest }),
            height => Ok(self.states[(height - oldest) as usize].clone()),
        }
    }
}

/// A database after these scripts, each of which was a block, from height 1 on. The first two are not kept.
fn after(scripts: &[&str]) -> (Database, Kept) {
    let mut database = Database::default();
    let mut states = Vec::new();
    for script in scripts {
        database.run(script).unwrap_or_else(|error| panic!("{script}: {error:?}"));
        states.push(Arc::new(database.state.clone()));
    }
    (database, Kept { first: 3, states: states.split_off(2) })
}

fn accounts() -> (Database, Kept) {
    after(&[
        "CREATE ROLE reader",
        "CREATE TABLE accounts (id bigint PRIMARY KEY, owner text, balance bigint)",
        "INSERT INTO accounts VALUES (1, 'ann', 10), (2, 'bob', 20), (3, 'cid', 30)",
        "UPDATE accounts SET balance = balance + 5 WHERE id = 1",
        "CREATE INDEX by_owner ON accounts (owner)",
        "DELETE FROM accounts WHERE id = 2",
        "CREATE TABLE late (id bigint PRIMARY KEY)",
        "ALTER TABLE late ADD COLUMN more text",
    ])
}

fn query_with(
    database: &Database,
    kept: &Kept,
    sql: &str,
    parameters: &[Value],
) -> Result<Vec<Vec<String>>, SqlError> {
    let prepared = prepare(&database.library, sql, &[])?;
    let results = prepared.query_as(&database.reader(), kept, parameters)?;
    let text = |value: &Value| format_value(value).unwrap_or_else(|| "NULL".to_string());
    let rows = results.into_iter().next_back().unwrap_or_default().rows;
    Ok(rows.iter().map(|row| row.iter().map(text).collect()).collect())
}

fn query(database: &Database, kept: &Kept, sql: &str) -> Result<String, SqlError> {
    let rows = query_with(database, kept, sql, &[])?;
    Ok(rows.iter().map(|row| row.join(" ")).collect::<Vec<_>>().join("; "))
}

#[test]
fn tables_are_read_as_they_were() {
    let (database, kept) = accounts();
    for (sql, expected) in [
        ("SELECT * FROM accounts", "1 ann 15; 3 cid 30"),
        ("SELECT * FROM accounts AS OF HEIGHT 3", "1 ann 10; 2 bob 20; 3 cid 30"),
        ("SELECT balance FROM public.accounts AS OF HEIGHT 3 WHERE id = 1", "10"),
        ("SELECT id FROM accounts AS OF HEIGHT 5 WHERE id >= 2 ORDER BY id DESC LIMIT 1", "3"),
        ("SELECT id FROM accounts AS OF HEIGHT 3 WHERE owner = 'bob'", "2"),
        ("SELECT sum(balance) FROM accounts AS OF HEIGHT (2 + 2)", "65"),
        // With aliases, and heights side by side.
        ("SELECT old.id FROM accounts AS OF HEIGHT 3 AS old WHERE old.balance > 10", "2; 3"),
        ("SELECT a.n FROM accounts AS OF HEIGHT 3 a (n) WHERE n < 3", "1; 2"),
        (
            "SELECT old.id, now.balance - old.balance FROM accounts AS OF HEIGHT 3 old LEFT JOIN accounts now USING (id)",
            "1 5; 2 NULL; 3 0",
        ),
        (
            "SELECT a.id FROM accounts AS OF HEIGHT 4 a JOIN accounts AS OF HEIGHT 3 b ON a.id = b.id AND a.balance <> b.balance",
            "1",
        ),
        // In queries inside of others.
        ("SELECT (SELECT count(*) FROM accounts AS OF HEIGHT 5), count(*) FROM accounts", "3 2"),
        (
            "SELECT id FROM accounts AS OF HEIGHT 3 o WHERE NOT EXISTS (SELECT FROM accounts n WHERE n.id = o.id)",
            "2",
        ),
        ("WITH old AS (SELECT id FROM accounts AS OF HEIGHT 3) SELECT count(*) FROM old", "3"),
        ("SELECT id FROM accounts AS OF HEIGHT 3 EXCEPT SELECT id FROM accounts", "2"),
        ("SELECT id FROM accounts AS OF HEIGHT 3, LATERAL (SELECT 1 WHERE id = 2) one", "2"),
    ] {
        assert_eq!(query(&database, &kept, sql).as_deref(), Ok(expected), "{sql}");
    }
    let parameter = query_with(
        &database,
        &kept,
        "SELECT count(*) FROM accounts AS OF HEIGHT $1 WHERE id = $2",
        &[Value::BigInt(4), Value::BigInt(2)],
    );
    assert_eq!(parameter, Ok(vec![vec!["1".to_string()]]));
}

#[test]
fn what_cannot_be_read_is_named() {
    let (database, kept) = accounts();
    let refused = |sql: &str| {
        let error = query(&database, &kept, sql).expect_err(sql);
        (error.state.to_string(), error.message)
    };
    for (sql, state, message) in [
        (
            "SELECT 1 FROM accounts AS OF HEIGHT 2",
            "22023",
            "height 2 is no longer kept: this node keeps heights 3 to 8",
        ),
        (
            "SELECT 1 FROM accounts AS OF HEIGHT 9",
            "22023",
            "height 9 has not been applied yet: this node keeps heights 3 to 8",
        ),
        ("SELECT 1 FROM accounts AS OF HEIGHT (-1)", "22023", "AS OF HEIGHT must not be negative: -1"),
        ("SELECT 1 FROM accounts AS OF HEIGHT (NULL)", "22023", "AS OF HEIGHT must not be NULL"),
        ("SELECT 1 FROM accounts AS OF HEIGHT (id)", "42703", "column \"id\" does not exist"),
        (
            "SELECT 1 FROM accounts AS OF HEIGHT ('x'::text)",
            "42804",
            "argument of AS OF HEIGHT must be type bigint, not type text",
        ),
        ("SELECT 1 FROM nothing AS OF HEIGHT 3", "42P01", "relation \"nothing\" does not exist"),
        ("SELECT 1 FROM late AS OF HEIGHT 3", "42P01", "table \"late\" did not exist at height 3"),
        (
            "SELECT 1 FROM late AS OF HEIGHT 7",
            "0A000",
            "table \"late\" at height 7, where it had other columns is not supported",
        ),
        (
            "WITH w AS (SELECT 1) SELECT 1 FROM w AS OF HEIGHT 3",
            "0A000",
            "AS OF HEIGHT of anything but a table is not supported",
        ),
        (
            "INSERT INTO accounts SELECT id + 9, owner, balance FROM accounts AS OF HEIGHT 3",
            "0A000",
            "AS OF HEIGHT in a statement that writes is not supported",
        ),
        (
            "SELECT 1 FROM accounts AS OF HEIGHT 3; DELETE FROM accounts",
            "0A000",
            "AS OF HEIGHT in a statement that writes is not supported",
        ),
        (
            "DO $$ BEGIN PERFORM 1 FROM accounts AS OF HEIGHT 3; END $$",
            "0A000",
            "AS OF HEIGHT in a function, procedure, trigger or view is not supported",
        ),
    ] {
        assert_eq!(refused(sql), (state.to_string(), message.to_string()), "{sql}");
    }
    for wrong in [
        "SELECT 1 FROM accounts AS OF HEIGHT",
        "SELECT 1 FROM accounts AS OF HEIGHT id",
        "SELECT 1 FROM accounts AS OF HEIGHT (1",
    ] {
        assert_eq!(refused(wrong).0, "42601", "{wrong}");
    }
}

#[test]
fn what_the_ledger_keeps_or_orders_never_reads_the_past() {
    let mut database = accounts().0;
    let mut state = |sql: &str| database.run(sql).expect_err(sql).state;
    for sql in [
        "SELECT 1 FROM accounts AS OF HEIGHT 3",
        "CREATE VIEW v AS SELECT id FROM accounts AS OF HEIGHT 3",
        "CREATE TABLE copied AS SELECT id FROM accounts AS OF HEIGHT 3",
        "CREATE FUNCTION f() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM accounts AS OF HEIGHT 3'",
        "CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN PERFORM 1 FROM accounts AS OF HEIGHT 3; END $$",
        "UPDATE accounts SET balance = (SELECT max(balance) FROM accounts AS OF HEIGHT 3)",
    ] {
        assert_eq!(state(sql), SqlState::FEATURE_NOT_SUPPORTED, "{sql}");
    }
}

#[test]
fn the_privileges_are_those_of_the_table_now() {
    let (mut database, kept) = accounts();
    database.principal = Principal::new(0, "reader");
    let read = |database: &Database| query(database, &kept, "SELECT count(*) FROM accounts AS OF HEIGHT 3");
    assert_eq!(read(&database).expect_err("no privilege").state, SqlState::INSUFFICIENT_PRIVILEGE);
    database.principal = Principal::default();
    database.run("GRANT SELECT ON accounts TO reader").expect("granted");
    database.principal = Principal::new(0, "reader");
    assert_eq!(read(&database).as_deref(), Ok("3"));
}
