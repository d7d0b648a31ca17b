//! Settings of `node.toml` that a node takes up while it runs: what holds now, for those who need it.

use crate::NodeConfig;
use crate::rate_limit::RateLimit;
use crate::store_choice::column_bytes;
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use types::AnswerAt;

/// What holds until the file is read again.
pub(crate) struct Live {
    /// How much a client may submit, where that is bounded.
    rate_limit: RwLock<Option<Arc<RateLimit>>>,
    /// Bytes that copies of tables in columns may have.
    pub(crate) column_bytes: Arc<AtomicU64>,
    /// When clients are answered who do not say when.
    answer_at: RwLock<AnswerAt>,
}

impl Live {
    /// As the file says.
    pub(crate) fn of(config: &NodeConfig) -> Arc<Live> {
        Arc::new(Live {
            rate_limit: RwLock::new(rate_limit_of(config)),
            column_bytes: Arc::new(AtomicU64::new(column_bytes(config.column_memory_megabytes))),
            answer_at: RwLock::new(config.answer_at),
        })
    }

    /// From now on it is as this file says. What clients have used of their rates is forgotten where the rate is another.
    pub(crate) fn change(&self, config: &NodeConfig) {
        let rate = config.client_transactions_per_second.map(|rate| u64::from(rate.max(1)));
        let mut rate_limit = self.rate_limit.write();
        if rate_limit.as_ref().map(|limit| limit.per_second()) != rate {
            *rate_limit = rate_limit_of(config);
        }
        drop(rate_limit);
        self.column_bytes.store(column_bytes(config.column_memory_megabytes), Relaxed);
        *self.answer_at.write() = config.answer_at;
    }

    pub(crate) fn rate_limit(&self) -> Option<Arc<RateLimit>> {
        self.rate_limit.read().clone()
    }

    pub(crate) fn answer_at(&self) -> AnswerAt {
        *self.answer_at.read()
    }
}

fn rate_limit_of(config: &NodeConfig) -> Option<Arc<RateLimit>> {
    config.client_transactions_per_second.map(RateLimit::new).map(Arc::new)
}
