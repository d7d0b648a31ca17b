//! Attacks of the paper (002, section 4.1) on an organisation's database: what comes of each, and what would come of it without the
//! defence. The orderer's attacks are those of ordering: `simulation`, `bft`.

use super::defence::Defence;
use super::*;
use crate::dialect::Dialect;
use crate::samples::{self, Servers};
use crate::session::{self, Session};
use crate::shared_table::SharedTable;
use crate::{bookkeeping, guard, recorder};
use memory::Memory;
use state::{AfterImage, RowId, Store, Stores, Version};
use std::sync::Arc;
use types::{Catalog, Payload, Value};

const ACCOUNTS: i64 = 10;
const ACCOUNT: i64 = 7;
/// What every account has at the begin.
const BALANCE: i64 = 1_000;

/// A ledger whose scripts a database executes, and a connection of somebody who may do anything there.
struct Attacked {
    store: Arc<dyn Store>,
    database: ScriptDatabase,
    attacker: Box<dyn Session>,
    dialect: Dialect,
    height: u64,
}

impl Attacked {
    fn new(address: &Address, undefended: &[Defence]) -> Attacked {
        let database = ScriptDatabase::new(ScriptDatabaseOptions {
            address: address.clone(),
            node: crypto::SecretKey::from_bytes([1; 32]).public_key(),
            connections: 2,
            as_sets: true,
            takes_ledger_rows: true,
        });
        let (table, store) = (samples::table(), Memory.create(Arc::default()).expect("memory"));
        let catalog = Catalog { tables: [(table.name.clone(), table.clone())].into(), ..Catalog::default() };
        let image = |id: i64| AfterImage {
            row: RowId { table: table.id, key: samples::key(id) },
            value: Some(samples::row(id, BALANCE)),
        };
        let images: Vec<AfterImage> = (0..ACCOUNTS).map(image).collect();
        store.apply(Version::after_batch(1, 0), &images, Some(Arc::new(catalog))).expect("memory");
        let attacker = session::connect(address).expect("it answers");
        let mut attacked =
            Attacked { store, database, attacker, dialect: Dialect::from(address.kind), height: 1 };
        // Whatever another ledger has left is not this one's; the first block makes the tables.
        attacked.database.distrust();
        attacked.execute(&add(0));
        let strange = bookkeeping::strange_table(attacked.dialect);
        guard::let_write(&mut *attacked.attacker, attacked.dialect).expect("it may");
        attacked.sql(&format!("DELETE FROM {strange}"));
        undefended.iter().for_each(|defence| attacked.database.undefended.switch_off(*defence));
        attacked
    }

    /// Runs a script in a block of its own.
    fn execute(&mut self, sql: &str) {
        let ran = self.execute_at(self.height + 1, sql);
        self.height += 1;
        self.store.apply(Version::after_batch(self.height, 0), &ran.changes, None).expect("memory");
    }

    /// What a script comes to in the block at `height`, on the state that there is.
    fn execute_at(&mut self, height: u64, sql: &str) -> RanScripts {
        let before = self.store.snapshot();
        let payload = Payload::Script { sql: sql.to_string(), parameters: Vec::new() };
        let script = portable::check_script(before.catalog(), &payload, 0).expect("portable");
        let (ledger, scripts) = (crypto::sha256(&[b"attacked"]), vec![(0, script)]);
        self.database.execute(&BlockScripts { ledger, height, before, scripts }).expect("it executes")
    }

    /// The table, as this database names it.
    fn table(&self) -> String {
        SharedTable::new(samples::table(), self.dialect).expect("a plain table").name
    }

