//! A hot table with triggers: under every protocol that executes after ordering, and for any number of threads, random
//! transactions end as in a serial run, and what the triggers keep up to date is right.

use concurrency::checker::{CheckedBatch, RecordingTransaction, check};
use concurrency::{Batch, ProtocolOptions, Snapshots, TransactionOutcome, protocol};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use sql::{Context, Invocation, Library, StatementKind, prepare};
use state::{AfterImage, Effects, PlainState, Simulate, Snapshot, apply_command};
use std::sync::Arc;
use types::{Catalog, Payload, SqlError, StatementResult, TransactionId, Value};

const HISTORIES: u64 = 120;
const BATCHES: usize = 3;
const TRANSACTIONS: u32 = 6;

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

fn context(height: u64, index: u32) -> Context {
    Context {
        height,
        timestamp_ms: 1_800_000_000_000,
        index,
        transaction: TransactionId(crypto::sha256(&[&height.to_be_bytes(), &index.to_be_bytes()])),
        step_limit: 10_000,
    }
}

fn script(sql: impl Into<String>) -> Payload {
    Payload::Script { sql: sql.into(), parameters: vec![] }
}

fn library() -> Arc<Library> {
    let mut library = Arc::new(Library::new(Arc::new(Catalog::default())).expect("nothing compiles"));
    for sql in SCHEMA {
        let state = PlainState::new(library.catalog().clone());
        let effects = Invocation::new(library.clone(), context(1, 0), script(sql)).simulate(&state);
        let catalog = effects.catalog.unwrap_or_else(|| panic!("{sql}: {:?}", effects.result));
        library = Arc::new(Library::new(catalog).expect("it compiles"));
    }
    library
}

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
    let number = |character| match character {
        '#' => random.random_range(1..=4).to_string(),
        other => other.to_string(),
    };
    template.chars().map(number).collect()
}

fn transaction(random: &mut StdRng) -> Arc<Payload> {
    let count = [1, 1, 2, 2, 3].choose(random).expect("five");
    let statements: Vec<String> = (0..*count).map(|_| statement(random)).collect();
    Arc::new(script(statements.join("; ")))
}

/// Applies what a transaction did on this state.
fn apply(state: &mut PlainState, effects: Effects) -> Result<Vec<StatementResult>, SqlError> {
    let results = effects.result?;
    for command in &effects.commands {
        let before = state.get(command.row.table, &command.row.key);
        let (after, matched) = apply_command(before, command).expect("the simulation succeeded");
        assert!(command.guard.is_none_or(|guard| guard == matched), "{command:?}");
        if matched {
            state.apply(&AfterImage { row: command.row.clone(), value: after });
        }
    }
    Ok(results)
}

fn initial(random: &mut StdRng, library: &Arc<Library>) -> PlainState {
    let mut state = PlainState::new(library.catalog().clone());
    let total = Arc::new(script("INSERT INTO total VALUES (1, 0, 0)"));
    for index in 0..8 {
        let payload = if index == 0 { total.clone() } else { transaction(random) };
        let effects = Invocation::new(library.clone(), context(1, index), payload).simulate(&state);
        _ = apply(&mut state, effects);
    }
    state
}

struct Plain<'a>(&'a PlainState);

impl Snapshots for Plain<'_> {
    fn newest(&self) -> Arc<dyn Snapshot> {
        Arc::new(self.0.clone())
    }
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

/// Runs a history under a protocol and checks it against the serializability checker and a serial run. Gives the state
/// after it.
fn run(
    id: &str,
    library: &Arc<Library>,
    initial: &PlainState,
    history: &[Vec<Arc<Payload>>],
) -> (PlainState, usize) {
    let mut protocol = protocol(id, ProtocolOptions::default()).expect("a known protocol");
    let invocation = |batch: usize, index: u32| {
        let payload = history[batch][index as usize].clone();
        Invocation::new(library.clone(), context(batch as u64 + 2, index), payload)
    };
    let record = |batch: usize| -> Vec<Arc<RecordingTransaction>> {
        let indexes = 0..history[batch].len() as u32;
        indexes.map(|index| RecordingTransaction::new(Arc::new(invocation(batch, index)))).collect()
    };
    let transactions: Vec<Vec<Arc<RecordingTransaction>>> = (0..history.len()).map(record).collect();
    let mut state = initial.clone();
    let mut results = Vec::new();
    for (number, transactions) in transactions.iter().enumerate() {
        protocol.offer(Batch {
            height: number as u64 + 2,
            number: 0,
            transactions: transactions.iter().map(|one| one.clone() as Arc<dyn Simulate>).collect(),
            steps_left: u64::MAX,
            forget: false,
            oldest_snapshot: 0,
        });
        // Harmony overlaps two batches, so that it has its results one later.
        while let Some(result) = protocol.poll(&Plain(&state)) {
            result.changes.iter().for_each(|change| state.apply(change));
            results.push(result);
        }
    }
    assert_eq!(results.len(), history.len(), "{id}");
    let unseen = |number: usize| if id == "harmony" { number.min(1) } else { 0 };
    let checked = transactions.iter().zip(&results).enumerate().map(|(number, (transactions, result))| {
        CheckedBatch { transactions, result, unseen: unseen(number), snapshots: None }
    });
    let checked: Vec<CheckedBatch<'_>> = checked.collect();
    let verified = check(initial, &checked).unwrap_or_else(|violation| panic!("{id}: {violation}"));
    assert_eq!(verified.state, state, "{id}");
    let mut serial = initial.clone();
    let mut committed = 0;
    for position in &verified.order {
        let effects = invocation(position.batch, position.transaction).simulate(&serial);
        let expected = match apply(&mut serial, effects) {
            Ok(results) => {
                committed += 1;
                TransactionOutcome::Committed(results)
            }
            Err(error) => TransactionOutcome::Aborted(error),
        };
        let found = &results[position.batch].outcomes[position.transaction as usize];
        assert_eq!(*found, expected, "{id}: {:?}", history[position.batch][position.transaction as usize]);
    }
    assert_eq!(serial, state, "{id}");
    check_total(library, &state);
    (state, committed)
}

#[test]
fn random_changes_of_tables_with_triggers_end_as_in_a_serial_run_for_any_number_of_threads() {
    let library = library();
    let pools = [1, 2, 4]
        .map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads"));
    let protocols = ["serial", "harmony", "aria", "ssi", "block-stm", "graph"];
    let mut counts = [0; 6];
    for seed in 0..HISTORIES {
        let mut random = StdRng::seed_from_u64(seed);
        let initial = initial(&mut random, &library);
        let history: Vec<Vec<Arc<Payload>>> =
            (0..BATCHES).map(|_| (0..TRANSACTIONS).map(|_| transaction(&mut random)).collect()).collect();
        for (id, count) in protocols.iter().zip(&mut counts) {
            let [one, two, four] =
                pools.each_ref().map(|pool| pool.install(|| run(id, &library, &initial, &history)));
            assert_eq!(one, two, "{id}, seed {seed}: 2 threads");
            assert_eq!(one, four, "{id}, seed {seed}: 4 threads");
            *count += one.1;
        }
    }
    eprintln!("{protocols:?}: {counts:?} committed");
    for committed in counts {
        assert!(committed > 500, "{committed} committed");
    }
}
