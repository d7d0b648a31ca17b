//! The catalogue of one version of a schema as a snapshot: rows are made when a relation is first read.

use crate::cell::{NamedRow, row};
use crate::history::{Heights, History, scan_ids};
use crate::objects::Objects;
use crate::relations::{RELATIONS, SystemRelation, TRANSACTIONS};
use crate::{SessionFacts, governance, information, proving, system};
use state::{KeyRange, Snapshot, StoreError};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, OnceLock};
use types::{Catalog, Key, Row, TableId, Value};

type Rows = BTreeMap<Key, Row>;

/// What the catalogue shows of one version of a schema: the ledger's, or what an open block and temporary tables make of that.
pub(crate) struct Contents {
    ledger: Arc<Catalog>,
    objects: Objects,
    /// By relation.
    rows: Vec<OnceLock<Arc<Rows>>>,
}

impl Contents {
    /// What a catalog shows to the session with this process number.
    pub(crate) fn new(ledger: Arc<Catalog>, process: i32) -> Contents {
        let objects = Objects::new(&ledger, process);
        let rows = RELATIONS.iter().map(|_| OnceLock::new()).collect();
        Contents { ledger, objects, rows }
    }

    /// Whether it shows this catalog, and none that has the same version by chance: open transaction blocks count versions of
    /// their own.
    pub(crate) fn shows(&self, catalog: &Arc<Catalog>) -> bool {
        Arc::ptr_eq(&self.ledger, catalog)
    }

    fn named_rows(&self, relation: &SystemRelation) -> Vec<NamedRow> {
        match relation.is_information() {
            true => information::rows(relation.plain_name(), &self.objects, &self.ledger),
            false => system::rows(relation.name, &self.objects),
        }
    }
}

/// A snapshot for one query of one session.
pub(crate) struct View<'a> {
    /// The relations as tables.
    pub(crate) catalog: &'a Arc<Catalog>,
    pub(crate) contents: &'a Contents,
    pub(crate) facts: &'a SessionFacts,
    pub(crate) history: &'a dyn History,
}

/// Where rows come from.
enum Source<'a> {
    Rows(Arc<Rows>),
    History(Heights, &'a dyn History),
    Ids(&'a dyn History),
    ReceiptProofs(&'a dyn History),
    RowProofs(&'a dyn History, &'a SessionFacts),
    Nothing,
}

impl View<'_> {
    fn source(&self, table: TableId) -> Source<'_> {
        let position = table.0.checked_sub(1).map(|position| position as usize);
        let Some((position, relation)) = position.and_then(|at| Some((at, RELATIONS.get(at)?))) else {
            let index = self.catalog.tables.get(TRANSACTIONS).map(|table| self.catalog.indexes_of(table.id));
            let is_index = index.into_iter().flatten().any(|index| index.entries() == table);
            return if is_index { Source::Ids(self.history) } else { Source::Nothing };
        };
        match relation.name {
            "entente.blocks" => Source::History(Heights::Blocks, self.history),
            TRANSACTIONS => Source::History(Heights::Transactions, self.history),
            "entente.nodes" => Source::Rows(Arc::new(numbered(self.history.nodes()))),
            "entente.databases" => Source::Rows(Arc::new(numbered(self.history.databases()))),
            "entente.proposals" | "entente.charters" | "entente.organisations" => {
                let (known, height) = (&self.contents.ledger.governance, self.history.height());
                Source::Rows(Arc::new(keyed(relation, &governance::rows(relation.name, known, height))))
            }
            "entente_receipt_proof" => Source::ReceiptProofs(self.history),
            "entente_row_proof" => Source::RowProofs(self.history, self.facts),
            "pg_settings" => Source::Rows(Arc::new(keyed(relation, &self.facts.setting_rows()))),
            "entente_setting" => Source::Rows(Arc::new(keyed(relation, &self.facts.shown_rows()))),
            "entente_search_path" => {
                let rows = self.facts.search_path_rows(&self.contents.objects);
                Source::Rows(Arc::new(keyed(relation, &rows)))
            }
            "pg_prepared_statements" => Source::Rows(Arc::new(keyed(relation, &self.facts.prepared_rows()))),
            "pg_locks" => Source::Rows(Arc::new(keyed(relation, &self.facts.lock_rows()))),
            "pg_stat_activity" => Source::Rows(Arc::new(keyed(relation, &self.facts.activity()))),
            _ => {
                let make = || Arc::new(keyed(relation, &self.contents.named_rows(relation)));
                Source::Rows(self.contents.rows[position].get_or_init(make).clone())
            }
        }
    }
}

/// Rows by their number.
fn numbered(rows: Vec<Row>) -> Rows {
    let keyed = rows.into_iter().enumerate();
    keyed
        .filter_map(|(number, row)| Some((Key::encode([&Value::BigInt(number as i64)]).ok()?, row)))
        .collect()
}

/// Rows by their primary key; what does not fit into a row is not shown.
fn keyed(relation: &SystemRelation, named: &[NamedRow]) -> Rows {
    let rows = named.iter().filter_map(|named| row(relation, named).ok());
    if relation.key.is_empty() {
        return numbered(rows.collect());
    }
    let key = |row: &Row| Key::encode(relation.key.iter().map(|column| &row[usize::from(*column)])).ok();
    rows.filter_map(|row| Some((key(&row)?, row))).collect()
}

impl Snapshot for View<'_> {
    fn catalog(&self) -> &Arc<Catalog> {
        self.catalog
    }

    fn get(&self, table: TableId, key: &Key) -> Result<Option<Row>, StoreError> {
        Ok(match self.source(table) {
            Source::Rows(rows) => rows.get(key).cloned(),
            Source::History(heights, history) => {
                let mut found = None;
                heights.scan(
                    history,
                    &KeyRange { start: Bound::Included(key.clone()), end: Bound::Included(key.clone()) },
                    false,
                    &mut |_, row| {
                        found = Some(row.clone());
                        ControlFlow::Break(())
                    },
                );
                found
            }
            Source::ReceiptProofs(history) => proving::receipt(history, key),
            Source::RowProofs(history, facts) => proving::row(history, facts, key),
            Source::Ids(_) | Source::Nothing => None,
        })
    }

    fn scan(
        &self,
        table: TableId,
        range: &KeyRange,
        reverse: bool,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        if range.is_empty() {
            return Ok(());
        }
        match self.source(table) {
            Source::Rows(rows) => {
                let mut rows = rows.range::<Key, _>(range.bounds());
                let mut next = || if reverse { rows.next_back() } else { rows.next() };
                while let Some((key, row)) = next() {
                    if visit(key, row).is_break() {
                        break;
                    }
                }
            }
            Source::History(heights, history) => heights.scan(history, range, reverse, visit),
            Source::Ids(history) => scan_ids(history, range, reverse, visit),
            // They are found by their keys alone.
            Source::ReceiptProofs(_) | Source::RowProofs(..) | Source::Nothing => {}
        }
        Ok(())
    }
}
