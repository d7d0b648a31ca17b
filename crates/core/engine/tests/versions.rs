//! Rules of execution that change at a height: which blocks are executed with which, also behind a checkpoint, and what an
//! older program does.

mod support;

use engine::{Engine, EngineError};
use memory::Memory;
use state::{read_checkpoint, write_checkpoint};
use std::sync::Arc;
use support::{Chain, at, charter, script};
use types::{Charter, ExecutionModel, ExecutionVersion, KnownVersions, Outcome, SqlState};

const SWITCH: &str = "SELECT entente.set_charter('execution_version', '2')";

/// A ledger of version 1 whose amendments hold 12 blocks after they are decided.
fn first() -> Charter {
    Charter { execution_version: 1, outcome_lag_blocks: 2, ..charter() }
}

/// Executes blocks up to the one of this height.
fn go_to(chain: &mut Chain, height: u64) {
    while chain.engine.height() < height {
        let id = chain.engine.height();
        chain.execute(vec![script(&format!("INSERT INTO t VALUES ({id})"))]);
    }
}

#[test]
fn blocks_are_executed_with_the_version_of_their_height() {
    let charters = [
        first(),
        Charter { protocol: "xox".into(), execution: ExecutionModel::ExecuteOrderValidate, ..first() },
    ];
    for charter in charters {
        let mut chain = Chain::new(charter);
        assert_eq!(chain.engine.execution_version(), ExecutionVersion::V1);
        chain.script("CREATE TABLE t (id bigint PRIMARY KEY)");
        chain.script(
            "CREATE FUNCTION next(n bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN n + 1; END $$",
        );
        let outcome = chain.script(SWITCH);
        assert!(matches!(outcome, Outcome::Committed(_)), "{outcome:?}");
        let amended = chain.engine.amended_charter().expect("decided");
        let effective = amended.effective_height;
        assert_eq!((amended.charter.execution_version, effective), (2, 3 + 12));
        go_to(&mut chain, effective - 1);
        assert_eq!(chain.engine.execution_version(), ExecutionVersion::V1);
        assert_eq!(chain.engine.library().version(), ExecutionVersion::V1);

        // A checkpoint in front of the switch leads to the same.
        let (header, snapshot) = (chain.engine.checkpoint_header(), chain.engine.state().snapshot());
        let mut file = Vec::new();
        let live = chain.engine.live().content();
        write_checkpoint(&header, snapshot.as_ref(), &live, &mut file).expect("written");
        let checkpoint = read_checkpoint(&mut file.as_slice(), &Memory).expect("read");
        let state = checkpoint.state;
        let mut other = Chain {
            engine: Engine::at(chain.charter.clone(), at(&header), state, checkpoint.live)
                .expect("it goes on"),
            charter: chain.charter.clone(),
            requests: chain.requests,
        };
        for chain in [&mut chain, &mut other] {
            go_to(chain, effective + 1);
            assert_eq!(chain.engine.execution_version(), ExecutionVersion::V2);
            assert_eq!(chain.engine.library().version(), ExecutionVersion::V2);
            assert_eq!(chain.select("SELECT next(41)"), [["42"]]);
            // Also after a change of the schema.
            chain.script("CREATE TABLE later (id bigint PRIMARY KEY)");
            assert_eq!(chain.engine.library().version(), ExecutionVersion::V2);
        }
        assert_eq!(chain.engine.checkpoint_header(), other.engine.checkpoint_header());
    }
}

#[test]
fn an_older_program_stops_in_front_of_the_first_block_that_it_cannot_execute() {
    let older = KnownVersions::up_to(ExecutionVersion::V1);
    let charter = Arc::new(first());
    let engine = Engine::founded(charter.clone(), &Memory, older).expect("it knows version 1");
    let mut chain = Chain { engine, charter, requests: 0 };
    chain.script("CREATE TABLE t (id bigint PRIMARY KEY)");
    // What it decides is what newer ones decide.
    let outcome = chain.script(SWITCH);
    assert!(matches!(outcome, Outcome::Committed(_)), "{outcome:?}");
    let effective = chain.engine.amended_charter().expect("decided").effective_height;
    go_to(&mut chain, effective - 1);
    let before = chain.engine.checkpoint_header();
    for _ in 0..2 {
        let block = chain.block(Vec::new());
        let Err(EngineError::UnknownVersion(unknown)) = chain.engine.execute(&block) else {
            panic!("it does not know version 2")
        };
        assert_eq!((unknown.needed, unknown.first, unknown.newest), (2, effective, ExecutionVersion::V1));
        assert_eq!(chain.engine.checkpoint_header(), before, "nothing has happened");
    }
    let founded = Arc::new(Charter { execution_version: 2, ..first() });
    assert!(matches!(Engine::founded(founded, &Memory, older), Err(EngineError::UnknownVersion(_))));
}

