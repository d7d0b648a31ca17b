//! Where the topic is that orders, for nodes of ledgers that are ordered by one: `[kafka]` of `node.toml`; and the node's ledger as
//! other members ask it for blocks.

use crate::NodeError;
use crypto::Digest;
use ledger::Ledger;
use ordering::kafka::{KafkaSettings, RecordedBlocks};
use ordering::{Delivery, OrderingError};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How this node reaches the topic. Organisations reach the same brokers under different names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KafkaConfig {
    /// Brokers to begin with, `host:port` with commas between.
    pub brokers: String,
    /// The topic's name; `entente-` and the beginning of the ledger's id where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// How many brokers must keep the topic at least; 3 where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas_min: Option<u16>,
    /// Whether the topic may forget records after a while: nodes that lack them get the blocks from other members.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub finite_retention: bool,
}

impl KafkaConfig {
    /// As ordering wants it, for a ledger.
    pub fn settings(&self, ledger: &Digest) -> KafkaSettings {
        let KafkaConfig { brokers, topic, replicas_min, finite_retention } = self;
        let topic = topic.clone().unwrap_or_else(|| format!("entente-{}", &ledger.to_string()[..16]));
        let mut settings = KafkaSettings::new(brokers, &topic);
        settings.replicas_min = replicas_min.unwrap_or(settings.replicas_min);
        settings.finite_retention = *finite_retention;
        settings
    }
}

/// The settings of a node that needs them.
pub(crate) fn settings(config: Option<&KafkaConfig>, ledger: &Digest) -> Result<KafkaSettings, NodeError> {
    let config = config.ok_or_else(|| {
        let what = "expected [kafka] with brokers = \"host:port,…\" in node.toml, found none; add it";
        NodeError::Ordering(OrderingError::Settings(what.to_string()))
    })?;
    Ok(config.settings(ledger))
}

/// What the node's ledger has.
pub(crate) struct LedgerBlocks(pub(crate) Arc<Ledger>);

impl RecordedBlocks for LedgerBlocks {
    fn block(&self, height: u64) -> Option<Delivery> {
        match self.0.block(height) {
            Ok(found) => found.map(|(block, certificate)| Delivery { block, certificate }),
            Err(error) => {
                tracing::debug!(height, %error, "a block that another member asks for is not here");
                None
            }
        }
    }
}
