//! The catalogue of one version of a ledger's schema as a snapshot: rows are made when a relation is first read.

use crate::cell::{NamedRow, row};
use crate::history::{Heights, History, scan_ids};
use crate::objects::Objects;
use crate::relations::{RELATIONS, SystemRelation, TRANSACTIONS};
use crate::{SessionFacts, information, system};
use state::{KeyRange, Snapshot};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, OnceLock};
use types::{Catalog, Key, Row, SqlError, SqlState, TableId, Value, limits};

type Rows = BTreeMap<Key, Row>;

/// What the catalogue shows of one version of a ledger's schema.
pub(crate) struct Contents {
    ledger: Arc<Catalog>,
    objects: Objects,
    /// By relation.
    rows: Vec<OnceLock<Arc<Rows>>>,
}

impl Contents {
    pub(crate) fn new(ledger: Arc<Catalog>) -> Contents {
        let objects = Objects::new(&ledger);
        let rows = RELATIONS.iter().map(|_| OnceLock::new()).collect();
        Contents { ledger, objects, rows }
    }

    /// The version that it shows.
    pub(crate) fn version(&self) -> u64 {
        self.ledger.version
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
            "entente_receipt_proof" => Source::ReceiptProofs(self.history),
            "pg_settings" => Source::Rows(Arc::new(keyed(relation, &self.facts.setting_rows()))),
            "entente_search_path" => {
                let rows = self.facts.search_path_rows(&self.contents.objects);
                Source::Rows(Arc::new(keyed(relation, &rows)))
            }
            "pg_stat_activity" => Source::Rows(Arc::new(keyed(relation, &self.facts.activity()))),
            _ => {
                let make = || Arc::new(keyed(relation, &self.contents.named_rows(relation)));
                Source::Rows(self.contents.rows[position].get_or_init(make).clone())
            }
        }
    }
}

/// The row of the proof whose id is the key, or of the reason why there is none.
fn receipt_proof(history: &dyn History, key: &Key) -> Option<Row> {
    // An id is digits and letters, so its key begins with it.
    let bytes = key.as_bytes();
    let end = bytes.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(bytes.len());
    let id = Value::text(std::str::from_utf8(&bytes[..end]).ok()?);
    if Key::encode([&id]).ok()? != *key {
        return None;
    }
    let found = history.receipt_proof(std::str::from_utf8(&bytes[..end]).ok()?);
    let found = found.and_then(|proof| match proof.len() {
        0..=limits::TEXT_BYTES_MAX => Ok(proof),
        length => {
            let message = format!("the proof has {length} bytes, a text {} at most", limits::TEXT_BYTES_MAX);
            Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
                .hint("Ask for it by HTTP: GET /v1/proofs/receipts/{id}."))
        }
    });
    let text = |text: Option<&str>| text.map_or(Value::Null, Value::text);
    Some(match found {
        Ok(proof) => Row::from([id, Value::text(proof), Value::Null, Value::Null, Value::Null]),
        Err(SqlError { state, message, hint, .. }) => Row::from([
            id,
            Value::Null,
            Value::text(state.to_string()),
            Value::text(message),
            text(hint.as_deref()),
        ]),
    })
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

    fn get(&self, table: TableId, key: &Key) -> Option<Row> {
        match self.source(table) {
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
            Source::ReceiptProofs(history) => receipt_proof(history, key),
            Source::Ids(_) | Source::Nothing => None,
        }
    }

    fn scan(
        &self,
        table: TableId,
        range: &KeyRange,
        reverse: bool,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) {
        if range.is_empty() {
            return;
        }
        match self.source(table) {
            Source::Rows(rows) => {
                let mut rows = rows.range::<Key, _>(range.bounds());
                let mut next = || if reverse { rows.next_back() } else { rows.next() };
                while let Some((key, row)) = next() {
                    if visit(key, row).is_break() {
                        return;
                    }
                }
            }
            Source::History(heights, history) => heights.scan(history, range, reverse, visit),
            Source::Ids(history) => scan_ids(history, range, reverse, visit),
            // They are found by their ids alone.
            Source::ReceiptProofs(_) | Source::Nothing => {}
        }
    }
}
