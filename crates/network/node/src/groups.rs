//! Groups of large queries, and how many of them were made from columns.

use crate::metrics::NodeMetrics;
use sql::{MakeGroups, WantedGroups};
use std::fmt;
use std::sync::Arc;
use types::Value;

/// Makes groups as another one does, and counts them.
pub(crate) struct CountedGroups {
    inner: Arc<dyn MakeGroups>,
    metrics: Arc<NodeMetrics>,
}

impl CountedGroups {
    pub(crate) fn new(inner: Arc<dyn MakeGroups>, metrics: Arc<NodeMetrics>) -> CountedGroups {
        CountedGroups { inner, metrics }
    }
}

impl fmt::Debug for CountedGroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl MakeGroups for CountedGroups {
    fn groups(&self, wanted: &WantedGroups<'_>) -> Option<Vec<Vec<Value>>> {
        let groups = self.inner.groups(wanted);
        self.metrics.grouped(if groups.is_some() { "columns" } else { "rows" });
        groups
    }

    fn explain(&self, wanted: &WantedGroups<'_>) -> Result<String, String> {
        self.inner.explain(wanted)
    }
}
