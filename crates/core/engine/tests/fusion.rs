//! Statement fusion changes nothing but what conflicts: random procedures run alike with and without it.

mod support;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use sql::{CompileOptions, Library};
use state::{PlainState, Simulate};
use std::sync::Arc;
use support::histories;
use support::histories::{CallResult, apply, changed, invocation, outcome};
use types::{Catalog, Payload, Value};

/// Sets of procedures.
const CATALOGS: u64 = 500;
/// Histories on each.
const HISTORIES: usize = 20;
const PROCEDURES: usize = 4;
const BATCHES: u64 = 2;
const CALLS: u32 = 5;
/// Keys are 1 to this, not all of them there.
const KEYS: i64 = 4;

/// Batch and index of a call, and its result.
type PlacedResult = ((usize, u32), CallResult);

fn one_of<'t>(random: &mut StdRng, texts: &[&'t str]) -> &'t str {
    texts.choose(random).expect("there are some")
}

/// A condition; many are about what was read.
fn condition(random: &mut StdRng) -> &'static str {
    one_of(
        random,
        &[
            "v < x",
            "v < x",
            "NOT (v >= x)",
            "v IS NULL",
            "v + x > 20",
            "w > v",
            "10 / v > x",
            "n < v",
            "x < 0",
            "NOT FOUND",
            "FOUND",
            "w IS NULL OR v < n",
            "coalesce(v, w, 0) = 0",
            "s = 'open'",
            "(SELECT a FROM r WHERE id = k) < x",
            "NOT EXISTS (SELECT 1 FROM r WHERE id = k AND b > x)",
        ],
    )
}

fn read(random: &mut StdRng) -> &'static str {
    one_of(
        random,
        &[
            "SELECT a INTO v FROM r WHERE id = k;",
            "SELECT a INTO v FROM r WHERE id = k;",
            "SELECT a, b INTO v, w FROM r WHERE id = k;",
            "SELECT a, c INTO v, s FROM r WHERE id = k AND c IS NOT NULL;",
            "SELECT a INTO STRICT v FROM r WHERE id = k;",
            "SELECT a + x INTO n FROM r WHERE id = k;",
            "SELECT 12 / a INTO v FROM r WHERE id = k;",
            "PERFORM 1 FROM r WHERE id = k AND a > x;",
        ],
    )
}

fn other_read(random: &mut StdRng) -> &'static str {
    one_of(
        random,
        &[
            "SELECT b INTO w FROM r WHERE id = m;",
            "SELECT a INTO n FROM r WHERE id = x;",
            "SELECT sum(a) INTO w FROM r WHERE id > 1;",
            "SELECT b INTO x FROM r WHERE id = v;",
        ],
    )
}

fn change(random: &mut StdRng) -> &'static str {
    one_of(
        random,
        &[
            "UPDATE r SET a = a - x WHERE id = k;",
            "UPDATE r SET a = a - x WHERE id = k;",
            "UPDATE r SET a = v - x WHERE id = k;",
            "UPDATE r SET a = n, b = b + 1 WHERE id = k;",
            "UPDATE r SET b = w, c = 'done ' || x WHERE id = k;",
            "UPDATE r SET b = x / a WHERE id = k AND c = 'open';",
            "UPDATE r SET b = 12 / x WHERE id = k;",
            "UPDATE r SET c = s WHERE id = k AND a >= v;",
            "DELETE FROM r WHERE id = k AND a > x;",
        ],
    )
}

fn other_change(random: &mut StdRng) -> &'static str {
    one_of(
        random,
        &[
            "UPDATE r SET a = a + x WHERE id = m;",
            "UPDATE r SET b = v WHERE id = m;",
            "UPDATE r SET a = n WHERE id = m;",
            "INSERT INTO r VALUES (m, x, n, s);",
            "UPDATE r SET a = a + 1 WHERE id > 2;",
            "DELETE FROM r WHERE id = m;",
        ],
    )
}

fn assignment(random: &mut StdRng) -> &'static str {
    one_of(
        random,
        &[
            "n := v - x;",
            "n := x + 1;",
            "x := x + 1;",
            "x := 12 / x;",
            "w := coalesce(w, 0) + n;",
            "v := n;",
            "o := v;",
            "o := n;",
            "m := m + 1;",
            "s := 'was ' || coalesce(s, 'nothing');",
            "k := n;",
            "GET DIAGNOSTICS n = ROW_COUNT;",
            "IF FOUND THEN o := 1; END IF;",
        ],
    )
}

/// A statement that may stand between reading a row and changing it.
fn between(random: &mut StdRng) -> String {
    let condition = condition(random);
    match random.random_range(0..20) {
        0..=8 => format!(
            "IF {condition} THEN RAISE EXCEPTION 'with % and %: %', v, x, k USING HINT = 'n ' || x; END IF;"
        ),
        9 => format!("IF {condition} THEN RAISE division_by_zero; ELSIF v > 3 THEN n := v; END IF;"),
        10 => format!("IF {condition} THEN RETURN; END IF;"),
        11 => format!("ASSERT {condition}, 'no: ' || x;"),
        12 => format!("IF {condition} THEN {} END IF;", assignment(random)),
        13 => other_read(random).to_string(),
        14 => read(random).to_string(),
        15 if random.random_bool(0.3) => other_change(random).to_string(),
        _ => assignment(random).to_string(),
    }
}

