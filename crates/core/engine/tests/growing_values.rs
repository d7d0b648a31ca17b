//! How long values may be where they grow at their place in the order.

mod support;

use support::{Chain, charter};
use types::{ExecutionVersion, Outcome, Payload};

fn of(version: ExecutionVersion) -> Chain {
    let mut charter = charter();
    charter.found_with_version(version.number());
    Chain::new(charter)
}

/// Each of them fits on the state that all of them are simulated on.
#[test]
fn a_value_that_grows_at_its_place_keeps_the_limit_of_its_version() {
    for (version, committed) in [(ExecutionVersion::V13, 2), (ExecutionVersion::V14, 4)] {
        let mut chain = of(version);
        for sql in [
            "CREATE TABLE t (id integer PRIMARY KEY, said text)",
            "INSERT INTO t VALUES (1, repeat('a', 40000))",
            "CREATE PROCEDURE grow() LANGUAGE plpgsql AS $$ BEGIN UPDATE t SET said = said || repeat('b', 40000) WHERE id = 1; END $$",
        ] {
            let outcome = chain.script(sql);
            assert!(matches!(outcome, Outcome::Committed(_)), "{sql}: {outcome:?}");
        }
        let call = || Payload::Call { procedure: "grow".into(), arguments: vec![] };
        let block = chain.execute((0..4).map(|_| call()).collect());
        let found = block.receipts.iter().filter(|one| matches!(one.outcome, Outcome::Committed(_))).count();
        assert_eq!(found, committed, "{version:?}");
        for receipt in &block.receipts[committed..] {
            let Outcome::Aborted(error) = &receipt.outcome else { panic!("{:?}", receipt.outcome) };
            assert_eq!(error.state.to_string(), "54000", "{error:?}");
        }
        let bytes = 40_000 * (1 + committed);
        assert_eq!(chain.select("SELECT length(said) FROM t"), [[bytes.to_string()]], "{version:?}");
    }
}
