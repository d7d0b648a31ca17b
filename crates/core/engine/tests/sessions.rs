//! Transaction blocks of sessions under every protocol that executes after ordering: random blocks that clients ran on
//! snapshots, some of them old, end as in a serial run. Each commits with what its client was given, or not at all.

mod support;

use concurrency::TransactionOutcome;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use sql::{Context, Library, Session, TemporaryTables};
use state::{PlainState, Simulate};
use std::sync::Arc;
use support::histories;
use support::histories::{History, PROTOCOLS, after, apply, context, invocation, library, replay};
use types::{ClientId, PackedRows, Payload, SessionStep, TransactionId, Value};

const HISTORIES: u64 = 300;
const BATCHES: usize = 3;
const TRANSACTIONS: u32 = 6;

const SCHEMA: [&str; 5] = [
    "CREATE TABLE a (id int PRIMARY KEY, n int CHECK (n < 12), m int, t text)",
    "CREATE TABLE u (id int PRIMARY KEY, code text UNIQUE, a int REFERENCES a)",
    "CREATE TABLE log (line text)",
    "CREATE PROCEDURE move(source int, target int) LANGUAGE plpgsql AS $$ DECLARE x int; BEGIN
        UPDATE a SET n = n - 1 WHERE id = source;
        UPDATE a SET n = n + 1 WHERE id = target;
        BEGIN
            SELECT 6 / m INTO x FROM a WHERE id = source;
            UPDATE a SET m = x WHERE id = target;
        EXCEPTION WHEN division_by_zero THEN UPDATE a SET m = m + 1 WHERE id = source;
        END;
    END $$",
    "CREATE FUNCTION total() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT sum(n) FROM a); END $$",
];

/// One statement with small numbers in the place of `#`, texts in that of `@`.
fn statement(random: &mut StdRng) -> SessionStep {
    let templates = [
        "UPDATE a SET n = n + # WHERE id = #",
        "UPDATE a SET n = n + # WHERE id = #",
        "UPDATE a SET m = m + 1 WHERE id = #",
        "UPDATE a SET n = n + m, t = @ WHERE id = #",
        "UPDATE a SET m = 4 / m WHERE id = #",
        "UPDATE a SET t = @ WHERE n = #",
        "UPDATE a SET m = # WHERE id = # RETURNING n, m",
        "INSERT INTO a VALUES (#, #, #, @)",
        "INSERT INTO a VALUES (#, #, #, @) ON CONFLICT (id) DO UPDATE SET m = a.m + 1 RETURNING m",
        "INSERT INTO u VALUES (#, @, #)",
        "INSERT INTO u VALUES (#, @, #) ON CONFLICT DO NOTHING",
        "UPDATE u SET code = @ WHERE id = #",
        "DELETE FROM a WHERE id = #",
        "DELETE FROM u WHERE id = #",
        "INSERT INTO log VALUES (@)",
        "INSERT INTO log SELECT t FROM a WHERE n > #",
        "CALL move(#, #)",
        "DO $$ BEGIN CALL move(#, #); IF total() > 9 THEN RAISE NOTICE 'much'; END IF; END $$",
        "SELECT n FROM a WHERE id = #",
        "SELECT t, m FROM a WHERE id = #",
        "SELECT count(*), max(m) FROM a WHERE n >= #",
        "SELECT code FROM u WHERE a = # ORDER BY id",
        "SELECT count(*) FROM log",
        "SELECT total()",
        "SELECT random() < 0.5, gen_random_uuid()",
        "UPDATE a SET n = (random() * 5)::integer WHERE id >= # RETURNING id, n",
        "INSERT INTO u VALUES (1000 + (random() * 1000000)::integer, gen_random_uuid()::text, #)",
        "SELECT 6 / m FROM a WHERE id = #",
    ];
    let template = templates.choose(random).expect("there are some");
    if random.random_bool(0.05) {
        let (table, columns) = ("a".to_string(), vec!["id".to_string(), "n".to_string()]);
        let row = |random: &mut StdRng| (0..2).map(|_| Value::Integer(random.random_range(0..=5))).collect();
        return SessionStep::Insert {
            table,
            columns,
            rows: PackedRows::pack([row(random), row(random)]).expect("rows"),
        };
    }
    let mut sql = String::new();
    let mut parameters = Vec::new();
    for character in template.chars() {
        match character {
            '#' if template.starts_with("DO") || random.random_bool(0.5) => {
                sql.push_str(&random.random_range(0..=4).to_string());
            }
            '#' => {
                parameters.push(Value::Integer(random.random_range(0..=4)));
                sql.push_str(&format!("${}", parameters.len()));
            }
            '@' if random.random_bool(0.08) => sql.push_str("NULL"),
            '@' => sql.push_str(["'x'", "'y'", "'z'"].choose(random).expect("three")),
            other => sql.push(other),
        }
    }
    SessionStep::Run { sql, parameters }
}

