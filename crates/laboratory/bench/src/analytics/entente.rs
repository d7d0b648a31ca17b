//! Entente as a node answers a plain SELECT: a bound query on a snapshot of a store, in this process, without a network.

use super::data::{Size, Table};
use super::system::{Answer, Rows, System};
use crate::chain::Chain;
use crate::{EngineBenchError, LaboratoryError};
use memory::Memory;
use sql::{Library, MakeGroups, Prepared, Reader};
use state::{AfterImage, Filling, RowId, Store, StoreError, Stores, Version};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use types::{Key, ProtocolOptions, SqlError, Value, format_value};

pub(super) const NAME: &str = "entente";

/// Rows that are handed over at a time.
const PORTION: usize = 2_000;

/// A store with all rows.
pub(super) struct Entente {
    library: Arc<Library>,
    store: Arc<dyn Store>,
    /// What has made it, for as long as it is there.
    _stores: Arc<dyn Stores>,
    /// Who makes the groups of queries.
    groups: Option<Arc<dyn MakeGroups>>,
    /// By text.
    prepared: BTreeMap<String, Prepared>,
}

impl Entente {
    /// The tables by statements in a ledger of one's own, then their rows as those of the first version of a store.
    pub(super) fn load(
        stores: Arc<dyn Stores>,
        size: Size,
        groups: Option<Arc<dyn MakeGroups>>,
    ) -> Result<Entente, LaboratoryError> {
        let chain = schema().map_err(failed)?;
        let catalog = chain.engine.state().catalog();
        let version = Version::after_block(chain.engine.height());
        let mut filling = stores.begin(version, catalog.clone()).map_err(of_store)?;
        for table in Table::ALL {
            let schema = catalog.tables.values().find(|schema| schema.object_name() == table.name());
            fill(filling.as_mut(), schema.expect("it was created"), table.rows(size))?;
        }
        let store = filling.finish().map_err(of_store)?;
        let library = chain.engine.library().clone();
        Ok(Entente { library, store, _stores: stores, groups, prepared: BTreeMap::new() })
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
    fn answer(&mut self, sql: &str) -> Result<Answer, SqlError> {
        let (store, groups) = (self.store.clone(), self.groups.clone());
        let prepared = self.prepared(sql)?;
        let reader = Reader { step_limit: u64::MAX, groups, ..Reader::default() };
        let start = Instant::now();
        let results = prepared.query_as(&reader, store.snapshot().as_ref(), &[])?;
        let rows = results.into_iter().next_back().unwrap_or_default().rows;
        let cells = rows.iter().map(|row| row.iter().map(format_value).collect()).collect();
        let ms = start.elapsed().as_secs_f64() * 1e3;
        Ok(Answer { ms, rows: Rows::exact(cells) })
    }
}

impl System for Entente {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&mut self, sql: &str) -> Result<Answer, LaboratoryError> {
        self.answer(sql).map_err(|error| LaboratoryError::Answer {
            system: NAME,
            request: sql.to_string(),
            error: error.to_string(),
        })
    }
}

/// A ledger in memory with the tables and no rows.
fn schema() -> Result<Chain, EngineBenchError> {
    let charter = Chain::charter("serial", ProtocolOptions::default(), 1, 1);
    let mut chain = Chain::of(&Memory, charter)?;
    for table in Table::ALL {
        chain.execute_script(table.definition())?;
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
    LaboratoryError::Engine { point: "analytics".to_string(), error }
}
