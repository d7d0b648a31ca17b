//! Customers of Smallbank that come into a store in the order of their keys, as rows of its first version. That takes the memory
//! that the store allows itself, however many there are.

use super::{StateBenchError, StateOptions};
use crate::chain::Chain;
use memory::Memory;
use state::{
    AfterImage, BlockEnd, CheckpointProgress, LiveRequests, ResumePoint, RowId, Store, Stores, Version,
};
use std::sync::Arc;
use types::{Catalog, Key, ProtocolOptions, Table, encode};
use workloads::Workload;
use workloads::smallbank::Smallbank;

/// Customers whose rows are handed over at a time.
const PORTION: u64 = 2_000;

/// Blocks for which a transaction is valid, so that the ids of a long run do not take the memory that is measured.
const EXPIRY_BLOCKS: u64 = 100;

/// What was loaded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Live {
    pub(super) rows: u64,
    /// Bytes of keys and values, encoded.
    pub(super) bytes: u64,
}

/// A chain with the schema of a workload and no rows, in memory.
pub(super) fn schema(options: &StateOptions, smallbank: &Smallbank) -> Result<Chain, StateBenchError> {
    let mut charter =
        Chain::charter(&options.protocol, ProtocolOptions::default(), options.block, options.seed);
    charter.checkpoint_rows = options.checkpoint_rows;
    let mut chain = Chain::of(&Memory, charter).map_err(crate::EngineBenchError::from)?;
    for statement in smallbank.set_up() {
        chain.execute_script(statement)?;
    }
    Ok(chain.with_expiry(EXPIRY_BLOCKS))
}

/// The rows of all customers, in a store that stands where `chain` does.
pub(super) fn load(
    chain: &Chain,
    stores: &dyn Stores,
    smallbank: &Smallbank,
    customers: u64,
    progress: &mut dyn FnMut(&str),
) -> Result<(Arc<dyn Store>, Live), StateBenchError> {
    let catalog = chain.engine.state().catalog();
    let mut filling = stores.begin(Version::after_block(chain.engine.height()), catalog.clone())?;
    let mut live = Live::default();
    for table in tables(&catalog) {
        progress(&format!("loading {}", table.object_name()));
        let mut first = 1;
        while first <= customers {
            let images = images(table, smallbank, first);
            live.rows += images.len() as u64;
            live.bytes += images.iter().map(bytes_of).sum::<u64>();
            filling.add(&images)?;
            first += PORTION;
        }
    }
    Ok((filling.finish()?, live))
}

/// The tables in the order of their numbers, which is that of keys in files.
fn tables(catalog: &Catalog) -> Vec<&Arc<Table>> {
    let mut tables: Vec<&Arc<Table>> = catalog.tables.values().collect();
    tables.sort_by_key(|table| table.id);
    tables
}

fn images(table: &Table, smallbank: &Smallbank, first: u64) -> Vec<AfterImage> {
    let portions = smallbank.rows(first, PORTION);
    let own = portions.into_iter().find(|rows| rows.table == table.object_name());
    let rows = own.expect("every table of Smallbank has rows").rows;
    let image = |row: Vec<types::Value>| {
        let key = Key::encode([&row[0]]).expect("a number is a key");
        AfterImage { row: RowId { table: table.id, key }, value: Some(Arc::from(row)) }
    };
    rows.into_iter().map(image).collect()
}

fn bytes_of(image: &AfterImage) -> u64 {
    let value = image.value.as_ref().map_or(0, |row| encode(row).len());
    (image.row.key.as_bytes().len() + value) as u64
}

/// The chain goes on with its rows in this store, which comes back here.
pub(super) fn go_on(chain: Chain, state: Arc<dyn Store>) -> Result<Chain, StateBenchError> {
    let header = chain.engine.checkpoint_header();
    let progress = CheckpointProgress::at(header.height);
    let point = ResumePoint { header, progress };
    state.end_block(BlockEnd {
        point,
        admitted: Vec::new(),
        is_resumable: true,
        is_checkpoint: true,
        is_due: false,
    })?;
    let live = LiveRequests::at(header.height);
    Ok(chain.on_state(point, state, live).map_err(crate::EngineBenchError::from)?)
}
