//! Random ledgers of Smallbank, with schema changes and transactions that come twice.

use super::{Chain, script};
use engine::{Engine, VerifiedBlock};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use state::CheckpointProgress;
use types::{Charter, Payload, Receipt};
use workloads::Workload;
use workloads::smallbank::Smallbank;

const CUSTOMERS: u64 = 30;

/// What an engine says of a block, and how far it is from the last checkpoint behind it.
pub type Said = (Vec<Receipt>, crypto::Digest, CheckpointProgress);

/// Blocks of a random ledger, and what an engine says of them that foresees nothing.
pub fn random_ledger(charter: &Charter, seed: u64) -> (Vec<VerifiedBlock>, Vec<Said>) {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut chain = Chain::new(charter.clone());
    chain.engine =
        Engine::new(chain.charter.clone(), &memory::Memory).expect("a known protocol").noting_row_history();
    let smallbank = Smallbank::new(CUSTOMERS, 0.9).expect("valid");
    let mut blocks = Vec::new();
    let mut said = Vec::new();
    let mut execute = |chain: &mut Chain, payloads: Vec<Payload>, again: Option<u64>| {
        let mut transactions: Vec<_> =
            payloads.into_iter().map(|payload| chain.transaction(payload)).collect();
        if let (Some(request), Some(first)) = (again, transactions.first().cloned()) {
            let expires_at = first.transaction.expires_at;
            transactions.push(chain.transaction_as(request, expires_at, first.transaction.payload));
        }
        let block = chain.block(transactions);
        let executed = chain.engine.execute(&block).expect("the next height");
        said.push((executed.receipts, executed.outcome.digest(), chain.engine.checkpoint_progress()));
        blocks.push(block);
    };
    for statement in smallbank.set_up() {
        execute(&mut chain, vec![script(statement)], None);
    }
    for rows in smallbank.portions() {
        let columns = rows.columns.iter().map(|column| column.to_string()).collect();
        execute(
            &mut chain,
            vec![Payload::Insert { table: rows.table.to_string(), columns, rows: rows.rows }],
            None,
        );
    }
    for number in 0..30 {
        let mut payloads: Vec<Payload> = (0..rng.random_range(0..45))
            .map(|position| smallbank.call(number * 100 + position, &mut rng).into_payload())
            .collect();
        match rng.random_range(0..12) {
            0 => payloads.insert(payloads.len() / 2, script(&format!("CREATE TABLE t{number} (id int)"))),
            1 => payloads.push(script("CHECKPOINT")),
            _ => {}
        }
        // Somebody sends again what stands in a block before, or in this one.
        let again = rng.random_bool(0.5).then(|| rng.random_range(1..=chain.requests));
        execute(&mut chain, payloads, again);
    }
    (blocks, said)
}
