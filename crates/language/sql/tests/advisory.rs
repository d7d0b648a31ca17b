//! Advisory locks: what sessions hold, until when, and what transactions see of it.

mod support;

use rand::prelude::*;
use rand::rngs::StdRng;
use sql::{Context, Session};
use std::collections::BTreeMap;
use std::sync::Arc;
use support::{Database, START_MS, STEP_LIMIT, prepared, shown, shown_with_rows, texts};
use types::{
    AdvisoryKey, ExecutionVersion, HeldAdvisoryLock, Payload, Principal, SessionStep, TableId, TransactionId,
    Value, advisory_key_of, decode_exactly, limits,
};

const LEASE_MS: u64 = 60_000;

/// What a gateway sends for a session of this number.
fn of_session(number: u8, sql: &str) -> String {
    format!("SET entente.advisory_session TO '{} {LEASE_MS}';{sql}", format!("{number:02x}").repeat(16))
}

/// What a session's script gives, with its warnings.
fn says(database: &mut Database, session: u8, sql: &str) -> String {
    let result = database.run(&of_session(session, sql));
    let warnings: Vec<String> = result
        .iter()
        .flatten()
        .flat_map(|one| &one.notices)
        .map(|notice| notice.report.message.clone())
        .collect();
    [shown_with_rows(result)].into_iter().chain(warnings).collect::<Vec<_>>().join(", ")
}

fn check(database: &mut Database, expected: &[(u8, &str, &str)]) {
    for (session, sql, answer) in expected {
        assert_eq!(says(database, *session, sql), *answer, "{session}: {sql}");
    }
}

/// Rows of locks that the state has.
fn lock_rows(database: &Database) -> usize {
    database.state.tables.get(&TableId::ADVISORY_LOCKS).map_or(0, BTreeMap::len)
}

/// So many seconds go by.
fn wait(database: &mut Database, seconds: u64) {
    database.height += seconds;
}

const NOT_OWN: &str = "f, you don't own a lock of type ExclusiveLock";
const NOT_OWN_SHARED: &str = "f, you don't own a lock of type ShareLock";

#[test]
fn a_session_has_a_lock_until_it_has_given_it_back_as_often_as_it_took_it() {
    let mut database = Database::default();
    check(
        &mut database,
        &[
            (1, "SELECT pg_advisory_lock(7)", ""),
            (1, "SELECT pg_catalog.pg_try_advisory_lock(7)", "t"),
            (2, "SELECT pg_try_advisory_lock(7)", "f"),
            (2, "SELECT pg_try_advisory_lock(0, 7)", "t"),
            (
                2,
                "SELECT pg_advisory_lock(7)",
                "55P03 could not obtain the advisory lock on 7, which a session holds",
            ),
            (2, "SELECT pg_advisory_unlock(7)", NOT_OWN),
            (
                1,
                "SELECT pg_advisory_unlock(7), pg_advisory_unlock_shared(7)",
                "t, f, you don't own a lock of type ShareLock",
            ),
            (2, "SELECT pg_try_advisory_lock(7)", "f"),
            (1, "SELECT pg_advisory_unlock(7)", "t"),
            (1, "SELECT pg_advisory_unlock(7)", NOT_OWN),
            (2, "SELECT pg_try_advisory_lock(7) AS got", "t"),
            (2, "SELECT entente.advisory_locks_held()", "2"),
            (2, "SELECT pg_advisory_unlock_all()", ""),
            (2, "SELECT pg_advisory_unlock(0, 7)", NOT_OWN),
            (1, "SELECT * FROM pg_try_advisory_lock(9) AS got", "t"),
            (1, "SELECT pg_advisory_unlock_all()", ""),
            (1, "SELECT pg_advisory_lock(NULL)", "NULL"),
        ],
    );
    assert_eq!(lock_rows(&database), 0, "nothing stays of what is given back");
}

