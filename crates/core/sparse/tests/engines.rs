//! What blocks come to where holders share the schemas is byte for byte what one node comes to.

#[path = "../../engine/tests/support/mod.rs"]
mod ledgers;
mod support;

use disk::{Disk, DiskOptions, RowsIn};
use engine::{Engine, SplitRuns, VerifiedBlock};
use ledgers::random::{Said, random_ledger};
use ledgers::{Chain, charter, script};
use memory::Memory;
use proofs::state::TreeShape;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sparse::{Placement, SharedStores, Splitter};
use state::{StateTree, StoreError, Stores, write_checkpoint};
use std::sync::Arc;
use support::{scattered, shared, shared_with};
use types::{Charter, Consistency, OnConflict, Payload, Value};

/// The checkpoint of where an engine stands.
fn checkpoint(engine: &Engine) -> Vec<u8> {
    let (snapshot, mut checkpoint) = (engine.state().snapshot(), Vec::new());
    let (header, live) = (engine.checkpoint_header(), engine.live().content());
    write_checkpoint(&header, snapshot.as_ref(), &live, &mut checkpoint).expect("nothing fails");
    checkpoint
}

/// An engine on these stores that has executed nothing, and its splitter.
fn engine(charter: &Charter, stores: &Arc<SharedStores>) -> (Engine, Arc<Splitter>) {
    let splitter = Arc::new(Splitter::new(stores.clone()));
    let engine = Engine::new(Arc::new(charter.clone()), stores.as_ref()).expect("a known protocol");
    let splits: Arc<dyn SplitRuns> = splitter.clone();
    (engine.splitting(Some(splits)), splitter)
}

/// Keeps the checkpoint where the engine stands at one: its root is that of all rows, wherever they are.
fn keep_checkpoint(engine: &Engine, what: &str) -> Result<(), StoreError> {
    if !engine.is_at_checkpoint() {
        return Ok(());
    }
    let (header, snapshot) = (engine.checkpoint_header(), engine.state().snapshot());
    let (live, shape) = (engine.live().content(), TreeShape::at(snapshot.catalog(), header.height));
    let kept = engine.state().keep_checkpoint(&header, snapshot.clone(), live.clone(), shape)?;
    let whole = StateTree::new(snapshot.as_ref(), &live, shape)?;
    assert_eq!(kept.expect("it is not closed").tree().root(), whole.root(), "{what}");
    Ok(())
}

/// An engine where a process begins: at the newest state that all nodes have, or at the first block.
fn begin(charter: &Charter, stores: &Arc<SharedStores>) -> Engine {
    let left = stores.left().expect("nothing fails");
    let engine = match left.first().map(|point| point.header.height) {
        None => engine(charter, stores).0,
        Some(height) => {
            let reopened = stores.reopen(height).expect("nothing fails").expect("it was left");
            let at = (&reopened.point.header, reopened.point.progress);
            let engine = Engine::at(Arc::new(charter.clone()), at, reopened.state, reopened.live);
            let splits: Arc<dyn SplitRuns> = Arc::new(Splitter::new(stores.clone()));
            engine.expect("a known protocol").splitting(Some(splits))
        }
    };
    stores.settle().expect("nothing fails");
    stores.remove_checkpoints_behind(engine.height()).expect("nothing fails");
    engine
}

fn run(engine: &mut Engine, blocks: &[VerifiedBlock], expected: &[Said], what: &str) {
    for (block, expected) in blocks.iter().zip(expected) {
        let executed = engine.execute(block).expect("the next block");
        let found = (executed.receipts, executed.outcome.digest(), engine.checkpoint_progress());
        assert_eq!(&found, expected, "{what}, block {}", block.header.height);
    }
}

/// The engines of one node, to compare with.
fn alone(charter: &Charter, blocks: &[VerifiedBlock]) -> Vec<u8> {
    let mut engine = Engine::new(Arc::new(charter.clone()), &Memory).expect("a known protocol");
    for block in blocks {
        engine.execute(block).expect("the next block");
    }
    checkpoint(&engine)
}

