//! What a node's blocks say: how far it is, which charters hold, how fast its ledger grows. Read without opening the ledger, also
//! while a node appends to it.

use ledger::{LedgerFiles, prove_charters, read_handovers};
use std::path::Path;
use std::sync::Arc;
use types::{Charter, Charters};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// From less time nothing is concluded.
const MEASURED_MS: u64 = 60 * 60 * 1_000;

/// What is known of it.
pub(super) struct Past {
    /// Of the newest block.
    pub(super) height: u64,
    /// The charters that it names.
    pub(super) charters: Charters,
    /// Milliseconds from block to block, over the newest file.
    pub(super) pace_ms: Option<u64>,
    /// How much the ledger grows in a day, where an hour's blocks are there to tell.
    pub(super) bytes_per_day: Option<u64>,
}

impl Past {
    /// Of the blocks in a folder; nothing where there are none.
    pub(super) fn read(folder: &Path, founding: &Arc<Charter>) -> Option<Result<Past, String>> {
        if !folder.join("LEDGER").exists() {
            return None;
        }
        Past::of(folder, founding).transpose()
    }

    fn of(folder: &Path, founding: &Arc<Charter>) -> Result<Option<Past>, String> {
        let ledger = founding.ledger();
        let files = LedgerFiles::open(folder, ledger).map_err(|error| error.to_string())?;
        let mut newest = Vec::new();
        // The newest file may have been begun a moment ago.
        for begin in (0..files.files().len()).rev().take(2) {
            for record in files.records_from_file(begin) {
                let record = record.map_err(|error| error.to_string())?;
                let header = &record.summary().header;
                newest.push((header.height, header.timestamp_ms, record.bytes(), header.charters));
            }
            if newest.len() > 1 {
                break;
            }
            newest.clear();
        }
        let (Some(&(first, begin_ms, ..)), Some(&(height, end_ms, _, named))) =
            (newest.first(), newest.last())
        else {
            return Ok(None);
        };
        let charters = match named == ledger {
            true => Charters::new(founding.clone()),
            false => {
                let handovers = read_handovers(folder, ledger, height).map_err(|error| error.to_string())?;
                prove_charters(founding, &handovers, named)?
            }
        };
        let (time_ms, bytes) =
            (end_ms.saturating_sub(begin_ms), newest.iter().map(|(_, _, bytes, _)| bytes).sum::<u64>());
        let per_day = |bytes: u64| (u128::from(bytes) * u128::from(DAY_MS) / u128::from(time_ms)) as u64;
        Ok(Some(Past {
            height,
            charters,
            pace_ms: (height > first).then(|| (time_ms / (height - first)).max(1)),
            bytes_per_day: (time_ms >= MEASURED_MS).then(|| per_day(bytes)),
        }))
    }
}