#[test]
fn shared_locks_are_had_by_many_and_keep_others_from_an_exclusive_one() {
    let mut database = Database::default();
    check(
        &mut database,
        &[
            (1, "SELECT pg_advisory_lock_shared(-1, 2)", ""),
            (2, "SELECT pg_try_advisory_lock_shared(-1, 2)", "t"),
            (2, "SELECT pg_try_advisory_lock(-1, 2)", "f"),
            (3, "SELECT pg_try_advisory_lock(-1, 2)", "f"),
            (1, "SELECT pg_advisory_unlock(-1, 2)", NOT_OWN),
            (1, "SELECT pg_advisory_unlock_shared(-1, 2)", "t"),
            (2, "SELECT pg_try_advisory_lock(-1, 2)", "t"),
            (3, "SELECT pg_try_advisory_lock_shared(-1, 2)", "f"),
            (2, "SELECT pg_advisory_unlock(-1, 2)", "t"),
            (3, "SELECT pg_try_advisory_lock_shared(-1, 2)", "t"),
            (2, "SELECT pg_advisory_unlock_shared(-1, 2)", "t"),
            (2, "SELECT pg_advisory_unlock_shared(-1, 2)", NOT_OWN_SHARED),
        ],
    );
}

#[test]
fn a_lock_that_is_not_renewed_runs_out_and_one_that_is_stays() {
    let mut database = Database::default();
    check(&mut database, &[(1, "SELECT pg_advisory_lock(1)", ""), (1, "SELECT pg_advisory_lock(2)", "")]);
    for _ in 0..4 {
        wait(&mut database, 40);
        check(
            &mut database,
            &[(1, "SELECT entente.renew_advisory_locks()", "t"), (2, "SELECT pg_try_advisory_lock(1)", "f")],
        );
    }
    wait(&mut database, 61);
    check(
        &mut database,
        &[
            (2, "SELECT pg_try_advisory_lock(1)", "t"),
            // It was the only one that had run out, and lost everything.
            (1, "SELECT entente.renew_advisory_locks()", "NULL"),
            (1, "SELECT pg_advisory_unlock(1)", NOT_OWN),
            (1, "SELECT pg_advisory_unlock(2)", NOT_OWN),
            (1, "SELECT pg_try_advisory_lock(2)", "t"),
        ],
    );
    wait(&mut database, 61);
    check(
        &mut database,
        &[
            (1, "SELECT entente.advisory_locks_held()", "0"),
            (1, "SELECT entente.renew_advisory_locks()", "f"),
            (1, "SELECT entente.renew_advisory_locks()", "NULL"),
            (1, "SELECT pg_try_advisory_lock(3)", "t"),
        ],
    );
    // Those of its organisation that had run out went with its first lock.
    assert_eq!(lock_rows(&database), 3, "a lock, a session, and an organisation");
}

#[test]
fn only_the_organisation_that_has_taken_a_lock_gives_it_back() {
    let mut database = Database::default();
    check(&mut database, &[(1, "SELECT pg_advisory_lock(1)", "")]);
    database.principal = Principal::new(1, "");
    check(
        &mut database,
        &[
            (1, "SELECT pg_advisory_unlock(1)", NOT_OWN),
            (1, "SELECT pg_advisory_unlock_all()", ""),
            (1, "SELECT entente.renew_advisory_locks()", "NULL"),
            (1, "SELECT pg_try_advisory_lock(1)", "f"),
        ],
    );
    database.principal = Principal::default();
    check(&mut database, &[(1, "SELECT pg_advisory_unlock(1)", "t")]);
}

#[test]
fn a_transaction_has_a_lock_only_if_no_session_does_and_leaves_nothing() {
    let mut database = Database::default();
    check(
        &mut database,
        &[
            (
                1,
                "SELECT pg_advisory_xact_lock(1), pg_try_advisory_xact_lock(1), pg_try_advisory_xact_lock_shared(1)",
                ", t, t",
            ),
            (2, "SELECT pg_advisory_xact_lock(1)", ""),
        ],
    );
    assert_eq!(lock_rows(&database), 0);
    check(
        &mut database,
        &[
            (1, "SELECT pg_advisory_lock_shared(1)", ""),
            (2, "SELECT pg_try_advisory_xact_lock(1)", "f"),
            (2, "SELECT pg_try_advisory_xact_lock_shared(1)", "t"),
            (
                2,
                "SELECT pg_advisory_xact_lock(1)",
                "55P03 could not obtain the advisory lock on 1, which a session holds",
            ),
            (1, "SELECT pg_try_advisory_xact_lock(1)", "t"),
            (1, "SELECT pg_advisory_unlock(1)", NOT_OWN),
        ],
    );
    // Without a session's number, too.
    assert_eq!(shown_with_rows(database.run("SELECT pg_try_advisory_xact_lock(1)")), "f");
    assert_eq!(shown_with_rows(database.run("SELECT pg_try_advisory_xact_lock_shared(1)")), "t");
    wait(&mut database, 61);
    assert_eq!(shown_with_rows(database.run("SELECT pg_try_advisory_xact_lock(1)")), "t");
    assert_eq!(lock_rows(&database), 0, "what had run out went");
}