/// Reading, deciding, changing, as programmers write it, and what spoils it now and then.
fn idiom(random: &mut StdRng) -> String {
    let mut text = match random.random_range(0..8) {
        0 => change(random).to_string(),
        1 => String::new(),
        _ => read(random).to_string(),
    };
    for _ in 0..random.random_range(0..4) {
        text += &between(random);
    }
    let condition = condition(random);
    text += &match random.random_range(0..9) {
        0 => format!("IF {condition} THEN {} END IF;", change(random)),
        1 => format!("IF {condition} THEN {} ELSE RAISE EXCEPTION 'else %', v; END IF;", change(random)),
        2 => format!("IF {condition} THEN {} ELSE {} END IF;", change(random), change(random)),
        3 => format!("{} {}", change(random), change(random)),
        _ => change(random).to_string(),
    };
    if random.random_bool(0.2) {
        text += &between(random);
    }
    match random.random_range(0..12) {
        0 => format!("FOR i IN 1..2 LOOP {text} END LOOP;"),
        1 => format!("FOR i IN 1..2 LOOP k := i; {text} EXIT WHEN v > 5; END LOOP;"),
        _ => text,
    }
}

fn procedure(random: &mut StdRng, number: usize) -> String {
    let mut body = String::new();
    for _ in 0..random.random_range(1..3) {
        body += &idiom(random);
        if random.random_bool(0.3) {
            body += other_change(random);
        }
        if random.random_bool(0.2) {
            body += "IF NOT FOUND THEN n := 7; INSERT INTO r VALUES (x, n, v, s); END IF;";
        }
    }
    format!(
        "CREATE PROCEDURE p{number}(k bigint, m bigint, x bigint, OUT o bigint) LANGUAGE plpgsql AS $$
         DECLARE v bigint; w bigint := 2; n bigint := 3; s text;
         BEGIN {body} END $$"
    )
}

/// A catalog with random procedures.
fn random_catalog(random: &mut StdRng) -> Arc<Catalog> {
    let table = "CREATE TABLE r (id bigint PRIMARY KEY, a bigint CHECK (a > -40), b bigint, c text)";
    let mut catalog = changed(&Arc::new(Catalog::default()), table);
    for number in 0..PROCEDURES {
        catalog = changed(&catalog, &procedure(random, number));
    }
    catalog
}

fn value(random: &mut StdRng, from: i64, to: i64) -> Value {
    if random.random_bool(0.1) { Value::Null } else { Value::BigInt(random.random_range(from..=to)) }
}

fn random_rows(random: &mut StdRng, catalog: &Arc<Catalog>, library: &Arc<Library>) -> PlainState {
    let mut state = PlainState::new(catalog.clone());
    let mut rows = Vec::new();
    for id in 1..=KEYS {
        if random.random_bool(0.8) {
            let text = if random.random_bool(0.7) { Value::text("open") } else { Value::Null };
            rows.push(vec![Value::BigInt(id), value(random, 0, 15), value(random, -2, 9), text]);
        }
    }
    let columns = ["id", "a", "b", "c"].map(String::from).to_vec();
    let payload = Payload::Insert { table: "r".to_string(), columns, rows };
    let effects = invocation(library, 1, 0, &Arc::new(payload)).simulate(&state).expect("memory can be read");
    apply(&mut state, effects).expect("valid rows");
    state
}

/// One batch of calls after the other.
fn random_calls(random: &mut StdRng) -> Vec<Vec<Arc<Payload>>> {
    let mut call = || {
        let procedure = format!("p{}", random.random_range(0..PROCEDURES));
        let arguments = vec![value(random, 1, KEYS), value(random, 1, KEYS), value(random, -1, 9)];
        Arc::new(Payload::Call { procedure, arguments })
    };
    (0..BATCHES).map(|_| (0..CALLS).map(|_| call()).collect()).collect()
}

/// Both libraries of one catalog.
struct Libraries {
    fused: Arc<Library>,
    unfused: Arc<Library>,
}

impl Libraries {
    /// Runs a call with and without fusion and compares all that can be seen of it.
    fn run_both(&self, state: &mut PlainState, height: u64, index: u32, call: &Arc<Payload>) -> CallResult {
        let fused = invocation(&self.fused, height, index, call).simulate(state).expect("memory can be read");
        let unfused =
            invocation(&self.unfused, height, index, call).simulate(state).expect("memory can be read");
        let source = || procedure_text(&self.fused, call);
        assert_eq!(fused.result, unfused.result, "{call:?} on {state:?}\n{}", source());
        // A read that was put in front of a RAISE is paid for, and so is looking in a later scan at a missing row on
        // which the command changed nothing.
        let more = fused.steps.checked_sub(unfused.steps);
        assert!(more.is_some_and(|more| more <= 8), "{more:?} steps more, {call:?}\n{}", source());
        let mut other = state.clone();
        let result = apply(state, fused);
        assert_eq!(result, apply(&mut other, unfused));
        assert_eq!(*state, other, "{call:?}\n{}", source());
        result
    }

