//! Leaves of rows in the state's tree.

use borsh::BorshSerialize;
use crypto::{Digest, Sha256Batch};
use rayon::prelude::*;
use types::{Key, Row};

/// Rows that are read before they are hashed on all threads.
pub(crate) const READ_ROWS: usize = 16_384;
/// Rows that one thread hashes together.
const HASH_ROWS: usize = 512;

/// A row, of which only that is needed.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct HashedRow {
    pub(crate) key: Key,
    pub(crate) leaf: Digest,
    pub(crate) bytes: usize,
}

/// Leaf and bytes of each row.
pub(crate) fn hash_rows(rows: &[(Key, Row)]) -> Vec<(Digest, usize)> {
    let (mut hashes, mut content) = (Sha256Batch::new(), Vec::new());
    let mut lengths = Vec::with_capacity(rows.len());
    for (key, row) in rows {
        content.clear();
        let written = key.serialize(&mut content).and_then(|()| row.serialize(&mut content));
        written.expect("writing to memory cannot fail");
        hashes.push_leaf(&content);
        lengths.push(content.len());
    }
    hashes.finish().into_iter().zip(lengths).collect()
}

/// Takes rows and hashes them on the threads of the current rayon pool.
pub(crate) fn hash_on_all_threads(rows: &mut Vec<(Key, Row)>) -> impl Iterator<Item = HashedRow> {
    let hashed: Vec<(Digest, usize)> = rows.par_chunks(HASH_ROWS).flat_map_iter(hash_rows).collect();
    rows.drain(..).zip(hashed).map(|((key, _), (leaf, bytes))| HashedRow { key, leaf, bytes })
}