#[test]
fn transactions_that_lock_a_key_are_in_conflict_on_it() {
    let database = Database::default();
    let touched = |sql: &str| {
        let effects = database.script_effects(sql);
        effects.result.expect("it is free");
        let key = |key: &types::Key| advisory_key_of(key);
        let read: Vec<_> = effects.reads.iter().filter_map(|read| key(&read.row.key)).collect();
        let written: Vec<_> = effects.commands.iter().filter_map(|command| key(&command.row.key)).collect();
        (read.contains(&AdvisoryKey::Two(1, 2)), written)
    };
    assert_eq!(touched("SELECT pg_advisory_xact_lock(1, 2)"), (true, vec![AdvisoryKey::Two(1, 2)]));
    assert_eq!(touched("SELECT pg_try_advisory_xact_lock(1, 2)"), (true, vec![AdvisoryKey::Two(1, 2)]));
    assert_eq!(touched("SELECT pg_advisory_xact_lock_shared(1, 2)"), (true, vec![]));
    assert_eq!(touched("SELECT pg_advisory_xact_lock(1)"), (false, vec![AdvisoryKey::One(1)]));
}

#[test]
fn what_a_handler_undoes_is_not_locked() {
    let mut database = Database::with(&[
        "CREATE PROCEDURE tries(key bigint, good boolean) LANGUAGE plpgsql AS $$
         BEGIN
           PERFORM pg_advisory_lock(1);
           BEGIN
             PERFORM pg_advisory_lock(key);
             IF NOT good THEN RAISE 'no'; END IF;
           EXCEPTION WHEN raise_exception THEN NULL;
           END;
         END $$",
        "CREATE FUNCTION waits(key bigint) RETURNS text LANGUAGE plpgsql AS $$
         BEGIN PERFORM pg_advisory_xact_lock(key); RETURN 'got it';
         EXCEPTION WHEN lock_not_available THEN RETURN 'held'; END $$",
    ]);
    check(
        &mut database,
        &[
            (1, "CALL tries(2, false)", "CALL"),
            (2, "SELECT pg_try_advisory_lock(2)", "t"),
            (2, "SELECT pg_try_advisory_lock(1)", "f"),
            (1, "CALL tries(3, true)", "CALL"),
            (2, "SELECT pg_try_advisory_lock(3)", "f"),
            (2, "SELECT waits(3), waits(4)", "held, got it"),
            (1, "DO $$ BEGIN PERFORM pg_advisory_unlock_all(); END $$", "DO"),
            (2, "SELECT pg_try_advisory_lock(id) FROM generate_series(1, 3) id", "t; t; t"),
            (2, "SELECT entente.advisory_locks_held()", "3"),
        ],
    );
    // An error takes back what the transaction had locked.
    check(
        &mut database,
        &[
            (1, "SELECT pg_advisory_lock(9); SELECT 1 / 0", "22012 division by zero"),
            (2, "SELECT pg_try_advisory_lock(9)", "t"),
        ],
    );
}

fn begin(database: &Database, read_only: bool) -> Session {
    let context = Context {
        height: u64::MAX,
        timestamp_ms: START_MS + 1000 * database.height,
        index: u32::MAX,
        transaction: TransactionId::default(),
        step_limit: STEP_LIMIT,
    };
    let (snapshot, library) = (Arc::new(database.state.clone()), database.library.clone());
    let (who, temporary) = (database.principal.clone(), database.temporary.clone());
    Session::begin(library, snapshot, context, who, STEP_LIMIT, read_only, temporary)
}