#[test]
fn every_protocol_comes_to_the_same_wherever_tables_stand() {
    for protocol in concurrency::IDS {
        for seed in 0..6 {
            let mut rng = StdRng::seed_from_u64(seed);
            let mut charter = charter();
            charter.protocol = protocol.to_string();
            charter.block.batch_transactions = rng.random_range(5..20);
            match seed {
                4 => charter.concurrency.consistency = Consistency::Serializable,
                5 => charter.concurrency.on_conflict = OnConflict::Requeue,
                _ => {}
            }
            let (blocks, expected) = random_ledger(&charter, seed);
            let placement = scattered(rng.random_range(1..4), seed);
            let (stores, _) = shared(&charter, &placement, |_| Arc::new(Memory) as Arc<dyn Stores>);
            let (mut engine, _) = engine(&charter, &stores);
            run(&mut engine, &blocks, &expected, &format!("{protocol}, seed {seed}"));
            assert_eq!(checkpoint(&engine), alone(&charter, &blocks), "{protocol}, seed {seed}");
        }
    }
}

const SCHEMAS: usize = 6;

/// Schemas with a contract each, contracts over two of them, and one that nobody can analyse.
fn set_up() -> Vec<Payload> {
    let mut statements = vec![
        "CREATE TABLE kept (id int PRIMARY KEY, n bigint NOT NULL)".to_string(),
        "INSERT INTO kept SELECT g, 0 FROM generate_series(1, 12) AS g".to_string(),
    ];
    for number in 0..SCHEMAS {
        statements.push(format!("CREATE SCHEMA s{number}"));
        statements.push(format!(
            "CREATE TABLE s{number}.accounts (id int PRIMARY KEY, owner text NOT NULL, balance bigint NOT NULL CHECK (balance >= 0))"
        ));
        statements.push(format!(
            "CREATE TABLE s{number}.log (entry bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, account int, note text UNIQUE)"
        ));
        statements.push(format!("CREATE INDEX by_owner_{number} ON s{number}.accounts (owner)"));
        statements.push(format!(
            "INSERT INTO s{number}.accounts SELECT g, 'owner ' || g % 5, 100 FROM generate_series(1, 12) AS g"
        ));
        statements.push(format!(
            "CREATE PROCEDURE s{number}.pay(a int, b int, amount bigint) LANGUAGE plpgsql AS $$ BEGIN
               UPDATE s{number}.accounts SET balance = balance - amount WHERE id = a;
               IF NOT FOUND THEN RAISE EXCEPTION 'no account %', a; END IF;
               UPDATE s{number}.accounts SET balance = balance + amount WHERE id = b;
             END $$"
        ));
        statements.push(format!(
            "CREATE PROCEDURE s{number}.level(who text) LANGUAGE plpgsql AS $$ DECLARE total bigint; BEGIN
               SELECT sum(balance) INTO total FROM s{number}.accounts WHERE owner = who;
               UPDATE s{number}.accounts SET balance = total % 50 + 10 WHERE owner = who AND balance < 20;
             END $$"
        ));
    }
    for number in 0..SCHEMAS {
        let next = (number + 1) % SCHEMAS;
        statements.push(format!(
            "CREATE PROCEDURE s{number}.send(a int, b int, amount bigint) LANGUAGE plpgsql AS $$ DECLARE rest bigint; BEGIN
               SELECT balance INTO rest FROM s{number}.accounts WHERE id = a;
               IF rest < amount THEN RAISE EXCEPTION 'only %', rest; END IF;
               UPDATE s{number}.accounts SET balance = balance - amount WHERE id = a;
               UPDATE s{next}.accounts SET balance = balance + amount WHERE id = b;
             END $$"
        ));
        statements.push(format!(
            "CREATE PROCEDURE s{number}.keep(a int) LANGUAGE plpgsql AS $$ BEGIN
               UPDATE kept SET n = n + (SELECT balance FROM s{number}.accounts WHERE id = a) WHERE id = a;
             END $$"
        ));
    }
    statements.iter().map(|statement| script(statement)).collect()
}

