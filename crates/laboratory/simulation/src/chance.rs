//! What is left to chance, from a seed (SplitMix64).

use std::time::Duration;

/// The same numbers for the same seed.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// Two purposes of one seed have nothing in common.
    pub fn new(seed: u64, purpose: &str) -> Chance {
        let digest = crypto::sha256(&[&seed.to_le_bytes(), purpose.as_bytes()]);
        Chance(u64::from_le_bytes(std::array::from_fn(|byte| digest.0[byte])))
    }

    /// Any number.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number from `low` to `high`, both included.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.word() % (high - low + 1)
    }

    /// True `percent` times of a hundred.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.word() % 100 < percent
    }

    /// So many milliseconds.
    pub fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_millis(self.within(low, high))
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.word() as usize % from.len()]
    }
}
