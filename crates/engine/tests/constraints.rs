//! Indexes, UNIQUE and FOREIGN KEY under every protocol that executes after ordering: random transactions end as in a
//! serial run, constraints hold, and rows are found by indexes as they are found without.

use concurrency::checker::{CheckedBatch, RecordingTransaction, check};
use concurrency::{Batch, ProtocolOptions, Snapshots, TransactionOutcome, protocol};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use sql::{Context, Invocation, Library};
use state::{AfterImage, Effects, PlainState, Simulate, Snapshot, apply_command};
use std::collections::BTreeSet;
use std::sync::Arc;
use types::{Catalog, Key, Payload, SqlError, StatementResult, TableId, TransactionId};

const HISTORIES: u64 = 400;
const BATCHES: usize = 3;
const TRANSACTIONS: u32 = 6;

const TABLES: [&str; 5] = [
    "CREATE TABLE p (id int PRIMARY KEY, code text UNIQUE, a int, b int, UNIQUE (a, b))",
    "CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p ON DELETE CASCADE ON UPDATE CASCADE, code text REFERENCES p (code), n int)",
    "CREATE TABLE h (u int UNIQUE, v int, p int DEFAULT 1 REFERENCES p ON DELETE SET NULL ON UPDATE SET DEFAULT)",
    "CREATE TABLE k (p int REFERENCES p ON DELETE CASCADE ON UPDATE CASCADE, n int, v int, PRIMARY KEY (p, n))",
    "CREATE SEQUENCE drawn START WITH 10 INCREMENT BY 3 MAXVALUE 60 CYCLE",
];
const INDEXES: [&str; 5] = [
    "CREATE INDEX p_b ON p (b, code)",
    "CREATE INDEX c_n ON c (n)",
    "CREATE INDEX c_p ON c (p, n)",
    "CREATE INDEX c_code ON c (code, id)",
    "CREATE INDEX h_v ON h (v, u)",
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

fn library(statements: &[&str]) -> Arc<Library> {
    let mut library = Arc::new(Library::new(Arc::new(Catalog::default())).expect("nothing compiles"));
    for sql in statements {
        let state = PlainState::new(library.catalog().clone());
        let effects =
            Invocation::new(library.clone(), context(1, 0), script(sql.to_string())).simulate(&state);
        let catalog = effects.catalog.unwrap_or_else(|| panic!("{sql}: {:?}", effects.result));
        library = Arc::new(Library::new(catalog).expect("it compiles"));
    }
    library
}

fn script(sql: String) -> Payload {
    Payload::Script { sql, parameters: vec![] }
}

/// One statement with small numbers in the place of `#`, texts in that of `@`.
fn statement(random: &mut StdRng) -> String {
    let templates = [
        "INSERT INTO p VALUES (#, @, #, #)",
        "INSERT INTO p VALUES (#, @, #, #)",
        "INSERT INTO p VALUES (#, @, #, #) ON CONFLICT (code) DO UPDATE SET a = p.a + 1",
        "INSERT INTO p VALUES (#, @, #, #) ON CONFLICT (a, b) DO UPDATE SET code = excluded.code",
        "INSERT INTO p VALUES (#, @, #, #) ON CONFLICT DO NOTHING",
        "UPDATE p SET code = @ WHERE id = #",
        "UPDATE p SET a = a + 1, b = # WHERE id = #",
        "UPDATE p SET b = b + 1 WHERE b = #",
        "UPDATE p SET a = # WHERE code = @",
        "UPDATE p SET id = # WHERE id = #",
        "UPDATE p SET id = id + 1 WHERE b = #",
        "INSERT INTO p VALUES (#, @, #, #) ON CONFLICT (code) DO UPDATE SET id = excluded.id, a = # RETURNING id",
        "DELETE FROM p WHERE id = #",
        "DELETE FROM p WHERE b = # AND code = @",
        "INSERT INTO c VALUES (#, #, @, #)",
        "INSERT INTO c VALUES (#, #, @, #)",
        "INSERT INTO c VALUES (#, #, NULL, #), (#, NULL, @, #)",
        "INSERT INTO c SELECT id + 4, id, code, b FROM p WHERE b = #",
        "UPDATE c SET p = # WHERE id = #",
        "UPDATE c SET n = n + 1 WHERE n = #",
        "UPDATE c SET n = n + 1 WHERE id = #",
        "UPDATE c SET code = @ WHERE p = # AND n < #",
        "UPDATE c SET id = # WHERE id = #",
        "UPDATE c SET id = id + 1, n = n + id WHERE n < # RETURNING id, n",
        "UPDATE c SET id = 5 - id WHERE p = #",
        "UPDATE c SET id = p.id + 4 FROM p WHERE c.code = p.code AND p.b = #",
        "INSERT INTO k VALUES (#, #, #)",
        "INSERT INTO k VALUES (#, #, #), (#, #, #)",
        "UPDATE k SET n = n + 1, v = v + # WHERE p = #",
        "UPDATE k SET p = # WHERE p = # AND n = #",
        "UPDATE k SET v = v + 1 WHERE p = # AND n = #",
        "SELECT p, n, v FROM k WHERE p = #",
        "DELETE FROM c WHERE n = #",
        "DELETE FROM c WHERE code = @",
        "INSERT INTO h (u, v) VALUES (#, #)",
        "INSERT INTO h VALUES (#, #, #), (NULL, #, #)",
        "INSERT INTO h VALUES (#, #, #) ON CONFLICT (u) DO UPDATE SET v = h.v + excluded.v RETURNING u, v",
        "UPDATE h SET u = u + 1 WHERE v = #",
        "INSERT INTO h (u, v) VALUES (nextval('drawn'), #) RETURNING u",
        "UPDATE h SET u = nextval('drawn') WHERE v = #",
        "SELECT nextval('drawn')",
        "SELECT setval('drawn', 10 + #, #::int > 2)",
        "UPDATE h SET v = v + 1 WHERE u = #",
        "DELETE FROM h WHERE v > #",
        "SELECT id FROM c WHERE n = # ORDER BY id",
        "SELECT id, n FROM c WHERE p = # ORDER BY n DESC, id DESC LIMIT 1",
        "SELECT n FROM c WHERE p = # ORDER BY n LIMIT 2",
        "SELECT count(*), sum(a) FROM p WHERE b = # AND code > @",
        "SELECT c.id, p.a FROM p JOIN c ON c.code = p.code WHERE p.b = #",
        "SELECT u, v FROM h WHERE v = # ORDER BY u LIMIT 1",
        "SELECT id FROM p WHERE code = @",
        "SELECT code FROM c WHERE code >= @ ORDER BY code, id LIMIT 2",
    ];
    let template = templates.choose(random).expect("there are some");
    let mut text = String::new();
    for character in template.chars() {
        match character {
            '#' if random.random_bool(0.04) => text.push_str("NULL"),
            '#' => text.push_str(&random.random_range(1..=4).to_string()),
            '@' if random.random_bool(0.08) => text.push_str("NULL"),
            '@' => text.push_str(["'x'", "'y'", "'z'"].choose(random).expect("three")),
            other => text.push(other),
        }
    }
    text
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
    for index in 0..12 {
        let payload = transaction(random);
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

/// Constraints hold, and the entries of indexes are those of the rows.
fn check_constraints(state: &PlainState) {
    let catalog = &state.catalog;
    let keys = |table: TableId| -> BTreeSet<Key> {
        state.tables.get(&table).into_iter().flat_map(|rows| rows.keys().cloned()).collect()
    };
    for (table, indexes) in &catalog.indexes {
        let rows = || state.tables.get(table).into_iter().flatten();
        for index in indexes {
            let entries: BTreeSet<Key> = rows().map(|(key, row)| index.entry(key, row)).collect();
            assert_eq!(keys(index.entries()), entries, "entries of {}", index.name);
            if index.unique {
                let taken: Vec<Key> =
                    rows().filter_map(|(_, row)| index.unique_entry(row).expect("short")).collect();
                let distinct: BTreeSet<Key> = taken.iter().cloned().collect();
                assert_eq!(distinct.len(), taken.len(), "{} is unique", index.name);
                assert_eq!(keys(index.unique_entries()), distinct, "keys taken in {}", index.name);
            }
        }
    }
    for (child, foreign_keys) in &catalog.foreign_keys {
        for foreign_key in foreign_keys {
            let values = |row: &[types::Value], columns: &[u16]| -> Vec<types::Value> {
                columns.iter().map(|ordinal| row[usize::from(*ordinal)].clone()).collect()
            };
            let parents = state.tables.get(&foreign_key.parent).into_iter().flatten();
            let parents: Vec<_> = parents.map(|(_, row)| values(row, &foreign_key.referenced)).collect();
            for (_, row) in state.tables.get(child).into_iter().flatten() {
                let values = values(row, &foreign_key.columns);
                let references = !values.iter().any(types::Value::is_null);
                assert!(!references || parents.contains(&values), "{}: {values:?}", foreign_key.name);
            }
        }
    }
}

/// Runs a history under a protocol, checks it against the serializability checker, and replays it serially on a ledger
/// without the indexes.
fn run(
    id: &str,
    indexed: &Arc<Library>,
    plain: &Arc<Library>,
    initial: &PlainState,
    history: &[Vec<Arc<Payload>>],
) -> (usize, usize) {
    let mut protocol = protocol(id, ProtocolOptions::default()).expect("a known protocol");
    let invocation = |library: &Arc<Library>, batch: usize, index: u32| {
        let payload = history[batch][index as usize].clone();
        Invocation::new(library.clone(), context(batch as u64 + 2, index), payload)
    };
    let record = |batch: usize| -> Vec<Arc<RecordingTransaction>> {
        let indexes = 0..history[batch].len() as u32;
        indexes.map(|index| RecordingTransaction::new(Arc::new(invocation(indexed, batch, index)))).collect()
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
    check_constraints(&state);
    assert_eq!(results.len(), history.len(), "{id}");
    let unseen = |number: usize| if id == "harmony" { number.min(1) } else { 0 };
    let checked = transactions.iter().zip(&results).enumerate().map(|(number, (transactions, result))| {
        CheckedBatch { transactions, result, unseen: unseen(number), snapshots: None }
    });
    let checked: Vec<CheckedBatch<'_>> = checked.collect();
    let verified = check(initial, &checked).unwrap_or_else(|violation| panic!("{id}: {violation}"));
    assert_eq!(verified.state, state, "{id}");
    // The same without the indexes, whose numbers come after everything else's.
    let mut serial = PlainState::new(plain.catalog().clone());
    for (table, rows) in &initial.tables {
        for (key, row) in rows.iter().filter(|_| plain.catalog().row_tables().any(|known| known == *table)) {
            if !table.is_index() {
                let row_id = state::RowId { table: *table, key: key.clone() };
                serial.apply(&AfterImage { row: row_id, value: Some(row.clone()) });
            }
        }
    }
    let (mut committed, mut aborted) = (0, 0);
    for position in &verified.order {
        let invocation = invocation(plain, position.batch, position.transaction);
        let effects = invocation.simulate(&serial);
        let expected = match apply(&mut serial, effects) {
            Ok(results) => {
                committed += 1;
                TransactionOutcome::Committed(results)
            }
            Err(error) => {
                aborted += 1;
                TransactionOutcome::Aborted(error)
            }
        };
        let found = &results[position.batch].outcomes[position.transaction as usize];
        assert_eq!(*found, expected, "{id}: {:?}", history[position.batch][position.transaction as usize]);
    }
    for (table, rows) in &serial.tables {
        if !table.is_index() {
            assert_eq!(state.tables.get(table), Some(rows), "{id}: table {}", table.0);
        }
    }
    (committed, aborted)
}

#[test]
fn random_transactions_keep_constraints_and_end_as_in_a_serial_run() {
    let plain = library(&TABLES);
    let indexed = library(&[TABLES.as_slice(), &INDEXES].concat());
    let protocols = ["serial", "harmony", "aria", "ssi", "block-stm", "graph"];
    let mut counts = [(0, 0); 6];
    for seed in 0..HISTORIES {
        let mut random = StdRng::seed_from_u64(seed);
        let initial = initial(&mut random, &indexed);
        check_constraints(&initial);
        let history: Vec<Vec<Arc<Payload>>> =
            (0..BATCHES).map(|_| (0..TRANSACTIONS).map(|_| transaction(&mut random)).collect()).collect();
        for (id, count) in protocols.iter().zip(&mut counts) {
            let (committed, aborted) = run(id, &indexed, &plain, &initial, &history);
            (count.0, count.1) = (count.0 + committed, count.1 + aborted);
        }
    }
    eprintln!("{protocols:?}: {counts:?} committed and aborted");
    for (committed, aborted) in counts {
        assert!(committed > 1_000 && aborted > 500, "{committed} committed, {aborted} aborted");
    }
}
