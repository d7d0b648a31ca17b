//! What transactions move between schemas with members: money goes from one schema to another by parts that may say different things. In
//! sum nothing is created and nothing lost, whatever they say; without the rule that both sides must say the same it is.

mod support;

use concurrency::parts::{Decided, Decision, Decisions, LedgerPosition, Vote};
use engine::{Between, Engine, SchemaBlock, SchemaEngine, SchemaPart, VerifiedTransaction};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sql::{Library, Moves};
use std::collections::BTreeMap;
use std::sync::Arc;
use support::{Chain, charter, script};
use types::{
    ExecutionVersion, Outcome, Payload, Principal, Signers, SqlError, SqlState, TransactionId, Value,
};

const SEEDS: u64 = 40;
const BLOCKS: u64 = 12;
const WINDOW: u64 = 5;
const SCHEMAS: [&str; 3] = ["vault", "market", "bank"];
const ACCOUNTS: u32 = 6;

const TABLES: [&str; 5] = [
    "CREATE TABLE account (id int PRIMARY KEY, balance bigint NOT NULL CHECK (balance >= 0))",
    "INSERT INTO account SELECT n, 100 FROM generate_series(1, 6) AS n",
    "CREATE PROCEDURE give(k int, other text, n bigint) LANGUAGE plpgsql AS $$ BEGIN
         UPDATE account SET balance = balance - n WHERE id = k;
         PERFORM entente.hand_over(other, n);
     END $$",
    "CREATE PROCEDURE take(k int, other text, n bigint) LANGUAGE plpgsql AS $$ BEGIN
         UPDATE account SET balance = balance + n WHERE id = k;
         PERFORM entente.take_over(other, n);
     END $$",
    // It takes back what it does to its account, and says nothing of that.
    "CREATE PROCEDURE torn(k int, other text, n bigint) LANGUAGE plpgsql AS $$ BEGIN
         BEGIN CALL give(k, other, n); RAISE EXCEPTION 'no'; EXCEPTION WHEN OTHERS THEN NULL; END;
     END $$",
];

/// A transaction: its part in each schema, by the schema's position.
struct Ordered {
    position: LedgerPosition,
    transaction: VerifiedTransaction,
    parts: BTreeMap<u32, Payload>,
    secrets: BTreeMap<(u32, u32), [u8; 32]>,
}

impl Ordered {
    fn part(&self, schema: u32) -> Option<SchemaPart> {
        let payload = Arc::new(self.parts.get(&schema)?.clone());
        let crossing = self.parts.len() > 1;
        let name = |schema: u32| SCHEMAS[schema as usize].to_string();
        let others = self.parts.keys().filter(|other| **other != schema).map(|other| {
            let secret = self.secrets[&(schema.min(*other), schema.max(*other))];
            (name(*other), (*other, secret))
        });
        let others: BTreeMap<String, (u32, [u8; 32])> = others.collect();
        let between = crossing.then(|| Between {
            ledger: charter().ledger(),
            client: self.transaction.client,
            moves: Arc::new(Moves::new(&name(schema), others.keys().cloned())),
            others,
            agreement: None,
        });
        let transaction = Arc::new(VerifiedTransaction { payload, ..self.transaction.clone() });
        Some(SchemaPart { position: self.position, transaction, timestamp_ms: 0, crossing, between })
    }
}

struct Case {
    random: StdRng,
    chain: Chain,
    engines: BTreeMap<u32, SchemaEngine>,
    decisions: Decisions<u32>,
    votes: Vec<(u64, Vote<u32>)>,
    ledger: Vec<Ordered>,
    decided: BTreeMap<LedgerPosition, Decision>,
    ended: BTreeMap<TransactionId, Vec<Outcome>>,
    /// Both sides must say the same.
    compares: bool,
}

impl Case {
    fn new(seed: u64, compares: bool) -> Case {
        let engine = |schema| {
            let engine = Engine::new(Arc::new(charter()), &memory::Memory).expect("a known protocol");
            (schema, SchemaEngine::new(engine))
        };
        let (votes, ledger, decided, ended) = Default::default();
        let mut case = Case {
            random: StdRng::seed_from_u64(seed),
            chain: Chain::new(charter()),
            engines: (0..SCHEMAS.len() as u32).map(engine).collect(),
            decisions: Decisions::new(WINDOW),
            votes,
            ledger,
            decided,
            ended,
            compares,
        };
        for sql in TABLES {
            // For each schema a transaction of its own.
            let everywhere = (0..SCHEMAS.len() as u32).map(|schema| BTreeMap::from([(schema, script(sql))]));
            case.block(everywhere.collect());
        }
        case
    }

