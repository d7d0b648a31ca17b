//! Blocks, transactions and receipts of a long past.

use super::*;

pub(super) fn receipt(transaction: TransactionId) -> Receipt {
    let (columns, rows) = every_type();
    let result = StatementResult { tag: "SELECT 2".into(), columns, rows, notices: Vec::new() };
    Receipt { transaction, height: 5, index: 1, outcome: Outcome::Committed(vec![result]) }
}

pub(super) fn block(height: u64) -> BlockRow {
    BlockRow {
        height,
        timestamp_ms: 1_700_000_000_000 + height,
        transactions: 3,
        committed: 2,
        aborted: 1,
        proposer: format!("org{}", height % 4),
        digest: sha256(&[b"block", &height.to_le_bytes()]),
        previous: sha256(&[b"block", &(height - 1).to_le_bytes()]),
        receipts_root: Digest::ZERO,
        state_digest: Digest::ZERO,
        bytes: 1_000,
        certified_height: height.saturating_sub(1),
    }
}

pub fn transaction_id(height: u64, index: u32) -> TransactionId {
    TransactionId(sha256(&[&height.to_le_bytes(), &index.to_le_bytes()]))
}

pub(super) fn transaction(height: u64, index: u32) -> TransactionRow {
    let aborted = index == 2;
    TransactionRow {
        height,
        index,
        id: transaction_id(height, index),
        organisation: format!("org{}", index),
        client: "c".repeat(64),
        request: RequestId([7; 16]),
        call: format!("send_payment({height}, {index}, 300)"),
        outcome: if aborted { TransactionOutcome::Aborted } else { TransactionOutcome::Committed },
        sqlstate: aborted.then(|| "P0001".to_string()),
        message: aborted.then(|| "not enough money".to_string()),
    }
}
