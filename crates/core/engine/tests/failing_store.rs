//! A store that fails in mid-block: no transaction gets an outcome from it, whatever its contract handles, the engine says
//! which file and why, and one that starts again comes to what the others came to.

mod support;

use engine::{Engine, EngineError, ExecutedBlock, VerifiedBlock};
use memory::Memory;
use state::conformance::{CAUSE, FILE, FailingStores, Failures, Operation};
use state::{LiveRequests, Stores, read_checkpoint, write_checkpoint};
use std::sync::Arc;
use support::at;
use support::endorsing::{Network, call};
use support::{Chain, charter, script};
use types::{Charter, Outcome, Payload};

/// What the block reads: rows by key, scans, entries of indexes both ways, taken keys, references, rows of an old shape.
const SET_UP: &[&str] = &[
    "CREATE TABLE account (id bigint PRIMARY KEY, owner text UNIQUE, balance bigint NOT NULL);
     CREATE INDEX by_balance ON account (balance);
     CREATE TABLE log (id bigint PRIMARY KEY, account bigint REFERENCES account, what text)",
    "CREATE PROCEDURE pay(a bigint, b bigint, x bigint) LANGUAGE plpgsql AS $$
     DECLARE had bigint;
     BEGIN
         SELECT balance INTO had FROM account WHERE id = a;
         IF had < x THEN RAISE EXCEPTION 'poor'; END IF;
         UPDATE account SET balance = balance - x WHERE id = a;
         UPDATE account SET balance = balance + x WHERE id = b;
     END $$",
    "CREATE PROCEDURE stubborn(n bigint, a bigint) LANGUAGE plpgsql AS $$
     BEGIN
         BEGIN
             UPDATE account SET owner = owner || 'x' WHERE id = a AND balance > 10;
             INSERT INTO log SELECT n, id, 'rich' FROM account WHERE balance >= 100 ORDER BY balance DESC LIMIT 1;
         EXCEPTION
             WHEN io_error THEN INSERT INTO log VALUES (n, a, 'the disk');
             WHEN OTHERS THEN INSERT INTO log VALUES (n, a, SQLERRM);
         END;
     EXCEPTION WHEN OTHERS THEN NULL;
     END $$",
    "INSERT INTO account SELECT number, 'owner ' || number, 10 * number FROM generate_series(0, 19) AS number",
];

fn payloads() -> Vec<Payload> {
    let mut payloads: Vec<Payload> =
        (0..16).map(|number| call("pay", &[number, (number * 7 + 1) % 20, 15])).collect();
    payloads.extend((0..6).map(|number| call("stubborn", &[number, number + 3])));
    payloads.push(script("SELECT count(*), sum(balance) FROM account WHERE balance BETWEEN 20 AND 120"));
    payloads.push(script("INSERT INTO account VALUES (30, 'owner 3', 5)"));
    payloads.push(script("DELETE FROM account WHERE id = 19"));
    payloads
        .push(script("ALTER TABLE account ADD COLUMN since bigint; CREATE UNIQUE INDEX ON log (what, id)"));
    payloads.extend((10..14).map(|number| call("stubborn", &[number, number])));
    payloads
}

/// A ledger behind its set-up, as a checkpoint has it, and its next block.
struct Prepared {
    charter: Arc<Charter>,
    checkpoint: Vec<u8>,
    block: VerifiedBlock,
}

impl Prepared {
    fn new(protocol: &str) -> Prepared {
        let mut charter = charter();
        charter.protocol = protocol.to_string();
        charter.block.batch_transactions = 8;
        let mut chain = Chain::new(charter);
        for sql in SET_UP {
            let outcome = chain.script(sql);
            assert!(matches!(outcome, Outcome::Committed(_)), "{sql}: {outcome:?}");
        }
        let (header, mut checkpoint) = (chain.engine.checkpoint_header(), Vec::new());
        let (snapshot, live) = (chain.engine.state().snapshot(), chain.engine.live().content());
        write_checkpoint(&header, snapshot.as_ref(), &live, &mut checkpoint).expect("memory");
        let transactions = payloads().into_iter().map(|payload| chain.transaction(payload)).collect();
        let block = chain.block(transactions);
        Prepared { charter: chain.charter, checkpoint, block }
    }

    /// The same where transactions are executed before they are ordered: payments that were endorsed on one state, of which some
    /// hinder others, and an insertion whose key is taken when it comes.
    fn endorsed(protocol: &str) -> Prepared {
        let mut network = Network::new(protocol, |charter| charter.block.batch_transactions = 8);
        let open = |id| call("open", &[id, 100]);
        let opened = (5..=40).map(open).map(|payload| network.endorsed(payload, &[0, 1])).collect();
        network.order(opened);
        let checkpoint = network.checkpoint();
        let pay = |number: i64| call("pay", &[number, number * 7 % 40 + 1, 15]);
        let payloads = (1..=24).map(pay).chain([open(50), open(50)]);
        let transactions: Vec<_> = payloads.map(|payload| network.endorsed(payload, &[0, 1])).collect();
        let (block, _) = network.block(&transactions);
        Prepared { charter: network.charter, checkpoint, block }
    }