    /// Money goes from one schema to another, perhaps not as much as comes; from one to two; or around.
    fn transfer(&mut self) -> BTreeMap<u32, Payload> {
        let random = &mut self.random;
        let account = |random: &mut StdRng| random.random_range(1..=ACCOUNTS);
        let amount = random.random_range(1..40_i64);
        let said = if random.random_bool(0.7) { amount } else { random.random_range(1..40) };
        let call = |what: &str, account: u32, other: u32, amount: i64| {
            format!("CALL {what}({account}, '{}', {amount});", SCHEMAS[other as usize])
        };
        let first = random.random_range(0..3_u32);
        let (second, third) = ((first + 1) % 3, (first + 2) % 3);
        let mut parts = BTreeMap::<u32, String>::new();
        let mut go = |from: u32, to: u32, random: &mut StdRng, left: i64, came: i64| {
            *parts.entry(from).or_default() += &call("give", account(random), to, left);
            *parts.entry(to).or_default() += &call("take", account(random), from, came);
        };
        match random.random_range(0..11) {
            0..6 => go(first, second, random, amount, said),
            6 | 7 => {
                go(first, second, random, amount, amount);
                go(first, third, random, amount, said);
            }
            8 => {
                go(first, second, random, amount, said);
                go(second, third, random, amount, amount);
                go(third, first, random, amount, amount);
            }
            9 => {
                *parts.entry(first).or_default() += &call("torn", account(random), second, amount);
                *parts.entry(second).or_default() += &call("take", account(random), first, amount);
            }
            // It leaves, and comes into a third schema as if from the first.
            _ => {
                *parts.entry(first).or_default() += &call("give", account(random), second, amount);
                *parts.entry(second).or_default() += "UPDATE account SET balance = balance WHERE id = 1;";
                *parts.entry(third).or_default() += &call("take", account(random), first, amount);
            }
        }
        parts.into_iter().map(|(schema, sql)| (schema, script(&sql))).collect()
    }

    fn block(&mut self, new: Vec<BTreeMap<u32, Payload>>) {
        let header = self.chain.block(vec![]).header;
        let height = header.height;
        self.chain.execute(vec![]);
        let first = self.ledger.len();
        for (index, parts) in (0..).zip(new) {
            let signed = self.chain.transaction(script("SELECT 1"));
            let mut secrets = BTreeMap::new();
            for one in parts.keys() {
                for other in parts.keys().filter(|other| *other > one) {
                    secrets.insert((*one, *other), self.random.random());
                }
            }
            let transaction = VerifiedTransaction::from(signed);
            let position = LedgerPosition { height, index };
            self.ledger.push(Ordered { position, transaction, parts, secrets });
        }
        let arrived: Vec<Vote<u32>> =
            self.votes.extract_if(.., |(at, _)| *at <= height).map(|(_, vote)| vote).collect();
        let new = &self.ledger[first..];
        let crossing =
            new.iter().map(|ordered| (ordered.position.index, ordered.parts.keys().copied().collect()));
        let decided = self.decisions.block(height, &arrived, crossing).expect("the next height");
        self.decided.extend(decided.iter().map(|one| (one.transaction, one.decision)));
        for (schema, engine) in &mut self.engines {
            let concerns = |decided: &&Decided| {
                let of = self.ledger.iter().find(|ordered| ordered.position == decided.transaction);
                of.is_some_and(|ordered| ordered.parts.contains_key(schema))
            };
            let executed = engine.execute(SchemaBlock {
                undecided: false,
                version: ExecutionVersion::CURRENT,
                header: header.clone(),
                decisions: decided.iter().filter(concerns).copied().collect(),
                parts: new.iter().filter_map(|ordered| ordered.part(*schema)).collect(),
            });
            let executed = executed.expect("it goes on");
            for (id, outcome) in executed.ended {
                self.ended.entry(id).or_default().push(outcome);
            }
            for (transaction, yes) in executed.votes {
                let of_it = executed.moves.iter().find(|(position, _)| *position == transaction);
                let moves = of_it.filter(|_| self.compares).map(|(_, moves)| moves.clone());
                let vote = Vote { transaction, schema: *schema, yes, moves: moves.unwrap_or_default() };
                self.votes.push((height + self.random.random_range(1..3), vote));
            }
        }
    }