fn run(session: &mut Session, sql: &str) -> String {
    let step = match sql.split_once(' ') {
        Some(("SAVEPOINT", name)) => SessionStep::Savepoint(name.to_string()),
        Some(("BACK", name)) => SessionStep::RollbackTo(name.to_string()),
        _ => SessionStep::Run { sql: sql.to_string(), parameters: Vec::new() },
    };
    shown_with_rows(session.run(step).map(|result| vec![result]))
}

#[test]
fn a_block_locks_at_its_place_and_a_savepoint_takes_it_back() {
    let mut database = Database::default();
    let mut block = begin(&database, false);
    assert_eq!(run(&mut block, "SELECT pg_advisory_xact_lock(1)"), "");
    run(&mut block, "SAVEPOINT s");
    assert_eq!(run(&mut block, &of_session(1, "SELECT pg_try_advisory_lock(2)")), "t");
    run(&mut block, "BACK s");
    assert_eq!(run(&mut block, &of_session(1, "SELECT pg_try_advisory_lock(3)")), "t");
    let payload = block.finish().payload.expect("it locks, so that it is ordered");
    database.execute(payload).expect("nothing has changed");
    check(
        &mut database,
        &[(2, "SELECT pg_try_advisory_lock(2)", "t"), (2, "SELECT pg_try_advisory_lock(3)", "f")],
    );

    // A session has taken the lock before the block's place.
    let mut block = begin(&database, false);
    assert_eq!(run(&mut block, "SELECT pg_advisory_xact_lock(1)"), "");
    check(&mut database, &[(1, "SELECT pg_advisory_lock(1)", "")]);
    let error = database.execute(block.finish().payload.expect("it is ordered")).expect_err("it is held");
    assert_eq!(error.state.to_string(), "40001");

    let mut block = begin(&database, false);
    assert_eq!(
        run(&mut block, "SELECT pg_advisory_xact_lock(1)"),
        "55P03 could not obtain the advisory lock on 1, which a session holds"
    );

    // Who only reads may ask, and nobody orders it.
    let mut block = begin(&database, true);
    assert_eq!(run(&mut block, "SELECT pg_try_advisory_xact_lock(1), pg_try_advisory_xact_lock(4)"), "f, t");
    assert_eq!(
        run(&mut block, &of_session(1, "SELECT pg_try_advisory_lock(4)")),
        "25006 cannot execute pg_try_advisory_lock() in a read-only transaction"
    );
    assert!(block.finish().payload.is_none());
}

#[test]
fn what_cannot_be_locked_is_an_error() {
    let mut database = Database::default();
    for (sql, error) in [
        (
            "SELECT pg_advisory_lock(1)",
            "0A000 an advisory lock of a session in a statement that does not name it is not supported",
        ),
        ("SELECT pg_try_advisory_lock_shared(1, 2)", "0A000"),
        ("SELECT pg_advisory_lock()", "42883"),
        ("SELECT pg_advisory_lock(1, 2, 3)", "42883"),
        ("SELECT pg_advisory_lock(1.5)", "42883"),
        ("SELECT pg_advisory_lock('x')", "42883"),
        ("SELECT pg_advisory_lock(1::bigint, 2::bigint)", "42883"),
        ("CREATE TABLE t (a integer CHECK (pg_try_advisory_xact_lock(a)))", "0A000"),
        (
            "SET entente.advisory_session TO 'x';SELECT 1",
            "22023 invalid value for parameter \"entente.advisory_session\": \"x\"",
        ),
        ("SELECT entente.advisory_locks()", "0A000"),
    ] {
        let found = shown(database.run(sql));
        assert!(found.starts_with(error), "{sql}: {found}");
    }
    let most = limits::ADVISORY_LOCKS_MAX;
    let many = format!("SELECT count(*) FROM generate_series(1, {most}) n WHERE pg_try_advisory_lock(n)");
    assert_eq!(says(&mut database, 1, &many), most.to_string());
    let more = says(&mut database, 1, "SELECT pg_advisory_lock(0)");
    assert_eq!(more, format!("54000 a session holds at most {most} advisory locks (ADVISORY_LOCKS_MAX)"));
    check(
        &mut database,
        &[(1, "SELECT pg_try_advisory_lock(1)", "t"), (2, "SELECT pg_try_advisory_lock(0)", "t")],
    );
    let in_temporary = ["CREATE TEMPORARY TABLE here (a integer)", "INSERT INTO here VALUES (1)"];
    in_temporary.iter().for_each(|sql| drop(database.gateway(sql).expect(sql)));
    let error = database.error("INSERT INTO here SELECT length(pg_advisory_xact_lock(a)::text) FROM here");
    assert_eq!(
        error.message,
        "pg_advisory_xact_lock() in a statement about temporary tables is not supported"
    );
}

