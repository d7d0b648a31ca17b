//! The ledger as rows: what `entente.blocks` and `entente.transactions` show.

use gateway::{BlockRow, TransactionFilter, TransactionOutcome, TransactionRow};
use ledger::{BlockSummary, Ended, KeptTransaction, Ledger, LedgerError, RedactedTransaction};
use std::ops::RangeInclusive;
use types::{
    Charter, Outcome, PartCommitment, Payload, Receipt, SessionStep, SignedTransaction, Value, format_value,
};

/// Characters of a call that a row shows.
const CALL_CHARACTERS_MAX: usize = 200;

fn organisation(charter: &Charter, position: u16) -> String {
    match charter.organisations.get(usize::from(position)) {
        Some(organisation) => organisation.name.clone(),
        None => format!("organisation {position}"),
    }
}

/// Blocks of a range of heights, the newest first.
pub(crate) fn blocks(
    charter: &Charter,
    ledger: &Ledger,
    heights: RangeInclusive<u64>,
    limit: usize,
) -> Result<Vec<BlockRow>, LedgerError> {
    let summaries = ledger.summaries(heights).rev().take(limit);
    summaries.map(|summary| summary.map(|summary| block_row(charter, summary))).collect()
}

fn block_row(charter: &Charter, summary: BlockSummary) -> BlockRow {
    let BlockSummary { header, header_digest, outcome, counts, block_bytes, .. } = summary;
    BlockRow {
        height: header.height,
        timestamp_ms: header.timestamp_ms,
        transactions: header.transactions,
        committed: counts.committed,
        aborted: counts.aborted + counts.conflicts + counts.rejected,
        proposer: organisation(charter, header.proposer),
        digest: header_digest,
        previous: header.previous,
        receipts_root: outcome.receipts_root,
        state_digest: outcome.state_digest,
        bytes: u64::from(block_bytes),
        certified_height: header.certified_height,
    }
}

/// Transactions that pass the filter, the newest first.
pub(crate) fn transactions(
    charter: &Charter,
    ledger: &Ledger,
    filter: &TransactionFilter,
    limit: usize,
) -> Result<Vec<TransactionRow>, LedgerError> {
    let tip = ledger.tip().map_or(0, |(height, _)| height);
    let heights = filter.heights.clone().unwrap_or(1..=tip);
    let (mut first, mut last) = ((*heights.start()).max(ledger.payloads_from()), (*heights.end()).min(tip));
    if let Some(id) = &filter.id {
        let Some((height, _)) = ledger.locate(id)? else { return Ok(Vec::new()) };
        (first, last) = (first.max(height), last.min(height));
    }
    let mut rows = Vec::new();
    for height in (first..=last).rev() {
        let Some(kept) = ledger.transactions(height)? else { continue };
        rows.extend(rows_of_block(charter, height, &kept, filter).take(limit - rows.len()));
        if rows.len() == limit {
            break;
        }
    }
    Ok(rows)
}

fn rows_of_block<'a>(
    charter: &'a Charter,
    height: u64,
    kept: &'a [KeptTransaction],
    filter: &'a TransactionFilter,
) -> impl Iterator<Item = TransactionRow> + 'a {
    kept.iter().rev().filter(|kept| filter.id.is_none_or(|id| kept.id() == id)).map(move |kept| match kept {
        KeptTransaction::Whole(bytes, receipt) => transaction_row(charter, bytes, receipt),
        KeptTransaction::Redacted(redacted) => redacted_row(height, redacted),
    })
}

/// What is left of a redacted transaction.
fn redacted_row(height: u64, redacted: &RedactedTransaction) -> TransactionRow {
    TransactionRow {
        height,
        index: redacted.index,
        id: redacted.transaction,
        organisation: String::new(),
        client: String::new(),
        request: types::RequestId::default(),
        call: format!("redacted by proposal {}", redacted.proposal),
        outcome: match redacted.ended {
            Ended::Committed => TransactionOutcome::Committed,
            Ended::Aborted | Ended::Conflict => TransactionOutcome::Aborted,
            Ended::Rejected | Ended::Duplicate => TransactionOutcome::Rejected,
        },
        sqlstate: None,
        message: None,
    }
}

fn transaction_row(charter: &Charter, bytes: &[u8], receipt: &Receipt) -> TransactionRow {
    let (outcome, sqlstate, message) = match &receipt.outcome {
        Outcome::Committed(_) => (TransactionOutcome::Committed, None, None),
        Outcome::Aborted(error) => {
            (TransactionOutcome::Aborted, Some(error.state.to_string()), Some(error.message.clone()))
        }
        Outcome::Conflict => (TransactionOutcome::Aborted, Some("40001".to_string()), None),
        Outcome::Rejected(reason) => {
            let error = reason.to_error();
            (TransactionOutcome::Rejected, Some(error.state.to_string()), Some(error.message))
        }
    };
    let row = TransactionRow {
        height: receipt.height,
        index: receipt.index,
        id: receipt.transaction,
        organisation: String::new(),
        client: String::new(),
        request: types::RequestId::default(),
        call: String::new(),
        outcome,
        sqlstate,
        message,
    };
    match SignedTransaction::from_bytes(bytes) {
        Ok(signed) => TransactionRow {
            organisation: organisation(charter, signed.credential.organisation),
            client: signed.transaction.client.to_string(),
            request: signed.transaction.request,
            call: call_text(&signed.transaction.payload),
            ..row
        },
        Err(_) => row,
    }
}