    fn money(&self) -> i64 {
        let total = |engine: &SchemaEngine| {
            let snapshot = engine.snapshot();
            let library = Arc::new(Library::new(snapshot.catalog().clone()).expect("it compiles"));
            let prepared = sql::prepare(&library, "SELECT sum(balance)::bigint FROM account", &[]);
            let results = prepared.expect("a SELECT").query(snapshot.as_ref(), &[], u64::MAX, 0);
            match &results.expect("a SELECT that succeeds")[0].rows[0][0] {
                Value::BigInt(total) => *total,
                other => panic!("{other:?}"),
            }
        };
        self.engines.values().map(total).sum()
    }

    fn run(seed: u64, compares: bool) -> Case {
        let mut case = Case::new(seed, compares);
        for _ in 0..BLOCKS {
            let count = case.random.random_range(0..5);
            let transfers = (0..count).map(|_| case.transfer()).collect();
            case.block(transfers);
        }
        for _ in 0..3 * WINDOW {
            case.block(vec![]);
        }
        case
    }
}

#[test]
fn nothing_is_created_and_nothing_lost_between_schemas() {
    let (mut committed, mut differed, mut created) = (0, 0, 0);
    for seed in 0..SEEDS {
        let case = Case::run(seed, true);
        assert_eq!(case.money(), 3 * 100 * i64::from(ACCOUNTS), "seed {seed}");
        for ordered in case.ledger.iter().filter(|ordered| ordered.parts.len() > 1) {
            let outcomes = &case.ended[&ordered.transaction.id];
            assert_eq!(outcomes.len(), ordered.parts.len(), "seed {seed}, {:?}", ordered.position);
            match case.decided[&ordered.position] {
                Decision::Commit => {
                    assert!(outcomes.iter().all(|one| matches!(one, Outcome::Committed(_))));
                    committed += 1;
                }
                Decision::Moves => {
                    let says = |error: &SqlError| error.message.contains("does not come into the other");
                    let told = |one: &Outcome| matches!(one, Outcome::Aborted(error) if says(error));
                    assert!(outcomes.iter().all(told), "{outcomes:?}");
                    differed += 1;
                }
                _ => {}
            }
        }
        let blind = Case::run(seed, false);
        created += u32::from(blind.money() != 3 * 100 * i64::from(ACCOUNTS));
    }
    assert!(committed > 200 && differed > 100, "{committed} committed, {differed} differed");
    assert!(created > SEEDS as u32 / 2, "without the rule money appears: {created} of {SEEDS}");
}

/// One schema: parts of one block, each as its signers want it. How they have ended.
fn together(
    engine: &mut SchemaEngine,
    chain: &mut Chain,
    parts: &[(&[&str], &str)],
) -> Vec<Result<(), SqlError>> {
    let header = chain.block(vec![]).header;
    chain.execute(vec![]);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_string()).collect();
    let parts = (0..).zip(parts).map(|(index, (who, sql))| {
        let mut transaction = VerifiedTransaction::from(chain.transaction(script(sql)));
        let signers = Signers { who: names(who), members: names(&["anna", "bert"]) };
        transaction.principal = Principal { signers: Some(Arc::new(signers)), ..transaction.principal };
        SchemaPart {
            position: LedgerPosition { height: header.height, index },
            transaction: Arc::new(transaction),
            timestamp_ms: header.timestamp_ms,
            crossing: false,
            between: None,
        }
    });
    let parts: Vec<SchemaPart> = parts.collect();
    let order: Vec<TransactionId> = parts.iter().map(|part| part.transaction.id).collect();
    let (decisions, undecided, version) = (vec![], false, ExecutionVersion::CURRENT);
    let block = SchemaBlock { header, decisions, parts, undecided, version };
    let mut executed: BTreeMap<TransactionId, Outcome> =
        engine.execute(block).expect("it goes on").ended.into_iter().collect();
    let ended = |id: &TransactionId| match executed.remove(id).expect("it has ended") {
        Outcome::Committed(_) => Ok(()),
        Outcome::Aborted(error) => Err(error),
        other => panic!("{other:?}"),
    };
    order.iter().map(ended).collect()
}

fn alone(engine: &mut SchemaEngine, chain: &mut Chain, who: &[&str], sql: &str) -> Result<(), SqlError> {
    together(engine, chain, &[(who, sql)]).remove(0)
}

