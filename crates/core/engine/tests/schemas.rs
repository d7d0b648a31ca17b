//! Schemas with members: random parts of one schema and of several, schema changes among them, and votes that come late or never. Each
//! schema ends where a serial replay of its own parts ends, everybody comes to the same, and what has several parts takes effect in
//! all of its schemas or in none.

mod support;

use concurrency::parts::{Decided, Decision, Decisions, LedgerPosition, Vote};
use crypto::Digest;
use engine::{Engine, SchemaBlock, SchemaEngine, SchemaPart, VerifiedTransaction};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use sql::Library;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use support::{Chain, charter, script};
use types::{Charter, ExecutionVersion, Outcome, Payload, SqlState, StatementResult, TransactionId, Value};

const SEEDS: u64 = 150;
const BLOCKS: u64 = 14;
const WINDOW: u64 = 5;
const SCHEMAS: u32 = 3;

const TABLES: [&str; 3] = [
    "CREATE TABLE t (id int PRIMARY KEY, n bigint NOT NULL CHECK (n < 40), at timestamp)",
    "CREATE TABLE log (id int PRIMARY KEY, line text)",
    "INSERT INTO t SELECT n, n FROM generate_series(1, 6) AS n",
];

/// What a part does, with small numbers in the place of `#`, and one that no other has in that of `@`.
const PARTS: [&str; 9] = [
    "UPDATE t SET n = n + #, at = now() WHERE id = #",
    "UPDATE t SET n = n + 1 WHERE id = #",
    "UPDATE t SET n = (SELECT sum(n) FROM t) % 17 WHERE id = #",
    "UPDATE t SET n = n - 1 WHERE n > 7",
    "UPDATE t SET n = n + 30 WHERE id = #",
    "INSERT INTO t VALUES (# + 4, #)",
    "DELETE FROM t WHERE id = # RETURNING n",
    "INSERT INTO log SELECT @, string_agg(n::text, ' ' ORDER BY id) FROM t",
    "UPDATE t SET n = n / (# - 3) WHERE id = #",
];

/// One member's engine, and what has ended in it, in this order.
struct Member {
    engine: SchemaEngine,
    ended: Vec<(TransactionId, u64, Outcome)>,
    digests: Vec<Digest>,
    /// What it said last.
    settled: u64,
}

impl Member {
    fn new(charter: &Charter) -> Member {
        let engine = Engine::new(Arc::new(charter.clone()), &memory::Memory).expect("a known protocol");
        Member { engine: SchemaEngine::new(engine), ended: Vec::new(), digests: Vec::new(), settled: 0 }
    }

    fn execute(&mut self, block: SchemaBlock) -> Vec<(LedgerPosition, bool)> {
        let height = block.header.height;
        let executed = self.engine.execute(block).expect("it goes on");
        self.ended.extend(executed.ended.into_iter().map(|(id, outcome)| (id, height, outcome)));
        self.digests.push(executed.outcome.digest());
        self.settled = executed.settled;
        executed.votes
    }

    /// The oldest of these transactions that has not ended here stands right behind the height up to which it says that all have.
    fn check_settled(&self, schema: u32, ledger: &[Ordered]) {
        let ended: BTreeSet<TransactionId> = self.ended.iter().map(|(id, ..)| *id).collect();
        let concerns =
            |ordered: &&Ordered| ordered.parts.contains_key(&schema) && !ended.contains(&ordered.id());
        let oldest = ledger.iter().find(concerns).map(|ordered| ordered.position.height - 1);
        assert_eq!(self.settled, oldest.unwrap_or(self.engine.height()), "schema {schema}");
    }

    fn rows(&self) -> Vec<Vec<Vec<String>>> {
        let snapshot = self.engine.snapshot();
        let library = Arc::new(Library::new(snapshot.catalog().clone()).expect("it compiles"));
        let rows = |sql: &str| -> Vec<Vec<String>> {
            let prepared = sql::prepare(&library, sql, &[]).expect("a valid SELECT");
            let results: Vec<StatementResult> =
                prepared.query(snapshot.as_ref(), &[], u64::MAX, 0).expect("a SELECT that succeeds");
            let text = |value: &Value| types::format_value(value).unwrap_or_else(|| "NULL".to_string());
            let rows = results.into_iter().next_back().map(|result| result.rows).unwrap_or_default();
            rows.iter().map(|row| row.iter().map(text).collect()).collect()
        };
        vec![rows("SELECT * FROM t ORDER BY id"), rows("SELECT * FROM log ORDER BY id")]
    }
}

/// A transaction in the ledger.
struct Ordered {
    position: LedgerPosition,
    timestamp_ms: u64,
    parts: BTreeMap<u32, Arc<VerifiedTransaction>>,
}

impl Ordered {
    fn id(&self) -> TransactionId {
        self.parts.values().next().expect("it has a part").id
    }

    fn part(&self, schema: u32) -> Option<SchemaPart> {
        let transaction = self.parts.get(&schema)?.clone();
        let crossing = self.parts.len() > 1;
        Some(SchemaPart {
            position: self.position,
            transaction,
            timestamp_ms: self.timestamp_ms,
            crossing,
            between: None,
        })
    }
}

