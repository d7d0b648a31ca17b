//! Whether the nodes of a measured network are level with one another, and agree.

use crate::CommandError;
use crate::demo::nodes::RunningNodes;
use crate::demo::report;
use client::Client;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// A node that is not level with the others by then has failed.
const PATIENCE: Duration = Duration::from_secs(180);
/// A node is level with the others up to so many blocks below the highest.
const LEVEL_BLOCKS: u64 = 3;
/// How often it is looked.
const LOOK: Duration = Duration::from_millis(50);

/// Returns when all nodes are level. `clients`: one for each.
pub(super) fn await_level(
    nodes: &mut RunningNodes,
    clients: &[Client],
    runtime: &Runtime,
) -> Result<(), CommandError> {
    let start = Instant::now();
    loop {
        nodes.check_alive()?;
        let height = |client: &Client| Some(runtime.block_on(client.status()).ok()?.height);
        // Who does not answer yet is not level.
        let heights: Vec<Option<u64>> = clients.iter().map(height).collect();
        let (lowest, highest) = (heights.iter().min(), heights.iter().max());
        if let Some((Some(low), Some(high))) = lowest.zip(highest)
            && high - low <= LEVEL_BLOCKS
        {
            return Ok(());
        }
        if start.elapsed() > PATIENCE {
            let text = format!("expected nodes that are level within {PATIENCE:?}; they are at {heights:?}");
            return Err(text.into());
        }
        std::thread::sleep(LOOK);
    }
}

/// Height and state digest on which all nodes agree.
pub(super) fn agreed(clients: &[Client], runtime: &Runtime) -> Result<(u64, String), CommandError> {
    let (height, digests, _) = runtime.block_on(report::common_height(clients))?;
    match digests.windows(2).all(|pair| pair[0] == pair[1]) {
        true => Ok((height, digests[0].clone())),
        false => Err(format!("the nodes differ at height {height}: {digests:?}").into()),
    }
}