#[test]
fn older_rules_know_none_of_it_and_functions_of_a_ledger_stay() {
    let mut database = prepared(ExecutionVersion::V13, &["CREATE TABLE t (id integer PRIMARY KEY)"]);
    let statements = [
        "SELECT pg_advisory_lock(1)",
        "SELECT pg_try_advisory_xact_lock(1, 2)",
        "SELECT pg_catalog.pg_advisory_unlock_all()",
        "INSERT INTO t SELECT 1 WHERE pg_try_advisory_xact_lock(1)",
    ];
    for sql in statements {
        let found = shown(database.run(sql));
        assert!(found.starts_with("42883"), "{sql}: {found}");
    }
    assert!(shown(database.run("SELECT entente.renew_advisory_locks()")).starts_with("0A000"));
    let prefix = shown(database.run(&of_session(1, "SELECT 1")));
    assert!(prefix.starts_with("42601") || prefix.starts_with("0A000"), "{prefix}");
    let own = "CREATE FUNCTION pg_try_advisory_lock(key bigint) RETURNS boolean LANGUAGE sql AS 'SELECT NULL::boolean'";
    database.run(own).expect("the name is free");
    assert_eq!(shown_with_rows(database.run("SELECT pg_try_advisory_lock(1)")), "NULL");
    database.go_over_to(ExecutionVersion::V14);
    assert_eq!(shown_with_rows(database.run("SELECT pg_try_advisory_lock(1)")), "NULL");
    check(
        &mut database,
        &[
            (1, "SELECT pg_advisory_lock(1)", ""),
            (1, "INSERT INTO t SELECT 1 WHERE pg_try_advisory_xact_lock(1)", "INSERT 0 1"),
        ],
    );
}

#[test]
fn what_is_held_is_shown_outside_of_transactions() {
    let mut database = Database::default();
    check(
        &mut database,
        &[
            (1, "SELECT pg_advisory_lock(1), pg_advisory_lock(1), pg_advisory_lock_shared(1)", ", , "),
            (2, "SELECT pg_advisory_lock_shared(3, 4)", ""),
        ],
    );
    let held = |database: &mut Database| {
        let results = database.gateway("SELECT entente.advisory_locks()").expect("it reads");
        let Value::Bytea(encoded) = &results[0].rows[0][0] else { panic!("{results:?}") };
        let held: Vec<HeldAdvisoryLock> = decode_exactly(encoded).expect("a list");
        held.into_iter()
            .map(|one| (one.key, one.holder.owner.session[0], one.holder.exclusive, one.holder.shared))
            .collect::<Vec<_>>()
    };
    let first = (AdvisoryKey::One(1), 1, 2, 1);
    assert_eq!(held(&mut database), [first, (AdvisoryKey::Two(3, 4), 2, 0, 1)]);
    wait(&mut database, 58);
    assert_eq!(held(&mut database), [first, (AdvisoryKey::Two(3, 4), 2, 0, 1)]);
    wait(&mut database, 2);
    check(&mut database, &[(2, "SELECT entente.renew_advisory_locks()", "f")]);
    assert!(held(&mut database).is_empty());
}

/// By key, how often it is held alone, and shared.
type Held = BTreeMap<i64, [u32; 2]>;

/// What sessions hold, and until when.
#[derive(Default, Clone)]
struct Model {
    sessions: BTreeMap<(u16, u8), (u64, Held)>,
}