fn random_payload(rng: &mut StdRng, crossing_percent: u32) -> Payload {
    let schema = rng.random_range(0..SCHEMAS);
    let mut account = || Value::Integer(rng.random_range(1..=13));
    let (a, b) = (account(), account());
    let amount = Value::BigInt(rng.random_range(1..60));
    let call = |procedure: String, arguments| Payload::Call { procedure, arguments };
    if rng.random_range(0..100) < crossing_percent {
        return match rng.random_range(0..8) {
            0 => script(&format!("UPDATE kept SET n = n + 1 WHERE id = {}", rng.random_range(1..13))),
            1 => call(format!("s{schema}.keep"), vec![a]),
            2 => script(&format!(
                "INSERT INTO s{schema}.log (account, note) SELECT id, 'of ' || balance FROM s{}.accounts WHERE owner = 'owner 1' LIMIT 1",
                (schema + 2) % SCHEMAS
            )),
            _ => call(format!("s{schema}.send"), vec![a, b, amount]),
        };
    }
    match rng.random_range(0..10) {
        0 => call(format!("s{schema}.level"), vec![Value::text(format!("owner {}", rng.random_range(0..5)))]),
        1 => script(&format!(
            "INSERT INTO s{schema}.log (account, note) VALUES (1, 'note {}')",
            rng.random_range(0..40)
        )),
        2 => script(&format!("DELETE FROM s{schema}.accounts WHERE id = {}", rng.random_range(1..30))),
        3 => Payload::Insert {
            table: format!("s{schema}.accounts"),
            columns: vec!["id".into(), "owner".into(), "balance".into()],
            rows: vec![vec![
                Value::Integer(rng.random_range(1..30)),
                Value::text("owner 1"),
                Value::BigInt(7),
            ]],
        },
        _ => call(format!("s{schema}.pay"), vec![a, b, amount]),
    }
}

/// Blocks over these schemas, and what one engine says of them. `crossing_percent`: transactions that touch several places.
fn ledger_of_schemas(charter: &Charter, seed: u64, crossing_percent: u32) -> (Vec<VerifiedBlock>, Vec<Said>) {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut chain = Chain::new(charter.clone());
    let (mut blocks, mut said) = (Vec::new(), Vec::new());
    let mut execute = |chain: &mut Chain, payloads: Vec<Payload>| {
        let transactions = payloads.into_iter().map(|payload| chain.transaction(payload)).collect();
        let block = chain.block(transactions);
        let executed = chain.engine.execute(&block).expect("the next height");
        said.push((executed.receipts, executed.outcome.digest(), chain.engine.checkpoint_progress()));
        blocks.push(block);
    };
    for payload in set_up() {
        execute(&mut chain, vec![payload]);
    }
    for number in 0..25 {
        let mut payloads: Vec<Payload> =
            (0..rng.random_range(1..60)).map(|_| random_payload(&mut rng, crossing_percent)).collect();
        let middle = payloads.len() / 2;
        match rng.random_range(0..14) {
            0 => payloads.insert(
                middle,
                script(&format!("ALTER SCHEMA s{} RENAME TO t{number}", rng.random_range(0..SCHEMAS))),
            ),
            1 => payloads.insert(
                middle,
                script(&format!(
                    "ALTER TABLE s{}.accounts ADD COLUMN c{number} int DEFAULT 3",
                    rng.random_range(0..SCHEMAS)
                )),
            ),
            2 => payloads.push(script("CHECKPOINT")),
            3 => payloads.insert(middle, script(&format!("TRUNCATE s{}.log", rng.random_range(0..SCHEMAS)))),
            _ => {}
        }
        execute(&mut chain, payloads);
    }
    let text = |said: &Said| {
        said.0.iter().filter(|receipt| matches!(receipt.outcome, types::Outcome::Committed(_))).count()
    };
    assert!(said.iter().map(text).sum::<usize>() > 300, "most of them commit");
    (blocks, said)
}

fn by_schema(holders: usize) -> Placement {
    let of = |holder| {
        (0..SCHEMAS).filter(move |schema| schema % (holders + 1) == holder).map(|schema| format!("s{schema}"))
    };
    Placement::of_schemas((0..holders).map(|holder| of(holder).collect()).collect())
}

#[test]
fn calls_within_schemas_and_over_several_come_to_the_same_as_on_one_node() {
    let (mut there, mut here) = (0, 0);
    for protocol in concurrency::IDS {
        for (seed, crossing) in [(1, 0), (2, 5), (3, 30), (4, 100)] {
            let mut charter = charter();
            charter.protocol = protocol.to_string();
            charter.block.batch_transactions = [7, 20, 50][seed as usize % 3];
            let (blocks, expected) = ledger_of_schemas(&charter, seed, crossing);
            let placement = by_schema(1 + seed as usize % 3);
            let (stores, _) = shared(&charter, &placement, |_| Arc::new(Memory) as Arc<dyn Stores>);
            let (mut engine, splitter) = engine(&charter, &stores);
            let what = format!("{protocol}, seed {seed}, {crossing} % crossing");
            run(&mut engine, &blocks, &expected, &what);
            assert_eq!(checkpoint(&engine), alone(&charter, &blocks), "{what}");
            let counts = splitter.counts();
            assert!(counts.0 > 50 || crossing == 100, "{what}: {counts:?}");
            (there, here) = (there + counts.0, here + counts.1);
        }
    }
    assert!(there > here / 4 && here > 1_000, "{there} there, {here} here");
}

