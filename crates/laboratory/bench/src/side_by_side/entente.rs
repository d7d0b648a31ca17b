//! Entente as a node answers a plain SELECT: a bound query on a snapshot of a store, in this process, without a network.

use super::place::EntentePlace;
use super::system::{Answer, Rows, System};
use super::table::Table;
use crate::chain::Chain;
use crate::{EngineBenchError, LaboratoryError};
use memory::Memory;
use sql::{Fragment, Library, Prepared, Reader, RunFragments};
use state::{AfterImage, Filling, RowId, Store, StoreError, Stores, Version};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};
use types::{Key, MemoryPool, ProtocolOptions, SqlError, Value, format_value};

pub(crate) const NAME: &str = "entente";

/// The two ways of an answer.
pub(crate) const FROM_COLUMNS: &str = "columns";
const FROM_ROWS: &str = "rows";

/// Rows that are handed over at a time.
const PORTION: usize = 2_000;

/// A store with all rows.
pub(super) struct Entente {
    library: Arc<Library>,
    store: Arc<dyn Store>,
    /// What has made it, for as long as it is there.
    _stores: Arc<dyn Stores>,
    /// Who runs fragments of queries.
    fragments: Option<Arc<dyn RunFragments>>,
    /// What a query may have: one that would take the machine's memory is refused.
    query_bytes: u64,
    /// By text.
    prepared: BTreeMap<String, Prepared>,
}

impl Entente {
    /// The tables by statements in a ledger of one's own, then their rows as those of the first version of a store.
    pub(super) fn load(
        place: &EntentePlace,
        tables: &[Table],
        fragments: Option<Arc<dyn RunFragments>>,
    ) -> Result<Entente, LaboratoryError> {
        let stores = place.stores(fragments.is_some());
        let chain = schema(tables).map_err(failed)?;
        let catalog = chain.engine.state().catalog();
        let version = Version::after_block(chain.engine.height());
        let mut filling = stores.begin(version, catalog.clone()).map_err(of_store)?;
        for table in tables {
            let schema = catalog.tables.values().find(|schema| schema.object_name() == table.name);
            fill(filling.as_mut(), schema.expect("it was created"), (table.rows)())?;
        }
        let store = filling.finish().map_err(of_store)?;
        let library = chain.engine.library().clone();
        let (query_bytes, prepared) = (place.query_bytes, BTreeMap::new());
        Ok(Entente { library, store, _stores: stores, fragments, query_bytes, prepared })
    }

    /// Binds a query when it comes for the first time.
    fn prepared(&mut self, sql: &str) -> Result<&Prepared, SqlError> {
        if !self.prepared.contains_key(sql) {
            let prepared = sql::prepare(&self.library, sql, &[])?;
            self.prepared.insert(sql.to_string(), prepared);
        }
        Ok(&self.prepared[sql])
    }

    /// The rows of a query, and the milliseconds until they are there as text.
    fn answer(&mut self, sql: &str, limit: Option<Duration>) -> Result<Answer, SqlError> {
        let store = self.store.clone();
        let fragments = self.fragments.clone().map(|inner| Arc::new(WatchedFragments::of(inner)));
        let query_bytes = self.query_bytes;
        let prepared = self.prepared(sql)?;
        let reader = Reader {
            step_limit: u64::MAX,
            memory: Some(MemoryPool::new(query_bytes)),
            fragments: fragments.clone().map(|fragments| fragments as Arc<dyn RunFragments>),
            ..Reader::default()
        };
        let _timer = limit.map(|limit| Timer::start(limit, &reader.interrupt));
        let start = Instant::now();
        let results = prepared.query_as(&reader, store.snapshot().as_ref(), &[])?;
        let rows = results.into_iter().next_back().unwrap_or_default().rows;
        let cells = rows.iter().map(|row| row.iter().map(format_value).collect()).collect();
        let ms = start.elapsed().as_secs_f64() * 1e3;
        let all_from_columns = fragments.is_some_and(|fragments| fragments.all_from_columns());
        let from = if all_from_columns { FROM_COLUMNS } else { FROM_ROWS };
        Ok(Answer { ms, rows: Rows::exact(cells), from: Some(from) })
    }
}

impl System for Entente {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&mut self, sql: &str, limit: Option<Duration>) -> Result<Answer, LaboratoryError> {
        self.answer(sql, limit).map_err(|error| LaboratoryError::Answer {
            system: NAME,
            request: sql.to_string(),
            error: error.to_string(),
        })
    }
}

/// Runs fragments as another one does, and notes what it was asked for in one query.
#[derive(Debug)]
struct WatchedFragments {
    inner: Arc<dyn RunFragments>,
    ran: AtomicU64,
    refused: AtomicU64,
}

impl WatchedFragments {
    fn of(inner: Arc<dyn RunFragments>) -> WatchedFragments {
        WatchedFragments { inner, ran: AtomicU64::new(0), refused: AtomicU64::new(0) }
    }

    /// Whether fragments were asked for, and all of them were run.
    fn all_from_columns(&self) -> bool {
        self.ran.load(Ordering::Relaxed) > 0 && self.refused.load(Ordering::Relaxed) == 0
    }
}

impl RunFragments for WatchedFragments {
    fn rows(&self, fragment: &Fragment<'_>) -> Option<Vec<Vec<Value>>> {
        let rows = self.inner.rows(fragment);
        let counter = if rows.is_some() { &self.ran } else { &self.refused };
        counter.fetch_add(1, Ordering::Relaxed);
        rows
    }

    fn explain(&self, fragment: &Fragment<'_>) -> Result<String, String> {
        self.inner.explain(fragment)
    }
}

/// Sets an interrupt after a time, unless it is dropped before.
struct Timer {
    _running: mpsc::Sender<()>,
}

impl Timer {
    fn start(limit: Duration, interrupt: &Arc<AtomicBool>) -> Timer {
        let (running, ended) = mpsc::channel();
        let interrupt = interrupt.clone();
        thread::spawn(move || {
            if ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                interrupt.store(true, Ordering::Relaxed);
            }
        });
        Timer { _running: running }
    }
}

/// A ledger in memory with the tables and no rows.
fn schema(tables: &[Table]) -> Result<Chain, EngineBenchError> {
    let charter = Chain::charter("serial", ProtocolOptions::default(), 1, 1);
    let mut chain = Chain::of(&Memory, charter)?;
    for table in tables {
        chain.execute_script(table.definition)?;
    }
    Ok(chain)
}

fn fill(
    filling: &mut dyn Filling,
    table: &types::Table,
    rows: impl Iterator<Item = Vec<Value>>,
) -> Result<(), LaboratoryError> {
    let mut images = Vec::with_capacity(PORTION);
    for row in rows {
        let key = Key::encode(table.primary_key.iter().map(|ordinal| &row[usize::from(*ordinal)]))
            .expect("numbers are a key");
        images.push(AfterImage { row: RowId { table: table.id, key }, value: Some(Arc::from(row)) });
        if images.len() == PORTION {
            filling.add(&images).map_err(of_store)?;
            images.clear();
        }
    }
    filling.add(&images).map_err(of_store)
}

fn of_store(error: StoreError) -> LaboratoryError {
    failed(engine::EngineError::from(error).into())
}

fn failed(error: EngineBenchError) -> LaboratoryError {
    LaboratoryError::Engine { point: NAME.to_string(), error }
}