/// A payload for people: `send_payment(1, 2, 300)`, the SQL text, or what was loaded.
fn call_text(payload: &Payload) -> String {
    let text = match payload.call() {
        Payload::Call { procedure, arguments } => {
            let arguments: Vec<String> = arguments.iter().map(literal).collect();
            format!("{procedure}({})", arguments.join(", "))
        }
        Payload::Script { sql, .. } => sql.split_whitespace().collect::<Vec<_>>().join(" "),
        Payload::Insert { table, rows, .. } => format!("COPY {table} ({} rows)", rows.len()),
        Payload::Parts { parts } => {
            let part = |part: &PartCommitment| format!("{} {}", part.schema, part.commitment.short());
            format!("PARTS {}", parts.iter().map(part).collect::<Vec<_>>().join(", "))
        }
        Payload::Agreed(_) => String::new(),
        Payload::SchemaOutcomes { certificates } | Payload::MovingOutcomes { certificates } => {
            let outcomes = certificates.iter().map(|one| (one.statement.schema, one.statement.height));
            let outcome = |(schema, height)| format!("schema {schema} at height {height}");
            format!("SCHEMA OUTCOMES {}", outcomes.map(outcome).collect::<Vec<_>>().join(", "))
        }
        Payload::HeldParts { held } => {
            let transactions: usize = held.iter().map(|one| one.transactions.len()).sum();
            format!("HELD PARTS of {transactions} transactions")
        }
        Payload::Session { steps, .. } => {
            let steps = steps.iter().map(step_text);
            let steps = std::iter::once("BEGIN".to_string()).chain(steps).chain(["COMMIT".to_string()]);
            steps.collect::<Vec<String>>().join("; ")
        }
    };
    match text.char_indices().nth(CALL_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// A step of a transaction block for people.
fn step_text(step: &SessionStep) -> String {
    match step {
        SessionStep::Run { sql, .. } | SessionStep::RunGiven { sql, .. } => {
            sql.split_whitespace().collect::<Vec<_>>().join(" ")
        }
        SessionStep::Insert { table, rows, .. } => format!("COPY {table} ({} rows)", rows.len()),
        SessionStep::Savepoint(name) => format!("SAVEPOINT {name}"),
        SessionStep::RollbackTo(name) => format!("ROLLBACK TO {name}"),
        SessionStep::Release(name) => format!("RELEASE {name}"),
    }
}

fn literal(value: &Value) -> String {
    match (value, format_value(value)) {
        (_, None) => "NULL".to_string(),
        (
            Value::Boolean(_)
            | Value::SmallInt(_)
            | Value::Integer(_)
            | Value::BigInt(_)
            | Value::Numeric(_)
            | Value::Real(_)
            | Value::Double(_),
            Some(text),
        ) => text,
        (_, Some(text)) => format!("'{}'", text.replace('\'', "''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::PackedRows;

    #[test]
    fn calls_read_like_sql() {
        let arguments = vec![Value::BigInt(1), Value::text("it's"), Value::Null];
        let call = Payload::Call { procedure: "p".into(), arguments };
        assert_eq!(call_text(&call), "p(1, 'it''s', NULL)");
        let script = Payload::Script { sql: "INSERT  INTO t\n VALUES (1)".into(), parameters: vec![] };
        assert_eq!(call_text(&script), "INSERT INTO t VALUES (1)");
        let steps = vec![
            SessionStep::Savepoint("a".into()),
            SessionStep::Run { sql: "DELETE\n FROM t".into(), parameters: vec![] },
            SessionStep::RollbackTo("a".into()),
            SessionStep::Insert {
                table: "t".into(),
                columns: vec![],
                rows: PackedRows::pack([vec![], vec![]]).expect("rows"),
            },
        ];
        let session = Payload::Session { steps, now_ms: 0, results: crypto::Digest::ZERO };
        assert_eq!(
            call_text(&session),
            "BEGIN; SAVEPOINT a; DELETE FROM t; ROLLBACK TO a; COPY t (2 rows); COMMIT"
        );
        let long = Payload::Script { sql: "ü".repeat(1_000), parameters: vec![] };
        assert_eq!(call_text(&long).chars().count(), CALL_CHARACTERS_MAX + 1);
    }
}