#[test]
fn a_block_that_spends_too_much_is_executed_in_one_place() {
    let mut charter = charter();
    charter.meter.block_steps = 400;
    charter.meter.transaction_steps = 400;
    let (blocks, expected) = ledger_of_schemas(&Charter { meter: charter.meter, ..charter.clone() }, 5, 10);
    let (stores, _) = shared(&charter, &by_schema(2), |_| Arc::new(Memory) as Arc<dyn Stores>);
    let splitter: Arc<Splitter> = Arc::new(Splitter::new(stores.clone()));
    let mut overspent = 0;
    let mut done = 0;
    // It begins again each time that it has to: what a node does from the newest checkpoint.
    while done < blocks.len() {
        let engine = Engine::new(Arc::new(charter.clone()), stores.as_ref()).expect("a known protocol");
        let splits: Arc<dyn SplitRuns> = splitter.clone();
        let mut engine = engine.splitting(Some(splits));
        done = 0;
        for (block, expected) in blocks.iter().zip(&expected) {
            match engine.execute(block) {
                Ok(executed) => assert_eq!(executed.receipts, expected.0, "block {}", block.header.height),
                Err(error) => {
                    assert!(error.to_string().contains("more steps than a block may"), "{error}");
                    overspent += 1;
                    break;
                }
            }
            done += 1;
        }
        assert!(overspent < 5, "later blocks are not split");
    }
    assert!(overspent > 0, "some block spends too much");
}

#[test]
fn holders_and_validators_that_start_again_at_any_moment_come_to_the_same() {
    for seed in 0..2 {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut charter = charter();
        charter.checkpoint_blocks = 7;
        let (blocks, expected) = ledger_of_schemas(&charter, 100 + seed, 10);
        let folder = tempfile::tempdir().expect("a folder");
        let (path, rows_in) =
            (folder.path().to_path_buf(), if seed % 2 == 0 { RowsIn::Memory } else { RowsIn::Disk });
        let open = move |number: usize| {
            let options = DiskOptions { rows_in, memory_bytes: 50_000 };
            Arc::new(Disk::open(&path.join(number.to_string()), options).expect("a folder"))
                as Arc<dyn Stores>
        };
        let placement = by_schema(2);
        let (mut restarts, mut again) = (0, 0);
        let known = Arc::default();
        loop {
            let (stores, links) = shared_with(&charter, &placement, open.clone(), &known);
            let mut engine = begin(&charter, &stores);
            again += usize::from(engine.height() > 0);
            let fails = restarts < 12;
            if fails {
                links[rng.random_range(0..links.len())].fail_after(rng.random_range(1..60));
            }
            let begins = engine.height() as usize;
            let mut failed = false;
            for (number, block) in blocks.iter().enumerate().skip(begins) {
                stores.recorded(number as u64);
                let executed = match engine.execute(block) {
                    Ok(executed) => executed,
                    Err(error) => {
                        assert!(error.to_string().contains("holder-"), "{error}");
                        failed = true;
                        break;
                    }
                };
                let found = (executed.receipts, executed.outcome.digest(), engine.checkpoint_progress());
                assert_eq!(found, expected[number], "seed {seed}, block {number}, from {begins} on");
                stores.recorded(engine.height());
                if let Err(error) = keep_checkpoint(&engine, &format!("seed {seed}, block {number}")) {
                    assert!(error.to_string().contains("holder-"), "{error}");
                    failed = true;
                    break;
                }
            }
            restarts += 1;
            if !failed && engine.height() as usize == blocks.len() {
                match restarts > 12 {
                    true => {
                        assert_eq!(checkpoint(&engine), alone(&charter, &blocks), "seed {seed}");
                        break;
                    }
                    false => continue,
                }
            }
        }
        assert!(again > 3, "seed {seed}: states were taken up again {again} times");
    }
}

