use crate::digest::{Digest, sha256};
use crate::sha256_batch::{Sha256Batch, upper_level};
use borsh::{BorshDeserialize, BorshSerialize};

/// Hash of a leaf: `SHA-256(0x00 ‖ content)` (RFC 9162, 2.1.1).
pub fn leaf_hash(content: &[u8]) -> Digest {
    sha256(&[&[0], content])
}

/// Hash of an inner node: `SHA-256(0x01 ‖ left ‖ right)` (RFC 9162, 2.1.1).
pub fn node_hash(left: &Digest, right: &Digest) -> Digest {
    sha256(&[&[1], &left.0, &right.0])
}

/// Root of the tree over `leaves`, which are leaf hashes; the empty tree has the hash of the empty string.
///
/// The tree of `n` leaves splits at the largest power of two below `n`, which is the same as pairing neighbours level
/// by level and carrying an odd one up unchanged.
pub fn merkle_root(leaves: &[Digest]) -> Digest {
    if leaves.is_empty() {
        return sha256(&[]);
    }
    let mut level = upper_level(leaves);
    while level.len() > 1 {
        let pairs = level.len() / 2;
        for pair in 0..pairs {
            level[pair] = node_hash(&level[2 * pair], &level[2 * pair + 1]);
        }
        if level.len() % 2 == 1 {
            level[pairs] = level[level.len() - 1];
            level.truncate(pairs + 1);
        } else {
            level.truncate(pairs);
        }
    }
    level[0]
}

/// Proof that a leaf is in a tree (RFC 9162, 2.1.3): the siblings on the way from the leaf to the root.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct MerkleProof {
    /// Position of the leaf, from 0.
    pub index: u64,
    /// How many leaves the tree has.
    pub leaves: u64,
    /// Siblings, from the leaf upwards.
    pub siblings: Vec<Digest>,
}

impl MerkleProof {
    /// The proof for leaf `index` of `leaves`, or `None` where there is no such leaf.
    pub fn new(leaves: &[Digest], index: usize) -> Option<MerkleProof> {
        if index >= leaves.len() {
            return None;
        }
        let (mut level, mut position, mut siblings) = (leaves.to_vec(), index, Vec::new());
        while level.len() > 1 {
            if let Some(sibling) = level.get(position ^ 1) {
                siblings.push(*sibling);
            }
            level = level
                .chunks(2)
                .map(|pair| if let [left, right] = pair { node_hash(left, right) } else { pair[0] })
                .collect();
            position /= 2;
        }
        Some(MerkleProof { index: index as u64, leaves: leaves.len() as u64, siblings })
    }

    /// The root of a tree and the proof for each of its leaves, with every node hashed once.
    pub fn all(leaves: &[Digest]) -> (Digest, Vec<MerkleProof>) {
        let proof = |index| MerkleProof { index, leaves: leaves.len() as u64, siblings: Vec::new() };
        let mut proofs: Vec<MerkleProof> = (0..leaves.len() as u64).map(proof).collect();
        let mut level = leaves.to_vec();
        let mut height = 0;
        while level.len() > 1 {
            for proof in &mut proofs {
                proof.siblings.extend(level.get((proof.index as usize >> height) ^ 1));
            }
            level = level
                .chunks(2)
                .map(|pair| if let [left, right] = pair { node_hash(left, right) } else { pair[0] })
                .collect();
            height += 1;
        }
        (level.first().copied().unwrap_or_else(|| merkle_root(leaves)), proofs)
    }

    /// The root that this proof leads to from `leaf`, or `None` where the proof has the wrong number of siblings.
    pub fn root(&self, leaf: Digest) -> Option<Digest> {
        let mut climb = Climb::new(self, leaf)?;
        while let Some((left, right)) = climb.next()? {
            climb.reached = node_hash(&left, &right);
        }
        Some(climb.reached)
    }

