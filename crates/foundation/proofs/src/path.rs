use crate::ProofError;
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::{Digest, MerkleProof, node_hash};

/// Levels of a tree.
const LEVELS_MAX: usize = 64;

/// A node beside the way from a leaf to the root.
#[derive(Clone, Copy, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct Sibling {
    /// It stands left of the way.
    pub left: bool,
    /// Its hash.
    pub digest: Digest,
}

/// The way from a leaf of a Merkle tree (RFC 9162) to its root. Says of each sibling on which side it stands, so that
/// every byte of it goes into the root; where the leaf stands is in the leaf itself.
#[derive(Clone, PartialEq, Eq, Debug, Default, BorshSerialize, BorshDeserialize)]
pub struct Path(pub Vec<Sibling>);

impl Path {
    /// The way from leaf `index` of `leaves`; nothing where there is no such leaf.
    pub fn new(leaves: &[Digest], index: usize) -> Option<Path> {
        let proof = MerkleProof::new(leaves, index)?;
        let (mut position, mut width) = (proof.index, proof.leaves);
        let mut siblings = proof.siblings.into_iter();
        let mut path = Path::default();
        while width > 1 {
            let left = position % 2 == 1;
            // The last node of a level with an odd number of them goes up as it is.
            if left || position + 1 < width {
                path.0.push(Sibling { left, digest: siblings.next()? });
            }
            (position, width) = (position / 2, width.div_ceil(2));
        }
        Some(path)
    }

    /// Where it leads from a leaf.
    pub fn root(&self, leaf: Digest) -> Digest {
        self.0.iter().fold(leaf, |reached, sibling| match sibling.left {
            true => node_hash(&sibling.digest, &reached),
            false => node_hash(&reached, &sibling.digest),
        })
    }

    /// Whether its leaf is the first one of the tree.
    pub(crate) fn is_first(&self) -> bool {
        self.0.iter().all(|sibling| !sibling.left)
    }

    /// Whether its leaf is the last one of the tree.
    pub(crate) fn is_last(&self) -> bool {
        self.0.iter().all(|sibling| sibling.left)
    }

    /// Whether the leaf of `after` comes right behind this one's, where both lead to the same root: from above they are one
    /// way, then one goes left and the other right, and from there on along the edge between.
    pub(crate) fn is_next_to(&self, after: &Path) -> bool {
        let (mut left, mut right) = (self.0.as_slice(), after.0.as_slice());
        while let (Some((one, left_rest)), Some((other, right_rest))) =
            (left.split_last(), right.split_last())
        {
            if one == other {
                (left, right) = (left_rest, right_rest);
                continue;
            }
            let edges = left_rest.iter().all(|sibling| sibling.left)
                && right_rest.iter().all(|sibling| !sibling.left);
            return !one.left && other.left && edges;
        }
        false
    }

    pub(crate) fn check_size(&self) -> Result<(), ProofError> {
        match self.0.len() {
            0..=LEVELS_MAX => Ok(()),
            found => Err(ProofError::TooLarge { what: "levels in its path", found, limit: LEVELS_MAX }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypto::{leaf_hash, merkle_root};

    #[test]
    fn every_leaf_of_every_tree_has_a_path_to_the_root() {
        for count in 1..70usize {
            let leaves: Vec<Digest> = (0..count).map(|at| leaf_hash(&at.to_be_bytes())).collect();
            for (index, leaf) in leaves.iter().enumerate() {
                let path = Path::new(&leaves, index).expect("there is such a leaf");
                assert_eq!(path.root(*leaf), merkle_root(&leaves), "{index} of {count}");
            }
            assert_eq!(Path::new(&leaves, count), None);
            let paths: Vec<Path> = (0..count).filter_map(|index| Path::new(&leaves, index)).collect();
            for (one, left) in paths.iter().enumerate() {
                assert_eq!((left.is_first(), left.is_last()), (one == 0, one + 1 == count));
                for (other, right) in paths.iter().enumerate() {
                    assert_eq!(left.is_next_to(right), one + 1 == other, "{one} and {other} of {count}");
                }
            }
        }
    }
}
