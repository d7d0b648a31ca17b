use crate::{LatencyMs, grouped};
use serde::Serialize;
use std::fmt;

/// What one network did.
#[derive(Clone, Debug, Serialize)]
pub struct ScaleRecord {
    /// Members, each with a node.
    pub members: usize,
    /// `room`, `continent` or `world`.
    pub network: &'static str,
    /// `bft` or `raft`, simulated; `kafka`, with real brokers.
    pub ordering: String,
    /// Certified receipts per second while clients keep the network busy.
    pub throughput_tps: f64,
    /// From the call to the certified receipt at the client's own node, at half of that.
    pub latency_ms: LatencyMs,
    /// On average, while the network is busy.
    pub transactions_per_block: f64,
    /// On average, while the network is busy.
    pub blocks_per_second: f64,
    /// What leaders send of blocks, to all others together, divided by the transactions. Of real brokers nobody counts it.
    pub leader_bytes_per_transaction: Option<f64>,
    /// What a member sends of everything on average, divided by the transactions of all members.
    pub member_bytes_per_transaction: Option<f64>,
}

impl fmt::Display for ScaleRecord {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{:>5} {:<9} {:>2} members: {} tps, {:.0} ms ({:.0} ms of 99 %)",
            self.ordering,
            self.network,
            self.members,
            grouped(self.throughput_tps as u64),
            self.latency_ms.p50,
            self.latency_ms.p99
        )
    }
}

/// All of them as a table for people.
pub fn scale_table(records: &[ScaleRecord]) -> String {
    let mut table = String::from(
        "ordering  network    members        tps   p50 ms   p99 ms   blocks/s   tx/block   leader B/tx   member B/tx\n",
    );
    let bytes = |counted: Option<f64>| counted.map_or_else(|| "-".to_string(), |bytes| format!("{bytes:.0}"));
    for record in records {
        table += &format!(
            "{:<9} {:<10} {:>7} {:>10} {:>8.0} {:>8.0} {:>10.1} {:>10.0} {:>13} {:>13}\n",
            record.ordering,
            record.network,
            record.members,
            grouped(record.throughput_tps as u64),
            record.latency_ms.p50,
            record.latency_ms.p99,
            record.blocks_per_second,
            record.transactions_per_block,
            bytes(record.leader_bytes_per_transaction),
            bytes(record.member_bytes_per_transaction),
        );
    }
    table
}
