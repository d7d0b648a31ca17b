use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// A quick hash of short byte strings with a secret (folded multiplication, as in wyhash).
///
/// Clients choose keys, so a hash without a secret would let one of them make all its keys collide on every node. The
/// secret is the one random thing in the deterministic core; it decides where entries lie in memory and nothing else:
/// no hash table is ever walked in its own order.
#[derive(Clone, Copy)]
pub struct KeyHasher {
    secrets: [u64; 3],
}

impl KeyHasher {
    /// With a secret from the operating system.
    #[expect(clippy::new_without_default, reason = "two of them are different")]
    pub fn new() -> KeyHasher {
        let random = RandomState::new();
        KeyHasher { secrets: [0u64, 1, 2].map(|number| random.hash_one(number) | 1) }
    }

    /// The hash; every bit of it is usable.
    #[inline]
    pub fn hash(&self, bytes: &[u8]) -> u64 {
        let [first, second, third] = self.secrets;
        let mut state = third ^ (bytes.len() as u64);
        let mut rest = bytes;
        while rest.len() > 16 {
            let (head, tail) = rest.split_at(16);
            state = fold(word(&head[..8]) ^ first, word(&head[8..]) ^ second ^ state);
            rest = tail;
        }
        let (low, high) = match rest.len() {
            8.. => (word(&rest[..8]), word(&rest[rest.len() - 8..])),
            4.. => (half_word(&rest[..4]), half_word(&rest[rest.len() - 4..])),
            0 => (0, 0),
            length => (u64::from(rest[0]) << 8 | u64::from(rest[length / 2]), u64::from(rest[length - 1])),
        };
        fold(fold(low ^ first, high ^ state) ^ second, state ^ first)
    }
}

#[inline]
fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("the caller passes 8 bytes"))
}

#[inline]
fn half_word(bytes: &[u8]) -> u64 {
    u64::from(u32::from_le_bytes(bytes.try_into().expect("the caller passes 4 bytes")))
}

#[inline]
fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    (product as u64) ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn neighbouring_keys_spread_over_every_part_of_the_hash() {
        let hasher = KeyHasher::new();
        for length in [1usize, 2, 4, 7, 8, 9, 12, 16, 17, 40] {
            for shift in [0, 16, 32, 48] {
                let parts: BTreeSet<u64> = (0..=255u8)
                    .map(|last| {
                        let mut bytes = vec![7; length];
                        bytes[length - 1] = last;
                        hasher.hash(&bytes) >> shift & 0xffff
                    })
                    .collect();
                assert!(parts.len() > 240, "{length} bytes, bits from {shift}: {} of 256", parts.len());
            }
        }
    }

    #[test]
    fn the_length_counts() {
        let hasher = KeyHasher::new();
        let hashes: BTreeSet<u64> = (0..50).map(|length| hasher.hash(&vec![0; length])).collect();
        assert_eq!(hashes.len(), 50);
    }
}
