//! A hot table with triggers: under every protocol that executes after ordering, and for any number of threads, random
//! transactions end as in a serial run, and what the triggers keep up to date is right.

mod support;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use sql::{Library, StatementKind, prepare};
use state::PlainState;
use std::sync::Arc;
use support::histories::{PROTOCOLS, after, library, numbered, run_random_histories_on_threads};
use support::script;
use types::{Payload, Value};

const HISTORIES: u64 = 120;

/// Accounts with limits that triggers hold, a total of them that triggers keep, and a log of what has happened.
const SCHEMA: [&str; 17] = [
    "CREATE TABLE account (id int PRIMARY KEY, owner text UNIQUE, balance int, changes int DEFAULT 0)",
    "CREATE TABLE total (id int PRIMARY KEY, balance bigint, accounts int)",
    "CREATE TABLE entry (id int PRIMARY KEY, account int REFERENCES account ON DELETE CASCADE, amount int)",
    "CREATE TABLE log (what text, before int, after int)",
    "CREATE FUNCTION guard() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.balance < 0 THEN RAISE EXCEPTION 'no credit for %', NEW.owner; END IF;
        IF NEW.balance = 13 THEN RETURN NULL; END IF;
        NEW.changes := COALESCE(NEW.changes, 0) + 1;
        RETURN NEW;
    END $$",
    "CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON account FOR EACH ROW EXECUTE FUNCTION guard()",
    "CREATE FUNCTION keep_total() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        UPDATE total SET balance = balance + COALESCE(NEW.balance, 0) - COALESCE(OLD.balance, 0),
            accounts = accounts + CASE TG_OP WHEN 'INSERT' THEN 1 WHEN 'DELETE' THEN -1 ELSE 0 END WHERE id = 1;
        RETURN NULL;
    END $$",
    "CREATE TRIGGER keep_total AFTER INSERT OR UPDATE OR DELETE ON account
        FOR EACH ROW EXECUTE FUNCTION keep_total()",
    "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO log VALUES (TG_OP, OLD.balance, NEW.balance);
        RETURN NULL;
    END $$",
    "CREATE TRIGGER note AFTER UPDATE OF balance ON account
        FOR EACH ROW WHEN (NEW.balance > OLD.balance + 2) EXECUTE FUNCTION note()",
    "CREATE FUNCTION post() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF TG_OP <> 'INSERT' THEN
            UPDATE account SET balance = balance - OLD.amount WHERE id = OLD.account;
        END IF;
        IF TG_OP <> 'DELETE' THEN
            UPDATE account SET balance = balance + NEW.amount WHERE id = NEW.account;
        END IF;
        RETURN NULL;
    END $$",
    "CREATE TRIGGER post AFTER INSERT OR UPDATE OR DELETE ON entry FOR EACH ROW EXECUTE FUNCTION post()",
    "CREATE FUNCTION summary() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO log SELECT 'sum', count(*), sum(amount) FROM posted;
        RETURN NULL;
    END $$",
    "CREATE TRIGGER summary AFTER INSERT ON entry REFERENCING NEW TABLE AS posted EXECUTE FUNCTION summary()",
    "CREATE FUNCTION cap() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        BEGIN
            IF NEW.amount > 4 THEN RAISE EXCEPTION 'too much'; END IF;
            INSERT INTO log VALUES ('fine', NEW.id, NEW.amount);
        EXCEPTION WHEN raise_exception THEN
            NEW.amount := 4;
        END;
        RETURN NEW;
    END $$",
    "CREATE TRIGGER cap BEFORE INSERT ON entry FOR EACH ROW EXECUTE FUNCTION cap()",
    "CREATE PROCEDURE move(a int, b int, x int) LANGUAGE plpgsql AS $$ BEGIN
        UPDATE account SET balance = balance - x WHERE id = a;
        IF NOT FOUND THEN RAISE EXCEPTION 'no account %', a; END IF;
        UPDATE account SET balance = balance + x WHERE id = b;
    END $$",
];

/// One statement with small numbers in the place of `#`.
fn statement(random: &mut StdRng) -> String {
    let templates = [
        "INSERT INTO account VALUES (#, 'o#', #)",
        "INSERT INTO account VALUES (#, 'o#', #)",
        "INSERT INTO account VALUES (#, 'o#', #) ON CONFLICT (id) DO UPDATE SET balance = account.balance + excluded.balance",
        "INSERT INTO account VALUES (#, 'o#', #) ON CONFLICT DO NOTHING",
        "UPDATE account SET balance = balance + # WHERE id = #",
        "UPDATE account SET balance = balance - # WHERE id = #",
        "UPDATE account SET balance = balance + 1 WHERE balance < #",
        "UPDATE account SET balance = 13 WHERE id = #",
        "UPDATE account SET owner = 'o#' WHERE id = # RETURNING changes",
        "UPDATE account SET changes = changes WHERE id = #",
        "DELETE FROM account WHERE id = #",
        "DELETE FROM account WHERE balance > 4 AND id = #",
        "INSERT INTO entry VALUES (#, #, #)",
        "INSERT INTO entry VALUES (#, #, #), (#, #, #)",
        "INSERT INTO entry VALUES (#, #, 9)",
        "UPDATE entry SET amount = # WHERE id = #",
        "UPDATE entry SET account = # WHERE amount = #",
        "DELETE FROM entry WHERE id = #",
        "CALL move(#, #, #)",
        "CALL move(#, #, #)",
        "SELECT balance, accounts FROM total",
        "SELECT balance, changes FROM account WHERE id = #",
        "SELECT count(*) FROM log",
    ];
    let template = templates.choose(random).expect("there are some");
    numbered(template, random, 1..=4)
}

fn transaction(random: &mut StdRng) -> Arc<Payload> {
    let count = [1, 1, 2, 2, 3].choose(random).expect("five");
    let statements: Vec<String> = (0..*count).map(|_| statement(random)).collect();
    Arc::new(script(&statements.join("; ")))
}

fn initial(random: &mut StdRng, library: &Arc<Library>) -> PlainState {
    let total = Arc::new(script("INSERT INTO total VALUES (1, 0, 0)"));
    after(library, std::iter::once(total).chain((0..7).map(|_| transaction(random))))
}

/// The total is that of the accounts.
fn check_total(library: &Arc<Library>, state: &PlainState) {
    let sql = "SELECT t.balance = a.balance AND t.accounts = a.accounts FROM total t,
        (SELECT coalesce(sum(balance), 0) AS balance, count(*) AS accounts FROM account) a";
    let prepared = prepare(library, sql, &[]).expect("it binds");
    assert_eq!(prepared.kind(), StatementKind::Read);
    let results = prepared.query(state, &[], 100_000, 0).expect("it runs");
    assert_eq!(results[0].rows, [[Value::Boolean(true)]]);
}

#[test]
fn random_changes_of_tables_with_triggers_end_as_in_a_serial_run_for_any_number_of_threads() {
    let library = library(&SCHEMA);
    let begin = |random: &mut StdRng| initial(random, &library);
    let check = |state: &PlainState| check_total(&library, state);
    let counts =
        run_random_histories_on_threads(&library, (HISTORIES, &[1, 2, 4]), begin, transaction, check);
    eprintln!("{PROTOCOLS:?}: {counts:?} committed");
    for committed in counts {
        assert!(committed > 500, "{committed} committed");
    }
}