    /// What the attacker does.
    fn sql(&mut self, sql: &str) {
        self.attacker.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// The node's connections are lost, and so is what it knows of the database.
    fn reconnect(&mut self) {
        *self.database.connected.lock() = None;
    }

    /// What the node attests that the account has.
    fn attested(&self) -> i64 {
        let (table, snapshot) = (samples::table().id, self.store.snapshot());
        let row = snapshot.get(table, &samples::key(ACCOUNT)).expect("memory").expect("it is there");
        match row[1] {
            Value::BigInt(balance) => balance,
            ref other => panic!("{other:?}"),
        }
    }

    fn strange_rows(&mut self) -> String {
        let sql = format!("SELECT count(*) FROM {}", bookkeeping::strange_table(self.dialect));
        self.attacker.value(&sql).expect("it answers").unwrap_or_default()
    }
}

fn add(amount: i64) -> String {
    format!("UPDATE checking SET balance = balance + {amount} WHERE customer_id = {ACCOUNT}")
}

/// What is attested after an attack by everybody whose defences stand, and by somebody without some of them.
fn assert_attack(
    what: &str,
    undefended: &[Defence],
    (expected, otherwise): (i64, i64),
    attack: impl Fn(&mut Attacked),
) {
    let servers = Servers::start();
    for address in servers.addresses() {
        for (undefended, expected) in [(&[][..], expected), (undefended, otherwise)] {
            let mut attacked = Attacked::new(&address, undefended);
            attack(&mut attacked);
            assert_eq!(attacked.attested(), expected, "{what} at {address}, without {undefended:?}");
        }
    }
}

#[test]
fn a_row_that_was_manipulated_is_not_built_upon() {
    assert_attack("a manipulated row", &[Defence::OldRows], (BALANCE + 1, 6), |attacked| {
        let table = attacked.table();
        attacked.sql(&format!("UPDATE {table} SET balance = 5 WHERE customer_id = {ACCOUNT}"));
        attacked.execute(&add(1));
    });
}

#[test]
fn a_trigger_that_is_gone_hides_nothing() {
    let attack = |attacked: &mut Attacked| {
        match attacked.dialect {
            Dialect::Postgres => {
                attacked.sql(&format!("DROP TRIGGER entente_record ON {}", attacked.table()))
            }
            Dialect::MariaDb => {
                let name = guard::trigger_name("entente_record", "checking", "u");
                attacked.sql(&format!("DROP TRIGGER {name}"));
            }
        }
        attacked.execute(&add(1));
    };
    assert_attack("a dropped trigger", &[Defence::Triggers], (BALANCE + 1, BALANCE), attack);
}

#[test]
fn a_trigger_that_lies_is_not_believed() {
    let attack = |attacked: &mut Attacked| {
        // What it writes down of a row is not what the row is.
        let changes = recorder::changes_table(attacked.dialect);
        let (old, new) = ("'V1:7V4:1000'", "'V1:7V4:9999'");
        let id = samples::table().id.0;
        match attacked.dialect {
            Dialect::Postgres => attacked.sql(&format!(
                "CREATE OR REPLACE FUNCTION entente.record_{id}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                 INSERT INTO {changes} (height, table_id, old, new) VALUES \
                 (current_setting('entente.height')::bigint, {id}, {old}, {new}); RETURN NULL; END $$"
            )),
            Dialect::MariaDb => {
                let name = guard::trigger_name("entente_record", "checking", "u");
                attacked.sql(&format!("DROP TRIGGER {name}"));
                attacked.sql(&format!(
                    "CREATE TRIGGER {name} AFTER UPDATE ON checking FOR EACH ROW \
                     INSERT INTO {changes} (height, table_id, old, new) VALUES (@entente_height, {id}, {old}, {new})"
                ));
            }
        }
        attacked.execute(&add(1));
    };
    assert_attack("a lying trigger", &[Defence::Triggers], (BALANCE + 1, 9_999), attack);
}

#[test]
fn a_database_that_lies_about_commits_is_brought_up_again() {
    // It has said that a block is committed, and has lost it when it comes back.
    let attack = |attacked: &mut Attacked| {
        attacked.execute(&add(10));
        let (changes, position) =
            (recorder::changes_table(attacked.dialect), bookkeeping::position_table(attacked.dialect));
        let (lost, executed) = (attacked.height, recorder::executed_table(attacked.dialect));
        let table = attacked.table();
        attacked.sql(&format!("UPDATE {table} SET balance = {BALANCE} WHERE customer_id = {ACCOUNT}"));
        attacked.sql(&format!("DELETE FROM {changes} WHERE height = {lost}"));
        attacked.sql(&format!("DELETE FROM {executed} WHERE height = {lost}"));
        attacked.sql(&format!("UPDATE {position} SET height = {}", lost - 1));
        attacked.reconnect();
        attacked.execute(&add(1));
        assert_eq!(attacked.strange_rows(), "0", "it was behind, and nobody has changed a row");
    };
    let undefended = [Defence::Height, Defence::OldRows];
    assert_attack("a lost commit", &undefended, (BALANCE + 11, BALANCE + 1), attack);
}

#[test]
fn a_block_that_was_executed_is_not_executed_again() {
    let servers = Servers::start();
    for address in servers.addresses() {
        // The node ends behind the scripts of a block and in front of what says that the block is over. What was executed the
        // database has written down; had it not, scripts would run twice.
        for (is_written_down, expected) in [(true, BALANCE + 1), (false, BALANCE + 2)] {
            let mut attacked = Attacked::new(&address, &[]);
            let next = attacked.height + 1;
            let first = attacked.execute_at(next, &add(1));
            let position = bookkeeping::position_table(attacked.dialect);
            attacked.sql(&format!("UPDATE {position} SET height = {}", next - 1));
            if !is_written_down {
                let executed = recorder::executed_table(attacked.dialect);
                attacked.sql(&format!("DELETE FROM {executed} WHERE height = {next}"));
            }
            attacked.reconnect();
            let again = attacked.execute_at(next, &add(1));
            assert_eq!(first == again, is_written_down);
            attacked.store.apply(Version::after_batch(next, 0), &again.changes, None).expect("memory");
            assert_eq!(attacked.attested(), expected, "{address}, written down: {is_written_down}");
        }
    }
}
