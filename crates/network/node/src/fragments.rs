//! Fragments of large queries, and how many of them were run on columns.

use crate::metrics::NodeMetrics;
use sql::{Fragment, RunFragments};
use std::fmt;
use std::sync::Arc;
use types::Value;

/// Runs fragments as another one does, and counts them.
pub(crate) struct CountedFragments {
    inner: Arc<dyn RunFragments>,
    metrics: Arc<NodeMetrics>,
}

impl CountedFragments {
    pub(crate) fn new(inner: Arc<dyn RunFragments>, metrics: Arc<NodeMetrics>) -> CountedFragments {
        CountedFragments { inner, metrics }
    }
}

impl fmt::Debug for CountedFragments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl RunFragments for CountedFragments {
    fn rows(&self, fragment: &Fragment<'_>) -> Option<Vec<Vec<Value>>> {
        let rows = self.inner.rows(fragment);
        self.metrics.fragment_ran(if rows.is_some() { "columns" } else { "rows" });
        rows
    }

    fn explain(&self, fragment: &Fragment<'_>) -> Result<String, String> {
        self.inner.explain(fragment)
    }
}
