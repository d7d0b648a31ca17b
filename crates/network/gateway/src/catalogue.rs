//! The catalogue of a node: the schema that a session knows, and the ledger's history, as relations.

use crate::{BlockRow, Database, NodeRow, OwnDatabaseStatus, TransactionFilter, TransactionRow};
use catalogue::{Catalogue, History, Query, Reader, SessionFacts};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};
use types::{Catalog, DataType, Row, SqlError, SqlState, StatementResult, TransactionId, Value};

/// Microseconds from 1970-01-01 to 2000-01-01, where PostgreSQL's time starts.
const EPOCH_MICROSECONDS: i64 = 946_684_800_000_000;

/// Answers queries about the catalogue of a database.
pub(crate) struct NodeCatalogue {
    database: Arc<dyn Database>,
    catalogue: Catalogue,
}

impl NodeCatalogue {
    /// The catalogue of this database.
    pub(crate) fn new(database: Arc<dyn Database>) -> NodeCatalogue {
        NodeCatalogue { database, catalogue: Catalogue::default() }
    }

    /// Binds a query. `types` are the parameters' types as far as the client gave them; `known`: the catalog that the session's
    /// next statement knows.
    pub(crate) fn prepare(
        &self,
        known: &Catalog,
        sql: &str,
        facts: &SessionFacts,
        types: &[DataType],
    ) -> Result<Query, SqlError> {
        self.catalogue.prepare(known, sql, facts, types)
    }

    /// Binds and runs a query. It ends soon after `interrupt` is set.
    pub(crate) fn run(
        &self,
        known: &Arc<Catalog>,
        sql: &str,
        facts: &SessionFacts,
        types: &[DataType],
        parameters: &[Value],
        interrupt: &Arc<AtomicBool>,
    ) -> Result<StatementResult, SqlError> {
        let query = self.catalogue.prepare(known, sql, facts, types)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let reader = Reader {
            timestamp_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            interrupt: Arc::clone(interrupt),
            memory: Some(self.database.query_memory()),
            ..Reader::default()
        };
        let history = NodeHistory(self.database.as_ref());
        self.catalogue.run(known, &history, &query, parameters, &reader)
    }
}

/// The history that a node keeps.
struct NodeHistory<'a>(&'a dyn Database);

impl History for NodeHistory<'_> {
    fn height(&self) -> u64 {
        self.0.blocks(0..=u64::MAX, 1).first().map_or(0, |newest| newest.height)
    }

    fn blocks(&self, heights: RangeInclusive<u64>, limit: usize) -> Vec<Row> {
        self.0.blocks(heights, limit).iter().map(block_row).collect()
    }

    fn transactions(&self, heights: RangeInclusive<u64>, limit: usize) -> Vec<Row> {
        let filter = TransactionFilter { heights: Some(heights), id: None };
        self.0.transactions(&filter, limit).iter().map(transaction_row).collect()
    }

    fn transaction(&self, id: &str) -> Option<Row> {
        let id = TransactionId(id.parse().ok()?);
        let filter = TransactionFilter { heights: None, id: Some(id) };
        self.0.transactions(&filter, 1).first().map(transaction_row)
    }

    fn receipt_proof(&self, id: &str) -> Result<String, SqlError> {
        let digest = id.parse().map_err(|_| {
            let message = format!("expected a transaction id of 64 hexadecimal digits, found \"{id}\"");
            SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
        })?;
        self.0.receipt_proof(&TransactionId(digest))
    }

    fn row_proof(&self, facts: &SessionFacts, table: &str, key: &[String]) -> Result<String, SqlError> {
        self.0.row_proof(&facts.role, table, &facts.search_path, key)
    }

    fn nodes(&self) -> Vec<Row> {
        self.0.nodes().iter().map(node_row).collect()
    }

    fn databases(&self) -> Vec<Row> {
        self.0.status().database.iter().map(database_row).collect()
    }
}

fn database_row(status: &OwnDatabaseStatus) -> Row {
    Row::from([
        Value::text(status.kind.as_str()),
        Value::text(status.address.as_str()),
        Value::text(status.tables.join(", ")),
        number(status.height),
        number(status.lag_blocks),
        Value::text(status.state.as_str()),
        optional(status.problem.as_ref()),
        number(status.rows_written),
        number(status.strange_rows),
        optional(status.last_strange.as_ref()),
        number(status.scans),
        number(status.scanned_rows),
        number(status.scan_ms),
    ])
}

fn number(number: u64) -> Value {
    Value::BigInt(i64::try_from(number).unwrap_or(i64::MAX))
}

fn integer(number: u32) -> Value {
    Value::Integer(i32::try_from(number).unwrap_or(i32::MAX))
}

fn optional(text: Option<&String>) -> Value {
    text.map_or(Value::Null, |text| Value::text(text.as_str()))
}

fn block_row(row: &BlockRow) -> Row {
    let microseconds = i64::try_from(row.timestamp_ms).unwrap_or(i64::MAX / 1_000).saturating_mul(1_000);
    Row::from([
        number(row.height),
        Value::TimestampTz(microseconds.saturating_sub(EPOCH_MICROSECONDS)),
        integer(row.transactions),
        integer(row.committed),
        integer(row.aborted),
        Value::text(row.proposer.as_str()),
        Value::text(row.digest.to_string()),
        Value::text(row.previous.to_string()),
        Value::text(row.receipts_root.to_string()),
        Value::text(row.state_digest.to_string()),
        number(row.bytes),
        number(row.certified_height),
    ])
}

fn transaction_row(row: &TransactionRow) -> Row {
    let hexadecimal = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    Row::from([
        number(row.height),
        integer(row.index),
        Value::text(row.id.to_string()),
        Value::text(row.organisation.as_str()),
        Value::text(row.client.as_str()),
        Value::text(hexadecimal(&row.request.0)),
        Value::text(row.call.as_str()),
        Value::text(row.outcome.as_str()),
        optional(row.sqlstate.as_ref()),
        optional(row.message.as_ref()),
    ])
}

fn node_row(row: &NodeRow) -> Row {
    Row::from([
        Value::text(row.organisation.as_str()),
        Value::text(row.address.as_str()),
        Value::text(row.node_key.as_str()),
        Value::Boolean(row.is_this_node),
        row.height.map_or(Value::Null, number),
        row.state_digest.map_or(Value::Null, |digest| Value::text(digest.to_string())),
    ])
}