impl Model {
    fn keeps(&self, who: (u16, u8), key: i64, shared: bool, now: u64) -> bool {
        let others = self.sessions.iter().filter(|(other, (until, _))| **other != who && *until > now);
        others.filter_map(|(_, (_, keys))| keys.get(&key)).any(|[alone, _]| *alone > 0 || !shared)
    }

    fn take(&mut self, who: (u16, u8), key: i64, shared: bool, now: u64) -> bool {
        if self.keeps(who, key, shared, now) {
            return false;
        }
        self.sessions.retain(|_, (until, _)| *until > now);
        let (until, keys) = self.sessions.entry(who).or_default();
        *until = now + LEASE_MS;
        keys.entry(key).or_default()[usize::from(shared)] += 1;
        true
    }

    fn give(&mut self, who: (u16, u8), key: i64, shared: bool, now: u64) -> bool {
        let Some((_, keys)) = self.sessions.get_mut(&who).filter(|(until, _)| *until > now) else {
            return false;
        };
        let Some(count) = keys.get_mut(&key).map(|counts| &mut counts[usize::from(shared)]) else {
            return false;
        };
        let had = *count > 0;
        *count = count.saturating_sub(1);
        keys.retain(|_, counts| *counts != [0, 0]);
        if keys.is_empty() {
            self.sessions.remove(&who);
        }
        had
    }

    fn renew(&mut self, who: (u16, u8), now: u64) -> bool {
        let alive = self.sessions.get_mut(&who).filter(|(until, _)| *until > now);
        alive.map(|(until, _)| *until = now + LEASE_MS).is_some()
    }
}

#[test]
fn any_schedule_gives_what_a_small_model_says() {
    for seed in 0..60 {
        let mut random = StdRng::seed_from_u64(seed);
        let (mut database, mut model) = (Database::default(), Model::default());
        for step in 0..120 {
            if random.random_bool(0.1) {
                wait(&mut database, random.random_range(1..50));
            }
            let who = (random.random_range(0..2_u16), random.random_range(1..4_u8));
            let (key, shared) = (random.random_range(1..4_i64), random.random_bool(0.3));
            let suffix = if shared { "_shared" } else { "" };
            database.principal = Principal::new(who.0, "");
            // The transaction's block comes a second later.
            let now = START_MS + 1000 * (database.height + 1);
            let (sql, expected) = match random.random_range(0..10) {
                0..4 => {
                    (format!("SELECT pg_try_advisory_lock{suffix}({key})"), model.take(who, key, shared, now))
                }
                4..7 => {
                    (format!("SELECT pg_advisory_unlock{suffix}({key})"), model.give(who, key, shared, now))
                }
                7 => (
                    format!("SELECT pg_try_advisory_xact_lock{suffix}({key})"),
                    !model.keeps(who, key, shared, now),
                ),
                8 => (
                    "SELECT coalesce(entente.renew_advisory_locks(), false)".to_string(),
                    model.renew(who, now),
                ),
                _ => {
                    model.sessions.remove(&who);
                    ("SELECT pg_advisory_unlock_all() = ''".to_string(), true)
                }
            };
            let results = database.run(&of_session(who.1, &sql)).expect("nothing waits");
            let found = texts(&results[0]);
            assert_eq!(
                found,
                [[if expected { "t" } else { "f" }]],
                "seed {seed}, step {step}: {who:?} {sql}"
            );
        }
        // Whatever has run out is at last forgotten.
        wait(&mut database, 100);
        for organisation in 0..2 {
            database.principal = Principal::new(organisation, "");
            check(
                &mut database,
                &[(9, "SELECT pg_advisory_lock(9)", ""), (9, "SELECT pg_advisory_unlock(9)", "t")],
            );
        }
        assert_eq!(lock_rows(&database), 0, "seed {seed}");
    }
}

#[test]
fn a_script_without_locks_has_the_same_effects_under_any_session() {
    let database = Database::with(&["CREATE TABLE t (id integer PRIMARY KEY)"]);
    let payload = |sql: String| Payload::Script { sql, parameters: Vec::new() };
    let plain = database.effects(payload("INSERT INTO t VALUES (1)".to_string()));
    let named = database.effects(payload(of_session(1, "INSERT INTO t VALUES (1)")));
    assert_eq!(format!("{plain:?}"), format!("{named:?}"));
}
