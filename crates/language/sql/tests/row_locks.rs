//! `SELECT … FOR UPDATE` and its kind in transaction blocks of one gateway: what is locked by one is skipped by the others, and every node
//! comes to the same when it runs their steps again.

mod support;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sql::{Context, RowLocks, Session, SharedRowLocks};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use support::{Database, START_MS, STEP_LIMIT, run_step, step};
use types::{
    ExecutionVersion, HeldRow, Key, Payload, RowLockMode, SessionStep, SqlError, StatementResult, StepGiven,
    TableId, TransactionId, Value,
};

const TABLES: [&str; 6] = [
    "CREATE TABLE job (id integer PRIMARY KEY, state text NOT NULL DEFAULT 'new', priority integer NOT NULL DEFAULT 0)",
    "CREATE TABLE owner (job integer PRIMARY KEY, name text)",
    "CREATE VIEW open_job AS SELECT id, priority FROM job WHERE state = 'new'",
    "INSERT INTO job (id, priority) SELECT g, g % 3 FROM generate_series(1, 6) AS s (g)",
    "INSERT INTO owner VALUES (1, 'ada'), (2, 'bob'), (3, 'eve')",
    "CREATE FUNCTION next_job() RETURNS integer LANGUAGE plpgsql AS $$ DECLARE found integer; BEGIN \
     SELECT id INTO found FROM job WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED; \
     UPDATE job SET state = 'done' WHERE id = found; RETURN found; END $$",
];

/// All locks of a gateway: whose rows are whose, and how.
#[derive(Debug, Default)]
struct Gateway(Mutex<BTreeMap<HeldRow, BTreeMap<usize, RowLockMode>>>);

/// As one block sees them.
#[derive(Debug)]
struct OfBlock(Arc<Gateway>, usize);

impl RowLocks for OfBlock {
    fn is_held(&self, table: TableId, key: &Key, mode: RowLockMode) -> bool {
        let all = self.0.0.lock().expect("nobody panics");
        let holders = all.get(&HeldRow { table, key: key.clone() });
        holders.is_some_and(|of| of.iter().any(|(block, held)| *block != self.1 && held.conflicts(mode)))
    }

    fn hold(&self, table: TableId, key: &Key, mode: RowLockMode, alone: bool) -> bool {
        if alone && self.is_held(table, key, mode) {
            return false;
        }
        let mut all = self.0.0.lock().expect("nobody panics");
        let held = all.entry(HeldRow { table, key: key.clone() }).or_default().entry(self.1).or_insert(mode);
        *held = mode.max(*held);
        true
    }
}

impl Gateway {
    fn release(&self, block: usize) {
        let mut all = self.0.lock().expect("nobody panics");
        all.values_mut().for_each(|holders| holders.retain(|holder, _| *holder != block));
    }
}

struct Blocks {
    database: Database,
    gateway: Arc<Gateway>,
    begun: usize,
}

/// A block and its number.
type Block = (usize, Session);

impl Blocks {
    fn of(database: Database) -> Blocks {
        Blocks { database, gateway: Arc::default(), begun: 0 }
    }

    fn new() -> Blocks {
        Blocks::of(Database::with(&TABLES))
    }

    fn begin(&mut self) -> Block {
        self.begun += 1;
        let context = Context {
            height: u64::MAX,
            timestamp_ms: START_MS + self.begun as u64,
            index: u32::MAX,
            transaction: TransactionId::default(),
            step_limit: STEP_LIMIT,
        };
        let Database { library, state, principal, temporary, .. } = &self.database;
        let (library, snapshot) = (library.clone(), Arc::new(state.clone()));
        let locks: SharedRowLocks = Arc::new(OfBlock(self.gateway.clone(), self.begun));
        let (principal, temporary) = (principal.clone(), temporary.clone());
        let session = Session::begin(library, snapshot, context, principal, STEP_LIMIT, false, temporary);
        (self.begun, session.locking_rows(locks))
    }

    fn roll_back(&self, (number, _): Block) {
        self.gateway.release(number);
    }

    fn commit(&mut self, (number, block): Block) -> Result<Vec<StatementResult>, SqlError> {
        let payload = block.finish().payload.expect("it has written");
        // As it travels.
        let payload: Payload = types::decode_exactly(&types::encode(&payload)).expect("what was encoded");
        let committed = self.database.execute(payload);
        self.gateway.release(number);
        committed
    }
}

fn run((_, session): &mut Block, sql: &str) -> String {
    run_step(session, sql)
}

const NEXT: &str = "SELECT id FROM job WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED";