/// A change that finds no row where it is simulated may not find one at its place that nobody has looked at.
#[test]
fn a_row_that_comes_in_the_same_block_is_nobody_elses() {
    for protocol in concurrency::IDS {
        let charter = types::Charter { protocol: protocol.to_string(), ..charter() };
        let engine = Engine::new(Arc::new(charter.clone()), &memory::Memory).expect("a known protocol");
        let (mut engine, mut chain) = (SchemaEngine::new(engine), Chain::new(charter));
        let coin = "CREATE TABLE coin (id int PRIMARY KEY, stakeholders text[] NOT NULL, holder text)
            WITH (endorsement_policy = 'old.all AND new.all')";
        alone(&mut engine, &mut chain, &["anna"], coin).expect("made");
        let steal = "DO $$ BEGIN UPDATE coin SET stakeholders = '{mallory}' WHERE id = 8; END $$";
        let take = "DO $$ BEGIN DELETE FROM coin WHERE id = 9; END $$";
        let turn = "DO $$ BEGIN UPDATE coin SET stakeholders = ARRAY[holder] WHERE id = 7; END $$";
        alone(&mut engine, &mut chain, &["anna"], "INSERT INTO coin VALUES (7, '{anna}', 'anna')")
            .expect("hers");
        let bert: &[&str] = &["bert"];
        let parts: [(&[&str], &str); 6] = [
            (&["mallory"], steal),
            (bert, "INSERT INTO coin VALUES (8, '{bert}')"),
            (bert, "INSERT INTO coin VALUES (9, '{bert}')"),
            (&["mallory"], take),
            (&["anna"], turn),
            (&["anna"], "DO $$ BEGIN UPDATE coin SET holder = 'mallory' WHERE id = 7; END $$"),
        ];
        together(&mut engine, &mut chain, &parts);
        let check = "DO $$ BEGIN IF (SELECT string_agg(id || array_to_string(stakeholders, ','), ' ' ORDER BY id) FROM coin)
            <> '7anna 8bert 9bert' THEN RAISE EXCEPTION '%', (SELECT array_agg(stakeholders::text) FROM coin); END IF; END $$";
        alone(&mut engine, &mut chain, &["anna"], check)
            .unwrap_or_else(|error| panic!("{protocol}: {error:?}"));
    }
}

