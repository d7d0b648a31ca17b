//! A ledger without network: blocks of payloads, signed by nobody, executed one after the other.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod constraints;
pub mod endorsing;
pub mod histories;
pub mod random;
pub mod without_indexes;

use crypto::{Digest, SecretKey, Signature};
use engine::{Engine, ExecutedBlock, VerifiedBlock};
use state::{CheckpointHeader, CheckpointProgress};
use std::collections::BTreeMap;
use std::sync::Arc;
use types::{
    BlockHeader, Charter, Credential, Organisation, Outcome, Payload, RequestId, SignedTransaction,
    Transaction, Value,
};

/// Where an engine goes on from a checkpoint.
pub fn at(header: &CheckpointHeader) -> (&CheckpointHeader, CheckpointProgress) {
    (header, CheckpointProgress::at(header.height))
}

/// A charter of one organisation; tests change what they are about.
pub fn charter() -> Charter {
    let mut charter = Charter::with_defaults("test", 1);
    charter.governance = "any".to_string();
    charter.ordering = "solo".to_string();
    // So that it can be one of any version.
    charter.block.transaction_bytes_max = types::limits::TRANSACTION_BYTES_BEFORE;
    charter.block.batch_transactions = 50;
    charter.organisations.push(Organisation {
        name: "one".to_string(),
        root_key: SecretKey::from_bytes([1; 32]).public_key(),
        node_key: SecretKey::from_bytes([2; 32]).public_key(),
        address: "127.0.0.1:1".to_string(),
        gateway: String::new(),
        removed: false,
        node_key_expires: None,
    });
    charter
}

/// An engine and the chain of headers that feeds it.
pub struct Chain {
    pub engine: Engine,
    pub charter: Arc<Charter>,
    pub requests: u64,
}

impl Chain {
    pub fn new(charter: Charter) -> Chain {
        let charter = Arc::new(charter);
        Chain {
            engine: Engine::new(charter.clone(), &memory::Memory).expect("a known protocol"),
            charter,
            requests: 0,
        }
    }

    /// A transaction under a request that nobody has used.
    pub fn transaction(&mut self, payload: Payload) -> SignedTransaction {
        self.requests += 1;
        self.transaction_as(self.requests, self.engine.height() + 10, payload)
    }

    pub fn transaction_as(&self, request: u64, expires_at: u64, payload: Payload) -> SignedTransaction {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&request.to_be_bytes());
        let transaction = Transaction {
            ledger: self.charter.ledger(),
            client: SecretKey::from_bytes([3; 32]).public_key(),
            request: RequestId(bytes),
            expires_at,
            role: String::new(),
            payload,
        };
        let credential = Credential { organisation: 0, signature: Signature([0; 64]) };
        SignedTransaction { transaction, endorsed: None, credential, signature: Signature([0; 64]) }
    }

    /// The next block with these transactions.
    pub fn block(&self, transactions: Vec<SignedTransaction>) -> VerifiedBlock {
        let header = BlockHeader {
            ledger: self.charter.ledger(),
            height: self.engine.height() + 1,
            timestamp_ms: 1_800_000_000_000 + self.engine.height(),
            previous: Digest::ZERO,
            transactions_root: Digest::ZERO,
            transactions: transactions.len() as u32,
            proposer: 0,
            certified_height: 0,
            attested: Digest::ZERO,
            charters: self.charter.ledger(),
        };
        let transactions = transactions.into_iter().map(|signed| Ok(Arc::new(signed.into()))).collect();
        VerifiedBlock { digest: header.digest(), header, transactions }
    }

    pub fn execute(&mut self, payloads: Vec<Payload>) -> ExecutedBlock {
        let transactions = payloads.into_iter().map(|payload| self.transaction(payload)).collect();
        let block = self.block(transactions);
        self.engine.execute(&block).expect("the next height")
    }

    /// Executes one script in a block of its own.
    pub fn script(&mut self, sql: &str) -> Outcome {
        self.execute(vec![script(sql)]).receipts.remove(0).outcome
    }

    /// The rows of all tables, as text. The catalog has the charter, so digests differ where charters do.
    pub fn rows(&self) -> BTreeMap<String, Vec<Vec<String>>> {
        let catalog = self.engine.state().catalog();
        let rows = |table: &types::Table| self.select(&format!("SELECT * FROM {}", table.name));
        catalog.tables.values().map(|table| (table.name.clone(), rows(table))).collect()
    }

    /// The rows of a SELECT on the newest state, as text.
    pub fn select(&self, sql: &str) -> Vec<Vec<String>> {
        let prepared = sql::prepare(self.engine.library(), sql, &[]).expect("a valid SELECT");
        let snapshot = self.engine.state().snapshot();
        let results = prepared.query(snapshot.as_ref(), &[], u64::MAX, 0).expect("a SELECT that succeeds");
        let text = |value: &Value| types::format_value(value).unwrap_or_else(|| "NULL".to_string());
        let rows = results.into_iter().next_back().map(|result| result.rows).unwrap_or_default();
        rows.iter().map(|row| row.iter().map(text).collect()).collect()
    }
}

pub fn script(sql: &str) -> Payload {
    Payload::Script { sql: sql.to_string(), parameters: vec![] }
}