/// Schemas that another node holds from a start on: their rows go there.
#[test]
fn schemas_move_between_nodes_that_start_again() {
    for seed in 0..3 {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut charter = charter();
        charter.checkpoint_blocks = 5;
        let (blocks, expected) = ledger_of_schemas(&charter, 200 + seed, 10);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().to_path_buf();
        let open = move |number: usize| {
            let options = DiskOptions { rows_in: RowsIn::Memory, memory_bytes: 0 };
            Arc::new(Disk::open(&path.join(number.to_string()), options).expect("a folder"))
                as Arc<dyn Stores>
        };
        let known = Arc::default();
        let (mut done, mut moved, mut turns) = (0, 0, 0);
        while done < blocks.len() {
            turns += 1;
            // Everybody who has held something stays, maybe with nothing.
            let holders = 1 + turns.min(3);
            let of: Vec<usize> = (0..SCHEMAS).map(|_| rng.random_range(0..=holders)).collect();
            let held = |holder| {
                (0..SCHEMAS)
                    .filter(|schema| of[*schema] == holder)
                    .map(|schema| format!("s{schema}"))
                    .collect()
            };
            let placement = Placement::of_schemas((0..holders).map(held).collect());
            let (stores, _) = shared_with(&charter, &placement, open.clone(), &known);
            let mut engine = begin(&charter, &stores);
            moved += usize::from(engine.height() > 0);
            let (begins, ends) = (engine.height() as usize, done + rng.random_range(6..30));
            for (number, block) in
                blocks.iter().enumerate().skip(begins).take_while(|(number, _)| *number < ends)
            {
                let executed = engine.execute(block).expect("the next block");
                let found = (executed.receipts, executed.outcome.digest(), engine.checkpoint_progress());
                assert_eq!(found, expected[number], "seed {seed}, block {number}, from {begins} on");
                stores.recorded(engine.height());
                keep_checkpoint(&engine, &format!("seed {seed}, block {number}")).expect("nothing fails");
            }
            done = engine.height() as usize;
            assert_eq!(checkpoint(&engine), alone(&charter, &blocks[..done]), "seed {seed}, behind {done}");
        }
        assert!(moved > 2, "seed {seed}: schemas moved {moved} times");
    }
}

/// A check that cannot fail is none: this rule is what the comparisons above rest on.
#[test]
fn without_the_rule_that_who_meets_runs_in_one_place_something_else_comes_out() {
    let mut charter = charter();
    charter.block.batch_transactions = 20;
    let differs = (0..10).any(|seed| {
        let (blocks, expected) = ledger_of_schemas(&charter, 300 + seed, 30);
        let (stores, _) = shared(&charter, &by_schema(2), |_| Arc::new(Memory) as Arc<dyn Stores>);
        let splitter: Arc<dyn SplitRuns> = Arc::new(Splitter::new(stores.clone()).without_meetings());
        let engine = Engine::new(Arc::new(charter.clone()), stores.as_ref()).expect("a known protocol");
        let mut engine = engine.splitting(Some(splitter));
        blocks.iter().zip(&expected).any(|(block, expected)| match engine.execute(block) {
            Ok(executed) => executed.outcome.digest() != expected.1,
            Err(_) => true,
        })
    });
    assert!(differs, "the rule is needed");
}

/// Nothing that comes makes a holder panic or ask for memory without end; and what was damaged is mostly refused.
#[test]
fn damaged_questions_are_answered() {
    let charter = charter();
    let (blocks, _) = ledger_of_schemas(&charter, 7, 20);
    let (stores, links) = shared(&charter, &by_schema(1), |_| Arc::new(Memory) as Arc<dyn Stores>);
    *links[0].heard.lock() = Some(Vec::new());
    let (mut engine, _) = engine(&charter, &stores);
    blocks.iter().for_each(|block| drop(engine.execute(block).expect("the next block")));
    let heard = links[0].heard.lock().take().expect("it is kept");
    assert!(heard.len() > 100);
    let mut rng = StdRng::seed_from_u64(9);
    let (mut refused, mut asked) = (0, 0);
    for question in heard.iter().filter(|question| question.len() < 20_000) {
        for _ in 0..20 {
            let mut damaged = question.clone();
            match rng.random_range(0..3) {
                0 => damaged.truncate(rng.random_range(0..damaged.len())),
                1 => {
                    let place = rng.random_range(0..damaged.len());
                    damaged[place] ^= 1 << rng.random_range(0..8);
                }
                _ => damaged.push(0),
            }
            let holder = links[0].process();
            let answer = holder.answer(&damaged);
            assert!(!answer.is_empty());
            asked += 1;
            refused += usize::from(answer[0] == REFUSED);
        }
    }
    assert!(refused * 2 > asked, "{refused} of {asked} were refused");
}

