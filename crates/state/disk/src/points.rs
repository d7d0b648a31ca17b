//! What becomes durable at once, as whoever has the rows in memory hands it over.

use crate::files::FilesAt;
use crate::layout::Meta;
use state::{KeyRange, LiveRequest, RowId, Snapshot, StoreError, Version};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use types::{Catalog, Row, TableId};
use versioned::VersionedRows;

/// What has changed since the durable point before.
pub(crate) enum Changes {
    /// All that these rows know.
    Layer(Arc<VersionedRows>),
    /// These rows, in any order and some several times before [`Changes::put_in_order`]; their values are those of the snapshot.
    Rows(Arc<dyn Snapshot>, Vec<RowId>),
}

/// Ids that blocks have admitted, by height.
#[derive(Default)]
pub(crate) struct Admitted(pub(crate) BTreeMap<u64, Vec<LiveRequest>>);

impl Admitted {
    pub(crate) fn add(&mut self, admitted: Vec<LiveRequest>) {
        for request in admitted {
            self.0.entry(request.height).or_default().push(request);
        }
    }
}

/// What happens when a point is written. Gives the epoch of the row cache that begins with these files.
pub(crate) type WhenWritten = Box<dyn FnOnce(&Arc<FilesAt>) -> u64 + Send>;

/// A row, with what has become of it.
pub(crate) type ChangedRow = Result<(RowId, Option<Row>), StoreError>;

/// What becomes durable at once.
pub(crate) struct Point {
    pub(crate) version: Version,
    pub(crate) changes: Changes,
    /// Tables that have gone since then.
    pub(crate) dropped: BTreeSet<TableId>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) meta: Meta,
    /// Ids that blocks have admitted since then, by height.
    pub(crate) admitted: Admitted,
    /// The state is that of a checkpoint.
    pub(crate) is_checkpoint: bool,
    /// What happens when it is written.
    pub(crate) written: WhenWritten,
}

impl Changes {
    /// By table and key, and each once. Whoever writes does that, so that no block waits for it.
    pub(crate) fn put_in_order(&mut self) {
        if let Changes::Rows(_, rows) = self {
            put_in_order(rows);
        }
    }

    /// The rows, with what has become of them, by table and key.
    pub(crate) fn rows(&self, version: Version) -> Box<dyn Iterator<Item = ChangedRow> + '_> {
        match self {
            Changes::Layer(layer) => Box::new(layer.tables().into_iter().flat_map(move |table| {
                let rows = layer.scan(version, table, &KeyRange::ALL, false);
                rows.map(move |(key, row)| Ok((RowId { table, key }, row)))
            })),
            Changes::Rows(snapshot, rows) => {
                Box::new(rows.iter().map(|id| Ok((id.clone(), snapshot.get(id.table, &id.key)?))))
            }
        }
    }

    /// Which rows, by table and key.
    pub(crate) fn keys(&self, version: Version) -> Box<dyn Iterator<Item = RowId> + '_> {
        match self {
            Changes::Layer(layer) => Box::new(layer.tables().into_iter().flat_map(move |table| {
                let rows = layer.scan(version, table, &KeyRange::ALL, false);
                rows.map(move |(key, _)| RowId { table, key })
            })),
            Changes::Rows(_, rows) => Box::new(rows.iter().cloned()),
        }
    }
}

/// Rows by table and key, each once.
pub(crate) fn put_in_order(rows: &mut Vec<RowId>) {
    rows.sort_unstable();
    rows.dedup();
}