/// The joint account of paper 003, section 5.2.3: both owners open and close it, each of them may withdraw and deposit.
#[test]
fn rows_with_stakeholders_change_as_their_policies_say() {
    let engine = Engine::new(Arc::new(charter()), &memory::Memory).expect("a known protocol");
    let (mut engine, mut chain) = (SchemaEngine::new(engine), Chain::new(charter()));
    let mut run = |who: &[&str], sql: &str| alone(&mut engine, &mut chain, who, sql);
    let both = &["anna", "bert"];
    for sql in [
        "CREATE TABLE account (id int PRIMARY KEY, stakeholders text[] NOT NULL, balance bigint NOT NULL)
         WITH (endorsement_policy = 'old.all AND new.all')",
        "CREATE TABLE free (id int PRIMARY KEY, n int)",
        "CREATE PROCEDURE deposit(k int, n bigint) LANGUAGE plpgsql SET entente.endorsement = 'old.any' AS $$
         BEGIN UPDATE account SET balance = balance + n WHERE id = k; INSERT INTO free VALUES (k, 1) ON CONFLICT DO NOTHING; END $$",
        "CREATE PROCEDURE give(k int, who text) LANGUAGE plpgsql SET entente.endorsement = 'old.any AND new.all' AS $$
         BEGIN UPDATE account SET stakeholders = ARRAY[who] WHERE id = k; END $$",
        "CREATE PROCEDURE outer_call(k int) LANGUAGE plpgsql AS $$ BEGIN CALL deposit(k, 1); DELETE FROM account WHERE id = k; END $$",
    ] {
        // The first one makes no assets yet.
        run(both, sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
    let open = "INSERT INTO account VALUES (1, '{anna,bert}', 10)";
    let refused = run(&["anna"], open).expect_err("bert has not signed");
    assert_eq!(refused.state, SqlState::INSUFFICIENT_PRIVILEGE);
    assert!(refused.message.contains("\"account\" needs signatures: new.all"), "{refused:?}");
    assert!(
        refused.detail.as_deref().is_some_and(|detail| detail.contains("Signed by anna.")),
        "{refused:?}"
    );
    run(both, open).expect("both have");
    run(&["anna"], "CALL deposit(1, 5)").expect("one of them is enough");
    assert!(run(&["carl"], "CALL deposit(1, 5)").is_err(), "carl has no stake in it");
    for sql in [
        "UPDATE account SET balance = balance + 1 WHERE id = 1",
        "UPDATE account SET stakeholders = '{anna}' WHERE id = 1",
        "UPDATE account SET id = 2 WHERE id = 1",
        "INSERT INTO account VALUES (1, '{anna}', 0) ON CONFLICT (id) DO UPDATE SET balance = 0",
        "DELETE FROM account",
        "TRUNCATE account",
        "WITH gone AS (DELETE FROM account RETURNING *) SELECT count(*) FROM gone",
        "CALL outer_call(1)",
    ] {
        let refused = run(&["anna"], sql).expect_err(sql);
        assert_eq!(refused.state, SqlState::INSUFFICIENT_PRIVILEGE, "{sql}: {refused:?}");
    }
    run(&["anna"], "UPDATE account SET balance = 7 WHERE id = 99").expect("there is no such row");
    run(&["anna"], "INSERT INTO free VALUES (50, 1)").expect("nobody has a stake in it");
    // The coin: its owner gives it, and the new owner takes it.
    run(&["anna", "carl"], "CALL give(1, 'carl')").expect("anna gives, carl takes");
    assert!(run(both, "CALL give(1, 'anna')").is_err(), "it is carl's now: nobody spends it twice");
    run(&["carl"], "DELETE FROM account WHERE id = 1").expect("his alone");
    // Nobody changes alone what protects the others.
    let refused = run(&["anna"], "ALTER TABLE account SET (endorsement_policy = '')").expect_err("bert");
    assert!(refused.message.contains("needs the signature of all its members: bert"), "{refused:?}");
    assert!(run(&["bert"], "DROP TABLE account; CREATE TABLE account (id int PRIMARY KEY)").is_err());
    run(both, "ALTER TABLE account SET (endorsement_policy = '')").expect("both want it");
}

#[test]
fn mistakes_are_named() {
    let engine = Engine::new(Arc::new(charter()), &memory::Memory).expect("a known protocol");
    let (mut engine, mut chain) = (SchemaEngine::new(engine), Chain::new(charter()));
    let mut run = |sql: &str| alone(&mut engine, &mut chain, &["anna", "bert"], sql);
    run("CREATE TABLE t (id int PRIMARY KEY) WITH (endorsement_policy = 'old.any OR new.all')")
        .expect("made");
    run("CREATE PROCEDURE f(what text) LANGUAGE plpgsql AS $$ BEGIN PERFORM entente.hand_over('x', what); END $$")
        .expect("made");
    run("CREATE TABLE who (names text[])").expect("made");
    run("CREATE TABLE w (id int PRIMARY KEY, stakeholders text[]) WITH (endorsement_policy = 'new.all')")
        .expect("made");
    run("CREATE TABLE v (id int PRIMARY KEY, stakeholders text[]) WITH (endorsement_policy = 'old.al')")
        .expect("made");
    for (sql, expected) in [
        ("INSERT INTO t VALUES (1)", "is about stakeholders"),
        ("CALL f('10')", "in a transaction that has a part in one schema"),
        ("CALL f(NULL)", "found NULL"),
        ("INSERT INTO who VALUES (entente.signers(1))", "entente.signers(integer)"),
        ("INSERT INTO who SELECT ARRAY[entente.hand_over('x', 1)]", "in a statement of a client"),
        ("DO $$ BEGIN PERFORM entente.take_over('x', 1); END $$", "in a statement of a client"),
        ("INSERT INTO w VALUES (1, '{}')", "without stakeholders"),
        ("INSERT INTO who SELECT ARRAY[entente.hand_over('x')]", "entente.hand_over"),
        ("INSERT INTO who VALUES (ARRAY[entente.offer('x') || ''])", "Send it alone"),
        ("INSERT INTO v VALUES (1, '{anna}')", "found old.al"),
    ] {
        let error = run(sql).expect_err(sql);
        let told = format!("{} {}", error.message, error.hint.clone().unwrap_or_default());
        assert!(told.contains(expected), "{sql}: {error:?}");
    }
    run("INSERT INTO who VALUES (entente.signers())").expect("they are known");
}

#[test]
fn a_ledger_of_before_knows_nothing_of_it() {
    let library = |version| {
        let options = sql::CompileOptions { version, ..sql::CompileOptions::default() };
        Arc::new(Library::with_options(Arc::default(), options).expect("an empty catalog"))
    };
    let prepared = |version| sql::prepare(&library(version), "SELECT entente.signers()", &[]).map(drop);
    let before = prepared(ExecutionVersion::V5).expect_err("unknown");
    assert_eq!(before.message, "the qualified function name entente.signers is not supported");
    assert_eq!(prepared(ExecutionVersion::V6), Ok(()));
}