/// How an answer begins that says why nothing came of a question.
const REFUSED: u8 = 10;

/// Whose rows are gone is not new: the state is made again, whatever it was that made it durable, and no row is missing.
#[test]
fn a_holder_that_has_lost_its_rows_is_no_new_one() {
    let mut charter = charter();
    charter.checkpoint_blocks = 1_000;
    let (blocks, expected) = ledger_of_schemas(&charter, 11, 10);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_path_buf();
    let open = move |number: usize| {
        let options = DiskOptions { rows_in: RowsIn::Memory, memory_bytes: 0 };
        Arc::new(Disk::open(&path.join(number.to_string()), options).expect("a folder")) as Arc<dyn Stores>
    };
    let known = Arc::default();
    let half = blocks.len() - 5;
    let stop = |stores: &Arc<SharedStores>, engine: Engine| {
        stores.recorded(engine.height());
        assert_eq!(engine.state().durable_point().expect("nothing fails"), Some(engine.height()));
    };
    {
        let (stores, _) = shared_with(&charter, &by_schema(2), open.clone(), &known);
        let mut engine = begin(&charter, &stores);
        run(&mut engine, &blocks[..half], &expected, "at first");
        stop(&stores, engine);
    }
    let begins = |placement: &Placement| {
        let (stores, _) = shared_with(&charter, placement, open.clone(), &known);
        stores.left().expect("nothing fails").first().map(|point| point.header.height)
    };
    assert_eq!(begins(&by_schema(2)), Some(half as u64), "there was no checkpoint");
    assert_eq!(
        begins(&Placement::of_schemas(vec![Vec::new(), Vec::new()])),
        Some(half as u64),
        "all give their rows back"
    );
    assert_eq!(begins(&by_schema(1)), None, "one with rows is no holder any more");
    std::fs::remove_dir_all(folder.path().join("2")).expect("it is there");
    assert_eq!(begins(&by_schema(2)), None, "one has lost its rows");
    let (stores, _) = shared_with(&charter, &by_schema(2), open.clone(), &known);
    let mut engine = begin(&charter, &stores);
    assert_eq!(engine.height(), 0);
    run(&mut engine, &blocks, &expected, "from the first block on");
    assert_eq!(checkpoint(&engine), alone(&charter, &blocks));
}

/// Queries read beside blocks: what they have read of a holder is not what the next batch finds there.
#[test]
fn a_row_that_is_read_while_it_changes_is_not_remembered_as_it_was() {
    let charter = charter();
    let (stores, links) =
        shared(&charter, &Placement::by(1, |_| Some(0)), |_| Arc::new(Memory) as Arc<dyn Stores>);
    let mut chain = Chain::new(charter.clone());
    chain.engine = Engine::new(chain.charter.clone(), stores.as_ref()).expect("a known protocol");
    chain.script("CREATE TABLE t (id int PRIMARY KEY, n int)");
    chain.script("INSERT INTO t VALUES (1, 1)");
    let state = chain.engine.state().clone();
    let table = state.catalog().tables["t"].id;
    let key = types::Key::encode([&Value::Integer(1)]).expect("a key");
    let row = |n| types::Row::from([Value::Integer(1), Value::Integer(n)]);
    let (before, reading) = (state.snapshot(), key.clone());
    *links[0].meanwhile.lock() = Some(Box::new(move || {
        assert_eq!(before.get(table, &reading).expect("nothing fails"), Some(row(1)));
    }));
    let image = state::AfterImage { row: state::RowId { table, key: key.clone() }, value: Some(row(2)) };
    let version = state::Version::of_number(state.version().number() + 1);
    state.apply(version, &[image], None).expect("nothing fails");
    assert_eq!(state.snapshot().get(table, &key).expect("nothing fails"), Some(row(2)));
}