#[test]
fn blocks_take_different_rows_of_a_queue_whoever_commits_first() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let mut blocks = Blocks::new();
        let mut open = Vec::new();
        for expected in ["1", "2", "3"] {
            let mut block = blocks.begin();
            assert_eq!(run(&mut block, NEXT), expected);
            assert_eq!(run(&mut block, NEXT), expected, "what is its own it sees");
            assert_eq!(run(&mut block, &format!("DELETE FROM job WHERE id = {expected}")), "DELETE 1");
            open.push(Some(block));
        }
        for place in order {
            blocks.commit(open[place].take().expect("it is open")).expect("each has its own row");
        }
        assert_eq!(blocks.database.rows("SELECT id FROM job ORDER BY id"), [["4"], ["5"], ["6"]]);
    }
}

#[test]
fn a_row_is_free_again_behind_a_rollback() {
    let mut blocks = Blocks::new();
    let (mut one, mut other) = (blocks.begin(), blocks.begin());
    assert_eq!(run(&mut one, NEXT), "1");
    assert_eq!(run(&mut other, NEXT), "2");
    blocks.roll_back(one);
    assert_eq!(run(&mut other, NEXT), "1");
    assert_eq!(run(&mut other, "UPDATE job SET state = 'done' WHERE id < 3"), "UPDATE 2");
    blocks.commit(other).expect("each statement was told something else");
}

#[test]
fn only_rows_that_a_query_gives_are_locked() {
    let mut blocks = Blocks::new();
    // No index has this order: all rows are looked at.
    let by_priority = "SELECT id FROM job WHERE state = 'new' ORDER BY priority DESC, id DESC LIMIT 2 FOR UPDATE SKIP LOCKED";
    let (mut one, mut other, mut third) = (blocks.begin(), blocks.begin(), blocks.begin());
    assert_eq!(run(&mut one, by_priority), "5;2");
    assert_eq!(run(&mut other, by_priority), "4;1");
    assert_eq!(run(&mut third, "SELECT id FROM job ORDER BY id FOR UPDATE SKIP LOCKED"), "3;6");
    // Conditions that run something for each row.
    blocks.roll_back(third);
    let mut third = blocks.begin();
    let without_owner = "SELECT id, priority FROM job WHERE NOT EXISTS (SELECT FROM owner WHERE owner.job = job.id) \
                         ORDER BY id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED";
    assert_eq!(run(&mut third, without_owner), "6,0");
    assert_eq!(run(&mut third, "SELECT id FROM job ORDER BY id OFFSET 0 FOR SHARE SKIP LOCKED"), "3;6");
    // Through a view, in a subquery, in WITH.
    blocks.roll_back(third);
    let mut third = blocks.begin();
    assert_eq!(run(&mut third, "SELECT * FROM open_job ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"), "3,0");
    // A view has given more.
    let mut fourth = blocks.begin();
    assert_eq!(run(&mut fourth, NEXT), "");
    blocks.roll_back(third);
    let (mut third, mut fourth) = (blocks.begin(), blocks.begin());
    assert_eq!(run(&mut third, NEXT), "3");
    let taken = "UPDATE job SET state = 'taken' WHERE id = (SELECT id FROM job WHERE state = 'new' ORDER BY id LIMIT 1 \
                 FOR UPDATE SKIP LOCKED) RETURNING id";
    assert_eq!(run(&mut fourth, taken), "6");
    let mut fifth = blocks.begin();
    let with = "WITH next AS (SELECT id FROM job ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) DELETE FROM job USING next \
                WHERE job.id = next.id RETURNING job.id";
    assert_eq!(run(&mut fifth, with), "", "all are locked");
    blocks.commit(fourth).expect("nothing has changed");
    let mut written = blocks.begin();
    assert_eq!(run(&mut written, with), "6");
    for (block, sql) in [(one, "5"), (other, "4"), (third, "3")] {
        let mut block = block;
        run(&mut block, &format!("DELETE FROM job WHERE id = {sql}"));
        blocks.commit(block).expect("what was locked is as it was");
    }
    blocks.commit(written).expect("it was told what was locked");
    assert_eq!(blocks.database.rows("SELECT id, state FROM job ORDER BY id"), [["1", "new"], ["2", "new"]]);
}

#[test]
fn a_join_locks_what_it_finds_of_the_tables_that_it_names() {
    let mut blocks = Blocks::new();
    let (mut one, mut other) = (blocks.begin(), blocks.begin());
    let joined = "SELECT job.id, name FROM job JOIN owner ON owner.job = job.id ORDER BY job.id";
    assert_eq!(run(&mut one, &format!("{joined} FOR UPDATE OF job")), "1,ada;2,bob;3,eve");
    assert_eq!(run(&mut other, &format!("{joined} FOR UPDATE OF owner SKIP LOCKED")), "1,ada;2,bob;3,eve");
    assert_eq!(run(&mut one, &format!("{joined} FOR SHARE OF owner, job SKIP LOCKED")), "");
    let error = "55P03 could not obtain lock on row in relation \"owner\"";
    assert_eq!(run(&mut one, &format!("{joined} FOR SHARE OF owner, job NOWAIT")), error);
}

