//! What a node counts of transactions with parts in several schemas.

use concurrency::parts::Decision;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Blocks from a transaction to its decision: upper ends of the histogram's buckets.
const BLOCKS: [f64; 11] = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 48.0, 96.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct DecisionLabel {
    decision: &'static str,
}

/// Counts over all schemas of the node's organisation: a transaction counts once in each that has a part of it.
pub(crate) struct SchemaCounts {
    decided: Family<DecisionLabel, Counter>,
    decision_blocks: Histogram,
    undecided: Gauge,
}

impl Default for SchemaCounts {
    fn default() -> SchemaCounts {
        let (decided, undecided) = Default::default();
        SchemaCounts { decided, decision_blocks: Histogram::new(BLOCKS), undecided }
    }
}

impl SchemaCounts {
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "entente_schemas_decided",
            "Transactions with parts in several schemas, by how they were decided",
            self.decided.clone(),
        );
        registry.register(
            "entente_schemas_decision_blocks",
            "Blocks from such a transaction to its decision",
            self.decision_blocks.clone(),
        );
        registry.register(
            "entente_schemas_undecided",
            "Such transactions that wait for votes",
            self.undecided.clone(),
        );
    }

    /// A transaction was decided so many blocks behind its own.
    pub(crate) fn decided(&self, decision: Decision, blocks: u64) {
        let decision = match decision {
            Decision::Commit => "commit",
            Decision::No => "no",
            Decision::Window => "window",
            Decision::Moves => "moves",
        };
        self.decided.get_or_create(&DecisionLabel { decision }).inc();
        self.decision_blocks.observe(blocks as f64);
    }

    /// So many wait.
    pub(crate) fn undecided(&self, count: usize) {
        self.undecided.set(count as i64);
    }
}