struct Case {
    random: StdRng,
    /// Makes headers and transactions.
    chain: Chain,
    /// Two members of each schema.
    members: BTreeMap<u32, [Member; 2]>,
    decisions: Decisions<u32>,
    /// Votes on their way, with the height that they reach.
    votes: Vec<(u64, Vote<u32>)>,
    ledger: Vec<Ordered>,
    decided: BTreeMap<LedgerPosition, (u64, Decision)>,
    next_column: u32,
}

impl Case {
    fn new(seed: u64, protocol: &str) -> Case {
        let mut random = StdRng::seed_from_u64(seed);
        let charter = Charter { protocol: protocol.to_string(), ..charter() };
        let members = (0..SCHEMAS).map(|schema| (schema, [Member::new(&charter), Member::new(&charter)]));
        let members = members.collect();
        random.random::<u64>();
        let (votes, ledger, decided) = Default::default();
        let (chain, decisions) = (Chain::new(charter), Decisions::new(WINDOW));
        Case { random, chain, members, decisions, votes, ledger, decided, next_column: 0 }
    }

    fn part(&mut self, crossing: bool) -> Payload {
        // What waits behind a change of its schema has another time: that of the block in which it is executed.
        let of = if crossing { &PARTS[..] } else { &PARTS[1..] };
        let template = of.choose(&mut self.random).expect("there are some");
        let own = self.chain.requests.to_string();
        let numbers = |random: &mut StdRng| random.random_range(1..7).to_string();
        let text: String = template
            .chars()
            .map(|character| match character {
                '#' => numbers(&mut self.random),
                '@' => own.clone(),
                other => other.to_string(),
            })
            .collect();
        script(&text)
    }

    /// A transaction of one schema, of several, or a change of one.
    fn transaction(&mut self, position: LedgerPosition, timestamp_ms: u64) -> Ordered {
        let first = self.random.random_range(0..SCHEMAS);
        let mut schemas = BTreeSet::from([first]);
        if self.random.random_bool(0.5) {
            schemas.extend((0..self.random.random_range(1..3)).map(|_| self.random.random_range(0..SCHEMAS)));
        }
        let change = self.random.random_bool(0.06);
        self.next_column += 1;
        let column = self.next_column;
        let (signed, crossing) = (self.chain.transaction(script("SELECT 1")), schemas.len() > 1);
        let parts = schemas.into_iter().map(|schema| {
            let payload = match change && schema == first {
                true => script(&format!("ALTER TABLE log ADD COLUMN c{column} int DEFAULT {column}")),
                false => self.part(crossing),
            };
            let transaction = VerifiedTransaction::from(signed.clone());
            (schema, Arc::new(VerifiedTransaction { payload: Arc::new(payload), ..transaction }))
        });
        Ordered { position, timestamp_ms, parts: parts.collect() }
    }

    fn block(&mut self, count: u32) {
        let header = self.chain.block(vec![]).header;
        let height = header.height;
        self.chain.execute(vec![]);
        let arrived: Vec<Vote<u32>> =
            self.votes.extract_if(.., |(at, _)| *at <= height).map(|(_, vote)| vote).collect();
        let first = self.ledger.len();
        for index in 0..count {
            let ordered = self.transaction(LedgerPosition { height, index }, header.timestamp_ms);
            self.ledger.push(ordered);
        }
        let new = &self.ledger[first..];
        let crossing =
            new.iter().map(|ordered| (ordered.position.index, ordered.parts.keys().copied().collect()));
        let decided = self.decisions.block(height, &arrived, crossing).expect("the next height");
        for Decided { transaction, decision } in &decided {
            self.decided.insert(*transaction, (height, *decision));
        }
        for (schema, members) in &mut self.members {
            let concerns = |decided: &&Decided| {
                let transaction = self.ledger.iter().find(|ordered| ordered.position == decided.transaction);
                transaction.is_some_and(|ordered| ordered.parts.contains_key(schema))
            };
            let block = SchemaBlock {
                undecided: false,
                version: ExecutionVersion::CURRENT,
                header: header.clone(),
                decisions: decided.iter().filter(concerns).copied().collect(),
                parts: new.iter().filter_map(|ordered| ordered.part(*schema)).collect(),
            };
            let [one, other] = members;
            let votes = one.execute(block.clone());
            assert_eq!(other.execute(block), votes, "schema {schema} at height {height}");
            assert_eq!(one.digests, other.digests, "schema {schema} at height {height}");
            one.check_settled(*schema, &self.ledger);
            for (transaction, yes) in votes {
                // Some votes never come: silent members, or proposers that leave them out.
                let delay = self.random.random_range(1..3);
                if self.random.random_bool(0.94) {
                    self.votes.push((
                        height + delay,
                        Vote { transaction, schema: *schema, yes, moves: BTreeMap::new() },
                    ));
                }
            }
        }
    }