    /// Ledgers under every protocol.
    fn all() -> impl Iterator<Item = (&'static str, Prepared)> {
        let ordered = concurrency::IDS.into_iter().map(|protocol| (protocol, Prepared::new(protocol)));
        let validated = concurrency::VALIDATION_IDS.into_iter();
        ordered.chain(validated.map(|protocol| (protocol, Prepared::endorsed(protocol))))
    }

    fn engine(&self, stores: &dyn Stores) -> Engine {
        let read = read_checkpoint(self.checkpoint.as_slice(), stores).expect("what was written");
        let engine = Engine::at(self.charter.clone(), at(&read.header), read.state, read.live);
        engine.expect("a good checkpoint").noting_row_history()
    }

    /// Executes the block on stores that fail so, and starts again on good ones.
    fn fails(&self, operation: Operation, times: u64, expected: &ExecutedBlock) -> bool {
        let failures = Arc::new(Failures::default());
        let mut engine = self.engine(&FailingStores::new(Arc::new(Memory), failures.clone()));
        let height = engine.height();
        failures.fail(operation, times);
        let executed = engine.execute(&self.block);
        if !failures.have_struck() {
            assert_eq!(executed.expect("nothing has failed").outcome, expected.outcome);
            return false;
        }
        let error = executed.err().expect("no outcome");
        assert!(matches!(error, EngineError::Store(_)), "{error}");
        let message = error.to_string();
        assert!(message.contains(FILE) && message.contains(CAUSE), "{message}");
        // It stays so, even if the disk is well again: what the state is by now nobody knows.
        failures.mend();
        assert_eq!(engine.execute(&self.block).err().map(|error| error.to_string()), Some(message));
        assert_eq!(engine.height(), height);
        let again = self.engine(&Memory).execute(&self.block).expect("memory does not fail");
        assert_eq!((again.outcome, again.receipts), (expected.outcome.clone(), expected.receipts.clone()));
        true
    }
}

#[test]
fn a_row_that_cannot_be_read_ends_the_block_and_no_transaction() {
    for (protocol, prepared) in Prepared::all() {
        let failures = Arc::new(Failures::default());
        let mut engine = prepared.engine(&FailingStores::new(Arc::new(Memory), failures.clone()));
        let before = failures.reads();
        let expected = engine.execute(&prepared.block).expect("nothing fails yet");
        let committed = expected.receipts.iter().filter(|one| matches!(one.outcome, Outcome::Committed(_)));
        let committed = committed.count();
        // Who validates gives up more, and reads no more than the rows that it changes.
        let validates = concurrency::VALIDATION_IDS.contains(&protocol);
        let (commits, least) = if validates { (7, 20) } else { (10, 100) };
        assert!(committed > commits || protocol == "graph", "{protocol}: {committed} transactions commit");
        let reads = failures.reads() - before;
        assert!(reads > least, "{protocol}: {reads} reads");
        let tried: Vec<u64> = (0..reads).step_by((reads as usize / 60).max(1)).collect();
        let struck = tried.iter().filter(|times| prepared.fails(Operation::Read, **times, &expected)).count();
        assert!(3 * struck > 2 * tried.len(), "{protocol}: {struck} failures of {}", tried.len());
        assert!(struck > 40 || validates, "{protocol}: {struck} failures of {reads} reads");
    }
}

#[test]
fn a_batch_that_cannot_be_written_ends_the_block() {
    for (protocol, prepared) in Prepared::all() {
        let expected = prepared.engine(&Memory).execute(&prepared.block).expect("memory does not fail");
        let struck = (0..8).filter(|times| prepared.fails(Operation::Apply, *times, &expected)).count();
        assert!(struck >= 3, "{protocol}: {struck} batches");
    }
}

#[test]
fn an_engine_does_not_begin_on_a_store_that_fails() {
    let failures = Arc::new(Failures::default());
    let stores = FailingStores::new(Arc::new(Memory), failures.clone());
    failures.fail(Operation::Begin, 0);
    let error = Engine::new(Arc::new(charter()), &stores).err().expect("nothing to begin on").to_string();
    assert!(error.contains(FILE) && error.contains(CAUSE), "{error}");
    failures.mend();
    let engine = Engine::new(Arc::new(charter()), &stores).expect("it is well again");
    assert!(engine.live().content().iter().eq(LiveRequests::new().content().iter()));
}