    /// [`MerkleProof::root`] of many, all of them level by level, which is several times as quick ([`Sha256Batch`]).
    pub fn roots<'a>(proofs: impl IntoIterator<Item = (&'a MerkleProof, Digest)>) -> Vec<Option<Digest>> {
        let mut climbs: Vec<Option<Climb<'_>>> =
            proofs.into_iter().map(|(proof, leaf)| Climb::new(proof, leaf)).collect();
        let mut climbing: Vec<usize> = (0..climbs.len()).collect();
        while !climbing.is_empty() {
            let mut hashes = Sha256Batch::new();
            climbing.retain(|number| {
                let Some(climb) = &mut climbs[*number] else { return false };
                match climb.next() {
                    Some(Some((left, right))) => {
                        hashes.push(&[&[1], &left.0, &right.0]);
                        true
                    }
                    Some(None) => false,
                    None => {
                        climbs[*number] = None;
                        false
                    }
                }
            });
            for (number, hash) in climbing.iter().zip(hashes.finish()) {
                if let Some(climb) = &mut climbs[*number] {
                    climb.reached = hash;
                }
            }
        }
        climbs.into_iter().map(|climb| climb.map(|climb| climb.reached)).collect()
    }
}

/// The way from a leaf to the root.
struct Climb<'a> {
    position: u64,
    /// Nodes of the level.
    width: u64,
    siblings: std::slice::Iter<'a, Digest>,
    reached: Digest,
}

impl<'a> Climb<'a> {
    fn new(proof: &'a MerkleProof, leaf: Digest) -> Option<Climb<'a>> {
        let (position, width, siblings) = (proof.index, proof.leaves, proof.siblings.iter());
        (position < width).then_some(Climb { position, width, siblings, reached: leaf })
    }

    /// What is hashed next, left and right; `Some(None)` at the root, `None` where siblings are missing or left over.
    fn next(&mut self) -> Option<Option<(Digest, Digest)>> {
        while self.width > 1 {
            let (position, width) = (self.position, self.width);
            self.position /= 2;
            self.width = width.div_ceil(2);
            if position % 2 == 1 {
                return Some(Some((*self.siblings.next()?, self.reached)));
            }
            if position + 1 < width {
                return Some(Some((self.reached, *self.siblings.next()?)));
            }
        }
        self.siblings.next().is_none().then_some(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn leaves(count: usize) -> Vec<Digest> {
        (0..count).map(|i| leaf_hash(&i.to_be_bytes())).collect()
    }

    /// The definition of RFC 9162, 2.1.1, word for word.
    fn recursive_root(leaves: &[Digest]) -> Digest {
        match leaves {
            [] => sha256(&[]),
            [leaf] => *leaf,
            _ => {
                let split = leaves.len().next_power_of_two() / 2;
                node_hash(&recursive_root(&leaves[..split]), &recursive_root(&leaves[split..]))
            }
        }
    }

    #[test]
    fn the_root_is_that_of_rfc_9162() {
        for count in 0..70 {
            assert_eq!(merkle_root(&leaves(count)), recursive_root(&leaves(count)), "{count} leaves");
        }
    }

    proptest! {
        #[test]
        fn every_leaf_is_proved_and_nothing_else(count in 1usize..80, pick in 0usize..80, flip in 0usize..8) {
            let (all, index) = (leaves(count), pick % count);
            let root = merkle_root(&all);
            let proof = MerkleProof::new(&all, index).expect("the leaf exists");
            let (same_root, proofs) = MerkleProof::all(&all);
            prop_assert_eq!((same_root, &proofs[index]), (root, &proof));
            prop_assert_eq!(proof.root(all[index]), Some(root));
            prop_assert_ne!(proof.root(leaf_hash(b"other")), Some(root));
            let mut longer = proof.clone();
            longer.siblings.push(Digest::ZERO);
            prop_assert_eq!(longer.root(all[index]), None);
            if !proof.siblings.is_empty() {
                let mut wrong = proof.clone();
                let at = flip % wrong.siblings.len();
                wrong.siblings[at].0[0] ^= 1;
                prop_assert_ne!(wrong.root(all[index]), Some(root));
            }
            prop_assert!(MerkleProof::new(&all, count).is_none());
            let mut asked: Vec<(&MerkleProof, Digest)> = proofs.iter().zip(all.iter().copied()).collect();
            asked.push((&longer, all[index]));
            let expected: Vec<Option<Digest>> = asked.iter().map(|(proof, leaf)| proof.root(*leaf)).collect();
            prop_assert_eq!(MerkleProof::roots(asked), expected);
        }
    }
}