    /// Runs the history in a serial order.
    fn run_serially(
        &self,
        initial: &PlainState,
        calls: &[Vec<Arc<Payload>>],
        order: impl Iterator<Item = (usize, u32)>,
    ) -> (PlainState, Vec<PlacedResult>) {
        let mut state = initial.clone();
        let results = order.map(|(batch, index)| {
            let call = &calls[batch][index as usize];
            ((batch, index), self.run_both(&mut state, batch as u64 + 2, index, call))
        });
        let results = results.collect();
        (state, results)
    }
}

fn procedure_text(library: &Library, call: &Payload) -> String {
    match call {
        Payload::Call { procedure, .. } => library.catalog().procedures[procedure].body.clone(),
        _ => String::new(),
    }
}

#[test]
fn ten_thousand_random_histories_run_alike_with_and_without_fusion() {
    let (mut fused_statements, mut committed, mut aborted, mut again) = (0, 0, 0, [0, 0]);
    for seed in 0..CATALOGS {
        let mut random = StdRng::seed_from_u64(seed);
        let catalog = random_catalog(&mut random);
        let library = |fusion| {
            Arc::new(
                Library::with_options(
                    catalog.clone(),
                    CompileOptions { fusion, ..CompileOptions::default() },
                )
                .expect("it compiles"),
            )
        };
        let libraries = Libraries { fused: library(true), unfused: library(false) };
        fused_statements += count_fused(&libraries.fused);
        for _ in 0..HISTORIES {
            let initial = random_rows(&mut random, &catalog, &libraries.fused);
            let calls = random_calls(&mut random);
            let block_order = (0..calls.len()).flat_map(|batch| (0..CALLS).map(move |index| (batch, index)));
            let (_, results) = libraries.run_serially(&initial, &calls, block_order);
            committed += results.iter().filter(|(_, result)| result.is_ok()).count();
            aborted += results.iter().filter(|(_, result)| result.is_err()).count();
            for (position, library) in [&libraries.fused, &libraries.unfused].into_iter().enumerate() {
                // Each batch while the one before takes effect.
                let ran = histories::run("harmony", library, &initial, &calls);
                let order = ran.order.iter().map(|position| (position.batch, position.transaction));
                again[position] += ran.results.iter().map(|result| result.statistics.reexecuted).sum::<u64>();
                // The serial order that Harmony's run is equivalent to gives the same without fusion.
                let (serial, results) = libraries.run_serially(&initial, &calls, order);
                assert_eq!(ran.state, serial, "seed {seed}");
                for ((batch, index), result) in results {
                    let found = &ran.results[batch].outcomes[index as usize];
                    assert_eq!(*found, outcome(result), "seed {seed}");
                }
            }
        }
    }
    eprintln!("{fused_statements} fused, {committed} committed, {aborted} aborted, again {again:?}");
    assert!(fused_statements > 1_000, "{fused_statements} fused statements, too few to test anything");
    assert!(committed > 20_000 && aborted > 20_000, "{committed} committed, {aborted} aborted");
    assert!(again[0] < again[1], "fusion must save executions: {again:?}");
}

/// Fused commands in all procedures.
fn count_fused(library: &Arc<Library>) -> usize {
    let fused = |number| {
        let lines = explained(library, &format!("p{number}(1, 2, 3, NULL)"));
        lines.iter().filter(|line| line.starts_with("Fused")).count()
    };
    (0..PROCEDURES).map(fused).sum()
}

/// The rows that EXPLAIN CALL gives.
fn explained(library: &Arc<Library>, call: &str) -> Vec<String> {
    let prepared = sql::prepare(library, &format!("EXPLAIN CALL {call}"), &[]).expect("it is there");
    let state = PlainState::new(library.catalog().clone());
    let results = prepared.query(&state, &[], 10_000, 0).expect("nothing is run");
    let lines = results.into_iter().flat_map(|result| result.rows).flatten();
    lines.filter_map(|line| types::format_value(&line)).collect()
}

#[test]
fn smallbank_reads_only_what_it_returns_or_carries_to_another_row() {
    let mut catalog = Arc::new(Catalog::default());
    for statement in workloads::smallbank::Smallbank::statements() {
        catalog = changed(&catalog, statement);
    }
    let library = Arc::new(Library::new(catalog).expect("it compiles"));
    for (call, reads) in [
        ("balance(1, NULL)", 2),
        ("deposit_checking(1, 2)", 0),
        ("transact_savings(1, 2)", 0),
        ("send_payment(1, 2, 3)", 0),
        ("write_check(1, 2, NULL)", 2),
        ("amalgamate(1, 2)", 2),
    ] {
        let lines = explained(&library, call);
        eprintln!("{}", lines.join("\n"));
        let summary = format!("Reads registered: {reads}, avoided by fusion: 0");
        assert_eq!(lines.last(), Some(&summary), "{call}");
    }
}