#[test]
fn nowait_fails_where_another_block_has_the_row_at_every_node() {
    let mut blocks = Blocks::new();
    let (mut one, mut other) = (blocks.begin(), blocks.begin());
    assert_eq!(run(&mut one, "SELECT id FROM job WHERE id = 2 FOR SHARE"), "2");
    assert_eq!(run(&mut other, "SELECT id FROM job WHERE id = 2 FOR KEY SHARE NOWAIT"), "2");
    assert_eq!(run(&mut other, "SAVEPOINT s"), "SAVEPOINT");
    let error = "55P03 could not obtain lock on row in relation \"job\"";
    assert_eq!(run(&mut other, "SELECT id FROM job WHERE id = 2 FOR UPDATE NOWAIT"), error);
    assert_eq!(run(&mut other, "ROLLBACK TO s"), "ROLLBACK");
    assert_eq!(run(&mut other, "SELECT id FROM job WHERE id < 4 ORDER BY id FOR UPDATE SKIP LOCKED"), "1;3");
    assert_eq!(run(&mut other, "UPDATE job SET state = 'done' WHERE id IN (1, 3)"), "UPDATE 2");
    // What has been written is locked, too.
    let third = "SELECT id FROM job WHERE id = 3 FOR KEY SHARE NOWAIT";
    assert_eq!(run(&mut one, third), error);
    blocks.roll_back(one);
    blocks.commit(other).expect("nobody has the row any more, and the step says that somebody had");
    let mut one = blocks.begin();
    assert_eq!(run(&mut one, third), "3");
}

#[test]
fn the_first_statement_of_a_block_waits_for_a_row_and_holds_nothing_meanwhile() {
    let mut blocks = Blocks::new();
    let (mut one, mut other) = (blocks.begin(), blocks.begin());
    assert_eq!(run(&mut one, "SELECT id FROM job WHERE id = 2 FOR UPDATE"), "2");
    let all = step("SELECT id FROM job ORDER BY id FOR SHARE");
    let error = other.1.run(all).expect_err("one of them is locked");
    assert!(types::says_row_is_held(&error), "{error:?}");
    let awaited: Vec<Key> = other.1.awaited_rows().into_iter().map(|row| row.key).collect();
    assert_eq!(awaited, [Key::encode([&Value::Integer(2)]).expect("a key")]);
    assert!(other.1.finish().payload.is_none(), "it has come to nothing");
    blocks.gateway.release(other.0);
    // Once the row is free the block begins anew.
    assert_eq!(run(&mut one, "UPDATE job SET state = 'done' WHERE id = 2"), "UPDATE 1");
    blocks.commit(one).expect("nobody has changed it");
    let mut other = blocks.begin();
    let two = "SELECT id, state FROM job WHERE id < 3 ORDER BY id FOR UPDATE";
    assert_eq!(run(&mut other, two), "1,new;2,done");
    // What a block has made of its temporary tables would be lost.
    let mut third = blocks.begin();
    assert_eq!(run(&mut third, "CREATE TEMP TABLE few AS SELECT 1 AS a"), "SELECT 1");
    assert_eq!(run(&mut third, two), "1,new;2,done");
    blocks.roll_back(third);
    // Who writes without having asked does not wait, and neither does who has begun, because others may wait for that one.
    let mut third = blocks.begin();
    assert_eq!(run(&mut third, "UPDATE job SET state = 'old' WHERE id = 1"), "UPDATE 1");
    assert_eq!(run(&mut third, "SELECT id FROM job WHERE id = 2 FOR UPDATE"), "2");
    assert_eq!(run(&mut other, "DELETE FROM job WHERE id = 2"), "DELETE 1");
    blocks.commit(third).expect("the row is still there");
    assert_eq!(blocks.commit(other).expect_err("it was asked for"), types::results_have_changed());
}

#[test]
fn a_row_that_another_block_has_is_no_obstacle_once_a_block_has_begun() {
    let mut blocks = Blocks::new();
    let (mut one, mut other) = (blocks.begin(), blocks.begin());
    for block in [&mut one, &mut other] {
        assert_eq!(run(block, "SELECT count(*) FROM owner"), "3");
        assert_eq!(run(block, "SELECT state FROM job WHERE id = 1 FOR UPDATE"), "new");
        assert_eq!(run(block, "UPDATE job SET state = 'done' WHERE id = 1"), "UPDATE 1");
    }
    blocks.commit(one).expect("it comes first");
    assert_eq!(blocks.commit(other).expect_err("the row has changed"), types::results_have_changed());
}

