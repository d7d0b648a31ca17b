//! Blocks that change the same rows, and admit the same ids, wherever they are executed; and what a store has behind each.

use crate::one_table::{TABLE, catalog};
use crypto::{Digest, PublicKey};
use state::{
    AfterImage, BlockEnd, CheckpointHeader, CheckpointProgress, LiveRequest, LiveRequests, PlainState,
    ResumePoint, RowId, Store, Version,
};
use std::sync::Arc;
use types::{ClientId, Key, RequestId, TransactionId, Value};

const KEYS: u64 = 2_000;
const ROWS: u64 = 150;
/// So many blocks write every row, and so long ids live at most.
const TURN: u64 = 20;

/// The first block that matters for what is there behind this one.
fn first(height: u64) -> u64 {
    height.saturating_sub(TURN).max(1)
}

pub fn header(height: u64) -> CheckpointHeader {
    CheckpointHeader { height, ..CheckpointHeader::default() }
}

/// What a block changes: 150 rows, of which some go.
fn changes(height: u64) -> Vec<AfterImage> {
    let number = |position: u64| (height * ROWS + position) * 7 % KEYS;
    let mut numbers: Vec<u64> = (0..ROWS).map(number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let image = |number: u64| {
        let key = Key::encode([&Value::BigInt(number as i64)]).expect("a key");
        let text = Value::text(format!("{height}-{}", "x".repeat(120)));
        let row: Arc<[Value]> = Arc::from([Value::BigInt(number as i64), text]);
        let goes = (height + number).is_multiple_of(16);
        AfterImage { row: RowId { table: TABLE, key }, value: (!goes).then_some(row) }
    };
    numbers.into_iter().map(image).collect()
}

/// The ids that a block admits.
fn admitted(height: u64) -> Vec<LiveRequest> {
    let request = |index: u32| {
        let request = RequestId([[height as u8; 8], [index as u8; 8]].concat().try_into().expect("16 bytes"));
        let client = ClientId { key: PublicKey([index as u8; 32]), request };
        let id = TransactionId(Digest([height as u8; 32]));
        LiveRequest { client, id, height, index, expires_at: height + (height + u64::from(index)) % TURN }
    };
    (0..height as u32 % 3).map(request).collect()
}

/// The ids that are live behind a block.
pub fn live(height: u64) -> LiveRequests {
    let mut live = LiveRequests::at(first(height) - 1);
    for height in first(height)..=height {
        live.begin_block(height);
        for LiveRequest { client, id, index, expires_at, .. } in admitted(height) {
            live.admit(client, id, index, expires_at).expect("it is new");
        }
    }
    live
}

/// Executes a block.
pub fn block(store: &dyn Store, height: u64, is_checkpoint: bool) {
    store
        .apply(Version::after_batch(height, 0), &changes(height), None)
        .expect("it waits, and does not fail");
    let point = ResumePoint { header: header(height), progress: CheckpointProgress::default() };
    let end =
        BlockEnd { point, admitted: admitted(height), is_resumable: true, is_checkpoint, is_due: false };
    store.end_block(end).expect("it waits, and does not fail");
}

/// The rows behind a block.
pub fn expected(height: u64) -> PlainState {
    let mut model = PlainState::new(catalog());
    (first(height)..=height).for_each(|height| changes(height).iter().for_each(|change| model.apply(change)));
    model
}
