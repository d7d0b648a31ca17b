//! Changes where a node keeps the rows of its state, while the node is stopped.

use crate::store_choice::StoreChoice;
use crate::{NodeError, NodeFolder};
use ledger::Ledger;
use state::{BlockEnd, Reopened, StoreStatistics};
use std::path::Path;

/// What became of the state.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvertedStore {
    /// Behind which block it stands, and what it takes; `None`: none was left that can be taken up, and the
    /// node makes one from its ledger or from other nodes.
    pub state: Option<(u64, StoreStatistics)>,
    /// Why newer states that were left could not be taken up.
    pub refused: Vec<String>,
}

/// Takes up the newest state of the node in the folder `path`, leaves it as the store `choice` needs it, and writes that choice
/// into `node.toml`. A node does the same by itself when it starts with another choice; this is for doing it beforehand, and for
/// knowing that there is room.
///
/// # Errors
/// The folder is no node's, or its node runs; the choice makes no sense, or the state does not fit into memory; there are states,
/// and none can be read, or written as it is needed. `node.toml` stays as it was then.
pub fn convert_store(path: &Path, choice: StoreChoice) -> Result<ConvertedStore, NodeError> {
    let folder = NodeFolder::open(path)?;
    let ledger_name = folder.charter.ledger();
    // While it is open no node starts here.
    let (ledger, _) = Ledger::open(path.join("ledger"), ledger_name)?;
    let tip = ledger.tip().map_or(0, |(height, _)| height);
    let stores = choice.open(&path.join("state"))?;
    stores.recorded(tip);
    let (mut converted, mut failure) = (ConvertedStore { state: None, refused: Vec::new() }, None);
    for point in stores.left()? {
        let (height, of) = (point.header.height, point.header.ledger);
        if of != ledger_name || height > tip {
            converted.refused.push(format!(
                "the state of height {height} is not one of this ledger, whose newest block is {tip}"
            ));
            continue;
        }
        let taken_up = stores.reopen(height).and_then(|reopened| {
            let Some(Reopened { point, state, .. }) = reopened else { return Ok(None) };
            // Nothing has changed, and its ids are there: it is written as this kind of store needs it.
            let end = BlockEnd {
                point,
                admitted: Vec::new(),
                is_resumable: true,
                is_checkpoint: false,
                is_due: false,
            };
            state.end_block(end)?;
            state.durable_point()?;
            Ok(Some(state.statistics()))
        });
        match taken_up {
            Ok(Some(statistics)) => {
                converted.state = Some((height, statistics));
                break;
            }
            Ok(None) => {}
            Err(error) => {
                converted.refused.push(format!("the state of height {height}: {error}"));
                failure.get_or_insert(error);
            }
        }
    }
    if let (None, Some(failure)) = (&converted.state, failure) {
        return Err(failure.into());
    }
    folder.choose_store(choice)?;
    Ok(converted)
}