#[test]
fn functions_skip_what_is_locked() {
    let mut blocks = Blocks::new();
    let (mut one, mut other) = (blocks.begin(), blocks.begin());
    assert_eq!(run(&mut one, "SELECT next_job(), next_job()"), "1,2");
    assert_eq!(run(&mut other, "SELECT next_job()"), "3");
    blocks.commit(other).expect("each has its own");
    blocks.commit(one).expect("each has its own");
    assert_eq!(blocks.database.rows("SELECT count(*) FROM job WHERE state = 'done'"), [["3"]]);
}

#[test]
fn before_version_15_nothing_is_skipped() {
    let mut database = Database::of_version(ExecutionVersion::V14);
    for sql in TABLES {
        database.run(sql).expect(sql);
    }
    let mut blocks = Blocks::of(database);
    let (mut one, mut other) = (blocks.begin(), blocks.begin());
    assert_eq!(run(&mut one, NEXT), "1");
    assert_eq!(run(&mut other, NEXT), "1");
    assert_eq!(run(&mut other, "SELECT id FROM job WHERE id = 1 FOR UPDATE NOWAIT"), "1");
    // Nor is such a step known.
    let held = vec![HeldRow { table: TableId(1), key: Key::default() }];
    let step = SessionStep::RunGiven {
        given: StepGiven { held, tables: vec![] },
        sql: "SELECT 1".to_string(),
        parameters: vec![],
    };
    let encoded = types::encode(&step);
    let read = || types::decode_exactly::<SessionStep>(&encoded);
    assert_eq!(read().expect("a step"), step);
    let before = types::with_types_of(ExecutionVersion::V14, read).expect_err("nobody knew it");
    assert_eq!(before.to_string(), "Unexpected variant tag: 5");
    for length in 0..encoded.len() {
        types::decode_exactly::<SessionStep>(&encoded[..length]).expect_err("a part of it");
    }
}

/// Workers that take jobs, give some back, and commit in any order: none is done twice, none is lost, and no block of one gateway is ever in
/// another one's way.
#[test]
fn queues_lose_and_duplicate_nothing() {
    for seed in 0..40 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut blocks = Blocks::new();
        blocks.database.run("UPDATE job SET priority = id * 7 % 5").expect("priorities");
        let queries = [
            NEXT.to_string(),
            NEXT.replace("ORDER BY id", "ORDER BY priority, id DESC"),
            NEXT.replace("ORDER BY id", "AND id % 2 = 0 ORDER BY id"),
        ];
        let (mut open, mut jobs, mut done) = (Vec::<(Block, Vec<String>)>::new(), 6, Vec::new());
        for _ in 0..60 {
            match random.random_range(0..6) {
                0 if open.len() < 5 => open.push((blocks.begin(), Vec::new())),
                1 | 2 if !open.is_empty() => {
                    let (block, taken) = {
                        let at = random.random_range(0..open.len());
                        &mut open[at]
                    };
                    let job = run(block, &queries[random.random_range(0..queries.len())]);
                    if job.is_empty() || taken.contains(&job) {
                        continue;
                    }
                    assert_eq!(
                        run(block, &format!("UPDATE job SET state = 'done' WHERE id = {job}")),
                        "UPDATE 1"
                    );
                    taken.push(job);
                }
                3 if !open.is_empty() => {
                    let (block, taken) = open.swap_remove(random.random_range(0..open.len()));
                    if taken.is_empty() || random.random_ratio(1, 3) {
                        blocks.roll_back(block);
                        continue;
                    }
                    match blocks.commit(block) {
                        Ok(_) => done.extend(taken),
                        // It has begun before another one took the row and committed.
                        Err(error) => assert_eq!(error, types::results_have_changed(), "seed {seed}"),
                    }
                }
                4 => {
                    jobs += 1;
                    let sql = format!("INSERT INTO job (id, priority) VALUES ({}, {})", jobs * 10, jobs % 4);
                    blocks.database.run(&sql).expect("a job");
                }
                _ => {}
            }
        }
        open.into_iter().for_each(|(block, _)| blocks.roll_back(block));
        done.sort_unstable();
        let before = done.len();
        done.dedup();
        assert_eq!(done.len(), before, "seed {seed}: a job was done twice");
        let found = blocks.database.rows("SELECT id FROM job WHERE state = 'done' ORDER BY id::text");
        let found: Vec<String> = found.into_iter().map(|mut row| row.remove(0)).collect();
        assert_eq!(found, done, "seed {seed}");
        assert_eq!(blocks.database.rows("SELECT count(*) FROM job"), [[jobs.to_string()]]);
    }
}
