use crate::AfterImage;
use borsh::BorshSerialize;
use crypto::{Digest, Sha256Batch, merkle_root};
use rayon::prelude::*;
use types::{BlockDigest, TableDigest};

/// Leaves of one piece of a tree; a power of two, so that the roots of the pieces are nodes of the whole tree.
const PIECE: usize = 256;

/// Digests the after-images of a block, by table and key, one per row: [`BlockChanges::finish`]. Uses rayon's current
/// pool and gives the same for any number of threads. `requests`: [`crate::LiveRequests::block_digest`].
pub fn block_digest(changes: &[AfterImage], catalog: Digest, requests: Digest) -> BlockDigest {
    debug_assert!(changes.is_sorted_by(|a, b| a.row < b.row), "after-images stand by table and key");
    let tables = changes
        .chunk_by(|a, b| a.row.table == b.row.table)
        .map(|rows| TableDigest { table: rows[0].row.table, root: table_root(rows) })
        .collect();
    BlockDigest { tables, catalog, requests }
}

fn table_root(rows: &[AfterImage]) -> Digest {
    if rows.len() <= PIECE {
        return piece_root(rows);
    }
    let roots: Vec<Digest> = rows.par_chunks(PIECE).map(piece_root).collect();
    merkle_root(&roots)
}

fn piece_root(rows: &[AfterImage]) -> Digest {
    let (mut hashes, mut content) = (Sha256Batch::new(), Vec::new());
    for image in rows {
        content.clear();
        let written =
            image.row.key.serialize(&mut content).and_then(|()| image.value.serialize(&mut content));
        written.expect("writing to memory cannot fail");
        hashes.push_leaf(&content);
    }
    merkle_root(&hashes.finish())
}

/// Collects what the batches of one block changed.
#[derive(Default)]
pub struct BlockChanges {
    images: Vec<AfterImage>,
    /// Several batches have been added, so that rows may stand several times and out of order.
    mixed: bool,
}

impl BlockChanges {
    /// Adds the after-images of the next batch, by table and key, one per row.
    pub fn add(&mut self, batch: Vec<AfterImage>) {
        if self.images.is_empty() {
            self.images = batch;
        } else {
            self.mixed |= !batch.is_empty();
            self.images.extend(batch);
        }
    }

    /// One after-image per row that the block wrote, the last one, by table and key.
    pub fn finish(mut self) -> Vec<AfterImage> {
        if self.mixed {
            // Stable, and quick where runs are sorted already.
            self.images.par_sort_by(|a, b| a.row.cmp(&b.row));
            self.images.dedup_by(|later, earlier| {
                let same = later.row == earlier.row;
                if same {
                    std::mem::swap(later, earlier);
                }
                same
            });
        }
        self.images
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RowId;
    use crypto::{leaf_hash, sha256};
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use types::{Key, Row, TableId, Value, encode};

    fn image(table: u32, number: u32, value: Option<i64>) -> AfterImage {
        let row = RowId { table: TableId(table), key: Key::from_bytes(&number.to_be_bytes()) };
        AfterImage { row, value: value.map(|value| Row::from([Value::BigInt(value), Value::text("x")])) }
    }

    fn digest(changes: &[AfterImage]) -> BlockDigest {
        block_digest(changes, Digest([1; 32]), Digest([2; 32]))
    }

    #[test]
    fn the_root_is_that_of_one_tree_over_all_rows_of_a_table() {
        for count in [0u32, 1, 2, 255, 256, 257, 511, 513, 1_000] {
            let changes: Vec<_> = (0..count).map(|number| image(3, number, Some(number.into()))).collect();
            let leaves: Vec<Digest> = changes
                .iter()
                .map(|image| leaf_hash(&[encode(&image.row.key), encode(&image.value)].concat()))
                .collect();
            let expected = (count > 0).then(|| TableDigest { table: TableId(3), root: merkle_root(&leaves) });
            assert_eq!(digest(&changes).tables, Vec::from_iter(expected), "{count} rows");
        }
    }

    #[test]
    fn threads_do_not_change_the_digest() {
        let changes: Vec<_> = (0..3_000).map(|number| image(number / 1_100, number, Some(1))).collect();
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| digest(&changes))
        };
        assert_eq!(with(1), with(4));
        assert_eq!(with(1).tables.len(), 3);
    }

    #[test]
    fn everything_counts_in_the_chain() {
        let changes = [image(1, 1, Some(1)), image(1, 2, None), image(2, 1, Some(1))];
        let base = digest(&changes);
        let mut digests =
            vec![base.chain(Digest::ZERO, 1), base.chain(Digest::ZERO, 2), base.chain(Digest([9; 32]), 1)];
        for other in [
            BlockDigest { catalog: Digest::ZERO, ..base.clone() },
            BlockDigest { requests: Digest::ZERO, ..base.clone() },
            digest(&changes[..2]),
            digest(&[image(1, 1, Some(2)), changes[1].clone(), changes[2].clone()]),
            digest(&[image(1, 1, None), changes[1].clone(), changes[2].clone()]),
            digest(&[changes[0].clone(), changes[1].clone(), image(3, 1, Some(1))]),
        ] {
            digests.push(other.chain(Digest::ZERO, 1));
        }
        let different: std::collections::BTreeSet<_> = digests.iter().collect();
        assert_eq!(different.len(), digests.len());
    }

    /// A change of these bytes is a change of the protocol.
    #[test]
    fn the_bytes_that_are_hashed_stay_the_same() {
        let changes = [image(1, 1, Some(1)), image(1, 2, None), image(2, 1, Some(1))];
        let expected = "86b8cff086709147e08670675489b2227a98b381fa6409d482446389a49a5561";
        assert_eq!(digest(&changes).chain(Digest::ZERO, 1).to_string(), expected);
        assert_eq!(digest(&[]).rows_root(), sha256(&[]));
    }

    proptest! {
        #[test]
        fn the_last_image_of_a_row_in_the_block_counts(
            batches in prop::collection::vec(
                prop::collection::btree_map((0u32..3, 0u32..20), prop::option::of(any::<i64>()), 0..20), 0..6),
        ) {
            let (mut merged, mut last) = (BlockChanges::default(), BTreeMap::new());
            for batch in batches {
                merged.add(batch.iter().map(|((table, number), value)| image(*table, *number, *value)).collect());
                last.extend(batch);
            }
            let expected: Vec<_> =
                last.into_iter().map(|((table, number), value)| image(table, number, value)).collect();
            prop_assert_eq!(merged.finish(), expected);
        }
    }

    #[test]
    fn rows_can_be_shared_between_batches_without_a_copy() {
        let row: Row = Arc::from([Value::BigInt(1)]);
        let mut changes = BlockChanges::default();
        let id = RowId { table: TableId(1), key: Key::default() };
        changes.add(vec![AfterImage { row: id, value: Some(row.clone()) }]);
        assert!(Arc::ptr_eq(changes.finish()[0].value.as_ref().unwrap(), &row));
    }
}