#[test]
fn a_ledger_goes_over_to_the_next_version_and_to_no_other() {
    let mut chain = Chain::new(first());
    for value in ["1", "3", "0", "two", ""] {
        let outcome = chain.script(&format!("SELECT entente.set_charter('execution_version', '{value}')"));
        let Outcome::Aborted(error) = outcome else { panic!("{value}: {outcome:?}") };
        assert_eq!(error.state, SqlState::INVALID_PARAMETER_VALUE);
        assert!(error.message.contains("must be 2, the one after the present one"), "{}", error.message);
    }
    // What version 1 says of parameters that there are not is in receipts.
    let Outcome::Aborted(error) = chain.script("SELECT entente.set_charter('nonsense', '1')") else {
        panic!("there is no such parameter")
    };
    assert!(error.message.ends_with("meter.block_steps, found `nonsense`"), "{}", error.message);
}

/// A foreign key that is a whole primary key, WITH that changes rows, IN over mixed types, and the precedence of IS DISTINCT
/// FROM: what each comes to, and what is in the table of answers then.
fn ask(chain: &mut Chain, number: u32) -> ([String; 4], Vec<String>) {
    let statements = [
        format!("DELETE FROM parent WHERE id = {number}"),
        format!("WITH a AS (INSERT INTO answers VALUES ({number}, 'with')) SELECT 1"),
        format!("INSERT INTO answers SELECT {number}, 'in' FROM parent WHERE id IN (SELECT n FROM exact)"),
        format!("INSERT INTO answers SELECT {number}, 'is' WHERE true IS DISTINCT FROM false AND false"),
    ];
    let outcomes = statements.map(|sql| match chain.script(&sql) {
        Outcome::Aborted(error) => error.state.to_string(),
        _ => "committed".to_string(),
    });
    let answers =
        chain.select(&format!("SELECT answer FROM answers WHERE number = {number} ORDER BY answer"));
    (outcomes, answers.concat())
}

#[test]
fn wrong_answers_of_version_1_end_where_the_next_one_holds() {
    let mut chain = Chain::new(first());
    chain.script("CREATE TABLE t (id bigint PRIMARY KEY)");
    chain.script(
        "CREATE TABLE parent (id integer PRIMARY KEY); CREATE TABLE child (id integer PRIMARY KEY REFERENCES parent); \
         CREATE TABLE exact (n numeric); CREATE TABLE answers (number integer, answer text); \
         INSERT INTO parent VALUES (1), (2), (9); INSERT INTO child VALUES (9); INSERT INTO exact VALUES (9.00)",
    );
    let wrong = (["XX000", "committed", "committed", "committed"].map(String::from), vec!["is".to_string()]);
    assert_eq!(ask(&mut chain, 1), wrong);
    let outcome = chain.script(SWITCH);
    assert!(matches!(outcome, Outcome::Committed(_)), "{outcome:?}");
    let effective = chain.engine.amended_charter().expect("decided").effective_height;
    assert_eq!(ask(&mut chain, 2), wrong, "it is decided and does not hold yet");
    go_to(&mut chain, effective - 1);
    // What the wrong answers have left stays beside the right ones.
    let right = ["in", "is", "with"].map(String::from).to_vec();
    for number in [1, 2] {
        assert_eq!(ask(&mut chain, number), (["committed"; 4].map(String::from), right.clone()));
    }
    assert_eq!(ask(&mut chain, 9).0[0], "23503", "it is referenced");
    let mut new = Chain::new(charter());
    assert_eq!(new.engine.execution_version(), ExecutionVersion::CURRENT);
    new.script(
        "CREATE TABLE parent (id integer PRIMARY KEY); CREATE TABLE child (id integer PRIMARY KEY REFERENCES parent); \
         INSERT INTO parent VALUES (1)",
    );
    assert!(matches!(new.script("DELETE FROM parent"), Outcome::Committed(_)));
}