/// A client at work: statements and savepoints, and back to a savepoint after most errors. `None` where it gives up, or has
/// changed nothing.
fn block(random: &mut StdRng, library: &Arc<Library>, snapshot: &PlainState) -> Option<Payload> {
    let context = Context {
        height: u64::MAX,
        timestamp_ms: 1_700_000_000_000,
        transaction: TransactionId(ClientId::default().session_seed()),
        ..context(0, u32::MAX)
    };
    let snapshot = Arc::new(snapshot.clone());
    let mut session = Session::begin(
        library.clone(),
        snapshot,
        context,
        types::Principal::default(),
        20_000,
        false,
        TemporaryTables::default(),
    );
    let mut open: Vec<&str> = Vec::new();
    for _ in 0..random.random_range(1..=6) {
        let name = *["s", "t"].choose(random).expect("two");
        let step = match random.random_range(0..10) {
            0 | 1 => {
                open.push(name);
                SessionStep::Savepoint(name.to_string())
            }
            2 if open.contains(&name) => {
                let position = open.iter().rposition(|known| *known == name)?;
                open.truncate(position + 1);
                SessionStep::RollbackTo(name.to_string())
            }
            3 if open.contains(&name) => {
                let position = open.iter().rposition(|known| *known == name)?;
                open.truncate(position);
                SessionStep::Release(name.to_string())
            }
            _ => statement(random),
        };
        if session.run(step).is_err() {
            let name = open.last()?;
            session.run(SessionStep::RollbackTo(name.to_string())).expect("it is open");
        }
    }
    session.finish().payload
}

/// What clients make of a state: mostly blocks, sometimes a script, so that both meet.
fn transaction(random: &mut StdRng, library: &Arc<Library>, snapshot: &PlainState) -> Arc<Payload> {
    loop {
        if random.random_bool(0.2)
            && let SessionStep::Run { sql, parameters } = statement(random)
        {
            return Arc::new(Payload::Script { sql, parameters });
        }
        if let Some(payload) = block(random, library, snapshot) {
            return Arc::new(payload);
        }
    }
}

/// A first state and batches of transactions. Clients ran each on what a serial run of the batches before leaves, or on an
/// older state.
fn history(random: &mut StdRng, library: &Arc<Library>) -> (PlainState, History) {
    let statements: Vec<SessionStep> = (0..15).map(|_| statement(random)).collect();
    let scripts = statements.into_iter().filter_map(|step| match step {
        SessionStep::Run { sql, parameters } => Some(Arc::new(Payload::Script { sql, parameters })),
        _ => None,
    });
    let state = after(library, scripts);
    let initial = state.clone();
    let mut states = vec![state];
    let mut history = Vec::new();
    for batch in 0..BATCHES {
        let payloads: Vec<Arc<Payload>> = (0..TRANSACTIONS)
            .map(|_| {
                let old = random.random_bool(0.2);
                let seen =
                    if old { states.choose(random) } else { states.last() }.expect("the first").clone();
                transaction(random, library, &seen)
            })
            .collect();
        let mut state = states.last().expect("the first").clone();
        for (index, payload) in (0..).zip(&payloads) {
            let effects = invocation(library, batch as u64 + 2, index, payload)
                .simulate(&state)
                .expect("memory can be read");
            _ = apply(&mut state, effects);
        }
        states.push(state);
        history.push(payloads);
    }
    (initial, history)
}

/// How many blocks committed, and how many would have given their clients something else.
#[derive(Default, Clone, Copy, Debug)]
struct Counts {
    committed: usize,
    changed: usize,
}

/// Runs a history under a protocol, checks it against the serializability checker, and replays it serially.
fn run(
    id: &str,
    library: &Arc<Library>,
    initial: &PlainState,
    history: &History,
    counts: &mut Counts,
) -> (Vec<Vec<TransactionOutcome>>, PlainState) {
    let ran = histories::run(id, library, initial, history);
    let serial = replay(&ran, library, initial.clone(), history, |payload, result| {
        let block = matches!(payload, Payload::Session { .. });
        match result {
            Ok(_) => counts.committed += usize::from(block),
            Err(error) => {
                assert!(!block || *error == types::results_have_changed(), "{error:?}");
                counts.changed += usize::from(block);
            }
        }
    });
    assert_eq!(serial, ran.state, "{id}");
    (ran.results.into_iter().map(|result| result.outcomes).collect(), ran.state)
}

#[test]
fn random_blocks_commit_with_what_their_clients_were_given_or_not_at_all() {
    let library = library(&SCHEMA);
    let mut counts = [Counts::default(); PROTOCOLS.len()];
    for seed in 0..HISTORIES {
        let mut random = StdRng::seed_from_u64(seed);
        let (initial, history) = history(&mut random, &library);
        for (id, counts) in PROTOCOLS.iter().zip(&mut counts) {
            run(id, &library, &initial, &history, counts);
        }
    }
    eprintln!("{PROTOCOLS:?}: {counts:?}");
    for Counts { committed, changed } in counts {
        assert!(committed > 800 && changed > 800, "{committed} committed, {changed} not");
    }
}

#[test]
fn blocks_end_alike_for_any_number_of_threads() {
    let library = library(&SCHEMA);
    let pools = [1, 2, 4]
        .map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads"));
    for seed in 0..HISTORIES / 10 {
        let mut random = StdRng::seed_from_u64(1_000_000 + seed);
        let (initial, history) = history(&mut random, &library);
        for id in PROTOCOLS {
            let [one, two, four] = pools
                .each_ref()
                .map(|pool| pool.install(|| run(id, &library, &initial, &history, &mut Counts::default())));
            assert!(one == two && one == four, "{id}, seed {seed}");
        }
    }
}
