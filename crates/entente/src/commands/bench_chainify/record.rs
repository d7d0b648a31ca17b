//! What whole networks came to, with what the paper prints (paper 002, section 4.8).

use comfy_table::{Table, presets};
use serde::Serialize;

/// What `--network --json` writes.
#[derive(Debug, Serialize)]
pub(super) struct NetworkRecord {
    /// Customers, with a savings and a checking account each.
    pub customers: u64,
    /// Throughput by system, skew and clients.
    pub throughput: Vec<ThroughputPoint>,
    /// What signatures cost.
    pub signing: SigningRecord,
    /// Organisations whose rows were changed, and which ended.
    pub recovery: Vec<RecoveryRecord>,
}

/// One load on one network.
#[derive(Debug, Serialize)]
pub(super) struct ThroughputPoint {
    /// `whatever-then-agree` with databases or without, or `fabric++`.
    pub system: &'static str,
    /// Each organisation's database; empty: every node executes itself.
    pub databases: String,
    /// How many organisations must come to the same outcome; null where the network's own quorum holds.
    pub outcome_quorum: Option<u32>,
    /// Zipf's exponent of the choice of customers.
    pub skew: f64,
    /// Clients of all organisations.
    pub clients: usize,
    /// Transactions per second that committed.
    pub committed_tps: f64,
    /// Of those that got a receipt, the share that was given up because of a conflict.
    pub conflict_share: f64,
    /// Median from submission to receipt, in milliseconds.
    pub p50_ms: f64,
    /// What the paper has at the corresponding point, if it has one.
    pub paper_tps: Option<f64>,
}

/// Signatures of a transaction, beside everything else that it costs.
#[derive(Debug, Serialize)]
pub(super) struct SigningRecord {
    /// Microseconds of a processor to sign one.
    pub sign_us: f64,
    /// Microseconds to verify one, in batches of 400 of four clients.
    pub verify_us: f64,
    /// Microseconds of all processors that a committed transaction took in the network with the most clients: nodes, databases,
    /// clients.
    pub transaction_us: f64,
    /// Of these, one signature and four verifications.
    pub share: f64,
    /// By how much cryptography decreases the paper's throughput (any 2, parallel execution).
    pub paper_share: f64,
}

/// A row is changed in the first organisation's database, and later the third organisation ends (figure 4.12).
#[derive(Debug, Serialize)]
pub(super) struct RecoveryRecord {
    /// Each organisation's database.
    pub databases: String,
    /// What told: another outcome than a quorum's, after which the state is made again from a checkpoint, or the old image of the
    /// row when the next script changed it, after which that row is put right.
    pub found_by: &'static str,
    /// Heights of all organisations over time.
    pub heights: Vec<HeightsAt>,
    /// When the row was changed, in seconds from the begin of the load.
    pub changed_seconds: f64,
    /// When the first organisation knew that its outcome is not that of a quorum.
    pub found_seconds: f64,
    /// When its outcomes were those of a quorum again, and it served.
    pub recovered_seconds: f64,
    /// The longest time after the change in which the first organisation executed no block: it compares all rows and puts them right,
    /// or makes its state again.
    pub standstill_seconds: f64,
    /// From the second to the third: until it has caught up with the others, who go on under the same load.
    pub recovery_seconds: f64,
    /// The paper's.
    pub paper_recovery_seconds: f64,
    /// Blocks per second that the others executed before, and while the first organisation was away.
    pub others_blocks_per_second: [f64; 2],
    /// When the third organisation's node was killed.
    pub killed_seconds: f64,
    /// The longest time after that in which the first two organisations executed no block.
    pub pause_after_kill_seconds: f64,
}

/// Heights at one moment.
#[derive(Clone, Debug, Serialize)]
pub(super) struct HeightsAt {
    /// From the begin of the load.
    pub seconds: f64,
    /// The newest block that each organisation has executed; null: it does not answer.
    pub heights: Vec<Option<u64>>,
}

/// For people.
pub(super) fn table(record: &NetworkRecord) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["", "Zipf", "clients", "measured", "paper"]);
    for point in &record.throughput {
        let quorum = point.outcome_quorum.map_or(String::new(), |quorum| format!(", any {quorum}"));
        let name = match point.databases.is_empty() {
            true => point.system.to_string(),
            false => format!("{}{quorum}", point.databases),
        };
        table.add_row([
            name,
            point.skew.to_string(),
            point.clients.to_string(),
            format!("{} tps", bench::grouped(point.committed_tps as u64)),
            point.paper_tps.map_or(String::new(), |tps| format!("{} tps", bench::grouped(tps as u64))),
        ]);
    }
    let SigningRecord { sign_us, verify_us, transaction_us, share, paper_share } = &record.signing;
    table.add_row([
        format!("signing {sign_us:.0} µs, verifying {verify_us:.0} µs, of {transaction_us:.0} µs"),
        String::new(),
        String::new(),
        format!("{:.0} %", share * 100.0),
        format!("{:.0} %", paper_share * 100.0),
    ]);
    for recovery in &record.recovery {
        let found = recovery.found_seconds - recovery.changed_seconds;
        table.add_row([
            format!(
                "{}: a changed row, found after {found:.1} s by {}, level after {:.1} s, stood still for",
                recovery.databases, recovery.found_by, recovery.recovery_seconds
            ),
            String::new(),
            String::new(),
            format!("{:.1} s", recovery.standstill_seconds),
            format!("{} s", recovery.paper_recovery_seconds),
        ]);
    }
    table
}