    /// What has several parts has ended alike in all of its schemas, and nothing waits any more.
    fn check_atomic(&self) -> (usize, usize) {
        let (mut committed, mut undone) = (0, 0);
        for ordered in &self.ledger {
            let ended: Vec<(u64, &Outcome)> = ordered
                .parts
                .keys()
                .map(|schema| {
                    let found = self.members[schema][0].ended.iter().find(|(id, ..)| *id == ordered.id());
                    let (_, height, outcome) = found
                        .unwrap_or_else(|| panic!("{:?} has not ended in schema {schema}", ordered.position));
                    (*height, outcome)
                })
                .collect();
            if ordered.parts.len() == 1 {
                let rolled_back = matches!(ended[0].1, Outcome::Aborted(error) if error.state == SqlState::TRANSACTION_ROLLBACK);
                assert!(!rolled_back && !matches!(ended[0].1, Outcome::Rejected(_)), "{:?}", ended[0]);
                continue;
            }
            let (height, decision) = self.decided[&ordered.position];
            assert!(height <= ordered.position.height + WINDOW);
            for (at, outcome) in ended {
                assert_eq!(at, height, "{:?} takes effect where it is decided", ordered.position);
                assert_eq!(matches!(outcome, Outcome::Committed(_)), decision.commits(), "{outcome:?}");
            }
            match decision.commits() {
                true => committed += 1,
                false => undone += 1,
            }
        }
        (committed, undone)
    }

    /// The parts that have taken effect, one after the other, in the order in which they did.
    fn check_serial(&self) {
        for (schema, [member, _]) in &self.members {
            let mut replay = Member::new(&self.chain.charter);
            for (id, _, outcome) in &member.ended {
                if matches!(outcome, Outcome::Aborted(error) if error.state == SqlState::TRANSACTION_ROLLBACK)
                {
                    continue;
                }
                let is_it = |ordered: &&Ordered| ordered.id() == *id && ordered.parts.contains_key(schema);
                let ordered = self.ledger.iter().find(is_it).expect("it was ordered");
                // Voted against on a state that is gone: what its client hears is no part of the state.
                if ordered.parts.len() > 1 && !matches!(outcome, Outcome::Committed(_)) {
                    continue;
                }
                let part = ordered.part(*schema).expect("its part");
                let mut header = self.chain.block(vec![]).header;
                (header.height, header.timestamp_ms) = (replay.engine.height() + 1, part.timestamp_ms);
                let part = SchemaPart { crossing: false, ..part };
                replay.execute(SchemaBlock {
                    header,
                    decisions: vec![],
                    parts: vec![part],
                    undecided: false,
                    version: ExecutionVersion::CURRENT,
                });
                let (_, _, again) = replay.ended.last().expect("it has ended");
                assert_eq!(again, outcome, "schema {schema}, {:?}", ordered.position);
            }
            assert_eq!(replay.rows(), member.rows(), "schema {schema}");
        }
    }
}

fn run(seed: u64, protocol: &str) -> (usize, usize, Case) {
    let mut case = Case::new(seed, protocol);
    let setup: Vec<Payload> = TABLES.iter().map(|sql| script(sql)).collect();
    for payload in setup {
        let header = case.chain.block(vec![]).header;
        case.chain.execute(vec![]);
        let transaction = VerifiedTransaction::from(case.chain.transaction(payload));
        let position = LedgerPosition { height: header.height, index: 0 };
        let parts: BTreeMap<u32, _> =
            (0..SCHEMAS).map(|schema| (schema, Arc::new(transaction.clone()))).collect();
        let ordered = Ordered { position, timestamp_ms: header.timestamp_ms, parts };
        case.decisions.block(header.height, &[], []).expect("the next height");
        for (schema, members) in &mut case.members {
            let part = SchemaPart { crossing: false, ..ordered.part(*schema).expect("one for each") };
            for member in members {
                member.execute(SchemaBlock {
                    undecided: false,
                    version: ExecutionVersion::CURRENT,
                    header: header.clone(),
                    decisions: vec![],
                    parts: vec![part.clone()],
                });
            }
        }
        // For each schema a transaction of its own.
        for (schema, transaction) in &ordered.parts {
            let parts = BTreeMap::from([(*schema, transaction.clone())]);
            case.ledger.push(Ordered { position, timestamp_ms: ordered.timestamp_ms, parts });
        }
    }
    for _ in 0..BLOCKS {
        let count = case.random.random_range(0..7);
        case.block(count);
    }
    // Behind a schema change everything waits again for a window.
    for _ in 0..8 * WINDOW {
        case.block(0);
    }
    let (committed, undone) = case.check_atomic();
    (committed, undone, case)
}

#[test]
fn every_schema_ends_where_a_serial_replay_of_its_parts_ends() {
    let (mut committed, mut undone) = (0, 0);
    for seed in 0..SEEDS {
        let (some, others, case) = run(seed, "serial");
        case.check_serial();
        (committed, undone) = (committed + some, undone + others);
    }
    println!("{committed} transactions of several schemas committed, {undone} did not");
    assert!(committed > 500 && undone > 500, "both happen: {committed}, {undone}");
}

#[test]
fn with_harmony_nothing_takes_effect_in_a_schema_alone() {
    for seed in 0..SEEDS {
        run(seed + 10_000, "harmony");
    }
}
